/* SPDX-License-Identifier: MIT */
/* The tensors that the options name: the library's own copy, for sentences and for the servers. */
#ifndef MST_CLIENT_LOCAL_TENSORS_H
#define MST_CLIENT_LOCAL_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/wire/tensor_table.h"
#include "muster/muster.h"

struct mst_tensors;

/* Do the tensors of these options, of which there is one at least, cover the vector, in order, each
 * element once, with names that can travel and scales that can take effect? @why: a clause that
 * names the tensors. 0 or -EINVAL. */
int mst_tensors_check(const struct muster_options *opt, struct mst_reason *why);

/* @tensor: @count of them, which have been checked; read during the call only. @out: NULL where
 * there are none. 0 or -ENOMEM. */
int mst_tensors_copy(const struct muster_tensor *tensor, uint32_t count, struct mst_tensors **out);
void mst_tensors_free(struct mst_tensors *t); /* accepts NULL */

/* What the hello says of them; @t may be NULL. */
struct mst_table mst_tensors_table(const struct mst_tensors *t);
/* Fills @piece with the tensors from number @at on. Return: the number of the tensor after it. */
uint32_t mst_tensors_piece(const struct mst_tensors *t, uint32_t at, uint32_t max,
			   struct mst_tensor_piece *piece);

/* ", which is element 5 of tensor \"fc1.weight\"", or "" where no tensor has the element. @t may be
 * NULL. Return: @out. */
const char *mst_tensors_place(const struct mst_tensors *t, uint64_t element, char *out, size_t len);

#endif
