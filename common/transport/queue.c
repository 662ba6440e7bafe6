/* SPDX-License-Identifier: MIT */
/*
 * A put becomes an entry of a queue; entries are cut into writes, which are composed and posted in
 * order, as far as the rails have room and once it is known where the peer's inbound region is.
 * Sources stay where they are: in the outbound region or in published memory.
 */
#include "common/transport/queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/transport/pages.h"

#define ENTRIES_MIN 64u

void mst_queue_set_lanes(struct mst_queue *q, const struct mst_lanes *lanes, bool connector)
{
	q->own_bytes = connector ? lanes->down_bytes : lanes->up_bytes;
	q->peer_bytes = connector ? lanes->up_bytes : lanes->down_bytes;
	q->in_credits = connector ? lanes->down_credits : lanes->up_credits;
	q->out_credits = connector ? lanes->up_credits : lanes->down_credits;
}

size_t mst_queue_outbound(const struct mst_lanes *lanes, bool connector, size_t max)
{
	size_t all = connector ? lanes->up_bytes : lanes->down_bytes;

	return !connector && max != 0 && max < all ? max : all;
}

int mst_queue_view(const struct mst_queue *q, enum mst_view what, size_t offset, size_t bytes,
		   void *at)
{
	const struct mst_link *link = q->link;

	switch (what) {
	case MST_VIEW_OUTBOUND:
		return mst_pages_view(link->outbound, link->outbound_bytes, offset, bytes, at);
	case MST_VIEW_INBOUND:
		return mst_pages_view(link->inbound, q->own_bytes, offset, bytes, at);
	case MST_VIEW_SHARED:
		return -EINVAL;
	}
	return -EINVAL;
}

int mst_queue_rail_init(struct mst_queue *q, uint32_t rail, uint32_t sends)
{
	struct mst_queue_rail *r = &q->rail[rail];
	uint32_t slots = mst_queue_pow2_above(q->in_credits + 1u);

	r->sends = sends;
	r->imm = calloc(slots, sizeof(*r->imm));
	r->imm_mask = slots - 1;
	return r->imm != NULL ? 0 : -ENOMEM;
}

int mst_queue_init(struct mst_queue *q)
{
	MST_ASSERT(q->message >= MST_QUEUE_MESSAGE_MIN && (q->message & (q->message - 1)) == 0);
	uint32_t entries = mst_queue_pow2_above(q->out_credits + ENTRIES_MIN);
	uint64_t sends = 0;

	for (uint32_t i = 0; i < q->rail_count; i++)
		sends += q->rail[i].sends;
	uint32_t pending = mst_queue_pow2_above(sends); /* each has a write of its own at least */
	q->entry = calloc(entries, sizeof(*q->entry));
	q->pending = calloc(pending, sizeof(*q->pending));
	q->mask = entries - 1;
	q->pending_mask = pending - 1;
	return q->entry != NULL && q->pending != NULL ? 0 : -ENOMEM;
}

static void give_back(struct mst_region *lent)
{
	if (lent != NULL)
		mst_region_take_back(lent);
}

/* The network reads nothing of it any more. */
void mst_queue_fini(struct mst_queue *q)
{
	for (uint32_t i = 0; i < q->rail_count; i++)
		free(q->rail[i].imm);
	while (q->pending != NULL && q->pending_head != q->pending_tail)
		give_back(q->pending[q->pending_head++ & q->pending_mask].lent);
	for (; q->entry != NULL && q->head != q->tail; q->head++)
		if (q->entry[q->head & q->mask].lent)
			give_back(q->entry[q->head & q->mask].region);
	free(q->entry);
	free(q->pending);
}

/* ---- credits ---- */

static bool has_credit(struct mst_queue *q)
{
	if (q->notified - q->returned < q->out_credits)
		return true;
	/* Relaxed: the count guards nothing here. A peer that lies runs out of receives, or of
	 * room in its own completion queue. */
	uint64_t word = atomic_load_explicit(q->in_word, memory_order_relaxed);
	if (word > q->returned && word <= q->notified)
		q->returned = word;
	return q->notified - q->returned < q->out_credits;
}

/* Half of what the peer has: less is not worth a write of its own. */
static bool owes_credit(const struct mst_queue *q)
{
	return 2 * (q->polled - q->told) >= q->in_credits && q->polled != q->told;
}

/* ---- writes ---- */

static uint32_t room(const struct mst_queue *q, uint32_t rail)
{
	const struct mst_queue_rail *r = &q->rail[rail];

	return r->sends - (uint32_t)(r->posted - r->completed);
}

/* On each rail. */
static bool has_room_for_notice(const struct mst_queue *q)
{
	for (uint32_t i = 0; i < q->rail_count; i++)
		if (room(q, i) < 2) /* one is kept for the credit word */
			return false;
	return true;
}

