/* SPDX-License-Identifier: MIT */
/* CRC32C gives the values of RFC 3720, in one way and the other, at once and in pieces. */
#include <stdio.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/base/rand.h"
#include "tests/ut.h"

typedef uint32_t (*way)(uint32_t crc, const void *bytes, size_t len);

static const way ways[] = { mst_crc32c, mst_crc32c_by_tables, mst_crc32c_by_instruction };

/* Without the instruction there are two ways. */
static unsigned way_count(void)
{
	if (mst_crc32c_has_instruction())
		return 3;
	puts("this processor has no instruction for it");
	return 2;
}

/* RFC 3720, appendix B.4. */
static void known_values(void)
{
	uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];
	static const uint8_t read_pdu[48] = { 0x01, 0xc0, 0,    0, 0, 0, 0,    0,    0, 0,
					      0,    0,    0,    0, 0, 0, 0x14, 0,    0, 0,
					      0,    0,    0x04, 0, 0, 0, 0,    0x14, 0, 0,
					      0,    0x18, 0x28, 0, 0, 0, 0,    0,    0, 0,
					      0x02, 0,    0,    0, 0, 0, 0,    0 };

	memset(ones, 0xff, sizeof(ones));
	for (unsigned i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	for (unsigned i = 0; i < way_count(); i++) {
		CU_ASSERT_EQUAL(ways[i](0, zeros, 32), 0x8a9136aa);
		CU_ASSERT_EQUAL(ways[i](0, ones, 32), 0x62a8ab43);
		CU_ASSERT_EQUAL(ways[i](0, up, 32), 0x46dd794e);
		CU_ASSERT_EQUAL(ways[i](0, down, 32), 0x113fdb5c);
		CU_ASSERT_EQUAL(ways[i](0, read_pdu, 48), 0xd9963a56);
		CU_ASSERT_EQUAL(ways[i](0, "123456789", 9), 0xe3069283);
		CU_ASSERT_EQUAL(ways[i](0, "", 0), 0);
	}
}

static void all_ways_agree(void)
{
	static uint8_t bytes[10000]; /* several times what is read at once */
	struct mst_rand r;

	mst_rand_seed(&r, 7);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)mst_rand_next(&r);
	for (unsigned first = 0; first < 9; first++)
		for (unsigned len = 0; first + len <= sizeof(bytes); len += len < 40 ? 1 : 41) {
			uint32_t crc = mst_crc32c_by_tables(0x12345678, bytes + first, len);
			for (unsigned i = 0; i < way_count(); i++)
				CU_ASSERT_EQUAL(ways[i](0x12345678, bytes + first, len), crc);
		}
}

static void pieces_are_the_whole(void)
{
	static uint8_t bytes[100];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i);
	for (unsigned i = 0; i < way_count(); i++)
		for (unsigned cut = 0; cut <= sizeof(bytes); cut++) {
			uint32_t first = ways[i](0, bytes, cut);
			CU_ASSERT_EQUAL(ways[i](first, bytes + cut, sizeof(bytes) - cut),
					ways[i](0, bytes, sizeof(bytes)));
		}
}

static void parts_in_any_order_give_the_whole(void)
{
	static uint8_t bytes[5000];
	struct mst_rand r;

	mst_rand_seed(&r, 11);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)mst_rand_next(&r);
	uint32_t whole = mst_crc32c_linear(0, bytes, sizeof(bytes));
	for (unsigned i = 0; i < 50; i++) {
		size_t first = mst_rand_below(&r, sizeof(bytes) + 1);
		size_t second = first + mst_rand_below(&r, sizeof(bytes) + 1 - first);
		uint32_t sum = mst_crc32c_linear(0, bytes + second, sizeof(bytes) - second);
		sum ^= mst_crc32c_place(mst_crc32c_linear(0, bytes, first), sizeof(bytes) - first);
		sum ^= mst_crc32c_place(mst_crc32c_linear(0, bytes + first, second - first),
					sizeof(bytes) - second);
		CU_ASSERT_EQUAL(sum, whole);
	}
}

static CU_TestInfo cases[] = {
	{ "known values come out", known_values },
	{ "tables and instruction agree, at any address and length", all_ways_agree },
	{ "pieces give what the whole gives", pieces_are_the_whole },
	{ "parts in any order add up to what the whole gives", parts_in_any_order_give_the_whole },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("CRC32C", cases);
}
