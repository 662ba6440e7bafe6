/* SPDX-License-Identifier: MIT */
/*
 * A table of tensors on the wire. A table may be larger than a server reads from a stranger, so the
 * hello of its worker has digests of it. Tables with the same digests are taken for the same table:
 * the digests find mistakes, not attacks. The table itself travels later, in pieces
 * (tensor_table.h).
 */
#ifndef MST_WIRE_TABLE_H
#define MST_WIRE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "muster/muster.h"

struct mst_table {
	uint32_t tensors;    /* 0: the worker gives no table, and the digests are 0 */
	uint32_t runs;       /* of tensors with equal scales; 0: all scales are 1 */
	uint64_t name_bytes; /* of all names, each with its NUL */
	uint64_t names;      /* digest of their names */
	uint64_t places;     /* digest of where each begins and how long it is */
	uint64_t scales;     /* digest of the runs; 0: there are none */
};

/* Neighbouring tensors with equal scales. */
struct mst_run {
	uint64_t first, count; /* elements */
	float lr_scale, decay_scale;
};

/* A tensor as it travels. It begins where the one before it ends. */
#define MST_TENSOR_NAME_LEN (MUSTER_TENSOR_NAME_MAX + 1) /* with NUL */
struct mst_tensor_row {
	char name[MST_TENSOR_NAME_LEN]; /* "": it has none */
	uint64_t count;                 /* elements */
	float lr_scale, decay_scale;
};

/* A piece of a table. */
#define MST_TENSORS_PIECE 128u
#define MST_TENSORS_FEW 12u /* in a message that is as short as a stranger's must be */
struct mst_tensor_piece {
	uint32_t at, total; /* the number of the first tensor here; how many there are in all */
	uint32_t count;     /* here */
	struct mst_tensor_row row[MST_TENSORS_PIECE];
};

/* @count: at most MUSTER_TENSORS_MAX. Names have at most MUSTER_TENSOR_NAME_MAX bytes; one that is
 * NULL counts as "". */
void mst_table_of(const struct muster_tensor *tensor, uint32_t count, struct mst_table *out);
/* Could a worker with a vector of @elems elements have such a table? */
bool mst_table_is_sane(const struct mst_table *table, uint64_t elems);
/* The run that begins with tensor @at of @count.
 * Return: the tensor after it. */
uint32_t mst_run_of(const struct muster_tensor *tensor, uint32_t count, uint32_t at,
		    struct mst_run *out);
/* Is it a number from 0 on? */
bool mst_scale_is_sane(float scale);

#endif
