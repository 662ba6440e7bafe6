/* SPDX-License-Identifier: MIT */
/*
 * What a follower does with the leader of its job: it connects, is appointed to a part of the
 * vector, makes the server link, hears of workers, and gets its part of the start state. If there
 * is no leader any more, the follower ends its sessions and its process ends.
 *
 * Control thread only. Two calls may block, at times when the thread has nothing else to do. While
 * no leader has answered, mst_following_step() tries to connect for half a second, and for as long
 * as the resolver needs for a host's name. At the appointment mst_following_message() makes the
 * data side, which takes as long as allocating all its memory.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_FOLLOWING_H
#define MST_SERVER_CONTROL_MEMBERS_FOLLOWING_H

#include "common/transport/stream.h"
#include "server/control/base.h"

enum mst_following_state {
	MST_FOLLOWING_SEEKS,     /* no leader has answered yet */
	MST_FOLLOWING_ASKED,     /* connected to a leader, and has offered it this server */
	MST_FOLLOWING_APPOINTED, /* the leader has said what the job is: the data side is made */
	MST_FOLLOWING_READY,     /* and the server link was up, once or more */
	MST_FOLLOWING_CUT_OFF,   /* there is no leader any more */
	MST_FOLLOWING_STATES
};

enum mst_following_event {
	MST_FOLLOWING_CONNECT,
	MST_FOLLOWING_APPOINT,
	MST_FOLLOWING_LINK,  /* the server link is up, for the first time or again */
	MST_FOLLOWING_RETRY, /* the leader that was asked is about to end, or has ended */
	MST_FOLLOWING_CUT,
	MST_FOLLOWING_EVENTS
};

/* As mst_job_enter(). */
bool mst_following_enter(enum mst_following_state *state, enum mst_following_event event);

struct mst_following {
	struct mst_base *base;
	const struct mst_stream_ops *stream;
	struct mst_credentials *credentials; /* NULL: plain streams */

	enum mst_following_state state;
	/* this server's options, with what the leader has said in their place */
	struct mst_server_options options;
	struct mst_appoint appoint;
	uint64_t connect_until; /* 0: not tried yet */
	uint64_t connect_ns;    /* when it is tried next */
	bool taken;             /* the leader has this server in its job: it sends heartbeats */
	uint64_t tell_ns;    /* when the log says for whom this server waits; MST_NEVER: it has */
	uint64_t heard_ns;   /* when the leader was last heard, by the clock of `hearing` */
	uint64_t beat_ns;    /* when the next heartbeat is due */
	uint64_t state_have; /* bytes of the start state that have come */
	uint64_t redial_ns;  /* when another link is asked for; 0, MST_NEVER: it is not */
	uint8_t token[MST_TOKEN_LEN]; /* of the last link that was asked for */
	uint64_t dials;
	/* One of the two ends did not let the other in, before the appointment: this server was
	 * started with certificates that the leader does not believe, or the other way round. */
	bool refused;
	/* How the job ended, as the data side has reported; GATHERING: it has not. FAILED: what
	 * workers are told. */
	enum mst_job_state finish;
	int finish_error;
};

/* Connects, sends heartbeats, asks for another link. To be called before connections are read. */
void mst_following_step(struct mst_following *f, uint64_t now_ns);
/* Gives the leader up if it is silent. To be called after connections were read. */
void mst_following_judge(struct mst_following *f, uint64_t now_ns);
/* Return: false: not now, because the ring of requests is full or too many ended sessions are still
 * being read. */
bool mst_following_message(struct mst_following *f, struct mst_conn *c,
			   const struct mst_message *msg, uint64_t now_ns);
/* Handles a notice of the data side, except for those of sessions that it lets go of. */
void mst_following_notice(struct mst_following *f, const struct mst_notice *notice,
			  uint64_t now_ns);
/* The leader has broken the protocol: it sent @what. */
void mst_following_accuse(struct mst_following *f, struct mst_conn *c, const char *what,
			  uint64_t now_ns);
/* The connection with the leader, or NULL. */
struct mst_conn *mst_following_conn(const struct mst_following *f);
/* This server ends: tells the leader @why, and the leader tells all others. */
void mst_following_stop(struct mst_following *f, const char *why, uint64_t now_ns);
/* The leader is lost. @error: -EACCES it did not believe this server's certificate; else any.
 * @why: a sentence. */
void mst_following_lost(struct mst_following *f, int error, const char *why, uint64_t now_ns);
/* Has the leader's data side ended the job? The leader says so, and why, when it needs this server
 * no longer. */
static inline bool mst_following_hears_end(const struct mst_following *f)
{
	return f->finish != MST_JOB_GATHERING;
}

#endif
