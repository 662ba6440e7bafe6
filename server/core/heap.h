/* SPDX-License-Identifier: MIT */
/*
 * A heap of ranks. Each rank has a key; the rank with the least key comes first, and any rank may
 * get another key or be removed. The ledger uses heaps where it needs with every event the least
 * number that its members have: their clocks, their leases. Pure.
 */
#ifndef MST_SERVER_CORE_HEAP_H
#define MST_SERVER_CORE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/assert.h"

struct mst_heap_entry {
	uint64_t key;
	uint32_t rank;
};

struct mst_heap {
	uint32_t count;
	struct mst_heap_entry *entry; /* from 1 on; entry[i] is never less than entry[i / 2] */
	uint32_t *place; /* index of the rank's entry; 0: the rank is not in the heap */
};

/* Makes an empty heap for ranks below @ranks.
 * Return: 0 or -ENOMEM. */
int mst_heap_init(struct mst_heap *h, uint32_t ranks);
uint64_t mst_heap_bytes(uint32_t ranks); /* that mst_heap_init() allocates */
void mst_heap_fini(struct mst_heap *h);  /* accepts a heap that is all zero */

static inline bool mst_heap_has(const struct mst_heap *h, uint32_t rank)
{
	return h->place[rank] != 0;
}
/* Adds @rank, or changes its key. */
void mst_heap_set(struct mst_heap *h, uint32_t rank, uint64_t key);
/* Removes @rank; does nothing if it is not in the heap. */
void mst_heap_remove(struct mst_heap *h, uint32_t rank);

/* The least key; UINT64_MAX if the heap is empty. */
static inline uint64_t mst_heap_least(const struct mst_heap *h)
{
	return h->count > 0 ? h->entry[1].key : UINT64_MAX;
}
/* A rank that has the least key. The heap must not be empty. */
static inline uint32_t mst_heap_first(const struct mst_heap *h)
{
	MST_ASSERT(h->count > 0);
	return h->entry[1].rank;
}

#endif
