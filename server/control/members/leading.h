/* SPDX-License-Identifier: MIT */
/*
 * What a leader does with what its followers say, and with their silence. Each follower takes a
 * place, is appointed to a part of the vector, makes its server link, and is then told of every
 * worker that will ask it for a link. In a job with one server this module has little to do.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_LEADING_H
#define MST_SERVER_CONTROL_MEMBERS_LEADING_H

#include "server/control/members/followers.h"

struct mst_leading {
	struct mst_base *base;
	struct mst_followers followers;

	uint64_t beat_ns;          /* when followers get the next heartbeat */
	uint64_t join_until;       /* the job fails then if workers or followers are missing */
	bool gathered;             /* all followers were ready at some time */
	uint64_t refused;          /* so many workers have called that were not let in */
	struct mst_reason refusal; /* of the last of them */
	/* after the job: until when followers may take to close; 0: not set yet */
	uint64_t part_until;
};

/* Begins a step. Time in which this process stood still or made its data side is not counted for
 * the workers and followers that have still to join. */
void mst_leading_look(struct mst_leading *l, uint64_t now_ns);
/* Is a worker or a server missing without which the job cannot begin? @why: which. Without any
 * worker there is no ledger. Which of several workers are missing, the ledger says. */
bool mst_leading_nobody_came(const struct mst_leading *l, struct mst_reason *why);
/* Does what depends on time: heartbeats, silent followers, a job to which no worker came. */
void mst_leading_step(struct mst_leading *l, uint64_t now_ns);
/* The job's figures are fixed: appoints every follower that is there. Others are appointed when
 * they come. */
void mst_leading_appoint_all(struct mst_leading *l);
/* Is the time over that followers have for closing their connections? */
bool mst_leading_has_waited(const struct mst_leading *l, uint64_t now_ns);

/* ---- what followers say; each returns true if the message has been handled ---- */

bool mst_leading_serve(struct mst_leading *l, struct mst_conn *c, const struct mst_serve *serve,
		       uint64_t now_ns);
/* Return: false: not now, because the follower's link is still being made. @expected: set to a
 * session if all followers know it now, so that its worker is to be welcomed. */
bool mst_leading_message(struct mst_leading *l, struct mst_conn *c, const struct mst_message *msg,
			 uint64_t now_ns, struct mst_pending_session **expected);
/* @what: how the follower broke the protocol. */
bool mst_leading_broken(struct mst_leading *l, struct mst_conn *c, const char *what,
			uint64_t now_ns);

#endif
