/* SPDX-License-Identifier: MIT */
/*
 * A control connection: frames in, frames out, over a non-blocking stream. Buffers grow with need
 * up to fixed bounds; a peer that exceeds them is at fault.
 */
#ifndef MST_SERVER_CONN_H
#define MST_SERVER_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/stream.h"
#include "common/wire/message.h"
#include "server/core/ledger.h"
#include "server/session.h"

enum mst_conn_role {
	MST_CONN_NEW,     /* has not said what it is */
	MST_CONN_JOINING, /* its hello is with the ledger */
	MST_CONN_WORKER,  /* welcomed */
	MST_CONN_WATCHER, /* asks for the status */
	MST_CONN_SERVER,  /* at the lead: a member */
	MST_CONN_LEAD,    /* at a member: the lead */
	MST_CONN_CLOSING, /* gets what is queued, then is closed */
};

struct mst_conn {
	const struct mst_stream_ops *ops;
	struct mst_stream *stream; /* NULL: the entry is free */
	char peer[64];
	enum mst_conn_role role;
	uint64_t id;          /* never used again: the ledger's cookie */
	uint64_t deadline_ns; /* NEW, CLOSING: closed then */
	uint32_t pid;

	struct mst_identity who; /* WORKER */
	uint32_t server;         /* SERVER: which */
	bool left;               /* it said so: its closing is no loss */
	uint64_t state_received; /* bytes of the start state */
	bool sends_state;

	bool asks_status, watches;

	char *in, *out;
	size_t in_have, in_room, in_used; /* in_used: of the message last given out */
	size_t out_have, out_room;
	bool polls_out; /* epoll watches for room to send */
};

void mst_conn_open(struct mst_conn *c, const struct mst_stream_ops *ops, struct mst_stream *stream,
		   uint64_t id);
void mst_conn_close(struct mst_conn *c); /* frees all; a free entry is fine */

/* Reads what is there. 0; -EPIPE closed by the peer; -EPROTO; -ENOMEM. */
int mst_conn_receive(struct mst_conn *c);
/* The next whole message, or 0: none yet. It is used up by the next call unless mst_conn_again().
 * -EPROTO: rubbish, or another protocol (@protocol: whose). */
int mst_conn_next(struct mst_conn *c, struct mst_message *out, uint32_t *protocol);
/* Gives the last message out once more at the next mst_conn_next(). */
void mst_conn_again(struct mst_conn *c);

/* Queues. -ENOBUFS the peer does not read; -ENOMEM. */
int mst_conn_send(struct mst_conn *c, const struct mst_message *msg);
/* Sends as much as goes. -EPIPE. */
int mst_conn_flush(struct mst_conn *c);

#endif
