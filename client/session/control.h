/* SPDX-License-Identifier: MIT */
/*
 * The control connection to the leader: frames out, frames in, and heartbeats. A step function,
 * which during joining the user's thread calls, and from the welcome on the heartbeat's thread.
 *
 * Any thread may send, look and step: a mutex makes the stream one thread's at a time. The data
 * path never takes it: a waiting worker looks at one atomic word, and only then here.
 */
#ifndef MST_CLIENT_SESSION_CONTROL_H
#define MST_CLIENT_SESSION_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "client/core/silence.h"
#include "common/base/reason.h"
#include "common/transport/called.h"
#include "common/transport/stream.h"
#include "common/wire/message.h"

struct mst_control;

struct mst_control_cfg {
	const struct mst_stream_ops *ops;
	struct mst_stream *stream; /* taken over on success */
	const char *server;        /* for sentences; outlives the connection */
	void (*wake)(void *ctx);   /* something was told; from the thread that steps */
	void *ctx;
};

/* All that the leader has said so far. */
struct mst_told {
	bool welcomed;
	bool send_state;          /* the leader wants this worker's start state */
	struct mst_wanted wanted; /* what of it */
	bool send_table;          /* the leader wants this worker's tensor table */
	bool agrees;              /* the leader has said how workers begin: */
	struct mst_agree agree;
	uint64_t differences; /* how often the leader has said that others have something else */
	struct mst_differs differs; /* the last time */
	bool finished;              /* the job has ended well; `reason` says why */
	uint64_t state_wanted;      /* the last asking for this worker's state; 0: none */
	uint64_t behind;            /* how often the leader has said that versions are gone */
	uint64_t newest;            /* the newest version then */
	uint64_t goals;             /* how often a version to end with has been answered */
	uint64_t goal;              /* the job's then */
	bool closed;                /* nothing more can come or go */
	bool unheard; /* the server has closed the connection without having sent anything */
	int error;    /* refused, ended, or the connection broke; 0: none. The first error stays */
	bool again;   /* that error: the worker may come back */
	bool asked_again; /* the leader has said so itself */
	bool begun;       /* a generation has begun: */
	struct mst_begins begins;
	char policy[MST_POLICY_LEN]; /* in force, or about to be */
	bool knows;                  /* which change that is is known: */
	struct mst_in_force in_force;
	struct mst_workforce workforce; /* that the job is to go on with; workers 0: not said */
	struct mst_reason reason;
	struct mst_welcome welcome;
};

/* The error that a session ends with, of what the leader calls it: an errno, and none that would
 * read as "nothing is lost, call again". */
int mst_control_ending(int code);

/* 0 or -ENOMEM. */
int mst_control_new(const struct mst_control_cfg *cfg, struct mst_control **out);
void mst_control_free(struct mst_control *c); /* accepts NULL */
/* The host of the leader, as this end has called it; while one thread alone uses the connection.
 * Return: @out. */
const char *mst_control_host(const struct mst_control *c, char out[MST_CALLED_LEN]);
/* In a child of fork(): closes the inherited connection, of which the parent notices nothing.
 * Afterwards it may only be freed. */
void mst_control_disown(struct mst_control *c);

/* Queues a message, and sends what goes. 0; -EAGAIN no room now, wake() follows when there is;
 * -EPIPE the connection is over. Never blocks. */
int mst_control_send(struct mst_control *c, const struct mst_message *msg);

/* Sends, receives, beats; never blocks. Return: when to step again at the latest. */
uint64_t mst_control_step(struct mst_control *c, uint64_t now_ns);
/* Sleeps until the connection or @notify_fd (-1: none) is readable, or until @until_ns. */
void mst_control_sleep(struct mst_control *c, int notify_fd, uint64_t until_ns);

/* The session of a welcome begins: from now on heartbeats are sent, and expected of the servers. */
void mst_control_beat(struct mst_control *c, const struct mst_welcome *welcome,
		      uint64_t interval_ns, uint64_t now_ns);

/* Reads all that is there, and then: a server that has been silent for @limit_ns. @moved: a set of
 * servers by whose links something has come. Return: false: none is silent. */
bool mst_control_silent(struct mst_control *c, uint32_t moved, uint64_t limit_ns,
			struct mst_silent *out);
/* Nothing of it is waited for any more. @reason: why, to be told from now on. */
void mst_control_give_up(struct mst_control *c, const char *reason);

/* The state of a worker, or the average, on its way. */
struct mst_gift {
	uint8_t *data; /* allocated */
	uint64_t bytes, number, version;
	uint64_t too_large; /* nothing is given: the bytes of a state that is too large, or 0 */
};

/* Sends a state while the connection is stepped, and frees it then. Return: 0; -EALREADY the last
 * one is still being sent. */
int mst_control_give(struct mst_control *c, const struct mst_gift *gift);
/* Hands over the state of another worker that has come as a whole, to be freed by the caller.
 * @number: MST_AGREED_GIFT, or another: any but that.
 * Return: false: there is none of that kind. One of the other kind is dropped, as nobody waits for
 * it any more. */
bool mst_control_claim(struct mst_control *c, uint64_t number, struct mst_gift *out);

/* All of the average with @into->number is to be put into @into->data, which is taken over. The
 * caller asks for it then. */
void mst_control_expect(struct mst_control *c, const struct mst_gift *into);
/* Hands it over when all of it has come, to be freed by the caller. Return: false: it has not. */
bool mst_control_expected(struct mst_control *c, struct mst_gift *out);

/* Has something been told since the last mst_control_look()? Takes no lock. */
bool mst_control_news(const struct mst_control *c);
void mst_control_look(struct mst_control *c, struct mst_told *out);
/* The same for another thread than the one that looks for news: what it sees stays news. */
void mst_control_peek(struct mst_control *c, struct mst_told *out);
/* Is the session lost, and may the worker come back? Any thread. */
bool mst_control_lost(struct mst_control *c);
/* Has the leader said that the job or the session has ended? Takes no lock; any thread. */
bool mst_control_over(const struct mst_control *c);
/* Is there something that has been queued and not sent? */
bool mst_control_pending(struct mst_control *c);

#endif
