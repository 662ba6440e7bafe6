/* SPDX-License-Identifier: MIT */
#include "common/base/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* the lowest bit is the highest power */
#define SLICES 8

/* table[k][b]: what byte b, followed by k zero bytes, adds to the checksum. */
static uint32_t table[SLICES][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_fill(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
		table[0][byte] = crc;
	}
	for (int k = 1; k < SLICES; k++)
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t before = table[k - 1][byte];
			table[k][byte] = before >> 8 ^ table[0][before & 0xff];
		}
}

static uint32_t load_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* Eight bytes at once (slicing-by-8). */
static uint32_t slice(uint32_t crc, const uint8_t *at)
{
	uint32_t low = crc ^ load_u32(at), high = load_u32(at + 4);

	return table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
	       table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
	       table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
}

uint32_t mst_crc32c_by_tables(uint32_t crc, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	(void)pthread_once(&table_once, table_fill);
	crc = ~crc;
	for (; len >= SLICES; len -= SLICES, at += SLICES)
		crc = slice(crc, at);
	for (; len > 0; len--, at++)
		crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
	return ~crc;
}

/* ---- places ---- */

/* The product of two polynomials, modulo the one of the checksum. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = UINT32_C(1) << 31; bit != 0; bit >>= 1) {
		if ((a & bit) != 0)
			product ^= b;
		b = b >> 1 ^ ((b & 1) != 0 ? POLYNOMIAL : 0);
	}
	return product;
}

/* A byte of zeroes multiplies by x^8; @behind of them by its power. */
uint32_t mst_crc32c_place(uint32_t sum, uint64_t behind)
{
	uint32_t power = UINT32_C(1) << (31 - 8);

	for (; behind != 0; behind >>= 1, power = multiply(power, power))
		if ((behind & 1) != 0)
			sum = multiply(power, sum);
	return sum;
}

/* ---- by the instruction ---- */

#ifdef __x86_64__

/*
 * The instruction gives its result after three cycles, and a processor can begin one in each cycle.
 * So three neighbouring runs of bytes are read at once. The first two checksums are then moved over
 * the bytes that follow them: a move by RUN bytes is linear, so a table for each byte of a checksum
 * gives it (V. Gopal and others, Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction,
 * Intel 2011, with tables in place of a carry-less multiplication).
 */
#define RUN 1024u
#define RUNS 3u
#define WORDS (RUN / sizeof(uint64_t))

/* moved[k][b]: what byte b, at place k of a checksum, is after RUN bytes of zeroes. */
static uint32_t moved[sizeof(uint32_t)][256];
static pthread_once_t moved_once = PTHREAD_ONCE_INIT;

static void moved_fill(void)
{
	for (uint32_t k = 0; k < sizeof(uint32_t); k++)
		for (uint32_t byte = 0; byte < 256; byte++)
			moved[k][byte] = mst_crc32c_place(byte << 8 * k, RUN);
}

static uint32_t move(uint32_t sum)
{
	return moved[0][sum & 0xff] ^ moved[1][sum >> 8 & 0xff] ^ moved[2][sum >> 16 & 0xff] ^
	       moved[3][sum >> 24];
}

bool mst_crc32c_has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2") != 0;
}

static uint64_t load_u64(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* The remainder of RUNS * RUN bytes at @at, begun with @sum. */
__attribute__((target("sse4.2"))) static uint32_t three_runs(uint32_t sum, const uint8_t *at)
{
	uint64_t first = sum, second = 0, third = 0;

	for (size_t i = 0; i < WORDS; i++, at += sizeof(uint64_t)) {
		first = __builtin_ia32_crc32di(first, load_u64(at));
		second = __builtin_ia32_crc32di(second, load_u64(at + RUN));
		third = __builtin_ia32_crc32di(third, load_u64(at + 2 * RUN));
	}
	return move(move((uint32_t)first) ^ (uint32_t)second) ^ (uint32_t)third;
}

__attribute__((target("sse4.2"))) uint32_t mst_crc32c_by_instruction(uint32_t crc,
								     const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	crc = ~crc;
	if (len >= RUNS * RUN)
		(void)pthread_once(&moved_once, moved_fill);
	for (; len >= RUNS * RUN; len -= RUNS * RUN, at += RUNS * RUN)
		crc = three_runs(crc, at);
	uint64_t wide = crc;
	for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t), at += sizeof(uint64_t))
		wide = __builtin_ia32_crc32di(wide, load_u64(at));
	crc = (uint32_t)wide;
	for (; len > 0; len--, at++)
		crc = __builtin_ia32_crc32qi(crc, *at);
	return ~crc;
}

#else

bool mst_crc32c_has_instruction(void)
{
	return false;
}

uint32_t mst_crc32c_by_instruction(uint32_t crc, const void *bytes, size_t len)
{
	return mst_crc32c_by_tables(crc, bytes, len);
}

#endif

uint32_t mst_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	return mst_crc32c_has_instruction() ? mst_crc32c_by_instruction(crc, bytes, len)
					    : mst_crc32c_by_tables(crc, bytes, len);
}
