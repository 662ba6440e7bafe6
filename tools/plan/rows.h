/* SPDX-License-Identifier: MIT */
/*
 * Reads how long gradients took from a file of CSV, of which there are two kinds. Their columns are
 * found by the names in the header line, and other columns are ignored.
 *
 *   step,worker,ready_us                       a trace: from the start of the step to the gradient
 *   rank,version,start_us,ready_us,verdict     a recording of musterd --record, which has a column
 *                                              generation besides where servers were replaced
 *
 * The file comes from a user, so every line is checked; what is wrong is said with its line. Lines
 * may end with CR LF. A line that begins with '#' is no row. Memory is bounded by the number of
 * rows, not by the numbers in them.
 */
#ifndef MST_TOOLS_PLAN_ROWS_H
#define MST_TOOLS_PLAN_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/reason.h"

#define MST_ARRIVAL_ROWS_MAX 4194304u /* 128 MiB */
#define MST_ARRIVAL_RANKS_MAX 65536u  /* as many as a ledger can have */
#define MST_ARRIVAL_MAX_US 1e15       /* 31 years */
#define MST_CLOCK_MAX_US 9e15         /* microseconds since 1970, for two centuries more */

/* What one row says of the gradient of one rank in one step. */
struct mst_arrival_row {
	uint64_t step;
	double us; /* how long the gradient took; where it is not known, it took longer */
	uint32_t rank, line;
	uint32_t generation; /* each has steps of its own; 0: none is told */
	bool known;          /* how long it took, and not only that it took longer */
	bool counted;        /* it was in time; true in a trace */
};

/* Which gradient of a rank belongs to which step. */
enum mst_rows_pair {
	MST_PAIR_VERSION, /* that of the version that it was computed on */
	MST_PAIR_ORDER,   /* the n-th gradient of each rank to the n-th step */
};

struct mst_rows_cfg {
	uint64_t from, to;       /* steps that are read; others are left out */
	enum mst_rows_pair pair; /* of a recording */
};

struct mst_arrival_rows {
	struct mst_arrival_row *row;
	size_t count, room;
	bool recorded;         /* a recording, and no trace */
	uint32_t generations;  /* in the rows; 0: none is told */
	uint64_t lines;        /* below the header that are rows */
	uint64_t outside;      /* rows outside of the steps that are read */
	uint64_t untimed;      /* rows of a recording without start_us */
	uint64_t gone_missing; /* rows that the recording says are missing */
};

/* Reads all of @f.
 * @why: on failure what is wrong, in words, without the name of the file.
 * Return: 0; -EINVAL; -ENOMEM; the errno of reading. */
int mst_rows_read(FILE *f, const struct mst_rows_cfg *cfg, struct mst_arrival_rows *out,
		  struct mst_reason *why);
void mst_rows_free(struct mst_arrival_rows *rows); /* accepts zeroed memory */

#endif
