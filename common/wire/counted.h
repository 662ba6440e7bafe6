/* SPDX-License-Identifier: MIT */
/* A line for people: how many of the samples that each worker pushed were counted. Pure. */
#ifndef MST_WIRE_COUNTED_H
#define MST_WIRE_COUNTED_H

#include "common/wire/message.h"

#define MST_COUNTED_LEN 640u
/* Up to so many ranks are told one by one. Of more ranks, the total and the lowest shares are. */
#define MST_COUNTED_EACH 8u
#define MST_COUNTED_LOWEST 4u

/* "3200 of 3200": samples that counted, of those pushed. */
struct mst_counted {
	char text[64];
};
struct mst_counted mst_counted_of(double counted, double pushed);

/* "rank 0 3200 of 3200 samples, rank 1 160 of 3040", from the rows of a status. "": nothing has
 * been pushed. */
void mst_counted_line(const struct mst_status_rank *row, uint32_t count, char out[MST_COUNTED_LEN]);

#endif
