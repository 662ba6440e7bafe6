/* SPDX-License-Identifier: MIT */
/*
 * The ring of immediates of one lane: one producer, one consumer, in memory that both map and
 * neither trusts. Both count from 0 and wrap at 2^32; slot i is i modulo a power of two.
 *
 * Each end keeps its own index here, privately, and never reads it back. The other's index is read
 * once, checked, and only then used, so that a hostile peer can at most spoil its own immediates.
 */
#ifndef MST_TRANSPORT_SHM_RING_H
#define MST_TRANSPORT_SHM_RING_H

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In shared memory; a cache line each, so that looking does not slow the other end's writing. */
struct mst_shm_ring_words {
	alignas(64) _Atomic uint32_t tail; /* the producer's: immediates ever put */
	alignas(64) _Atomic uint32_t head; /* the consumer's: immediates ever taken */
};

/* One end of it. */
struct mst_shm_ring {
	struct mst_shm_ring_words *words;
	_Atomic uint32_t *slot;
	uint32_t mask;
	uint32_t credits; /* immediates that may be unread; at most mask + 1 */
	uint32_t own;     /* the producer's tail, or the consumer's head */
	uint32_t peer;    /* the other's index as last read and checked */
};

/* Producer. 0: there is room for one more; -EAGAIN; -EPROTO: the consumer's index is impossible. */
static inline int mst_shm_ring_room(struct mst_shm_ring *r)
{
	if (r->own - r->peer < r->credits)
		return 0;
	/* Acquire: pairs with the release in mst_shm_ring_publish(); the consumer's reads of the
	 * slots that it gives back have happened before they are overwritten. */
	uint32_t head = atomic_load_explicit(&r->words->head, memory_order_acquire);
	if (r->own - head > r->credits)
		return -EPROTO;
	r->peer = head;
	return r->own - head < r->credits ? 0 : -EAGAIN;
}

/* Producer, after mst_shm_ring_room() said 0. */
static inline void mst_shm_ring_push(struct mst_shm_ring *r, uint32_t imm)
{
	atomic_store_explicit(&r->slot[r->own & r->mask], imm, memory_order_relaxed);
	/* Release: pairs with the acquire in mst_shm_ring_look(); the slot, and whatever this end
	 * put into the inbound region before, are visible to a consumer that sees the new tail. */
	atomic_store_explicit(&r->words->tail, ++r->own, memory_order_release);
}

/* Consumer. A cheap look, for waiting only: may there be something to take? */
static inline bool mst_shm_ring_has_work(const struct mst_shm_ring *r)
{
	/* Relaxed: nothing is read on the strength of it; mst_shm_ring_look() follows. */
	return atomic_load_explicit(&r->words->tail, memory_order_relaxed) != r->own;
}

/* Consumer. Reads how far the producer is. 0; -EPROTO: its index is impossible. */
static inline int mst_shm_ring_look(struct mst_shm_ring *r)
{
	/* Acquire: pairs with the release in mst_shm_ring_push(). */
	uint32_t tail = atomic_load_explicit(&r->words->tail, memory_order_acquire);
	if (tail - r->own > r->credits)
		return -EPROTO;
	r->peer = tail;
	return 0;
}

/* Consumer. False: all that the last look showed has been taken. */
static inline bool mst_shm_ring_take(struct mst_shm_ring *r, uint32_t *imm)
{
	if (r->own == r->peer)
		return false;
	*imm = atomic_load_explicit(&r->slot[r->own++ & r->mask], memory_order_relaxed);
	return true;
}

/* Consumer. Gives the credits of what was taken back to the producer. */
static inline void mst_shm_ring_publish(struct mst_shm_ring *r)
{
	/* Release: pairs with the acquire in mst_shm_ring_room(). */
	atomic_store_explicit(&r->words->head, r->own, memory_order_release);
}

#endif
