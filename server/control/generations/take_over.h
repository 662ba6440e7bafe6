/* SPDX-License-Identifier: MIT */
/*
 * How a later generation takes over the policy that was in force (PROTOCOL 11). Workers that come
 * back bring the last change that they were told of, and a checkpoint has kept one. Before a
 * worker starts, what follows from all of that is given to the ledger, so the first version is
 * made under it already.
 *
 * A policy that this server cannot run does not keep the job from going on: the server runs what
 * its command line says, with a warning. The change stays known, and the next server tries it
 * again.
 *
 * At the leader. Control thread only.
 */
#ifndef MST_SERVER_CONTROL_GENERATIONS_TAKE_OVER_H
#define MST_SERVER_CONTROL_GENERATIONS_TAKE_OVER_H

#include "server/control/job/job.h"

/* The worker of this rank has been admitted. @brings: what it brings, if it comes back, else
 * NULL. */
void mst_take_over_joined(struct mst_job *j, uint32_t rank, const struct mst_in_force *brings);
void mst_take_over_left(struct mst_job *j, uint32_t rank);

/* To be called before a worker starts.
 * Return: false: not now, as the ledger has not taken the last policy, or has no room. */
bool mst_take_over_settle(struct mst_job *j);
/* The ledger has taken a policy. Return: false: it is none from here. */
bool mst_take_over_taken(struct mst_job *j);
/* A later generation begins: logs under what, and why. */
void mst_take_over_tell(const struct mst_job *j);

#endif
