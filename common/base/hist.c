/* SPDX-License-Identifier: MIT */
/*
 * Cells 0..31 hold one value each. Above, every range [2^e, 2^(e+1)) is divided into 32 cells of
 * width 2^(e-5). The leading bit of a value and the five bits after it are the index, so finding
 * the cell takes a count of leading zeros and a shift. 60 rows of 32 cells reach up to UINT64_MAX.
 */
#include "common/base/hist.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/base/assert.h"

#define ROW_BITS 5u
#define ROW (1u << ROW_BITS)

static_assert(MST_HIST_CELLS == (64 - ROW_BITS + 1) * ROW, "a cell for every 64-bit value");

static unsigned cell_of(uint64_t value)
{
	if (value < ROW)
		return (unsigned)value;
	unsigned shift = 63u - (unsigned)__builtin_clzll(value) - ROW_BITS;

	return (shift + 1) * ROW + (unsigned)(value >> shift) - ROW;
}

/* The largest value that belongs to a cell. For the very last cell the shift loses the carry, and 0
 * minus 1 is UINT64_MAX, which is right. */
static uint64_t cell_bound(unsigned cell)
{
	if (cell < ROW)
		return cell;
	unsigned shift = cell / ROW - 1;
	uint64_t next = cell % ROW + ROW + 1;

	return (next << shift) - 1;
}

void mst_hist_init(struct mst_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void mst_hist_add(struct mst_hist *h, uint64_t value)
{
	h->cell[cell_of(value)]++;
	h->count++;
	h->sum += (double)value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

/* How many values are @share of @count, rounded up, and at least one. In binary 0.07 * 100 is
 * slightly above 7, and must still give 7. */
static uint64_t share_of(uint64_t count, double share)
{
	double wanted = ceil(share * (double)count * (1.0 - 1e-12));

	return wanted < 1.0 ? 1 : (uint64_t)wanted;
}

uint64_t mst_hist_quantile(const struct mst_hist *h, double share)
{
	MST_ASSERT(share >= 0.0 && share <= 1.0);
	if (h->count == 0)
		return 0;
	uint64_t wanted = share_of(h->count, share);
	uint64_t seen = 0;

	for (unsigned cell = 0; cell < MST_HIST_CELLS; cell++) {
		seen += h->cell[cell];
		if (seen >= wanted) {
			uint64_t bound = cell_bound(cell);

			return bound < h->max ? bound : h->max;
		}
	}
	return h->max;
}

double mst_hist_mean(const struct mst_hist *h)
{
	return h->count == 0 ? 0.0 : h->sum / (double)h->count;
}
