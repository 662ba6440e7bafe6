/* SPDX-License-Identifier: MIT */
/*
 * Positions only grow, and are masked to an index of the ring. They may wrap around at SIZE_MAX,
 * which is harmless since the size is a power of two. Each side keeps the position of the other
 * side as it was last seen, and reads it again only when the ring looks full or empty. So in steady
 * flow the two cache lines are rarely exchanged.
 */
#include "common/base/spsc.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

#define CACHE_LINE 64

struct mst_spsc {
	size_t slots, element_bytes; /* constant */

	/* The cache line of the producer. */
	alignas(CACHE_LINE) _Atomic size_t tail; /* next position to fill */
	size_t head_seen;

	/* The cache line of the consumer. */
	alignas(CACHE_LINE) _Atomic size_t head; /* next position to take */
	size_t tail_seen;

	alignas(CACHE_LINE) unsigned char elements[];
};

struct mst_spsc *mst_spsc_new(size_t slots, size_t element_bytes)
{
	MST_ASSERT(slots > 0 && (slots & (slots - 1)) == 0);
	MST_ASSERT(element_bytes > 0);
	if (slots > (SIZE_MAX - sizeof(struct mst_spsc) - CACHE_LINE) / element_bytes)
		return NULL;
	size_t bytes = sizeof(struct mst_spsc) + slots * element_bytes;
	struct mst_spsc *ring = aligned_alloc(CACHE_LINE,
					      (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	if (ring == NULL)
		return NULL;
	memset(ring, 0, sizeof(*ring));
	ring->slots = slots;
	ring->element_bytes = element_bytes;
	return ring;
}

void mst_spsc_free(struct mst_spsc *ring)
{
	free(ring);
}

static void *element_at(struct mst_spsc *ring, size_t position)
{
	return ring->elements + (position & (ring->slots - 1)) * ring->element_bytes;
}

bool mst_spsc_push(struct mst_spsc *ring, const void *element)
{
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed); /* our own */

	if (tail - ring->head_seen == ring->slots) {
		/* Acquire: pairs with the release in mst_spsc_pop(). The consumer has copied the
		 * element before the producer overwrites it. */
		ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
		if (tail - ring->head_seen == ring->slots)
			return false;
	}
	memcpy(element_at(ring, tail), element, ring->element_bytes);
	/* Release: pairs with the acquire in mst_spsc_pop(). A consumer that sees the new tail sees
	 * the element. */
	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	return true;
}

size_t mst_spsc_room(struct mst_spsc *ring)
{
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed); /* our own */

	/* Acquire: as in mst_spsc_push(). */
	ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
	return ring->slots - (tail - ring->head_seen);
}

bool mst_spsc_pop(struct mst_spsc *ring, void *element)
{
	size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed); /* our own */

	if (head == ring->tail_seen) {
		/* Acquire: pairs with the release in mst_spsc_push(). */
		ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
		if (head == ring->tail_seen)
			return false;
	}
	memcpy(element, element_at(ring, head), ring->element_bytes);
	/* Release: pairs with the acquire in mst_spsc_push(). */
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
	return true;
}
