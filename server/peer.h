/* SPDX-License-Identifier: MIT */
/*
 * One end of the line between the lead and a member: a relay, and the link that it is using now.
 * The data thread's. A link that is lost is replaced by another, and nothing is said twice or left
 * out for it.
 */
#ifndef MST_SERVER_PEER_H
#define MST_SERVER_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "server/core/relay.h"

struct mst_peer {
	struct mst_relay *relay;
	uint32_t window;
	struct mst_link *link; /* NULL: none now; else its `user` is NULL, unlike a session's */
	struct mst_link *dead; /* of no more use, but events of it may be at hand */
	bool hailed;           /* on this link: this end has said how far it is */
	bool greeted;          /* on this link: the other end has, so that cells may be put */
	bool prompt;           /* acknowledge at once: no cell may follow */
	uint64_t arrived;      /* the last number that was announced */
	/* Nothing of the other end since then: no link, or one on which it has said nothing yet.
	 * MST_NEVER: there is one, or never was. */
	uint64_t lost_ns;
};

/* What both ends of such a link ask for. */
struct mst_lanes mst_peer_lanes(uint32_t window);

int mst_peer_init(struct mst_peer *p, uint32_t window); /* 0 or -ENOMEM */
void mst_peer_fini(struct mst_peer *p);                 /* what calloc gave is fine */

/* An attached link, in place of any before it. */
void mst_peer_use(struct mst_peer *p, struct mst_link *link, uint64_t now_ns);
/* It is of no more use. */
void mst_peer_drop(struct mst_peer *p, uint64_t now_ns);
/* Why its link is of no more use, or none could be made: what the transport says, or else the
 * error. Valid until the next call. */
const char *mst_peer_why(const struct mst_peer *p, int error);

/* An immediate has arrived. 0 or -EPROTO. */
int mst_peer_arrived(struct mst_peer *p, uint32_t imm);
/* The next cell, once. 1; 0: none; -EPROTO. */
int mst_peer_take(struct mst_peer *p, struct mst_peer_cell *out);
/* Puts what has been said, as far as it goes. 0: all; -EAGAIN: not all; else the link is lost. */
int mst_peer_flush(struct mst_peer *p);

#endif
