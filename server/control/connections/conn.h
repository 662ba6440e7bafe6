/* SPDX-License-Identifier: MIT */
/*
 * A control connection: frames in, frames out, over a non-blocking stream. Buffers grow with need
 * up to fixed bounds; a peer that exceeds them is at fault.
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_CONN_H
#define MST_SERVER_CONTROL_CONNECTIONS_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/transport/stream.h"
#include "common/wire/message.h"
#include "server/core/ledger/ledger.h"
#include "server/data/session.h"

/*
 * How many messages of one peer are handled, and when there were too many of them. Pure.
 *
 * Time is cut into periods. In each, so many messages of a peer are handled; what else it has sent
 * waits for the next. A peer of which something waits at the end of each of many periods, one after
 * the other, is flooding. The periods are counted, and not the time: whatever has come while the
 * server stood still is handled, and a peer that has paused for a period begins anew.
 */
#define MST_FLOOD_MESSAGES 128u /* handled in a period at most */
#define MST_FLOOD_PERIOD_NS MST_MS
#define MST_FLOOD_PERIODS 1024u /* so many consecutive periods with more messages are a flood */

/* The counts of one peer. Begins zeroed. */
struct mst_flood {
	uint64_t since_ns; /* when the present period began */
	uint32_t handled;  /* messages in it */
	bool more;         /* a further message came in it, and waits */
	uint32_t periods;  /* consecutive periods up to now at whose end a message waited */
};

/* A message of the peer is there. Return: it may be handled now, and is counted. */
bool mst_flood_admits(struct mst_flood *f, uint64_t now_ns);
/* The message that was admitted last has to wait after all: it is admitted once more. */
void mst_flood_again(struct mst_flood *f);

/* Is the peer flooding? Then nothing of it is admitted any more. */
static inline bool mst_flood_is_one(const struct mst_flood *f)
{
	return f->periods >= MST_FLOOD_PERIODS;
}

enum mst_conn_role {
	MST_CONN_NEW,     /* the peer has not said what it is */
	MST_CONN_JOINING, /* a worker; the ledger has still to decide on its hello */
	MST_CONN_WORKER,  /* an admitted worker */
	MST_CONN_WATCHER, /* somebody who asks for the status */
	MST_CONN_SERVER,  /* at the leader: a follower */
	MST_CONN_LEAD,    /* at a follower: the leader */
	MST_CONN_CLOSING, /* what is queued is sent, then the connection is closed */
	MST_CONN_ROLES
};

enum mst_conn_event {
	MST_CONN_HELLO, /* the peer has said that it is a worker */
	MST_CONN_ADMIT, /* the ledger has admitted the worker */
	MST_CONN_WATCH, /* the peer has asked for the status, and nothing else */
	MST_CONN_SERVE, /* the peer has said that it is a follower */
	MST_CONN_LEADS, /* this server follows the peer */
	MST_CONN_PART,  /* the last message for the peer is queued */
	MST_CONN_EVENTS
};

/* As mst_job_enter(). */
bool mst_conn_enter(enum mst_conn_role *role, enum mst_conn_event event);

/* The size of both buffers of a worker's connection in a usual job. */
#define MST_CONN_BYTES (16u << 10)

struct mst_conn {
	const struct mst_stream_ops *ops;
	struct mst_stream *stream; /* NULL: the entry is free */
	char peer[64];
	enum mst_conn_role role;
	struct mst_principal principal; /* what the peer has proven, and may do */
	uint64_t id;                    /* never used again; it is also the cookie for the ledger */
	uint64_t deadline_ns;           /* NEW, CLOSING: the connection is closed then */
	/* when the connection was accepted, or its peer last asked for the status */
	uint64_t heard_ns;
	bool readable; /* something has come, or the peer has closed */
	bool waits;    /* the next message could not be handled yet */
	/* How many messages are handled, and whether those are all for now: more are handled a
	 * little later, so that a peer that sends without end costs others no more. */
	struct mst_flood flood;
	bool paused;
	uint32_t pid;

