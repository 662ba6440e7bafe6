/* SPDX-License-Identifier: MIT */
/*
 * The control connections of a server: the frontend listens, accepts, receives frames and sends
 * them. It knows which peers may have a connection, and how many, but not what messages mean: it
 * passes whole messages to its owner.
 *
 * A peer that sends rubbish, or nothing at all, costs an entry for a few seconds and nothing else.
 * Strangers, which are peers that have sent nothing valid yet, have entries of their own. If all of
 * these are taken, the stranger that has been silent longest is closed for the next. So strangers
 * take no entries from workers, and hold up each other for a short time only.
 *
 * All functions are for one thread, except mst_frontend_wake(). Only mst_frontend_wait() blocks,
 * and mst_frontend_open() while the name of the host that it listens on is resolved.
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_FRONTEND_H
#define MST_SERVER_CONTROL_CONNECTIONS_FRONTEND_H

#include "common/base/reason.h"
#include "server/control/connections/complaint.h"
#include "server/control/connections/places.h"

/* What the owner of the connections does. */
struct mst_frontend_ops {
	/* Handles a whole message.
	 * Return: false: not now. The message is given again in the next step, and no other message
	 * of this connection before it. */
	bool (*message)(void *ctx, struct mst_conn *c, const struct mst_message *msg,
			uint64_t now_ns);
	/* The peer broke the protocol; @what says how: "sent what is ...". The owner answers with
	 * mst_frontend_error().
	 * Return: false: not now; as for a message. */
	bool (*broken)(void *ctx, struct mst_conn *c, const char *what, uint64_t now_ns);
	/* The connection is closed after this call: by its peer, or for a reason that has been
	 * logged. */
	void (*gone)(void *ctx, struct mst_conn *c);
};

struct mst_frontend_cfg {
	const struct mst_stream_ops *stream;
	struct mst_credentials *credentials; /* NULL: plain streams */
	const char *listen;                  /* HOST:PORT; NULL: no connection is accepted */
	uint32_t members;                    /* entries for peers that are part of the job */
	uint32_t workers; /* ranks; at a follower 0: it has no connections with workers */
	const struct mst_frontend_ops *ops;
	void *ctx;
};

struct mst_frontend {
	struct mst_frontend_cfg cfg;
	struct mst_listener *listener; /* NULL: there is none */
	char address[64];
	int epoll, wake_fd; /* wake_fd: an eventfd that ends the wait */
	struct mst_places places;
	uint64_t next_id;
	bool called; /* epoll has reported that new connections may wait */
	bool woken;  /* epoll has reported that wake_fd is readable */
	/* Messages of a known peer were held back in the last step: the next is to follow soon. */
	bool holds;
	bool deaf; /* new connections wait in the backlog until there is room */
	struct mst_complaints complaints; /* the owner uses them too */
	struct mst_message message; /* the message being handled; it is too large for a stack */
	struct mst_message draft;   /* what mst_frontend_draft() returns */
};

/* How long a new peer may be silent before it says what it is, and how long a closing connection's
 * peer may take to read the rest. */
#define MST_FRONTEND_GRACE_NS (5 * MST_SECOND)
/* The most connections at a time whose peers have sent nothing valid yet. */
#define MST_FRONTEND_STRANGERS 64u
/* The most connections at a time that watch the status. */
#define MST_FRONTEND_WATCHERS 32u

/* @why: on failure a sentence.
 * Return: 0 or -errno; then mst_frontend_close() frees what has been made. */
int mst_frontend_open(struct mst_frontend *f, const struct mst_frontend_cfg *cfg,
		      struct mst_reason *why);
/* Closes all connections without a message. Accepts zeroed memory. */
void mst_frontend_close(struct mst_frontend *f);

/* Adds a connection that the owner has made, for a peer that is no stranger. @is: who the peer is.
 * Return: NULL: there is no free entry, or epoll cannot wait for it; the stream is closed then. */
struct mst_conn *mst_frontend_adopt(struct mst_frontend *f, struct mst_stream *stream,
				    const char *peer, enum mst_conn_event is);
