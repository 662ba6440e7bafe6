/* SPDX-License-Identifier: MIT */
/* Vectors of test workers, which anybody can compute again: vectors.py has the same lines. */
#ifndef MST_TESTS_SYSTEM_PROGRAMS_VALUES_H
#define MST_TESTS_SYSTEM_PROGRAMS_VALUES_H

#include <stdint.h>

/* Two rounds of a 32-bit mix. */
static inline uint32_t values_mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	x ^= x >> 16;
	return x;
}

/* @number: of a ticket, or whatever else tells vectors of a session apart. */
static inline void values_fill(float *out, uint64_t elems, uint32_t rank, uint32_t incarnation,
			       uint64_t number)
{
	uint32_t seed = values_mix(values_mix(rank * 1000003u + incarnation) + (uint32_t)number);

	for (uint64_t i = 0; i < elems; i++)
		out[i] = ((float)(values_mix(seed + (uint32_t)i) >> 8) - 8388608.0f) / 8388608.0f;
}

#endif
