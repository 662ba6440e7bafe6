/* SPDX-License-Identifier: MIT */
/*
 * The followers of a leader: their places, how each is reached, and how one is lost. If a follower
 * is lost after it was appointed, the job fails, since a part of every version is lost. In a job
 * with one server there are no followers.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_FOLLOWERS_H
#define MST_SERVER_CONTROL_MEMBERS_FOLLOWERS_H

#include "common/base/clock.h"
#include "server/control/base.h"
#include "server/control/members/follower_place.h"

struct mst_followers {
	struct mst_base *base;
	struct mst_follower_place place[MST_SERVERS_MAX]; /* by server, from 1 on */
	uint64_t step_ns; /* time of the leader's last step; 0: there was none */
	bool told_end;    /* all have been told of the end of the job */
};

/* The servers of the job, with the leader. */
static inline uint32_t mst_followers_servers(const struct mst_followers *f)
{
	return mst_job_servers(&f->base->job);
}

/* For how long a follower may be silent, or without its link, in seconds. */
static inline double mst_followers_lease_s(const struct mst_followers *f)
{
	return (double)mst_server_options_server_lease(f->base->job.o) / (double)MST_SECOND;
}

/* A follower's connection, or NULL. */
struct mst_conn *mst_followers_conn(const struct mst_followers *f, uint32_t server);
/* Sends over that connection, if there is one; to all followers. */
void mst_followers_send(struct mst_followers *f, uint32_t server, const struct mst_message *msg);
void mst_followers_send_all(struct mst_followers *f, const struct mst_message *msg);

/* Are all of them ready for workers? */
bool mst_followers_are_ready(const struct mst_followers *f);
/* Have all that are ready been heard recently? While one has not, no time passes for workers. */
bool mst_followers_go_on(const struct mst_followers *f);

/* ---- workers ---- */

/* The followers that must know a session before its worker is welcomed, as a set. */
uint32_t mst_followers_set(const struct mst_followers *f);
/* Tell all followers of a session, and that a session has ended. */
void mst_followers_announce(struct mst_followers *f, const struct mst_pending_session *p);
void mst_followers_forget(struct mst_followers *f, struct mst_identity who);
/* Fills in how far the data threads of all servers are. */
void mst_followers_fill_beat(struct mst_followers *f, struct mst_beat *out);

/* ---- losing them, and the end of the job ---- */

/* A follower's connection is closed or of no more use: the follower is lost, or the job is over and
 * it has parted. @what: "is gone: ...". */
void mst_followers_lost(struct mst_followers *f, uint32_t server, const char *what);
/* The follower is lost while the job goes on. */
void mst_followers_lose(struct mst_followers *f, uint32_t server, const char *what);
/* The data side gives a follower up. */
void mst_followers_given_up(struct mst_followers *f, const struct mst_notice *notice,
			    uint64_t now_ns);
/* Ends the connection of a lost follower. The follower may still read why, and the job does not
 * wait for that. */
void mst_followers_send_away(struct mst_followers *f, uint32_t server, uint64_t now_ns);
/* Once the job is over: tells every follower how it ended, unless it has been told. A follower ends
 * when its workers have gone. */
void mst_followers_tell_end(struct mst_followers *f);
/* Have all of them closed their connections? */
bool mst_followers_have_parted(const struct mst_followers *f);

#endif