/* Makes a stranger's connection one that watches the status, or asks for changes. If there are too
 * many, the one that has been idle longest is closed for it, or else the one that
 * mst_places_yield() names.
 * Return: false: there is none of these. */
bool mst_frontend_admit_watcher(struct mst_frontend *f, struct mst_conn *c, uint64_t now_ns);

/* Receives and sends. Connections of known peers come first; then new ones are accepted, and
 * strangers are read. If strangers have taken all their entries, the oldest of them is read once
 * more, and closed if its peer has not said hello. */
void mst_frontend_step(struct mst_frontend *f, uint64_t now_ns);

/* Logs a warning about the peer. Warnings about unknown peers are limited. */
void mst_frontend_blame(struct mst_frontend *f, const struct mst_conn *c, enum mst_complaint kind,
			const char *reason);
/* Logs that the peer broke the protocol; @what says how. @reason: the sentence that was logged. The
 * owner sends it to the peer by mst_frontend_error(), and does what else follows. */
void mst_frontend_accuse(struct mst_frontend *f, const struct mst_conn *c, const char *what,
			 struct mst_reason *reason);
/* An empty message of @kind to be filled in and sent before the next call of this function. There
 * is only one; it may be sent to several peers. Therefore gone() of the owner must not use it. */
struct mst_message *mst_frontend_draft(struct mst_frontend *f, enum mst_message_kind kind);
/* Queues a message, and sends what the connection takes. A peer that does not read what it asked
 * for is hung up on, and so is one that has closed: then gone() is called in this call, and the
 * stream is NULL afterwards. */
void mst_frontend_send(struct mst_frontend *f, struct mst_conn *c, const struct mst_message *msg);
/* Changes the role of the peer, as mst_conn_enter() says. */
void mst_frontend_enter(struct mst_frontend *f, struct mst_conn *c, enum mst_conn_event event);
/* The ledger has admitted the worker that has this connection, as @who. */
void mst_frontend_admit(struct mst_frontend *f, struct mst_conn *c, struct mst_identity who);
/* Closes the connection when what is queued has been read. */
void mst_frontend_part(struct mst_frontend *f, struct mst_conn *c, uint64_t now_ns);
/* Sends an error with its reason, and closes the connection when that has been read. */
void mst_frontend_error(struct mst_frontend *f, struct mst_conn *c, int code, const char *reason,
			uint64_t now_ns);
void mst_frontend_hang_up(struct mst_frontend *f, struct mst_conn *c);

/* Has everything been sent? */
bool mst_frontend_has_sent_all(const struct mst_frontend *f);
/* The worker's connection of this session, or NULL. */
struct mst_conn *mst_frontend_worker(struct mst_frontend *f, struct mst_identity who);

/* The connection with this id, or NULL: it is closed. */
struct mst_conn *mst_frontend_conn(struct mst_frontend *f, uint64_t id);

/* The next connection from *@i on, or NULL:
 *     for (uint32_t i = 0; (c = mst_frontend_next(f, &i)) != NULL;) */
struct mst_conn *mst_frontend_next(const struct mst_frontend *f, uint32_t *i);
/* The same of those that have this role, without a look at others. */
struct mst_conn *mst_frontend_next_of(const struct mst_frontend *f, enum mst_conn_role role,
				      uint32_t *i);
/* How many connections have this role. */
static inline uint32_t mst_frontend_count(const struct mst_frontend *f, enum mst_conn_role role)
{
	return mst_places_count(&f->places, role);
}

/* Sleeps until something has come, but at most @timeout_ns. */
void mst_frontend_wait(struct mst_frontend *f, uint64_t timeout_ns);
/* Ends the present or next wait. May be called by any thread and by a signal handler. */
void mst_frontend_wake(struct mst_frontend *f);
/* Has a descriptor of the owner end waits, each time that it becomes readable.
 * Return: 0 or -errno. */
int mst_frontend_watch(struct mst_frontend *f, int fd);

#endif
