/* SPDX-License-Identifier: MIT */
/* No sum that can occur fills the highest word. So a full one can say that it is not finite. */
#include "common/base/exact_sum.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/assert.h"

#define WORD_BITS 64
#define UNIT_EXPONENT 298 /* the unit is 2^-298 */
#define TOP (MST_EXACT_WORDS - 1)
#define NOT_FINITE UINT64_MAX

/* A double is its 53 bits times 2 to its exponent field less this. */
#define DOUBLE_BIAS 1075
#define DOUBLE_FRACTION_BITS 52

static bool is_finite(const struct mst_exact_sum *sum)
{
	return sum->word[TOP] != NOT_FINITE;
}

static void add_at(struct mst_exact_sum *sum, unsigned at, uint64_t value)
{
	for (; value != 0 && at < MST_EXACT_WORDS; at++)
		value = __builtin_add_overflow(sum->word[at], value, &sum->word[at]);
}

void mst_exact_add(struct mst_exact_sum *sum, double value)
{
	uint64_t bits, fraction;

	memcpy(&bits, &value, sizeof(bits));
	int exponent = (int)(bits >> DOUBLE_FRACTION_BITS);
	if (value == 0 || !is_finite(sum))
		return;
	if (!isfinite(value)) {
		sum->word[TOP] = NOT_FINITE;
		return;
	}
	MST_ASSERT(value > 0);
	fraction = (bits & ((UINT64_C(1) << DOUBLE_FRACTION_BITS) - 1)) |
		   UINT64_C(1) << DOUBLE_FRACTION_BITS;
	int shift = exponent - DOUBLE_BIAS + UNIT_EXPONENT;
	if (shift < 0) { /* it ends in zeroes, or it would be no whole number of the unit */
		MST_ASSERT(-shift <= DOUBLE_FRACTION_BITS);
		fraction >>= -shift;
		shift = 0;
	}
	unsigned at = (unsigned)shift / WORD_BITS, rest = (unsigned)shift % WORD_BITS;
	MST_ASSERT(at < TOP);
	add_at(sum, at, fraction << rest);
	if (rest > 0)
		add_at(sum, at + 1, fraction >> (WORD_BITS - rest));
}

void mst_exact_join(struct mst_exact_sum *sum, const struct mst_exact_sum *other)
{
	if (!is_finite(sum) || !is_finite(other)) {
		sum->word[TOP] = NOT_FINITE;
		return;
	}
	for (unsigned i = 0; i < MST_EXACT_WORDS; i++)
		add_at(sum, i, other->word[i]);
}

/* The 64 bits from the highest one on; below them only whether there is anything counts, and 64 are
 * more than a double has, so that the lowest of them can say it. */
double mst_exact_value(const struct mst_exact_sum *sum)
{
	unsigned at = TOP;
	uint64_t high;

	if (!is_finite(sum))
		return (double)INFINITY;
	while (at > 0 && sum->word[at] == 0)
		at--;
	high = sum->word[at];
	if (high == 0)
		return 0;
	unsigned empty = (unsigned)__builtin_clzll(high);
	bool below = false;
	high <<= empty;
	if (at > 0 && empty > 0) {
		high |= sum->word[at - 1] >> (WORD_BITS - empty);
		below = sum->word[at - 1] << empty != 0;
	} else if (at > 0) {
		below = sum->word[at - 1] != 0;
	}
	for (unsigned i = 0; i + 1 < at; i++)
		below |= sum->word[i] != 0;
	return ldexp((double)(high | below), (int)(at * WORD_BITS - empty) - UNIT_EXPONENT);
}
