/* SPDX-License-Identifier: MIT */
/*
 * A log-linear histogram of durations: 32 linear cells for each power of two, so a quantile is
 * wrong by at most 1/32. Its size is fixed, nothing is allocated, and adding takes a few
 * instructions.
 */
#ifndef MST_BASE_HIST_H
#define MST_BASE_HIST_H

#include <stdint.h>

#define MST_HIST_CELLS (60 * 32)

struct mst_hist {
	uint64_t count, min, max;
	double sum;
	uint32_t cell[MST_HIST_CELLS];
};

void mst_hist_init(struct mst_hist *h);
void mst_hist_add(struct mst_hist *h, uint64_t value);
/* The smallest bound of a cell that at least @share (0..1) of the values do not exceed; 0 if empty.
 * Never more than the largest value added. */
uint64_t mst_hist_quantile(const struct mst_hist *h, double share);
double mst_hist_mean(const struct mst_hist *h); /* 0 if empty */

#endif