/* Every MST_QUEUE_REPORT_EVERY writes one asks for a report, so that the queue learns of room. */
static void add(struct mst_queue *q, uint32_t rail, struct mst_queue_write *w)
{
	struct mst_queue_rail *r = &q->rail[rail];

	w->number = ++r->posted;
	if (++r->silent >= MST_QUEUE_REPORT_EVERY)
		w->report = true;
	if (w->report)
		r->silent = 0;
	q->ops->write(q, rail, w);
}

uint64_t mst_queue_number(struct mst_queue *q, uint32_t rail)
{
	return ++q->rail[rail].posted;
}

static bool is_through(const struct mst_queue *q, const struct mst_queue_pending *p)
{
	for (uint32_t i = 0; i < q->rail_count; i++)
		if (q->rail[i].completed < p->until[i])
			return false;
	return true;
}

/* Takes note of the ends that nobody is to be told of, so that the oldest is one to be told. */
static void retire(struct mst_queue *q)
{
	while (q->pending_head != q->pending_tail) {
		struct mst_queue_pending *p = &q->pending[q->pending_head & q->pending_mask];
		if (p->signal || !is_through(q, p))
			return;
		give_back(p->lent);
		q->pending_head++;
	}
}

void mst_queue_completed(struct mst_queue *q, uint32_t rail, uint64_t number)
{
	q->rail[rail].completed = number;
	q->dirty |= q->head != q->tail;
	retire(q);
}

static void add_credit(struct mst_queue *q)
{
	q->told = q->polled;
	q->owing = false;
	atomic_store_explicit(q->out_word, q->polled, memory_order_relaxed);
	add(q, 0,
	    &(struct mst_queue_write){ .src = (const uint8_t *)q->out_word,
				       .bytes = sizeof(*q->out_word),
				       .offset = q->word_at,
				       .region = q->outbound });
}

/* ---- entries ---- */

/* The next piece of an entry's data goes over this rail. It is the same for whatever is put to one
 * place, however it is cut: so what is put there twice arrives in order. */
static uint32_t rail_of(const struct mst_queue *q, const struct mst_queue_entry *e)
{
	return (uint32_t)(((e->offset + e->done) >> __builtin_ctzl(q->message)) % q->rail_count);
}

/* How far a piece that begins there can go. */
static size_t reach_of(const struct mst_queue *q, size_t at)
{
	size_t most = q->message - (at & (q->message - 1));

	for (int i = 0; i < 2; i++)
		if (q->cut[i] > at && q->cut[i] - at < most)
			most = q->cut[i] - at;
	return most;
}

static size_t piece_of(const struct mst_queue *q, const struct mst_queue_entry *e)
{
	size_t left = e->bytes - e->done, most = reach_of(q, e->offset + e->done);

	return left < most ? left : most;
}

/* Is the data to travel with the immediate itself? */
static bool is_single(const struct mst_queue *q, const struct mst_queue_entry *e)
{
	return e->bytes > 0 && e->bytes <= reach_of(q, e->offset);
}

/* Its completion matters to somebody. */
static bool is_tracked(const struct mst_queue_entry *e)
{
	return e->signal || e->lent;
}

static void add_data(struct mst_queue *q, struct mst_queue_entry *e,
		     struct mst_queue_pending *pending)
{
	uint32_t rail = rail_of(q, e);
	size_t left = e->bytes - e->done, bytes = piece_of(q, e);
	struct mst_queue_write w = {
		.src = e->src + e->done,
		.bytes = bytes,
		.offset = e->offset + e->done,
		.region = e->region,
		.notify = e->notify && is_single(q, e),
		.imm = e->imm,
		/* The last pieces, one on each rail, tell that they are through. */
		.report = is_tracked(e) && left <= q->rail_count * q->message,
	};

	add(q, rail, &w);
	e->done += bytes;
	pending->until[rail] = q->rail[rail].posted;
}

static void add_notice(struct mst_queue *q, uint32_t rail, const struct mst_queue_entry *e,
		       struct mst_queue_pending *pending)
{
	add(q, rail,
	    &(struct mst_queue_write){ .notify = true, .imm = e->imm, .report = is_tracked(e) });
	pending->until[rail] = q->rail[rail].posted;
}

/* What follows on a rail is written after the word of that rail. Return: false: no room. */
static bool add_word(struct mst_queue *q, struct mst_queue_entry *e)
{
	if (!has_room_for_notice(q))
		return false;
	for (uint32_t i = 0; i < q->rail_count; i++)
		add(q, i,
		    &(struct mst_queue_write){ .src = e->src,
					       .bytes = e->bytes,
					       .offset = e->offset + i * e->bytes,
					       .region = e->region });
	e->done = e->bytes;
	return true;
}

