/* SPDX-License-Identifier: MIT */
/*
 * One end of a session: puts into the peer's inbound region, arrivals from its ring, and its end.
 *
 * Every word of the control area may be written by the peer at any time. This end decides by its
 * private indices only, and by what ring.h has checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/transport/pages.h"
#include "common/transport/shm/shm.h"

/* Slots of a ring: credits rounded up to a power of two. */
static uint32_t ring_slots(uint32_t credits)
{
	uint32_t slots = 1;

	while (slots < credits)
		slots *= 2;
	return slots;
}

int mst_shm_layout(const struct mst_lanes *lanes, struct mst_shm_layout *out)
{
	if (lanes->up_bytes > MST_SHM_BYTES_MAX || lanes->down_bytes > MST_SHM_BYTES_MAX ||
	    lanes->up_credits > MST_SHM_CREDITS_MAX || lanes->down_credits > MST_SHM_CREDITS_MAX)
		return -EINVAL;
	out->up_slots = sizeof(struct mst_shm_control);
	out->down_slots = out->up_slots + sizeof(uint32_t) * ring_slots(lanes->up_credits);
	size_t end = out->down_slots + sizeof(uint32_t) * ring_slots(lanes->down_credits);
	out->up_inbound = mst_shm_round(end);
	out->down_inbound = out->up_inbound + mst_shm_round(lanes->up_bytes);
	out->bytes = out->down_inbound + mst_shm_round(lanes->down_bytes);
	return 0;
}

struct mst_shm_link *mst_shm_link_new(void)
{
	struct mst_shm_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->link.ops = &mst_shm;
	l->state = MST_SHM_IDLE;
	l->socket = l->wait_fd = l->notify_fd = -1;
	return l;
}

void mst_shm_link_disown(struct mst_shm_link *l)
{
	mst_shm_close(&l->socket);
	mst_shm_close(&l->wait_fd);
	mst_shm_close(&l->notify_fd);
	if (l->foreign != NULL)
		l->foreign->socket = -1;
}

/* What callers have sent lies in an acceptor's socket, which is closed when the link is freed. */
void mst_shm_link_hang_up(struct mst_shm_link *l)
{
	if (l->foreign != NULL && l->socket >= 0) {
		(void)shutdown(l->socket, SHUT_RDWR);
		l->socket = -1;
	}
	mst_shm_close(&l->socket);
	mst_shm_close(&l->wait_fd);
	mst_shm_close(&l->notify_fd);
}

void mst_shm_link_free(struct mst_link *link)
{
	struct mst_shm_link *l = (struct mst_shm_link *)link;

	if (l == NULL)
		return;
	MST_ASSERT(l->state == MST_SHM_IDLE);
	mst_shm_link_hang_up(l);
	if (l->foreign != NULL)
		l->foreign->memory = l->memory;
	else
		mst_shm_memory_drop(l->memory);
	mst_shm_foreign_close(l->foreign);
	mst_shm_memory_drop(l->peer_net);
	free(l);
}

static struct mst_shm_ring ring_at(struct mst_shm_ring_words *words, void *slots, uint32_t credits)
{
	return (struct mst_shm_ring){
		.words = words, .slot = slots, .mask = ring_slots(credits) - 1, .credits = credits
	};
}

void mst_shm_link_arrange(struct mst_shm_link *l, enum mst_shm_side side,
			  const struct mst_lanes *lanes)
{
	uint8_t *base = l->memory->base;
	struct mst_shm_control *control = (void *)base;
	struct mst_shm_layout at;
	int rc = mst_shm_layout(lanes, &at);

	MST_ASSERT(rc == 0 && at.bytes == l->memory->bytes);
	struct mst_shm_ring up = ring_at(&control->up, base + at.up_slots, lanes->up_credits);
	struct mst_shm_ring down = ring_at(&control->down, base + at.down_slots,
					   lanes->down_credits);
	l->link.lanes = *lanes;
	if (side == MST_SHM_ACCEPTOR) {
		l->link.inbound = base + at.up_inbound;
		l->link.remote_mapping = base + at.down_inbound;
		l->link.outbound_bytes = lanes->down_bytes;
		l->in = up;
		l->out = down;
		l->peer_asleep = &control->asleep;
	} else {
		l->link.inbound = base + at.down_inbound;
		l->link.remote_mapping = base + at.up_inbound;
		l->link.outbound_bytes = lanes->up_bytes;
		l->in = down;
		l->out = up;
		l->own_asleep = &control->asleep;
	}
	l->link.outbound = l->link.remote_mapping;
}

