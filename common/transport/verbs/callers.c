/* SPDX-License-Identifier: MIT */
#include "common/transport/verbs/callers.h"

#include <string.h>

#include "common/transport/token.h"

int mst_verbs_callers_find(const struct mst_verbs_coming *coming, uint32_t count,
			   const uint8_t *token)
{
	for (uint32_t i = 0; i < count; i++) {
		if (coming[i].here && mst_token_is(coming[i].token, token))
			return (int)i;
	}
	return -1;
}

static uint32_t count_from(const struct mst_verbs_coming *coming, uint32_t count,
			   const struct mst_origin *from)
{
	uint32_t same = 0;

	for (uint32_t i = 0; i < count; i++)
		same += coming[i].here && memcmp(&coming[i].from, from, sizeof(*from)) == 0;
	return same;
}

int mst_verbs_callers_yield(const struct mst_verbs_coming *coming, uint32_t count)
{
	uint32_t most = 0;
	int yields = -1;

	for (uint32_t i = 0; i < count; i++) {
		if (!coming[i].here)
			continue;
		uint32_t same = count_from(coming, count, &coming[i].from);
		bool older = yields >= 0 && coming[i].since_ns < coming[yields].since_ns;
		if (same > most || (same == most && older)) {
			most = same;
			yields = (int)i;
		}
	}
	return yields;
}
