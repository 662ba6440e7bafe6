/* SPDX-License-Identifier: MIT */
/* The tensor table that a server keeps: it comes in pieces, and is what the hello told of. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/tensor_table.h"
#include "tests/ut.h"

#define ELEMS 17u

/* The second tensor is frozen. */
static const struct muster_tensor layers[] = {
	{ "fc1.weight", 0, 12, 1, 1 },
	{ "fc1.bias", 12, 4, 0, 1 },
	{ NULL, 16, 1, 1, 1 },
};

static struct mst_tensor_table *kept;
static struct mst_tensor_piece piece;

static void forget(void)
{
	mst_tensor_table_free(kept);
	kept = NULL;
}

/* A table that waits for the layers, in a vector of @elems elements; and a piece with all. */
static void expect(uint64_t elems)
{
	struct mst_table told;

	forget();
	mst_table_of(layers, 3, &told);
	CU_ASSERT_EQUAL_FATAL(mst_tensor_table_new(&told, elems, &kept), 0);
	CU_ASSERT_EQUAL(mst_tensor_piece_of(layers, 3, 0, MST_TENSORS_PIECE, &piece), 3);
}

static bool refused(const char *what)
{
	const char *wrong = mst_tensor_table_take(kept, &piece);

	return wrong != NULL && strstr(wrong, what) != NULL && !mst_tensor_table_is_whole(kept) &&
	       mst_tensor_table_count(kept) == 0 && mst_tensor_table_rows(kept) == NULL;
}

static void check_rows(void)
{
	const struct muster_tensor *row = mst_tensor_table_rows(kept);

	CU_ASSERT_EQUAL_FATAL(mst_tensor_table_count(kept), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const char *name = layers[i].name != NULL ? layers[i].name : "";

		CU_ASSERT_STRING_EQUAL(row[i].name, name);
		CU_ASSERT(row[i].first == layers[i].first && row[i].count == layers[i].count);
		CU_ASSERT(row[i].lr_scale == layers[i].lr_scale);
		CU_ASSERT(row[i].decay_scale == layers[i].decay_scale);
	}
}

static void a_table_is_whole_when_all_its_pieces_have_come(void)
{
	struct mst_tensor_piece rest;

	expect(ELEMS);
	CU_ASSERT(!mst_tensor_table_is_whole(kept));
	CU_ASSERT_EQUAL(mst_tensor_piece_of(layers, 3, 2, MST_TENSORS_PIECE, &rest), 3);
	CU_ASSERT_EQUAL(rest.count, 1);
	piece.count = 2;
	CU_ASSERT_PTR_NULL(mst_tensor_table_take(kept, &piece));
	CU_ASSERT_PTR_NULL(mst_tensor_table_rows(kept));
	CU_ASSERT_PTR_NULL(mst_tensor_table_take(kept, &piece)); /* another worker: begins anew */
	CU_ASSERT_PTR_NULL(mst_tensor_table_take(kept, &rest));
	CU_ASSERT(mst_tensor_table_is_whole(kept));
	check_rows();
	forget();
}

static void a_piece_has_so_many_tensors_and_no_more(void)
{
	static struct muster_tensor many[2 * MST_TENSORS_PIECE + 1];
	uint32_t count = sizeof(many) / sizeof(many[0]), at = 0, pieces = 0;
	struct mst_table told;

	for (uint32_t i = 0; i < count; i++)
		many[i] = (struct muster_tensor){ "t", i, 1, (float)i, 1 };
	mst_table_of(many, count, &told);
	CU_ASSERT_EQUAL_FATAL(mst_tensor_table_new(&told, count, &kept), 0);
	for (; at < count; pieces++) {
		at = mst_tensor_piece_of(many, count, at, MST_TENSORS_PIECE, &piece);
		CU_ASSERT_PTR_NULL(mst_tensor_table_take(kept, &piece));
	}
	CU_ASSERT_EQUAL(pieces, 3);
	CU_ASSERT_EQUAL(mst_tensor_table_count(kept), count);
	CU_ASSERT_EQUAL(mst_tensor_table_rows(kept)[count - 1].first, count - 1);
	forget();
}

static void tensors_with_a_gap_or_too_many_are_refused(void)
{
	expect(ELEMS), piece.at = 1, piece.count = 2;
	CU_ASSERT(refused("with a gap"));
	expect(ELEMS), piece.total = 4;
	CU_ASSERT(refused("too many"));
	expect(ELEMS), piece.count = 4;
	CU_ASSERT(refused("too many"));
	expect(ELEMS), piece.count = 0;
	CU_ASSERT(refused("with a gap"));
	forget();
}

static void tensors_beyond_the_vector_are_refused(void)
{
	expect(ELEMS), piece.row[1].count = 0;
	CU_ASSERT(refused("are empty, or reach beyond the vector"));
	expect(ELEMS), piece.row[2].count = 2;
	CU_ASSERT(refused("are empty, or reach beyond the vector"));
	expect(ELEMS), piece.row[1].count = UINT64_MAX;
	CU_ASSERT(refused("are empty, or reach beyond the vector"));
	forget();
}

static void another_table_is_refused_and_said_in_what(void)
{
	expect(ELEMS), piece.row[0].count--, piece.row[1].count++;
	CU_ASSERT(refused("other borders than the job has"));
	expect(ELEMS + 1);
	CU_ASSERT(refused("other borders than the job has"));
	expect(ELEMS), piece.row[1].name[3] = '2';
	CU_ASSERT(refused("other names than the job has"));
	expect(ELEMS), (void)snprintf(piece.row[2].name, sizeof(piece.row[2].name), "more");
	CU_ASSERT(refused("longer names than the job has"));
	expect(ELEMS), piece.row[1].lr_scale = 0.5f;
	CU_ASSERT(refused("other scales of tensors than the job has"));
	expect(ELEMS), piece.row[1].lr_scale = -1;
	CU_ASSERT(refused("no numbers from 0 on"));
	expect(ELEMS), piece.row[0].decay_scale = INFINITY;
	CU_ASSERT(refused("no numbers from 0 on"));
	forget();
}

static void no_table_is_never_whole(void)
{
	const struct mst_table none = { 0 };

	CU_ASSERT_EQUAL(mst_tensor_table_new(&none, ELEMS, &kept), 0);
	CU_ASSERT_PTR_NULL(kept);
	CU_ASSERT_EQUAL(mst_tensor_table_bytes(&none), 0);
	CU_ASSERT(!mst_tensor_table_is_whole(kept));
	CU_ASSERT_EQUAL(mst_tensor_table_count(kept), 0);
	CU_ASSERT_PTR_NULL(mst_tensor_table_rows(kept));
}

static CU_TestInfo cases[] = {
	{ "a table is whole when all its pieces have come",
	  a_table_is_whole_when_all_its_pieces_have_come },
	{ "a piece has so many tensors, and no more", a_piece_has_so_many_tensors_and_no_more },
	{ "tensors with a gap, or too many, are refused",
	  tensors_with_a_gap_or_too_many_are_refused },
	{ "tensors beyond the vector are refused", tensors_beyond_the_vector_are_refused },
	{ "another table is refused, and it is said in what it differs",
	  another_table_is_refused_and_said_in_what },
	{ "no table is never whole", no_table_is_never_whole },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("tensor table", cases);
}
