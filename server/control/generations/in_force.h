/* SPDX-License-Identifier: MIT */
/*
 * The last change of policy that a job at its leader knows, and what it knows it from
 * (generations/take_over.h).
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_GENERATIONS_IN_FORCE_H
#define MST_SERVER_CONTROL_GENERATIONS_IN_FORCE_H

#include "server/core/policy/in_force.h"
#include "server/core/policy/policy.h"

struct mst_job_in_force {
	struct mst_in_force now; /* as workers are told it; number 0: there was none */
	bool cannot;             /* this server cannot run it, and runs what it was started with: */
	struct mst_reason why;   /* because of this */

	/* Before the start of a generation. */
	struct mst_in_force kept;          /* of the checkpoint that the job goes on from */
	struct mst_in_force_claims claims; /* of workers that come back; zeroed: none do */
	bool is_open; /* `now` is to be chosen anew, as there are other claims */
	bool waits;   /* the ledger has been given a policy, and has not taken it yet: */
	struct mst_controller controller; /* lent to it */
};

#endif
