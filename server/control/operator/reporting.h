/* SPDX-License-Identifier: MIT */
/*
 * The leader's answers to `muster status`. The data thread fills a snapshot when a connection waits
 * for one; all that wait get the same snapshot.
 *
 * Control thread only; while the snapshot is lent the data thread uses it.
 */
#ifndef MST_SERVER_CONTROL_OPERATOR_REPORTING_H
#define MST_SERVER_CONTROL_OPERATOR_REPORTING_H

#include "common/base/clock.h"
#include "server/control/members/followers.h"

/* The least time between two snapshots: however many ask, the data thread fills 50 a second. */
#define MST_REPORTING_GAP_NS (20 * MST_MS)

struct mst_reporting {
	struct mst_base *base;
	const struct mst_followers *followers;

	enum mst_access access; /* who may join */

	struct mst_snapshot snapshot;
	bool asked; /* somebody may wait for an answer */
	bool lent;
	uint64_t due_ns; /* no other snapshot is made before */
	bool final_told; /* the status after the job's end has been sent */
};

/* Return: 0 or -ENOMEM. */
int mst_reporting_init(struct mst_reporting *r);
/* Accepts zeroed memory. */
void mst_reporting_fini(struct mst_reporting *r);

/* To be called after mst_job_forget(): forgets the figures of the data side that was freed. */
void mst_reporting_forget(struct mst_reporting *r);

/* The peer of @c asks for the status. @watches: also for the last one, when the job has ended. */
void mst_reporting_ask(struct mst_reporting *r, struct mst_conn *c, bool watches, uint64_t now_ns);
/* Has a snapshot filled if a connection waits for one, and the last was not made just now. Without
 * a data side there is nothing to fill. */
void mst_reporting_step(struct mst_reporting *r, uint64_t now_ns);
/* Does somebody wait for the time of the next snapshot? */
bool mst_reporting_waits(const struct mst_reporting *r);
/* Has a worker reported after the last status, which those who watch do not know yet? */
bool mst_reporting_is_behind(const struct mst_reporting *r);
/* The data thread has filled the snapshot: sends it. */
void mst_reporting_filled(struct mst_reporting *r);

#endif