/* An aligned word goes in one store, so that it is never seen torn; everything else as bytes. */
static void copy(uint8_t *to, const void *src, size_t bytes)
{
	uint64_t word;

	if (bytes == sizeof(word) && (uintptr_t)to % sizeof(word) == 0) {
		memcpy(&word, src, sizeof(word));
		/* Relaxed: it races with the peer's atomic loads only. What must be seen with it is
		 * ordered by the ring of this lane. */
		atomic_store_explicit((_Atomic uint64_t *)(void *)to, word, memory_order_relaxed);
		return;
	}
	memcpy(to, src, bytes);
}

static void ring_notify_fd(const struct mst_shm_link *l)
{
	static const uint64_t one = 1;

	/* Pairs with the fence in net_wait(): either that sleeper sees our new tail in its last
	 * look, or we see its flag here. Relaxed: the flag only decides whether to ring. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(l->peer_asleep, memory_order_relaxed))
		return;
	/* It fails only if the peer itself filled the counter; it looks again within a second. */
	ssize_t n = write(l->notify_fd, &one, sizeof(one));
	(void)n;
}

int mst_shm_link_put(struct mst_link *link, const struct mst_put *put)
{
	struct mst_shm_link *l = (struct mst_shm_link *)link;

	MST_ASSERT(l->state != MST_SHM_IDLE);
	if (put->offset > link->outbound_bytes || put->bytes > link->outbound_bytes - put->offset)
		return -EINVAL;
	if (put->region != NULL && !mst_region_has(put->region, put->src, put->bytes))
		return -EINVAL;
	if (l->state != MST_SHM_LIVE)
		return -EPIPE;
	if (put->notify) {
		int rc = mst_shm_ring_room(&l->out);
		if (rc == -EPROTO)
			mst_shm_link_end(l, rc);
		if (rc < 0)
			return rc == -EPROTO ? -EPIPE : rc;
	}
	uint8_t *to = (uint8_t *)link->remote_mapping + put->offset;
	if (put->bytes > 0 && put->src != to) {
		copy(to, put->src, put->bytes);
		link->copied += put->bytes;
	}
	if (put->notify) {
		mst_shm_ring_push(&l->out, put->imm);
		ring_notify_fd(l);
	}
	return 1;
}

int mst_shm_link_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
		      void *at)
{
	const struct mst_shm_link *l = (const struct mst_shm_link *)link;
	const struct mst_lanes *lanes = &link->lanes;
	bool connector = l->own_asleep != NULL;

	switch (what) {
	case MST_VIEW_OUTBOUND:
		return mst_pages_view(link->outbound, link->outbound_bytes, offset, bytes, at);
	case MST_VIEW_INBOUND:
		return mst_pages_view(link->inbound,
				      connector ? lanes->down_bytes : lanes->up_bytes, offset,
				      bytes, at);
	case MST_VIEW_SHARED:
		return mst_pages_view(link->shared, link->shared_bytes, offset, bytes, at);
	}
	return -EINVAL;
}

void mst_shm_link_end(struct mst_shm_link *l, int error)
{
	MST_ASSERT(l->state == MST_SHM_LIVE && error < 0);
	/* A peer that is gone puts no more: what this look finds is the last. One that lives on and
	 * lies cannot add to it, for nobody looks again. */
	if (error == -EPIPE)
		error = mst_shm_ring_look(&l->in) < 0 ? -EPROTO : -EPIPE;
	if (error != -EPIPE)
		l->in.peer = l->in.own;
	l->error = error;
	l->state = MST_SHM_ENDING;
	mst_shm_net_ignore(l->net, l);
}

bool mst_shm_link_has_work(const struct mst_shm_link *l)
{
	if (l->state == MST_SHM_LIVE)
		return mst_shm_ring_has_work(&l->in);
	return l->state == MST_SHM_ENDING;
}

int mst_shm_link_poll(struct mst_shm_link *l, struct mst_net_event *ev, int max)
{
	uint32_t imm;
	int n = 0;

	if (l->state == MST_SHM_LIVE) {
		int rc = mst_shm_ring_look(&l->in);
		if (rc < 0)
			mst_shm_link_end(l, rc);
	}
	while (n < max && mst_shm_ring_take(&l->in, &imm))
		ev[n++] = (struct mst_net_event){ .kind = MST_ARRIVED,
						  .link = &l->link,
						  .imm = imm };
	if (n > 0)
		mst_shm_ring_publish(&l->in);
	if (l->state == MST_SHM_ENDING && n < max && l->in.own == l->in.peer) {
		l->state = MST_SHM_LOST;
		ev[n++] = (struct mst_net_event){ .kind = MST_LOST,
						  .link = &l->link,
						  .error = l->error };
	}
	return n;
}
