/* SPDX-License-Identifier: MIT */
/*
 * A table of tensors in a few bytes, for the hello of its worker. A table may be larger than a
 * server reads from a stranger, so the hello has digests of it. Tables with the same digests are
 * taken for the same table: the digests find mistakes, not attacks.
 */
#ifndef MST_WIRE_TABLE_H
#define MST_WIRE_TABLE_H

#include <stdint.h>

#include "muster/muster.h"

struct mst_table {
	uint32_t tensors; /* 0: the worker gives no table, and the digests are 0 */
	uint64_t names;   /* digest of their names */
	uint64_t places;  /* digest of where each begins and how long it is */
};

/* @count: at most MUSTER_TENSORS_MAX. A name that is NULL counts as "". */
void mst_table_of(const struct muster_tensor *tensor, uint32_t count, struct mst_table *out);

#endif
