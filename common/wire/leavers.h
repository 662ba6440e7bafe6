/* SPDX-License-Identifier: MIT */
/* A line for people: the workers that left a job which went on without them. Pure. */
#ifndef MST_WIRE_LEAVERS_H
#define MST_WIRE_LEAVERS_H

#include "common/wire/message.h"

#define MST_LEAVERS_LEN 512u
/* The most ranks that are named. */
#define MST_LEAVERS_MAX 8u

/* "rank 2 left at version 120, rank 3 at version 125; the job ended at version 130", from the rows
 * of a status and the last version. "": nobody left before that version. */
void mst_leavers_line(const struct mst_status_rank *row, uint32_t count, uint64_t version,
		      char out[MST_LEAVERS_LEN]);

#endif
