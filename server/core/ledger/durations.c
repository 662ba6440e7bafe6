/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/durations.h"

#include <string.h>

void mst_durations_add(struct mst_durations *t, uint64_t ns)
{
	t->recent_ns[t->next] = ns;
	t->next = (t->next + 1) % MST_DURATIONS_RECENT;
	if (t->count < MST_DURATIONS_RECENT)
		t->count++;
}

uint64_t mst_durations_median(const struct mst_durations *t)
{
	uint64_t sorted[MST_DURATIONS_RECENT];

	if (t->count < MST_DURATIONS_KNOWN)
		return 0;
	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t at = i;
		for (; at > 0 && sorted[at - 1] > t->recent_ns[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = t->recent_ns[i];
	}
	return sorted[(t->count - 1) / 2];
}

uint64_t mst_durations_least(const struct mst_durations *t)
{
	uint64_t least = UINT64_MAX;

	if (t->count < MST_DURATIONS_KNOWN)
		return 0;
	for (uint32_t i = 0; i < t->count; i++)
		least = t->recent_ns[i] < least ? t->recent_ns[i] : least;
	return least;
}

uint64_t mst_durations_last(const struct mst_durations *t)
{
	return t->recent_ns[(t->next + MST_DURATIONS_RECENT - 1) % MST_DURATIONS_RECENT];
}
