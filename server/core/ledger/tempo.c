/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/tempo.h"

#include <string.h>

void mst_tempo_add(struct mst_tempo *t, uint64_t ns)
{
	t->recent_ns[t->next] = ns;
	t->next = (t->next + 1) % MST_TEMPO_RECENT;
	if (t->count < MST_TEMPO_RECENT)
		t->count++;
}

uint64_t mst_tempo_median(const struct mst_tempo *t)
{
	uint64_t sorted[MST_TEMPO_RECENT];

	if (t->count < MST_TEMPO_KNOWN)
		return 0;
	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t at = i;
		for (; at > 0 && sorted[at - 1] > t->recent_ns[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = t->recent_ns[i];
	}
	return sorted[(t->count - 1) / 2];
}

uint64_t mst_tempo_least(const struct mst_tempo *t)
{
	uint64_t least = UINT64_MAX;

	if (t->count < MST_TEMPO_KNOWN)
		return 0;
	for (uint32_t i = 0; i < t->count; i++)
		least = t->recent_ns[i] < least ? t->recent_ns[i] : least;
	return least;
}

uint64_t mst_tempo_last(const struct mst_tempo *t)
{
	return t->recent_ns[(t->next + MST_TEMPO_RECENT - 1) % MST_TEMPO_RECENT];
}
