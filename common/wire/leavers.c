/* SPDX-License-Identifier: MIT */
#include "common/wire/leavers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static __attribute__((format(printf, 2, 3))) void add(char *out, const char *fmt, ...)
{
	size_t have = strlen(out);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(out + have, MST_LEAVERS_LEN - have, fmt, args);
	va_end(args);
}

static bool left_early(const struct mst_status_rank *row, uint64_t version)
{
	return row->state == MST_RANK_LEFT && row->gone_at < version;
}

void mst_leavers_line(const struct mst_status_rank *row, uint32_t count, uint64_t version,
		      char out[MST_LEAVERS_LEN])
{
	uint32_t leavers = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		if (!left_early(&row[i], version))
			continue;
		if (leavers++ < MST_LEAVERS_MAX)
			add(out, "%srank %" PRIu32 "%s at version %" PRIu64,
			    leavers > 1 ? ", " : "", row[i].rank, leavers > 1 ? "" : " left",
			    row[i].gone_at);
	}
	if (leavers > MST_LEAVERS_MAX)
		add(out, " and %" PRIu32 " more before the end", leavers - MST_LEAVERS_MAX);
	if (leavers > 0)
		add(out, "; the job ended at version %" PRIu64, version);
}
