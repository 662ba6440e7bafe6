/* SPDX-License-Identifier: MIT */
/* How figures are written for people: three digits and the unit that fits. */
#ifndef MST_TOOLS_FIGURE_H
#define MST_TOOLS_FIGURE_H

#include <stdint.h>

#include "common/wire/message.h"

#define MST_FIGURE_LEN 24u

struct mst_figure {
	char text[MST_FIGURE_LEN];
};

/* "850 us", "12.3 ms", "4.20 s", "3.5 min"; 0 is "0". */
struct mst_figure mst_figure_duration(uint64_t ns);

/* How long ago; "never" for MST_NEVER. */
struct mst_figure mst_figure_ago(uint64_t ns);

/* Mean and p99 of a rank's staleness: "1.25 / 4"; "-" where nothing was counted. */
struct mst_figure mst_figure_staleness(const struct mst_status_rank *row);

/* "12 %" of @whole; "0.4 %" below one; "0 %" of nothing. */
struct mst_figure mst_figure_share(uint64_t part, uint64_t whole);

/* A loss; "-" for NaN. */
struct mst_figure mst_figure_loss(double loss);
/* A norm; "-" for NaN. */
struct mst_figure mst_figure_norm(double norm);

#endif
