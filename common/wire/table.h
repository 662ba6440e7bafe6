/* SPDX-License-Identifier: MIT */
/*
 * A table of tensors on the wire. A table may be larger than a server reads from a stranger, so the
 * hello of its worker has digests of it. Tables with the same digests are taken for the same table:
 * the digests find mistakes, not attacks. Where tensors are scaled, the scales travel later, as
 * runs, and in pieces.
 */
#ifndef MST_WIRE_TABLE_H
#define MST_WIRE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "muster/muster.h"

struct mst_table {
	uint32_t tensors; /* 0: the worker gives no table, and the digests are 0 */
	uint32_t runs;    /* 0: all scales are 1 */
	uint64_t names;   /* digest of their names */
	uint64_t places;  /* digest of where each begins and how long it is */
	uint64_t scales;  /* digest of the runs; 0: there are none */
};

/* Neighbouring tensors with equal scales. */
struct mst_run {
	uint64_t first, count; /* elements */
	float lr_scale, decay_scale;
};

/* A piece of the runs of a table. */
#define MST_RUNS_PIECE 512u
struct mst_runs {
	uint32_t at, total; /* the number of the first one here; how many there are in all */
	uint32_t count;     /* here */
	struct mst_run run[MST_RUNS_PIECE];
};

/* @count: at most MUSTER_TENSORS_MAX. A name that is NULL counts as "". */
void mst_table_of(const struct muster_tensor *tensor, uint32_t count, struct mst_table *out);
/* Could a worker with a vector of @elems elements have such a table? */
bool mst_table_is_sane(const struct mst_table *table, uint64_t elems);
/* The run that begins with tensor @at of @count.
 * Return: the tensor behind it. */
uint32_t mst_run_of(const struct muster_tensor *tensor, uint32_t count, uint32_t at,
		    struct mst_run *out);
/* Is it a number from 0 on? */
bool mst_scale_is_sane(float scale);

/* How many runs of a table have been received. */
struct mst_runs_taken {
	uint64_t elems;  /* of the vector */
	uint32_t runs;   /* that are to come in all */
	uint64_t scales; /* the digest of all runs */
	uint32_t have;
	uint64_t end, digest; /* of the runs that have come */
};

/* Checks the next piece. A piece that begins with run 0 begins anew.
 * Return: NULL, or what is wrong with it. */
const char *mst_runs_take(struct mst_runs_taken *t, const struct mst_runs *piece);

/* Has all been received? */
static inline bool mst_runs_whole(const struct mst_runs_taken *t)
{
	return t->have == t->runs;
}

#endif
