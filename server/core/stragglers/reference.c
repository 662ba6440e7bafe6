/* SPDX-License-Identifier: MIT */
#include "server/core/stragglers/reference.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

static int by_length(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void mst_reference_sort(uint64_t *ns, uint32_t count)
{
	qsort(ns, count, sizeof(*ns), by_length);
}

static uint64_t mean_of(const struct mst_reference *ref)
{
	uint64_t most_ns = MST_REFERENCE_CUT * ref->sorted_ns[ref->count / 2];
	double sum = 0;

	for (uint32_t i = 0; i < ref->count; i++)
		sum += (double)(ref->sorted_ns[i] < most_ns ? ref->sorted_ns[i] : most_ns);
	return (uint64_t)(sum / ref->count);
}

void mst_reference_make(struct mst_reference *ref, const uint64_t *ns, uint32_t count)
{
	MST_ASSERT(count <= MST_REFERENCE_MOST);
	ref->count = count < MST_REFERENCE_LEAST ? 0 : count;
	ref->mean_ns = 0;
	if (ref->count == 0)
		return;
	memcpy(ref->sorted_ns, ns, count * sizeof(*ns));
	mst_reference_sort(ref->sorted_ns, count);
	ref->mean_ns = mean_of(ref);
}

/* Return: how many durations are shorter than @ns. */
static uint32_t shorter(const struct mst_reference *ref, uint64_t ns)
{
	uint32_t from = 0, to = ref->count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		if (ref->sorted_ns[middle] < ns)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

double mst_reference_share(const struct mst_reference *ref, uint64_t ns)
{
	return (1.0 + (ref->count - shorter(ref, ns))) / (1.0 + ref->count);
}

uint64_t mst_reference_cut(const struct mst_reference *ref, uint64_t ns)
{
	uint64_t most_ns = MST_REFERENCE_CUT * ref->mean_ns;

	return ns < most_ns ? ns : most_ns;
}
