/* SPDX-License-Identifier: MIT */
/* Sets of ranks and heaps of ranks, against plain arrays of all ranks. */
#include <stdlib.h>

#include "common/base/rand.h"
#include "server/core/heap.h"
#include "server/core/ranks.h"
#include "tests/ut.h"

/* Where a level of the set begins or ends. */
static const uint32_t sizes[] = { 1, 2, 63, 64, 65, 130, 4095, 4096, 4097, 9000, MST_RANKS_MAX };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static uint32_t next_of(const bool *in, uint32_t count, uint32_t from)
{
	for (uint32_t rank = from; rank < count; rank++) {
		if (in[rank])
			return rank;
	}
	return MST_RANK_NONE;
}

static void set_is_what_was_added(void)
{
	struct mst_rand rand;

	mst_rand_seed(&rand, 1);
	for (size_t i = 0; i < SIZES; i++) {
		uint32_t size = sizes[i], count = 0;
		bool *in = calloc(size, sizeof(*in));
		struct mst_ranks s;
		CU_ASSERT_FATAL(in != NULL && mst_ranks_init(&s, size) == 0);
		for (int step = 0; step < 500; step++) {
			uint32_t rank = (uint32_t)mst_rand_below(&rand, size);
			bool add = mst_rand_below(&rand, 2) == 0;
			count += (uint32_t)add - (uint32_t)in[rank];
			in[rank] = add;
			if (add)
				mst_ranks_add(&s, rank);
			else
				mst_ranks_remove(&s, rank);
			uint32_t from = (uint32_t)mst_rand_below(&rand, size);
			CU_ASSERT_EQUAL(s.count, count);
			CU_ASSERT_EQUAL(mst_ranks_has(&s, rank), add);
			if (size < MST_RANKS_MAX || step % 50 == 0)
				CU_ASSERT_EQUAL(mst_ranks_next(&s, from), next_of(in, size, from));
		}
		mst_ranks_fini(&s);
		free(in);
	}
}

static void ends_of_a_set_are_found(void)
{
	for (size_t i = 0; i < SIZES; i++) {
		uint32_t last = sizes[i] - 1;
		struct mst_ranks s;
		CU_ASSERT_FATAL(mst_ranks_init(&s, sizes[i]) == 0);
		CU_ASSERT_EQUAL(mst_ranks_first(&s), MST_RANK_NONE);
		mst_ranks_add(&s, last);
		CU_ASSERT_EQUAL(mst_ranks_first(&s), last);
		CU_ASSERT_EQUAL(mst_ranks_next(&s, last), last);
		CU_ASSERT_EQUAL(mst_ranks_next(&s, last + 1), MST_RANK_NONE);
		mst_ranks_add(&s, 0);
		CU_ASSERT_EQUAL(mst_ranks_first(&s), 0);
		mst_ranks_remove(&s, last);
		CU_ASSERT_EQUAL(mst_ranks_next(&s, 1), MST_RANK_NONE);
		mst_ranks_fini(&s);
	}
}

#define HEAPED 300u

static uint64_t least_of(const uint64_t *key)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t rank = 0; rank < HEAPED; rank++)
		least = key[rank] < least ? key[rank] : least;
	return least;
}

/* Is none less than that above it, and each where it is said to be? */
static bool is_heap(const struct mst_heap *h)
{
	for (uint32_t at = 1; at <= h->count; at++) {
		if (h->place[h->entry[at].rank] != at ||
		    (at > 1 && h->entry[at].key < h->entry[at / 2].key))
			return false;
	}
	return true;
}

static void heap_knows_the_least(void)
{
	uint64_t key[HEAPED];
	struct mst_rand rand;
	struct mst_heap h;

	mst_rand_seed(&rand, 2);
	CU_ASSERT_FATAL(mst_heap_init(&h, HEAPED) == 0);
	for (uint32_t rank = 0; rank < HEAPED; rank++)
		key[rank] = UINT64_MAX; /* not there */
	CU_ASSERT_EQUAL(mst_heap_least(&h), UINT64_MAX);
	for (int step = 0; step < 20000; step++) {
		uint32_t rank = (uint32_t)mst_rand_below(&rand, HEAPED);
		if (mst_rand_below(&rand, 3) == 0) {
			key[rank] = UINT64_MAX;
			mst_heap_remove(&h, rank);
		} else {
			key[rank] = mst_rand_below(&rand, 1000); /* many are equal */
			mst_heap_set(&h, rank, key[rank]);
		}
		CU_ASSERT_EQUAL(mst_heap_has(&h, rank), key[rank] != UINT64_MAX);
		CU_ASSERT_EQUAL(mst_heap_least(&h), least_of(key));
		CU_ASSERT(is_heap(&h));
		if (h.count > 0)
			CU_ASSERT_EQUAL(key[mst_heap_first(&h)], mst_heap_least(&h));
	}
	mst_heap_fini(&h);
}

static void heap_empties_in_order(void)
{
	struct mst_rand rand;
	struct mst_heap h;
	uint64_t last = 0;

	mst_rand_seed(&rand, 3);
	CU_ASSERT_FATAL(mst_heap_init(&h, HEAPED) == 0);
	for (uint32_t rank = 0; rank < HEAPED; rank++)
		mst_heap_set(&h, rank, mst_rand_below(&rand, 100));
	CU_ASSERT_EQUAL(h.count, HEAPED);
	for (uint32_t left = HEAPED; left > 0; left--) {
		CU_ASSERT(mst_heap_least(&h) >= last);
		CU_ASSERT_EQUAL(h.count, left);
		last = mst_heap_least(&h);
		mst_heap_remove(&h, mst_heap_first(&h));
	}
	mst_heap_fini(&h);
}

static CU_TestInfo cases[] = {
	{ "a set has what was added, and finds the next from anywhere", set_is_what_was_added },
	{ "the first and last rank of a set are found", ends_of_a_set_are_found },
	{ "a heap knows the least, whatever changes or goes", heap_knows_the_least },
	{ "a heap empties in order", heap_empties_in_order },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ranks", cases);
}
