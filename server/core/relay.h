/* SPDX-License-Identifier: MIT */
/*
 * A relay: one end of what two servers of a job tell each other, reports one way and decisions the
 * other (PROTOCOL 9). Pure: cells in, cells out. What is said is numbered from 1 on, kept until the
 * other end says that it has executed it, and taken there once and in order, over one link after
 * the other. All memory is taken at the start.
 */
#ifndef MST_SERVER_CORE_RELAY_H
#define MST_SERVER_CORE_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/peer.h"

struct mst_relay;

/* @window: cells that may be unexecuted, each way. 0 or -ENOMEM. */
int mst_relay_new(uint32_t window, struct mst_relay **out);
void mst_relay_free(struct mst_relay *r); /* accepts NULL */

/* What is said. */

/* How many more can be said before the other end executes some. */
uint32_t mst_relay_room(const struct mst_relay *r);
/* Says @cell; number and ack are filled in. There must be room. */
void mst_relay_say(struct mst_relay *r, const struct mst_peer_cell *cell);
/* The next that is to be put on the link, with the acknowledgement it takes along; NULL: none. */
const struct mst_peer_cell *mst_relay_next(struct mst_relay *r);
/* That one has been put. */
void mst_relay_put(struct mst_relay *r);
/* How many have been said and not put. */
uint64_t mst_relay_unput(const struct mst_relay *r);

/* What is heard. */

/* A cell has come. 1: it is the next, to be executed now; 0: it has been executed before; -EPROTO:
 * one is missing before it, or it acknowledges what was never put. */
int mst_relay_take(struct mst_relay *r, const struct mst_peer_cell *cell);
/* The other end has executed all up to @ack. 0; -EPROTO: that was never put. */
int mst_relay_acked(struct mst_relay *r, uint64_t ack);
/* The last that is executed here. */
uint64_t mst_relay_taken(const struct mst_relay *r);
/* Must that be said by itself? No cell is about to take it along, and half of the window waits for
 * it; or @now: whatever waits for it. */
bool mst_relay_owes(const struct mst_relay *r, bool now);
/* It has been said. */
void mst_relay_told(struct mst_relay *r);

/* A new link is up, and the other end says what it has executed: what was put after that on the old
 * link is put again. 0; -EPROTO: it has executed what was never said, or forgotten what it had. */
int mst_relay_resume(struct mst_relay *r, uint64_t ack);

#endif
