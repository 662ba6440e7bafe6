/* SPDX-License-Identifier: MIT */
/* Parts of a worker's state, as a program says them (muster/state.h). */
#ifndef MST_CLIENT_LOCAL_PARTS_H
#define MST_CLIENT_LOCAL_PARTS_H

#include "common/base/reason.h"
#include "common/wire/message.h"

/* @call: for sentences. Return: 0, or -EINVAL with its sentence. */
int mst_parts_check(struct mst_reason *failure, const char *call, const struct muster_part *parts,
		    size_t count);
/* As they go to the leader; they have been checked. */
void mst_parts_fill(const struct muster_part *parts, size_t count, struct mst_claim_part *out);

#endif
