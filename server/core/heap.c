/* SPDX-License-Identifier: MIT */
#include "server/core/heap.h"

#include <errno.h>
#include <stdlib.h>

int mst_heap_init(struct mst_heap *h, uint32_t ranks)
{
	*h = (struct mst_heap){ 0 };
	h->entry = calloc((size_t)ranks + 1, sizeof(*h->entry));
	h->place = calloc(ranks, sizeof(*h->place));
	return h->entry == NULL || h->place == NULL ? -ENOMEM : 0;
}

uint64_t mst_heap_bytes(uint32_t ranks)
{
	return (ranks + UINT64_C(1)) * sizeof(struct mst_heap_entry) +
	       (uint64_t)ranks * sizeof(uint32_t);
}

void mst_heap_fini(struct mst_heap *h)
{
	free(h->entry);
	free(h->place);
}

static void put(struct mst_heap *h, uint32_t at, struct mst_heap_entry e)
{
	h->entry[at] = e;
	h->place[e.rank] = at;
}

/* Puts @e at @at or nearer to the root. @at is free. */
static void rise(struct mst_heap *h, uint32_t at, struct mst_heap_entry e)
{
	for (; at > 1 && e.key < h->entry[at / 2].key; at /= 2)
		put(h, at, h->entry[at / 2]);
	put(h, at, e);
}

/* Puts @e at @at or farther from the root. @at is free. */
static void sink(struct mst_heap *h, uint32_t at, struct mst_heap_entry e)
{
	for (uint32_t child; (child = 2 * at) <= h->count; at = child) {
		if (child < h->count && h->entry[child + 1].key < h->entry[child].key)
			child++;
		if (e.key <= h->entry[child].key)
			break;
		put(h, at, h->entry[child]);
	}
	put(h, at, e);
}

void mst_heap_set(struct mst_heap *h, uint32_t rank, uint64_t key)
{
	struct mst_heap_entry e = { key, rank };
	uint32_t at = h->place[rank];

	if (at == 0)
		rise(h, ++h->count, e);
	else if (key < h->entry[at].key)
		rise(h, at, e);
	else if (key > h->entry[at].key)
		sink(h, at, e);
}

void mst_heap_remove(struct mst_heap *h, uint32_t rank)
{
	uint32_t at = h->place[rank];

	if (at == 0)
		return;
	MST_ASSERT(at <= h->count && h->entry[at].rank == rank);
	struct mst_heap_entry last = h->entry[h->count--];
	h->place[rank] = 0;
	if (last.rank == rank)
		return;
	if (at > 1 && last.key < h->entry[at / 2].key)
		rise(h, at, last);
	else
		sink(h, at, last);
}
