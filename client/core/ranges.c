/* SPDX-License-Identifier: MIT */
#include "client/core/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RANGES_MAX 65536u

int mst_ranges_init(struct mst_ranges *r, uint64_t elems)
{
	uint64_t apart = elems / 2 + 1; /* every other element */

	*r = (struct mst_ranges){ .elems = elems };
	r->max = apart < RANGES_MAX ? (uint32_t)apart : RANGES_MAX;
	r->list = calloc(r->max, sizeof(*r->list));
	return r->list != NULL ? 0 : -ENOMEM;
}

void mst_ranges_fini(struct mst_ranges *r)
{
	free(r->list);
	*r = (struct mst_ranges){ .list = NULL };
}

/* Index of the first range that does not begin before @first. */
static uint32_t place_of(const struct mst_ranges *r, uint64_t first)
{
	uint32_t low = 0, high = r->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (r->list[middle].begin < first)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void move_tail(struct mst_ranges *r, uint32_t from, uint32_t to)
{
	memmove(&r->list[to], &r->list[from], (r->count - from) * sizeof(*r->list));
	r->count = r->count - from + to;
}

int mst_ranges_add(struct mst_ranges *r, uint64_t first, uint64_t count)
{
	if (first > r->elems || count > r->elems - first)
		return -ERANGE;
	if (count == 0)
		return 0;

	uint64_t end = first + count;
	uint32_t at = place_of(r, first);
	const struct mst_range *left = at > 0 ? &r->list[at - 1] : NULL;
	const struct mst_range *right = at < r->count ? &r->list[at] : NULL;
	if ((left != NULL && left->end > first) || (right != NULL && right->begin < end))
		return -EEXIST;

	bool joins_left = left != NULL && left->end == first;
	bool joins_right = right != NULL && right->begin == end;
	if (joins_left && joins_right) {
		r->list[at - 1].end = right->end;
		move_tail(r, at + 1, at);
	} else if (joins_left) {
		r->list[at - 1].end = end;
	} else if (joins_right) {
		r->list[at].begin = first;
	} else if (r->count == r->max) {
		return -ENOSPC;
	} else {
		move_tail(r, at, at + 1);
		r->list[at] = (struct mst_range){ first, end };
	}
	return 0;
}

struct mst_range mst_ranges_given(const struct mst_ranges *r, uint64_t first)
{
	uint32_t at = place_of(r, first);

	return r->list[at > 0 && r->list[at - 1].end > first ? at - 1 : at];
}

/* Neighbours are merged: after a range there is a gap, or the end. */
bool mst_ranges_gap(const struct mst_ranges *r, uint64_t from, struct mst_range *out)
{
	uint32_t at = place_of(r, from);

	if (at > 0 && r->list[at - 1].end > from)
		from = r->list[at - 1].end;
	if (at < r->count && r->list[at].begin == from)
		from = r->list[at++].end;
	*out = (struct mst_range){ from, at < r->count ? r->list[at].begin : r->elems };
	return out->begin < out->end;
}
