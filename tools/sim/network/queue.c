/* SPDX-License-Identifier: MIT */
#include "tools/sim/network/queue.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

#define ROOM_MIN 64u

void mst_sim_queue_fini(struct mst_sim_queue *q)
{
	free(q->ring);
	*q = (struct mst_sim_queue){ .ring = NULL };
}

/* Doubles the room. The messages lie at the front of the new ring, in their order. */
static bool grow(struct mst_sim_queue *q)
{
	uint32_t room = q->room > 0 ? 2 * q->room : ROOM_MIN, front = q->room - q->head;
	struct mst_sim_message *ring = room > q->room ? calloc(room, sizeof(*ring)) : NULL;

	if (ring == NULL)
		return false;
	if (q->count > 0) {
		memcpy(ring, q->ring + q->head, front * sizeof(*ring));
		memcpy(ring + front, q->ring, q->head * sizeof(*ring));
	}
	free(q->ring);
	q->ring = ring;
	q->room = room;
	q->head = 0;
	return true;
}

struct mst_sim_message *mst_sim_queue_add(struct mst_sim_queue *q)
{
	if (q->count == q->room && !grow(q))
		return NULL;
	return &q->ring[(q->head + q->count++) & (q->room - 1)];
}

void mst_sim_queue_take(struct mst_sim_queue *q, struct mst_sim_message *out)
{
	MST_ASSERT(q->count > 0);
	*out = q->ring[q->head];
	q->head = (q->head + 1) & (q->room - 1);
	q->count--;
}
