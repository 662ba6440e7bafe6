/* SPDX-License-Identifier: MIT */
/* Parts of a vector: all of it, in order, by weight, with borders that pages and units lie on. */
#include <errno.h>
#include <stddef.h>

#include "common/wire/lane.h"
#include "common/wire/part.h"
#include "tests/ut.h"

#define MI (INT64_C(1) << 20)

static uint64_t lengths[] = {
	1,       4095,    4096,    4097,     20000,    79510,     1 << 20,
	4000003, 8 << 20, 9000000, 32 << 20, 26214400, 300000001, MST_ELEMS_MAX,
};
static const uint32_t uneven[MST_SERVERS_MAX] = {
	3, 1, 1, 7, 2, 1, 1000, 5, 1, 1, 1, 9, 1, 2, 1, 4
};

static void check_parts(uint64_t elems, uint32_t servers, const uint32_t *weights)
{
	int64_t at = mst_part_border(elems, servers, weights, 0);

	if (at == -EINVAL) { /* then for every border, and only where pages are too few */
		for (uint32_t k = 0; k <= servers; k++)
			CU_ASSERT_EQUAL(mst_part_border(elems, servers, weights, k), -EINVAL);
		CU_ASSERT(weights != NULL || elems / MST_PART_ELEMS_MIN < servers);
		return;
	}
	CU_ASSERT_EQUAL(at, 0);
	for (uint32_t k = 1; k <= servers; k++) {
		int64_t next = mst_part_border(elems, servers, weights, k);
		CU_ASSERT(next > at);
		CU_ASSERT(k == servers || next % MST_PART_ELEMS_MIN == 0);
		at = next;
	}
	CU_ASSERT_EQUAL(at, (int64_t)elems);
}

static void parts_cover_the_vector_in_order(void)
{
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (uint32_t servers = 1; servers <= MST_SERVERS_MAX; servers++) {
			check_parts(lengths[i], servers, NULL);
			check_parts(lengths[i], servers, uneven);
		}
	}
}

static void borders_lie_on_the_widest_unit_that_fits(void)
{
	CU_ASSERT_EQUAL(mst_part_border(10 * MI, 2, NULL, 1), 5 * MI);
	CU_ASSERT_EQUAL(mst_part_border(9 * MI, 2, NULL, 1), 4 * MI);
	/* Parts of under 4 Mi: by 32 Ki. */
	CU_ASSERT_EQUAL(mst_part_border(7 * MI, 2, NULL, 1), 7 * MI / 2);
	CU_ASSERT_EQUAL(mst_part_border(100000, 2, NULL, 1), 32768);
	/* A vector under 32 Ki is divided by pages. */
	CU_ASSERT_EQUAL(mst_part_border(20000, 2, NULL, 1), 8192);
	CU_ASSERT_EQUAL(mst_part_border(20000, 3, NULL, 2), 12288);
}

static void a_weight_is_a_share(void)
{
	static const uint32_t heavy[] = { 2, 1, 1 };

	CU_ASSERT_EQUAL(mst_part_border(64 * MI, 3, heavy, 1), 32 * MI);
	CU_ASSERT_EQUAL(mst_part_border(64 * MI, 3, heavy, 2), 48 * MI);
}

static void an_empty_part_is_refused(void)
{
	static const uint32_t light[] = { 1000, 1 };

	CU_ASSERT_EQUAL(mst_part_border(4096, 2, NULL, 1), -EINVAL);
	CU_ASSERT_EQUAL(mst_part_border(8191, 2, NULL, 1), -EINVAL);
	CU_ASSERT_EQUAL(mst_part_border(8192, 2, NULL, 1), 4096);
	/* Rounded down, the first part is 999 parts of 1001 and the second the rest. */
	CU_ASSERT_EQUAL(mst_part_border(8192, 2, light, 1), 4096);
	CU_ASSERT_EQUAL(mst_part_border(8192, 2, (const uint32_t[]){ 1, 1000 }, 1), -EINVAL);
}

static void figures_that_cannot_be_are_refused(void)
{
	CU_ASSERT_EQUAL(mst_part_border(0, 1, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(mst_part_border(MST_ELEMS_MAX + 1, 1, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(mst_part_border(4096, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(mst_part_border(1 << 20, MST_SERVERS_MAX + 1, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(mst_part_border(4096, 1, NULL, 2), -EINVAL);
	CU_ASSERT_EQUAL(mst_part_border(1 << 20, 2, (const uint32_t[]){ 1, 0 }, 1), -EINVAL);
	CU_ASSERT_EQUAL(mst_part_border(1 << 20, 2, (const uint32_t[]){ 0, 0 }, 1), -EINVAL);
	CU_ASSERT(mst_part_border(1 << 30, 2, (const uint32_t[]){ 1, 1000 }, 1) > 0);
	CU_ASSERT_EQUAL(mst_part_border(1 << 30, 2, (const uint32_t[]){ 1, 1001 }, 1), -EINVAL);
}

static CU_TestInfo cases[] = {
	{ "parts cover the vector in order", parts_cover_the_vector_in_order },
	{ "borders lie on the widest unit that fits", borders_lie_on_the_widest_unit_that_fits },
	{ "a weight is a share", a_weight_is_a_share },
	{ "an empty part is refused", an_empty_part_is_refused },
	{ "figures that cannot be are refused", figures_that_cannot_be_are_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("part", cases);
}
