/* SPDX-License-Identifier: MIT */
/*
 * A resend queue: one end of the stream of entries between two servers of a job, reports in one
 * direction and decisions in the other (PROTOCOL 9). Entries are numbered from 1 on, and kept until
 * the other end has acknowledged that it has executed them. They are executed there once and in
 * order, over one link after another. Pure: entries in, entries out. All memory is allocated at the
 * start.
 */
#ifndef MST_SERVER_CLUSTER_RESEND_H
#define MST_SERVER_CLUSTER_RESEND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/peer.h"

struct mst_resend;

/* @window: how many entries may be unacknowledged in each direction.
 * Return: 0 or -ENOMEM. */
int mst_resend_new(uint32_t window, struct mst_resend **out);
void mst_resend_free(struct mst_resend *r); /* accepts NULL */

/* ---- sending ---- */

/* How many more entries can be queued before the other end acknowledges some. */
uint32_t mst_resend_room(const struct mst_resend *r);
/* Queues @entry; number and ack are filled in. There must be room. */
void mst_resend_say(struct mst_resend *r, const struct mst_peer_entry *entry);
/* The next entry to put on the link, with the acknowledgement that it carries; NULL: none. */
const struct mst_peer_entry *mst_resend_next(struct mst_resend *r);
/* The entry of mst_resend_next() has been put. */
void mst_resend_put(struct mst_resend *r);
/* How many entries are queued and not put. */
uint64_t mst_resend_unput(const struct mst_resend *r);

/* ---- receiving ---- */

/* An entry has come.
 * Return: 1: it is the next, to be executed now; 0: it has been executed before; -EPROTO: an entry
 * before it is missing, or it acknowledges what was never put. */
int mst_resend_take(struct mst_resend *r, const struct mst_peer_entry *entry);
/* The other end has executed all entries up to @ack.
 * Return: 0; -EPROTO: that entry was never put. */
int mst_resend_acked(struct mst_resend *r, uint64_t ack);
/* The number of the last entry that was executed here. */
uint64_t mst_resend_taken(const struct mst_resend *r);
/* Must an acknowledgement be sent by itself? It must if no entry is about to carry it and half of
 * the window waits for it; or, with @now, if anything waits for it. */
bool mst_resend_owes(const struct mst_resend *r, bool now);
/* The acknowledgement has been sent. */
void mst_resend_told(struct mst_resend *r);

/* A new link is up, and the other end has executed all entries up to @ack. Entries that were put
 * after that on the old link are put again.
 * Return: 0; -EPROTO: @ack was never said, or is less than was acknowledged before. */
int mst_resend_resume(struct mst_resend *r, uint64_t ack);

#endif
