/* SPDX-License-Identifier: MIT */
/*
 * The promises of common/kernels/finite.h, with every instruction set: copies are copies, and one
 * element that is not finite is found wherever it stands.
 */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rand.h"
#include "common/kernels/finite.h"
#include "common/kernels/select.h"
#include "common/kernels/sum.h"
#include "tests/ut.h"

#define SHORT 200  /* elements: several lines, and rests of each length */
#define LONG 40000 /* more than is looked through at once */
#define SHIFT 64   /* bytes by which a vector may begin later than its room */
#define UNTOUCHED 0x5a

static const enum muster_type types[] = { MUSTER_F32, MUSTER_BF16, MUSTER_F16 };

/* By type: the largest numbers and the least, then infinity and NaN, and the same below zero. */
#define FINITE 3
#define INFINITE 3
static const uint32_t numbers[][FINITE] = {
	[MUSTER_F32] = { 0x7f7fffff, 0x007fffff, 0x00800000 },
	[MUSTER_BF16] = { 0x7f7f, 0x007f, 0x0080 },
	[MUSTER_F16] = { 0x7bff, 0x03ff, 0x0400 },
};
static const uint32_t no_numbers[][INFINITE] = {
	[MUSTER_F32] = { 0x7f800000, 0x7f800001, 0x7fffffff },
	[MUSTER_BF16] = { 0x7f80, 0x7f81, 0x7fff },
	[MUSTER_F16] = { 0x7c00, 0x7c01, 0x7fff },
};

static _Alignas(64) unsigned char from_room[LONG * 4 + SHIFT], to_room[LONG * 4 + 2 * SHIFT];

static void put(void *vector, enum muster_type type, size_t at, uint32_t bits)
{
	uint16_t half = (uint16_t)bits;

	if (type == MUSTER_F32)
		memcpy((char *)vector + at * sizeof(bits), &bits, sizeof(bits));
	else
		memcpy((char *)vector + at * sizeof(half), &half, sizeof(half));
}

static uint32_t pick(struct mst_rand *rand, const uint32_t *choice, size_t choices,
		     enum muster_type type)
{
	uint32_t sign = type == MUSTER_F32 ? 0x80000000u : 0x8000u;

	return choice[mst_rand_below(rand, choices)] | (mst_rand_below(rand, 2) == 0 ? sign : 0);
}

static void fill(struct mst_rand *rand, void *vector, enum muster_type type, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put(vector, type, i, pick(rand, numbers[type], FINITE, type));
}

/* Somewhere in its room, at the alignment of its elements. */
static unsigned char *place(struct mst_rand *rand, unsigned char *room, enum muster_type type)
{
	size_t size = mst_type_bytes(type);

	return room + mst_rand_below(rand, SHIFT / size) * size;
}

/* Return: whether the copy is one, wrote nothing beside itself, and told the truth. */
static bool copies(const unsigned char *from, unsigned char *to, enum muster_type type,
		   size_t count, bool streams)
{
	size_t bytes = count * mst_type_bytes(type), before = (size_t)(to - to_room);
	bool told, right;

	memset(to_room, UNTOUCHED, before + bytes + SHIFT);
	told = mst_copy_finite(to, from, type, count, streams);
	right = memcmp(to, from, bytes) == 0;
	for (size_t i = 0; i < before; i++)
		right = right && to_room[i] == UNTOUCHED;
	for (size_t i = 0; i < SHIFT; i++)
		right = right && to[bytes + i] == UNTOUCHED;
	return right && told == (mst_first_nonfinite(from, type, count) == count);
}

static void one_position(struct mst_rand *rand, enum muster_type type, size_t count, size_t at)
{
	unsigned char *from = place(rand, from_room, type), *to = place(rand, to_room, type);
	bool streams = mst_rand_below(rand, 2) == 0;

	fill(rand, from, type, count);
	CU_ASSERT_EQUAL_FATAL(mst_first_nonfinite(from, type, count), count);
	CU_ASSERT_FATAL(copies(from, to, type, count, streams));
	put(from, type, at, pick(rand, no_numbers[type], INFINITE, type));
	CU_ASSERT_EQUAL_FATAL(mst_first_nonfinite(from, type, count), at);
	CU_ASSERT_FATAL(copies(from, to, type, count, streams));
}

static void one_element_is_found_wherever_it_stands(void)
{
	struct mst_rand rand;
	const char *name;

	mst_rand_seed(&rand, 21);
	for (size_t i = 0; (name = mst_kernels_name(i)) != NULL; i++) {
		CU_ASSERT_EQUAL_FATAL(mst_kernels_select(name), 0);
		for (unsigned t = 0; t < 3; t++)
			for (size_t count = 1; count <= SHORT; count += 1 + count / 9)
				for (size_t at = 0; at < count; at++)
					one_position(&rand, types[t], count, at);
	}
}

static void the_first_of_many_is_found(void)
{
	struct mst_rand rand;

	mst_rand_seed(&rand, 22);
	for (unsigned round = 0; round < 30; round++) {
		enum muster_type type = types[round % 3];
		unsigned char *from = place(&rand, from_room, type);
		size_t first = mst_rand_below(&rand, LONG);

		fill(&rand, from, type, LONG);
		for (unsigned i = 0; i < 5; i++)
			put(from, type, first + mst_rand_below(&rand, LONG - first),
			    pick(&rand, no_numbers[type], INFINITE, type));
		put(from, type, first, pick(&rand, no_numbers[type], INFINITE, type));
		CU_ASSERT_EQUAL(mst_first_nonfinite(from, type, LONG), first);
		CU_ASSERT(copies(from, to_room, type, LONG, round % 2 == 0));
	}
}

/* By less than a line, by more than a tile, and not at all apart. */
static void copies_may_overlap(void)
{
	static const size_t shift[] = { 0, 4, 60, 64, 4096 };
	struct mst_rand rand;
	size_t bytes = SHORT * sizeof(float);

	mst_rand_seed(&rand, 23);
	for (unsigned i = 0; i < 20; i++) {
		size_t by = shift[i % 5];
		unsigned char *low = to_room, *high = to_room + by;
		unsigned char *from = i < 10 ? low : high, *to = i < 10 ? high : low;

		fill(&rand, from, MUSTER_F32, SHORT);
		put(from, MUSTER_F32, i, pick(&rand, no_numbers[0], INFINITE, MUSTER_F32));
		memcpy(from_room, from, bytes);
		CU_ASSERT(!mst_copy_finite(to, from, MUSTER_F32, SHORT, i % 2 == 0));
		CU_ASSERT_EQUAL(memcmp(to, from_room, bytes), 0);
	}
}

static void nothing_is_finite(void)
{
	for (unsigned t = 0; t < 3; t++) {
		CU_ASSERT(mst_copy_finite(to_room, from_room, types[t], 0, false));
		CU_ASSERT(mst_copy_finite(to_room, from_room, types[t], 0, true));
		CU_ASSERT_EQUAL(mst_first_nonfinite(from_room, types[t], 0), 0);
	}
}

static CU_TestInfo cases[] = {
	{ "one element is found wherever it stands", one_element_is_found_wherever_it_stands },
	{ "the first of many is found", the_first_of_many_is_found },
	{ "copies may overlap", copies_may_overlap },
	{ "a vector without elements is finite", nothing_is_finite },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("finite", cases);
}
