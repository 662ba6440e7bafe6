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

#ifdef __x86_64__

bool mst_crc32c_has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) uint32_t mst_crc32c_by_instruction(uint32_t crc,
								     const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint64_t wide = ~crc;

	for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t), at += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, at, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
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

uint32_t mst_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	return mst_crc32c_has_instruction() ? mst_crc32c_by_instruction(crc, bytes, len)
					    : mst_crc32c_by_tables(crc, bytes, len);
}
