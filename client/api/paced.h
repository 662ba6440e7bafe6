/* SPDX-License-Identifier: MIT */
/*
 * A worker that steps on parameters of its own between two exchanges with the servers, as the pace
 * of the rule says (common/wire/rule.h): local steps, elastic averaging, Downpour. The library has
 * those parameters and a gradient to compute in (own.h); hooks->local makes the steps.
 *
 * What comes next is a stage (own.h), which changes only when its work is done. So muster_train()
 * may return anywhere, and goes on from there when it is called again: no step and no exchange is
 * left out or made twice.
 */
#ifndef MST_CLIENT_API_PACED_H
#define MST_CLIENT_API_PACED_H

#include "client/api/handle.h"

/* Does the version that the worker has order such a pace? */
bool mst_paced_is(const struct muster *m);
/* Computes, steps and pushes until outcomes are to be taken. The first time, it allocates what it
 * needs.
 * Return: 0; what a hook returned; -EDOM a contribution was given up, as the parameters were: the
 * next ones begin with the newest result; -ENOTSUP hooks->local is missing, or a type is not f32;
 * -ENOMEM; errors of muster_push() and muster_pull(). */
int mst_paced_exchange(struct muster *m, const struct muster_hooks *hooks);
/* An outcome has been taken. Its result may replace the parameters, and its version may end the
 * pace. */
void mst_paced_outcome(struct muster *m);
/* The result is of another line of versions: the parameters begin anew with it. */
void mst_paced_begin_anew(struct muster *m);
/* The pace is over. Pushes the gradients that Downpour has not pushed yet. Return: 0: pushed, and
 * outcomes are to be taken; 1: there was nothing to push; errors of muster_push(). */
int mst_paced_end(struct muster *m);

#endif
