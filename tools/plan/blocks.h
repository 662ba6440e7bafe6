/* SPDX-License-Identifier: MIT */
/*
 * How many steps in a row belong together. Steps near each other are alike where a rank is slow for
 * a while. To draw single steps would tear such a phase apart, and a figure would seem more certain
 * than it is, so blocks of steps are drawn (Kuensch 1989). Pure.
 *
 * The length is twice that of Politis and White 2004, section 3.2, for circular blocks, as
 * corrected by Patton, Politis and White 2009: (2 G^2 / D)^(1/3) n^(1/3), with G and D from the
 * autocovariances, up to twice the lag from which on they are not significant. That length makes
 * the error of a variance small on average, and the variance itself too small; an interval that is
 * to contain the truth takes longer blocks (Sun, Phillips and Jin 2008). Lengths are taken twice,
 * and the longer one holds: of the times of all ranks together, and of the last arrival of each
 * step. Steps that do not depend on each other are drawn one by one; so are those that alternate,
 * as no few steps are enough to be surer for that.
 */
#ifndef MST_TOOLS_PLAN_BLOCKS_H
#define MST_TOOLS_PLAN_BLOCKS_H

#include "tools/plan/arrivals.h"

/* Return: from 1 to a quarter of the steps; 0: no memory. */
uint32_t mst_blocks_length(const struct mst_arrivals *a);

#endif
