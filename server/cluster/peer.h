/* SPDX-License-Identifier: MIT */
/*
 * One end of the server link between the leader and a follower: a resend queue, and the link that
 * it uses now. A link that is lost is replaced by another, and no entry is executed twice or left
 * out.
 *
 * Used by the data thread alone.
 */
#ifndef MST_SERVER_CLUSTER_PEER_H
#define MST_SERVER_CLUSTER_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/listening.h"
#include "common/transport/transport.h"
#include "server/cluster/resend.h"

struct mst_peer {
	struct mst_resend *resend;
	uint32_t window;
	uint64_t lease_ns;
	struct mst_link *link; /* NULL: none now; its `user` is NULL, unlike a session's link */
	struct mst_link *dead; /* detached, but events of it may still be in this step's list */
	bool hailed;           /* this end has said on this link what it has executed */
	bool greeted;          /* the other end has said so too; entries may be put */
	bool prompt;           /* acknowledge at once, since no entry may follow */
	uint64_t arrived;      /* number of the last entry that has arrived */
	/* There is no link, or the other end has sent nothing on it yet. Time in which this end
	 * stood still does not count, since the other end could not have come. */
	bool is_lost;
	uint64_t lost_ns; /* since this time of the clock `listening` */
	struct mst_listening listening;
};

/* Bytes that a server allocates for @peers: entries that are not executed yet, and an inbound
 * region at each end. */
uint64_t mst_peers_bytes(uint32_t peers, uint32_t window);

/* The lanes that both ends of a server link ask for. */
struct mst_lanes mst_peer_lanes(uint32_t window);

/* If there is no link for @lease_ns the other end is given up.
 * Return: 0 or -ENOMEM. */
int mst_peer_init(struct mst_peer *p, uint32_t window, uint64_t lease_ns);
void mst_peer_fini(struct mst_peer *p); /* accepts zeroed memory */

/* Uses an attached link, in place of the one before. */
void mst_peer_use(struct mst_peer *p, struct mst_link *link, uint64_t now_ns);
/* The link is lost: lets go of it. */
void mst_peer_drop(struct mst_peer *p, uint64_t now_ns);

/* Is the other end to be given up? To be asked when all that has come has been taken. */
bool mst_peer_is_over(struct mst_peer *p, uint64_t now_ns);
/* When to ask that next; MST_NEVER: there is a link, or there has never been one. */
uint64_t mst_peer_deadline(const struct mst_peer *p);

/* An immediate has arrived.
 * Return: 0 or -EPROTO. */
int mst_peer_arrived(struct mst_peer *p, uint32_t imm);
/* Takes the next entry.
 * Return: 1; 0: there is none; -EPROTO. */
int mst_peer_take(struct mst_peer *p, struct mst_peer_entry *out);
/* Puts queued entries on the link, as many as it takes.
 * Return: 0: all; -EAGAIN: not all; another -errno: the link is lost. */
int mst_peer_flush(struct mst_peer *p);

#endif
