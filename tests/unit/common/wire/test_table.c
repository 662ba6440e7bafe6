/* SPDX-License-Identifier: MIT */
/* What a hello says of a table of tensors: the same of the same table, and another of any other. */
#include <string.h>

#include "common/wire/table.h"
#include "tests/ut.h"

static const struct muster_tensor layers[] = {
	{ "w", 0, 12, 1, 1 },
	{ "b", 12, 4, 1, 1 },
	{ NULL, 16, 1, 1, 1 },
};

static struct mst_table of(const struct muster_tensor *tensor)
{
	struct mst_table t;

	mst_table_of(tensor, 3, &t);
	return t;
}

static void no_table_has_no_digests(void)
{
	struct mst_table t;

	mst_table_of(NULL, 0, &t);
	CU_ASSERT_EQUAL(t.tensors, 0);
	CU_ASSERT_EQUAL(t.names, 0);
	CU_ASSERT_EQUAL(t.places, 0);
	CU_ASSERT_EQUAL(t.runs, 0);
	CU_ASSERT_EQUAL(t.scales, 0);
}

static void a_copy_has_the_same_digests(void)
{
	struct muster_tensor copy[3];
	char w[] = "w";

	memcpy(copy, layers, sizeof(copy));
	copy[0].name = w;
	copy[2].name = "";
	struct mst_table a = of(layers), b = of(copy);
	CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof(a)), 0);
	CU_ASSERT_EQUAL(a.tensors, 3);
	CU_ASSERT_EQUAL(a.name_bytes, sizeof("w") + sizeof("b") + sizeof(""));
}

static void another_place_has_another_digest(void)
{
	struct muster_tensor other[3];

	memcpy(other, layers, sizeof(other));
	other[0].count++, other[1].first++, other[1].count--;
	struct mst_table a = of(layers), b = of(other);
	CU_ASSERT_NOT_EQUAL(a.places, b.places);
	CU_ASSERT_EQUAL(a.names, b.names);
}

/* Letters that move to the next name, too. */
static void another_name_has_another_digest(void)
{
	struct muster_tensor other[3];

	memcpy(other, layers, sizeof(other));
	other[0].name = "", other[1].name = "wb";
	struct mst_table a = of(layers), b = of(other);
	CU_ASSERT_NOT_EQUAL(a.names, b.names);
	CU_ASSERT_EQUAL(a.places, b.places);
}

static void scales_of_one_are_none(void)
{
	CU_ASSERT_EQUAL(of(layers).runs, 0);
	CU_ASSERT_EQUAL(of(layers).scales, 0);
}

/* And -0 is 0. */
static void another_scale_has_another_digest(void)
{
	struct muster_tensor other[3];

	memcpy(other, layers, sizeof(other));
	other[1].lr_scale = other[2].lr_scale = 0;
	struct mst_table a = of(other);
	CU_ASSERT_EQUAL(a.runs, 2);
	other[1].lr_scale = -0.0f;
	CU_ASSERT_EQUAL(of(other).scales, a.scales);
	CU_ASSERT_EQUAL(of(other).runs, 2);
	other[1].decay_scale = 2;
	CU_ASSERT_NOT_EQUAL(of(other).scales, a.scales);
	CU_ASSERT_EQUAL(of(other).runs, 3);
	CU_ASSERT_EQUAL(of(other).places, a.places);
}

static void a_hello_with_an_impossible_table_is_found(void)
{
	CU_ASSERT(mst_table_is_sane(&(struct mst_table){ 3, 2, 9, 1, 1, 1 }, 3));
	CU_ASSERT(mst_table_is_sane(&(struct mst_table){ 0 }, 3));
	CU_ASSERT(!mst_table_is_sane(&(struct mst_table){ 3, 4, 9, 1, 1, 1 }, 3));
	CU_ASSERT(!mst_table_is_sane(&(struct mst_table){ 4, 2, 9, 1, 1, 1 }, 3));
	CU_ASSERT(!mst_table_is_sane(&(struct mst_table){ 3, 0, 9, 1, 1, 1 }, 3));
	CU_ASSERT(!mst_table_is_sane(&(struct mst_table){ 3, 2, 2, 1, 1, 1 }, 3));
	CU_ASSERT(mst_table_is_sane(&(struct mst_table){ 3, 2, 768, 1, 1, 1 }, 3));
	CU_ASSERT(!mst_table_is_sane(&(struct mst_table){ 3, 2, 769, 1, 1, 1 }, 3));
	CU_ASSERT(!mst_table_is_sane(&(struct mst_table){ 0, 0, 1, 0, 0, 0 }, 3));
}

static CU_TestInfo cases[] = {
	{ "no table has no digests", no_table_has_no_digests },
	{ "a copy of a table has the same digests", a_copy_has_the_same_digests },
	{ "another place has another digest", another_place_has_another_digest },
	{ "another name has another digest", another_name_has_another_digest },
	{ "scales that are all 1 are none", scales_of_one_are_none },
	{ "another scale has another digest", another_scale_has_another_digest },
	{ "a hello with an impossible table is found", a_hello_with_an_impossible_table_is_found },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("table", cases);
}
