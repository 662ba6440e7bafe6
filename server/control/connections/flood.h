/* SPDX-License-Identifier: MIT */
/*
 * How many messages of one peer are handled, and when there were too many of them. Pure.
 *
 * Time is cut into periods. In each, so many messages of a peer are handled; what else it has sent
 * waits for the next. A peer of which something waits at the end of each of many periods, one after
 * the other, is flooding. The periods are counted, and not the time: whatever has come while the
 * server stood still is handled, and a peer that has paused for a period begins anew.
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_FLOOD_H
#define MST_SERVER_CONTROL_CONNECTIONS_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

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

#endif
