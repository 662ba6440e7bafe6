/* SPDX-License-Identifier: MIT */
/*
 * Changes of policy in the running job. Anybody who connects may ask the leader for one. What is
 * asked for is checked here against the figures of the job, given to the ledger, and answered when
 * the ledger has said from which version on it holds.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_OPERATOR_SWITCHING_H
#define MST_SERVER_CONTROL_OPERATOR_SWITCHING_H

#include "server/control/base.h"

struct mst_switching {
	struct mst_base *base;

	/* A change has been given to the ledger, which has not said when it holds. Other requesters
	 * wait meanwhile. */
	bool waits;
	uint64_t requester; /* the connection */
	struct mst_job_policy asked;
	uint32_t forced;                  /* the same with --force */
	struct mst_reason warning;        /* of what the change does to the training; "": nothing */
	struct mst_controller controller; /* of `asked`: lent to the ledger while this waits */
};

/* The peer of @c asks for another policy.
 * Return: false: not now, because another change is being decided, or the ring of requests is
 * full. */
bool mst_switching_ask(struct mst_switching *s, struct mst_conn *c,
		       const struct mst_policy_change *change, uint64_t now_ns);

/* Handle notices of the data side. */
void mst_switching_taken(struct mst_switching *s, const struct mst_notice *notice, uint64_t now_ns);
void mst_switching_in_force(struct mst_switching *s, const struct mst_notice *notice);
void mst_switching_stuck(const struct mst_switching *s, const struct mst_notice *notice);
void mst_switching_dropped(const struct mst_switching *s, const struct mst_notice *notice);

#endif
