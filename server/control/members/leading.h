/* SPDX-License-Identifier: MIT */
/*
 * What a leader does with the other servers of its job, its followers. Each follower takes a place,
 * is appointed to a part of the vector, makes its server link, and is then told of every worker
 * that will ask it for a link. If a follower is lost the job fails, since a part of every version
 * is lost. In a job with one server there are no followers, and this module has little to do.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_LEADING_H
#define MST_SERVER_CONTROL_MEMBERS_LEADING_H

#include "server/control/base.h"
#include "server/control/members/follower_place.h"

struct mst_leading {
	struct mst_base *base;

	struct mst_follower_place follower[MST_SERVERS_MAX]; /* from 1 on */
	uint64_t beat_ns;    /* when followers get the next heartbeat */
	uint64_t step_ns;    /* time of the last step; 0: there was none */
	uint64_t join_until; /* the job fails then if workers or followers are missing */
	bool gathered;       /* all followers were ready at some time */
	/* a start state has come and been passed on, but is not at every follower yet */
	bool passes_state;
	struct mst_identity state_of;
	/* after the job: until when followers may take to close; 0: not set yet */
	uint64_t part_until;
	bool told_end; /* followers have been told of the end */
};

/* Begins a step. Time in which this process stood still or made its data side is not counted for
 * the workers and followers that have still to join. */
void mst_leading_look(struct mst_leading *l, uint64_t now_ns);
/* Have all ready followers been heard recently? While one has not, no time passes for workers. */
bool mst_leading_servers_go_on(const struct mst_leading *l);
/* Is a worker or a server missing without which the job cannot begin? @why: which. Without any
 * worker there is no ledger. Which of several workers are missing, the ledger says. */
bool mst_leading_nobody_came(const struct mst_leading *l, struct mst_reason *why);
/* Does what depends on time: heartbeats, silent followers, a job to which no worker came. */
void mst_leading_step(struct mst_leading *l, uint64_t now_ns);

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

/* ---- losing followers, and the end of the job ---- */

/* A follower's connection is closed or of no more use. @what: "is gone: ...". */
void mst_leading_lost(struct mst_leading *l, uint32_t server, const char *what);
/* The data side has lost a server link, or gives the follower up. */
void mst_leading_link_lost(struct mst_leading *l, const struct mst_notice *notice);
void mst_leading_gone(struct mst_leading *l, const struct mst_notice *notice, uint64_t now_ns);
/* Once the job is over: tells every follower how it ended, unless it has been told. A follower ends
 * when its workers have gone. */
void mst_leading_tell_end(struct mst_leading *l);
/* Have all followers closed their connections? */
bool mst_leading_have_parted(const struct mst_leading *l);
/* Is the time over that followers have for closing their connections? */
bool mst_leading_has_waited(const struct mst_leading *l, uint64_t now_ns);

/* ---- server links ---- */

/* For a linking whose `ctx` is a leading. */
extern const struct mst_linking_ops mst_leading_links;

/* ---- workers ---- */

/* Are all followers ready for workers? */
bool mst_leading_is_ready(const struct mst_leading *l);
/* The job's figures are fixed: appoints every follower that is there. Others are appointed when
 * they come. */
void mst_leading_appoint_all(struct mst_leading *l);
/* The followers that must know a session before its worker is welcomed, as a set. */
uint32_t mst_leading_set(const struct mst_leading *l);
/* Tell all followers of a session, and that a session has ended. */
void mst_leading_announce(struct mst_leading *l, const struct mst_pending_session *p);
void mst_leading_forget(struct mst_leading *l, struct mst_identity who);
/* Fills in how far the data threads of all servers are. */
void mst_leading_fill_beat(struct mst_leading *l, struct mst_beat *out);

/* A follower's connection, or NULL. mst_leading_send() sends if there is one. */
struct mst_conn *mst_leading_conn(const struct mst_leading *l, uint32_t server);
void mst_leading_send(struct mst_leading *l, uint32_t server, const struct mst_message *msg);

#endif
