/* SPDX-License-Identifier: MIT */
/*
 * A worker that steps on parameters of its own between two exchanges with the servers, as the pace
 * of the rule says (common/wire/rule.h): local steps, elastic averaging, Downpour. The library has
 * those parameters and a gradient to compute in (own.h); hooks->local makes the steps.
 */
#ifndef MST_CLIENT_PACED_H
#define MST_CLIENT_PACED_H

#include "client/handle.h"

/* Does the version that the worker has order such a pace? */
bool mst_paced_is(const struct muster *m);
/* Allocates what is missing, and begins with the present result unless it has begun before.
 * Return: 0; -ENOTSUP hooks->local is missing, or a type is not f32; -ENOMEM. */
int mst_paced_begin(struct muster *m, const struct muster_hooks *hooks);
/* Computes until the next exchange, and makes it. The outcomes that it takes go to @take, which
 * returns as muster_train()'s own loop does: 0, 1 finished, or an error.
 * Return: the same. */
int mst_paced_exchange(struct muster *m, const struct muster_hooks *hooks,
		       int (*take)(struct muster *m, const struct muster_hooks *hooks));
/* The pace is over: the next one begins with the result of that time. */
void mst_paced_end(struct muster *m);

#endif
