/* SPDX-License-Identifier: MIT */
/*
 * The end of a job at its leader: the version that the job is to end with, why the ledger has ended
 * it, and what its workers are told.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_FINISHING_H
#define MST_SERVER_CONTROL_MEMBERS_FINISHING_H

#include "server/control/members/leading.h"

/* GOAL: a worker has given a version that the job is to end with. */
void mst_finishing_goal(struct mst_leading *l, const struct mst_notice *notice);
/* FINISHED: the ledger has ended the job. */
void mst_finishing_end(struct mst_leading *l, const struct mst_notice *notice, uint64_t now_ns);
/* The user stops the server: tells everybody why. */
void mst_finishing_stop(struct mst_leading *l, const char *why, uint64_t now_ns);

#endif
