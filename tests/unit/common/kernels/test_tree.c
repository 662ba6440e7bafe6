/* SPDX-License-Identifier: MIT */
/*
 * The promise of common/kernels/tree.h: the bits of a total depend on the set alone. Held against a
 * recursion over single elements that knows nothing of leaves summed before, passes or scratch.
 */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "common/base/rand.h"
#include "common/kernels/sum.h"
#include "common/kernels/tree.h"
#include "tests/unit/common/kernels/reference_float.h"
#include "tests/ut.h"

#define ELEMS 700 /* more than two tiles of the kernel */
#define RANKS 40
#define REPEATS 4
#define ROUNDS 150

struct contribution {
	uint32_t rank;
	float coefficient;
	float wide[ELEMS]; /* the gradient, widened by the reference */
	uint16_t half[ELEMS];
};

/* A random set, and the leaves through which the kernels see it. */
struct set {
	enum muster_type type;
	uint32_t group;
	size_t count, leaf_count;
	struct contribution member[RANKS * REPEATS];
	struct mst_leaf leaf[RANKS * REPEATS];
	float partial[RANKS][ELEMS];
};

enum level { MEMBER, RANK, GROUP, TOTAL };

/* Two members stand in the same node of a level iff this is the same for both. */
static size_t node(const struct set *set, size_t i, enum level level)
{
	switch (level) {
	case MEMBER:
		return i;
	case RANK:
		return set->member[i].rank;
	case GROUP:
		return set->member[i].rank / set->group;
	default:
		return 0;
	}
}

/* The sum of element `e` over members [at, end), all in one node of this level. */
static float node_sum(const struct set *set, enum level level, size_t at, size_t end, size_t e)
{
	const struct contribution *m = &set->member[at];
	size_t next = at;
	float sum = 0;

	if (level == MEMBER)
		return m->coefficient == 1 ? m->wide[e]
					   : rounded_product(m->coefficient, m->wide[e]);
	for (size_t i = at; i < end; i = next) {
		while (next < end && node(set, next, level - 1) == node(set, i, level - 1))
			next++;
		float child = node_sum(set, level - 1, i, next, e);
		sum = i == at ? child : rounded_sum(sum, child);
	}
	return sum;
}

/* Ordinary numbers of mixed sizes, which round when they are added; now and then a special one. */
static float element(struct mst_rand *rand)
{
	static const float special[] = { 0.0f, -0.0f, 0x1p-130f, -0x1p-149f, INFINITY, -INFINITY };
	float number = ldexpf((float)mst_rand_normal(rand), (int)mst_rand_below(rand, 12) - 6);
	uint64_t which = mst_rand_below(rand, 150);

	return which < 6 ? special[which] : number;
}

static void fill(struct mst_rand *rand, const struct set *set, struct contribution *m)
{
	const struct format *f = set->type == MUSTER_BF16 ? &bf16 : &f16;

	for (size_t e = 0; e < ELEMS; e++) {
		m->wide[e] = element(rand);
		if (set->type == MUSTER_F32)
			continue;
		m->half[e] = pattern_of(f, m->wide[e]);
		m->wide[e] = value_of(f, m->half[e]);
	}
}

static void add_member(struct mst_rand *rand, struct set *set, uint32_t rank)
{
	struct contribution *m = &set->member[set->count++];

	m->rank = rank;
	m->coefficient = mst_rand_below(rand, 2) == 0 ? 1 : (float)mst_rand_unit(rand) * 2;
	fill(rand, set, m);
}

/* Shows members [at, end) of a rank as leaves, the first `summed` of them as one partial leaf. */
static void add_leaves(struct set *set, size_t at, size_t end, size_t summed)
{
	uint32_t rank = set->member[at].rank;

	if (summed > 0) {
		for (size_t e = 0; e < ELEMS; e++)
			set->partial[rank][e] = node_sum(set, RANK, at, at + summed, e);
		set->leaf[set->leaf_count++] = (struct mst_leaf){ .rank = rank,
								  .coefficient = NAN,
								  .partial = true,
								  .data = set->partial[rank] };
	}
	for (size_t i = at + summed; i < end; i++) {
		const struct contribution *m = &set->member[i];

		set->leaf[set->leaf_count++] = (struct mst_leaf){
			.rank = rank,
			.coefficient = m->coefficient,
			.data = set->type == MUSTER_F32 ? (const void *)m->wide : m->half,
		};
	}
}