	struct mst_table table;     /* JOINING, WORKER: that its hello gave */
	struct mst_origins origins; /* JOINING, WORKER: likewise */
	struct mst_identity who;    /* WORKER */
	bool welcomed; /* WORKER: the hello has been answered; before, the worker may not send */
	uint64_t heartbeat_ns; /* WORKER: the step in which the ledger last heard of a heartbeat */
	/* WORKER: when the present period of reported values began, and how many values the ledger
	 * has heard of in this period. */
	uint64_t value_ns;
	uint32_t values;
	uint32_t server;         /* SERVER: its index */
	bool left;               /* the peer has said that it leaves, so its closing is no loss */
	uint64_t state_received; /* bytes of the start state */
	bool sends_state;
	bool offers;                  /* WORKER: it has said that it offers a start state */
	struct mst_claimed claimed;   /* JOINING, WORKER: what it has of an earlier generation, */
	bool comes_back;              /* if it comes back from one, */
	struct mst_in_force in_force; /* and the last change of policy that it knows then */
	bool sends_table; /* WORKER: it was asked for its tensor table, and has not sent all */
	/* NEW: its table is not the job's, and is compared as it comes; the next tensor. And until
	 * when that may take. */
	bool compares;
	uint32_t compared;
	uint64_t compares_until_ns;

	/* WORKER: it was asked for its state so many times, last with this number, and has begun to
	 * give it so many times, last with this one, of which so many bytes have come. */
	uint32_t state_asks, state_gifts;
	uint64_t state_asked, state_given, state_version, state_total, state_have;
	bool gives;                  /* more of it is to come */
	uint64_t takes, taken_bytes; /* WORKER: it is sent the state of this number; 0: none */
	bool took;                   /* WORKER: it has the state of another */
	bool other_kernels;          /* WORKER: it came late, and computes with others than all */
	bool gives_agreed;           /* WORKER: it was asked for the state that all begin with */
	bool takes_agreed;    /* WORKER: it is sent the state that all begin with, of which */
	uint64_t agreed_sent; /* so many bytes are on their way */

	/* WORKER: it has asked for the average, with this number, and has not been sent all of it.
	 * The least turn comes first; 0: it has not. */
	uint64_t average_turn, average_number;

	bool asks_status, watches;
	bool asks_changes; /* the peer may change the job, and has asked for it */

	char *in, *out;
	/* in_have bytes from in_at on have been received and not used up. in_used: the length of
	 * the message that mst_conn_next() returned last. */
	size_t in_at, in_have, in_room, in_used;
	bool dry;     /* all that the peer has sent has been received */
	bool refused; /* the peer does not believe this end */
	size_t out_have, out_room;
	bool polled;    /* epoll waits for the stream, */
	bool polls_out; /* for room to send, too */
};

void mst_conn_open(struct mst_conn *c, const struct mst_stream_ops *ops, struct mst_stream *stream,
		   uint64_t id);
void mst_conn_close(struct mst_conn *c); /* frees all; accepts a free entry */

/* Is the peer a part of the job? */
static inline bool mst_conn_is_known(const struct mst_conn *c)
{
	return c->role == MST_CONN_WORKER || c->role == MST_CONN_SERVER || c->role == MST_CONN_LEAD;
}

/* Has @a been silent for longer than @b? Connections that were accepted in one step have the same
 * time; then the one that was accepted first counts as older. */
static inline bool mst_conn_is_older(const struct mst_conn *a, const struct mst_conn *b)
{
	return a->heard_ns != b->heard_ns ? a->heard_ns < b->heard_ns : a->id < b->id;
}

/* Receives what has come, up to the first whole frame or a little more, in a few reads; c->dry:
 * that was all.
 * Return: 0; -EPIPE closed by the peer, c->refused: because it does not believe this end;
 * -ENOMEM. */
int mst_conn_receive(struct mst_conn *c);
/* The next whole message. The next call drops it, unless mst_conn_again() is called before.
 * Return: 1; 0: no whole message yet; -EMSGSIZE: it is longer than the peer may send now;
 * -EPROTO: rubbish, or another protocol (@protocol: which), or a field that must be understood and
 * is not known (@unknown: which). */
int mst_conn_next(struct mst_conn *c, struct mst_message *out, uint32_t *protocol,
		  struct mst_unknown *unknown);
/* Has the next mst_conn_next() return the last message once more. */
void mst_conn_again(struct mst_conn *c);

/* Queues a message.
 * Return: 0; -ENOBUFS the peer does not read; -ENOMEM. */
int mst_conn_send(struct mst_conn *c, const struct mst_message *msg);
/* Sends as much as the connection takes now.
 * Return: 0 or -EPIPE. */
int mst_conn_flush(struct mst_conn *c);

#endif
