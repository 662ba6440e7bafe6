/* SPDX-License-Identifier: MIT */
/* A contribution as the hooks of muster_train() make it: micro-batches until the batch is full, or
 * until the servers want what is finished, or want nothing of it any more. */
#ifndef MST_CLIENT_API_BATCH_H
#define MST_CLIENT_API_BATCH_H

#include "client/api/handle.h"

enum mst_batch {
	MST_BATCH_DONE,     /* it is to be pushed; without c->full, the servers have asked for it */
	MST_BATCH_GIVEN_UP, /* to be abandoned: it can no longer count, or it is wanted and empty */
};

/* @grad: what the hook fills. @c: of what it has filled.
 * Return: enum mst_batch, or what a hook returned, or -EINVAL with its sentence. */
int mst_batch_compute(struct muster *m, const struct muster_hooks *hooks, void *grad,
		      struct muster_contribution *c);

#endif
