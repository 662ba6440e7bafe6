/* SPDX-License-Identifier: MIT */
/*
 * The tensor table of a job, as a server keeps it. The worker that sends the start state sends the
 * table before it, in pieces; the leader passes the pieces on to its followers. A table is whole
 * when all its tensors have come and have the digests that the job's first hello has told. Its
 * memory is allocated before the first piece comes, from what that hello has told of its size.
 */
#ifndef MST_WIRE_TENSOR_TABLE_H
#define MST_WIRE_TENSOR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/table.h"

struct mst_tensor_table;

/* Bytes that mst_tensor_table_new() allocates: for the memory budget. */
uint64_t mst_tensor_table_bytes(const struct mst_table *of);
/* @of: what the hello has told, for a vector of @elems elements; it is sane. @out: NULL if there is
 * no table.
 * Return: 0 or -ENOMEM. */
int mst_tensor_table_new(const struct mst_table *of, uint64_t elems, struct mst_tensor_table **out);
void mst_tensor_table_free(struct mst_tensor_table *t); /* accepts NULL */

/* Checks the next piece and keeps it. A piece that begins with tensor 0 begins the table anew.
 * Return: NULL, or what is wrong with the piece; then nothing of the table is kept. */
const char *mst_tensor_table_take(struct mst_tensor_table *t, const struct mst_tensor_piece *piece);

/* Have all tensors come? @t may be NULL, which is never whole. */
bool mst_tensor_table_is_whole(const struct mst_tensor_table *t);
/* How many tensors there are; 0: the table is not whole. @t may be NULL. */
uint32_t mst_tensor_table_count(const struct mst_tensor_table *t);
/* The tensors of a whole table, in the order of the vector, each with its name ("": it has none),
 * its place and its scales. They stay as they are until the next mst_tensor_table_take(). NULL: the
 * table is not whole. @t may be NULL. */
const struct muster_tensor *mst_tensor_table_rows(const struct mst_tensor_table *t);

/* Fills @piece with the tensors from number @at on, of @count that a worker has, at most @max
 * (MST_TENSORS_PIECE, MST_TENSORS_FEW).
 * Return: the number of the tensor after them. */
uint32_t mst_tensor_piece_of(const struct muster_tensor *tensor, uint32_t count, uint32_t at,
			     uint32_t max, struct mst_tensor_piece *piece);

#endif
