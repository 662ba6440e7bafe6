/* SPDX-License-Identifier: MIT */
/* Makes a contribution with the hooks of muster_train(), one micro-batch after the other. It ends
 * when the batch is full, or when the servers ask for what is finished, or do not want it any
 * more. */
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
