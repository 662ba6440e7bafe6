/* SPDX-License-Identifier: MIT */
/* How far two versions are apart: the same bits, however the vector is divided and worked off. */
#include <string.h>

#include "common/kernels/sum.h"
#include "server/data/aggregator.h"
#include "server/data/distance.h"
#include "tests/ut.h"

#define BLOCK MST_SHARD_ELEMS_MIN
#define ELEMS (5 * BLOCK + 777)

static float now[ELEMS], from[ELEMS];

static void fill(void)
{
	for (uint64_t i = 0; i < ELEMS; i++) {
		now[i] = (float)(i % 1013) / 7;
		from[i] = (float)(i % 499) / 3;
	}
}

/* Compares @range of the elements that a server has, which begin with @first, at most @chunk at a
 * time. */
static void compare(uint64_t first, struct mst_span range, uint64_t chunk,
		    struct mst_exact_sum *sum)
{
	struct mst_aggregator_cfg cfg = { .distances = true, .first = first };
	struct mst_distance_pass *p;

	CU_ASSERT_EQUAL_FATAL(mst_distance_new(&cfg, range, &p), 0);
	mst_distance_begin(p, now + first, from + first);
	for (uint64_t at = range.begin; at < range.end;) {
		at = at + chunk < range.end ? at + chunk : range.end;
		mst_distance_go_on(p, at);
	}
	mst_exact_join(sum, mst_distance_square(p));
	mst_distance_free(p);
}

static void a_square_has_the_same_bits_however_it_is_divided(void)
{
	struct mst_exact_sum whole = { { 0 } }, chunks = { { 0 } }, parts = { { 0 } };
	double about = 0;

	fill();
	compare(0, (struct mst_span){ 0, ELEMS }, ELEMS, &whole);
	compare(0, (struct mst_span){ 0, ELEMS }, 1000, &chunks);
	compare(0, (struct mst_span){ 0, BLOCK }, 1024, &parts);
	compare(BLOCK, (struct mst_span){ 0, 2 * BLOCK }, 5000, &parts);
	compare(BLOCK, (struct mst_span){ 2 * BLOCK, ELEMS - BLOCK }, 3, &parts);
	CU_ASSERT_EQUAL(memcmp(&whole, &chunks, sizeof(whole)), 0);
	CU_ASSERT_EQUAL(memcmp(&whole, &parts, sizeof(whole)), 0);
	for (uint64_t i = 0; i < ELEMS; i++)
		about += (double)(now[i] - from[i]) * (double)(now[i] - from[i]);
	CU_ASSERT_DOUBLE_EQUAL(mst_exact_value(&whole), about, about * 1e-12);
}

static void a_version_has_no_distance_from_itself(void)
{
	struct mst_aggregator_cfg cfg = { .distances = true };
	struct mst_distance_pass *p;

	fill();
	CU_ASSERT_EQUAL_FATAL(mst_distance_new(&cfg, (struct mst_span){ 0, ELEMS }, &p), 0);
	mst_distance_begin(p, now, from);
	mst_distance_go_on(p, ELEMS);
	CU_ASSERT(mst_exact_value(mst_distance_square(p)) > 0);
	mst_distance_begin(p, now, now);
	mst_distance_go_on(p, ELEMS);
	CU_ASSERT_EQUAL(mst_exact_value(mst_distance_square(p)), 0);
	mst_distance_free(p);
}

static void nothing_is_allocated_where_no_distance_is_wanted(void)
{
	struct mst_aggregator_cfg cfg = { .distances = false };
	struct mst_distance_pass *p;

	CU_ASSERT_EQUAL(mst_distance_bytes(&cfg), 0);
	CU_ASSERT_EQUAL(mst_distance_new(&cfg, (struct mst_span){ 0, ELEMS }, &p), 0);
	CU_ASSERT_PTR_NULL(p);
}

static CU_TestInfo cases[] = {
	{ "a square has the same bits however it is divided",
	  a_square_has_the_same_bits_however_it_is_divided },
	{ "a version has no distance from itself", a_version_has_no_distance_from_itself },
	{ "nothing is allocated where no distance is wanted",
	  nothing_is_allocated_where_no_distance_is_wanted },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("distance", cases);
}