/* Return: false: no room for all of it. */
static bool add_entry(struct mst_queue *q, struct mst_queue_entry *e)
{
	struct mst_queue_pending nobody = { 0 }, *pending = &nobody;

	if (e->every_rail)
		return add_word(q, e);
	if (is_tracked(e) && q->pending_tail - q->pending_head > q->pending_mask)
		return false; /* ends that nobody has polled */
	if (is_tracked(e))
		pending = &q->pending[q->pending_tail & q->pending_mask];
	if (e->done == 0)
		*pending = (struct mst_queue_pending){ .cookie = e->cookie,
						       .signal = e->signal,
						       .lent = e->lent ? e->region : NULL };
	uint32_t carrier = e->notify && is_single(q, e) ? rail_of(q, e) : q->rail_count;
	if (carrier < q->rail_count && !has_room_for_notice(q))
		return false;
	while (e->done < e->bytes) {
		if (room(q, rail_of(q, e)) < 2)
			return false;
		add_data(q, e, pending);
	}
	if (e->notify && carrier == q->rail_count && !has_room_for_notice(q))
		return false;
	/* Where there is little data, its rail's immediate has gone with it. */
	for (uint32_t i = 0; e->notify && i < q->rail_count; i++)
		if (i != carrier)
			add_notice(q, i, e, pending);
	if (is_tracked(e))
		q->pending_tail++;
	return true;
}

/* Return: is all of it posted? */
static bool post_waiting(struct mst_queue *q)
{
	if (!q->open || q->state != MST_QUEUE_LIVE)
		return true;
	/* Credits go before what may make the peer use them. */
	bool rides = q->rides && q->head != q->tail && q->polled != q->told;
	if ((q->owing || owes_credit(q) || rides) && room(q, 0) > 0)
		add_credit(q);
	while (q->head != q->tail && add_entry(q, &q->entry[q->head & q->mask]))
		q->head++;
	q->dirty = q->head != q->tail;
	for (uint32_t i = 0; i < q->rail_count; i++)
		q->ops->post(q, i);
	return !q->dirty;
}

/* A caller that only puts takes in completions here, too: they make room, and open the link. */
static void flush(struct mst_queue *q)
{
	if (q->open && post_waiting(q))
		return;
	q->ops->gather(q);
	(void)post_waiting(q);
}

void mst_queue_flush(struct mst_queue *q)
{
	if (q->dirty)
		flush(q);
}

void mst_queue_return(struct mst_queue *q)
{
	/* Where writes may pass each other the last one may have been passed: it is told twice. */
	bool again = !q->ordered && q->told_twice != q->told;

	q->told_twice = q->told;
	q->owing = q->polled != q->told || again;
	if (q->owing)
		flush(q);
}

void mst_queue_settle(struct mst_queue *q)
{
	if (owes_credit(q))
		flush(q);
}

/* ---- put ---- */

/* What is published may begin right after the outbound region, and be put to where it would be in
 * a longer one. */
static bool is_in_outbound(const struct mst_link *link, const struct mst_put *put)
{
	return (const uint8_t *)put->src == (const uint8_t *)link->outbound + put->offset &&
	       put->offset <= link->outbound_bytes &&
	       put->bytes <= link->outbound_bytes - put->offset;
}

/* A word that is put again and again need not queue up: the source is read when it is posted. */
static bool is_queued_already(const struct mst_queue *q, const struct mst_queue_entry *e)
{
	if (q->head == q->tail || e->notify || e->signal || e->region != q->outbound)
		return false;
	const struct mst_queue_entry *last = &q->entry[(q->tail - 1) & q->mask];
	return !last->notify && !last->signal && last->region == q->outbound && last->done == 0 &&
	       last->offset == e->offset && last->bytes == e->bytes;
}

/* An aligned word in one store, as it must never be read torn. */
static void copy(uint8_t *to, const void *src, size_t bytes)
{
	uint64_t word;

	if (bytes == sizeof(word) && (uintptr_t)to % sizeof(word) == 0) {
		memcpy(&word, src, sizeof(word));
		atomic_store_explicit((_Atomic uint64_t *)(void *)to, word, memory_order_relaxed);
		return;
	}
	if (bytes > 0)
		memmove(to, src, bytes);
}

/* Return: room for one more entry, if need be after posting what can be posted. */
static bool make_room(struct mst_queue *q)
{
	if (q->tail - q->head <= q->mask)
		return true;
	q->ops->gather(q);
	flush(q);
	return q->tail - q->head <= q->mask;
}

/* The region that the source is read from where it lies; NULL: it has to be copied. */
static struct mst_region *source_of(const struct mst_queue *q, const struct mst_put *put)
{
	if (put->bytes == 0)
		return NULL;
	if (put->region != NULL)
		return put->region;
	if (is_in_outbound(q->link, put))
		return q->outbound;
	return mst_region_has(q->published, put->src, put->bytes) ? q->published : NULL;
}