static void draw_set(struct mst_rand *rand, struct set *set)
{
	uint32_t ranks = 1 + (uint32_t)mst_rand_below(rand, RANKS);
	uint64_t repeats = 1 + mst_rand_below(rand, REPEATS);
	uint32_t one_at_least = (uint32_t)mst_rand_below(rand, ranks);

	set->type = (enum muster_type)mst_rand_below(rand, 3);
	set->group = 1 + (uint32_t)mst_rand_below(rand, 10);
	set->count = set->leaf_count = 0;
	for (uint32_t rank = 0; rank < ranks; rank++) {
		size_t at = set->count;
		uint64_t times = mst_rand_below(rand, repeats + 1);

		if (rank == one_at_least && times == 0)
			times = 1;
		for (uint64_t i = 0; i < times; i++)
			add_member(rand, set, rank);
		if (times > 0)
			add_leaves(set, at, set->count, mst_rand_below(rand, times + 1));
	}
}

/* Sums it in chunks that start and end anywhere. @return: wrong elements. */
static unsigned tree_wrong(struct mst_rand *rand, const struct set *set)
{
	struct mst_tree tree = { set->type, set->group, set->leaf, set->leaf_count };
	float total[ELEMS + 1], scratch[2 * ELEMS + 1];
	unsigned wrong = 0;

	total[ELEMS] = scratch[2 * ELEMS] = 7;
	for (size_t first = 0, count; first < ELEMS; first += count) {
		count = 1 + mst_rand_below(rand, ELEMS - first);
		mst_tree_sum(&tree, first, count, total + first, scratch);
	}
	for (size_t e = 0; e < ELEMS; e++)
		wrong += !same(total[e], node_sum(set, TOTAL, 0, set->count, e));
	return wrong + (total[ELEMS] != 7) + (scratch[2 * ELEMS] != 7);
}

static void random_sets_have_the_references_bits(void)
{
	static struct set set;
	struct mst_rand rand;

	mst_rand_seed(&rand, 7);
	for (unsigned round = 0; round < ROUNDS; round++) {
		draw_set(&rand, &set);
		CU_ASSERT_EQUAL_FATAL(tree_wrong(&rand, &set), 0);
	}
}

/* The total of one-element leaves with coefficient 1. */
static float total_of(uint32_t group, const uint32_t *rank, const float *g, size_t count)
{
	struct mst_leaf leaf[8];
	struct mst_tree tree = { MUSTER_F32, group, leaf, count };
	float total, scratch[2];

	for (size_t i = 0; i < count; i++)
		leaf[i] = (struct mst_leaf){ .rank = rank[i], .coefficient = 1, .data = &g[i] };
	mst_tree_sum(&tree, 0, 1, &total, scratch);
	return total;
}

/* 2^24 + 1 rounds back to 2^24, so it shows which ones were added to each other before. */
static const float big_and_ones[] = { 0x1p24f, 1, 1, 1 };

static void groups_are_of_ranks_not_of_positions(void)
{
	static const uint32_t dense[] = { 0, 1, 2, 3 }, gap[] = { 0, 2, 3 };

	CU_ASSERT_EQUAL(total_of(1, dense, big_and_ones, 4), 0x1p24f);
	CU_ASSERT_EQUAL(total_of(2, dense, big_and_ones, 4), 0x1p24f + 2);
	CU_ASSERT_EQUAL(total_of(8, dense, big_and_ones, 4), 0x1p24f);
	CU_ASSERT_EQUAL(total_of(2, gap, big_and_ones, 3), 0x1p24f + 2);
	CU_ASSERT_EQUAL(total_of(3, gap, big_and_ones, 3), 0x1p24f);
	CU_ASSERT_EQUAL(total_of(4, gap, big_and_ones, 3), 0x1p24f);
}

static void a_rank_is_summed_before_it_joins(void)
{
	static const uint32_t apart[] = { 0, 1, 1 }, together[] = { 0, 0, 0 };

	CU_ASSERT_EQUAL(total_of(8, apart, big_and_ones, 3), 0x1p24f + 2);
	CU_ASSERT_EQUAL(total_of(1, apart, big_and_ones, 3), 0x1p24f + 2);
	CU_ASSERT_EQUAL(total_of(8, together, big_and_ones, 3), 0x1p24f);
}

static void a_single_leaf_is_the_total(void)
{
	static const uint32_t rank[] = { 5 };
	static const float minus_zero[] = { -0.0f };

	CU_ASSERT_EQUAL(bits_of(total_of(8, rank, minus_zero, 1)), 0x80000000u);
}

static CU_TestInfo cases[] = {
	{ "random sets have the bits of the reference", random_sets_have_the_references_bits },
	{ "groups are of ranks, absent ones included, not of positions",
	  groups_are_of_ranks_not_of_positions },
	{ "a rank's contributions are summed before they join the others",
	  a_rank_is_summed_before_it_joins },
	{ "a single leaf is the total, -0.0 too", a_single_leaf_is_the_total },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("tree", cases);
}