/* Is all of it where it may be? What goes by way of the outbound region must lie within that,
 * too. */
static bool is_inside(const struct mst_queue *q, const struct mst_put *put)
{
	const struct mst_region *from = source_of(q, put);
	size_t reach = q->link->outbound_bytes;
	size_t bytes = put->every_rail ? put->bytes * q->rail_count : put->bytes;

	if (put->offset > q->peer_bytes || bytes > q->peer_bytes - put->offset)
		return false;
	if (put->region != NULL &&
	    (put->region->target || !mst_region_has(put->region, put->src, put->bytes)))
		return false;
	if (put->bytes == 0 || (from != NULL && from != q->outbound))
		return true;
	return put->offset <= reach && put->bytes <= reach - put->offset;
}

int mst_queue_put(struct mst_queue *q, const struct mst_put *put)
{
	struct mst_region *from = source_of(q, put);
	struct mst_queue_entry e = { .offset = put->offset,
				     .bytes = put->bytes,
				     .src = put->src,
				     .notify = put->notify,
				     .signal = put->signal && from != NULL,
				     .every_rail = put->every_rail,
				     .lent = put->region != NULL && from != NULL,
				     .imm = put->imm,
				     .region = from,
				     .cookie = put->cookie };

	MST_ASSERT(!put->every_rail || (!put->notify && !put->signal && put->region == NULL));
	if (!is_inside(q, put))
		return -EINVAL;
	if (q->state != MST_QUEUE_LIVE)
		return -EPIPE;
	if ((put->notify && !has_credit(q)) || !make_room(q))
		return q->state == MST_QUEUE_LIVE ? -EAGAIN : -EPIPE;
	if (from == NULL) {
		e.region = q->outbound;
		e.src = q->outbound->base + put->offset;
		copy(q->outbound->base + put->offset, put->src, put->bytes);
		q->link->copied += put->bytes;
	}
	if (e.lent)
		mst_region_lend(from);
	if (!is_queued_already(q, &e))
		q->entry[q->tail++ & q->mask] = e;
	q->notified += put->notify;
	q->dirty = true;
	if (!put->more)
		flush(q);
	return from != NULL ? 0 : 1;
}

/* ---- what has been sent ---- */

bool mst_queue_has_sent(const struct mst_queue *q)
{
	return q->pending_head != q->pending_tail &&
	       is_through(q, &q->pending[q->pending_head & q->pending_mask]);
}

bool mst_queue_take_sent(struct mst_queue *q, uint64_t *cookie)
{
	if (!mst_queue_has_sent(q))
		return false;
	const struct mst_queue_pending *p = &q->pending[q->pending_head++ & q->pending_mask];
	*cookie = p->cookie;
	give_back(p->lent);
	retire(q);
	return true;
}

bool mst_queue_is_idle(const struct mst_queue *q)
{
	for (uint32_t i = 0; i < q->rail_count; i++)
		if (q->rail[i].completed != q->rail[i].posted)
			return false;
	return true;
}

void mst_queue_mark(struct mst_queue *q)
{
	for (uint32_t i = 0; i < q->rail_count; i++) {
		if (q->rail[i].completed == q->rail[i].posted || room(q, i) == 0)
			continue;
		add(q, i, &(struct mst_queue_write){ .report = true });
		q->ops->post(q, i);
	}
}

/* ---- what has arrived ---- */

void mst_queue_arrived(struct mst_queue *q, uint32_t rail, uint32_t imm)
{
	struct mst_queue_rail *r = &q->rail[rail];

	MST_ASSERT(r->imm_tail - r->imm_head <= r->imm_mask);
	r->imm[r->imm_tail++ & r->imm_mask] = imm;
}

void mst_queue_forget_arrivals(struct mst_queue *q)
{
	for (uint32_t i = 0; i < q->rail_count; i++)
		q->rail[i].imm_head = q->rail[i].imm_tail;
}

bool mst_queue_has_arrival(const struct mst_queue *q)
{
	for (uint32_t i = 0; i < q->rail_count; i++)
		if (q->rail[i].imm_head == q->rail[i].imm_tail)
			return false;
	return true;
}

int mst_queue_take_arrival(struct mst_queue *q, uint32_t *imm)
{
	int rc = 0;

	for (uint32_t i = 0; i < q->rail_count; i++) {
		struct mst_queue_rail *r = &q->rail[i];
		uint32_t one = r->imm[r->imm_head++ & r->imm_mask];
		if (i > 0 && one != *imm)
			rc = -EPROTO;
		*imm = one;
	}
	return rc;
}
