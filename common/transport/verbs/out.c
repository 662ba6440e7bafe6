/* SPDX-License-Identifier: MIT */
/*
 * Puts on their way. A put becomes an entry of a queue; entries are cut into work requests and
 * posted in lists, in order, as far as the send queues have room and once it is known where the
 * peer's landing is. Sources stay where they are: in the outbox or in published memory.
 *
 * Invariant: requests of one rail complete in order, so a counter says all: `completed` is the
 * number of the last that is known to have completed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/transport/verbs/verbs.h"

#define ENTRIES_MIN 64u

/* A list being built for one rail. */
struct list {
	struct mst_verbs_rail *rail;
	uint32_t count;
	struct ibv_send_wr wr[MST_VERBS_LIST];
	struct ibv_sge sge[MST_VERBS_LIST];
};

int mst_verbs_out_new(struct mst_verbs_link *l)
{
	struct mst_verbs_out *o = &l->out;
	uint32_t entries = mst_verbs_pow2_above(l->out_credits + ENTRIES_MIN);
	uint64_t sends = 0;

	for (uint32_t i = 0; i < l->rail_count; i++)
		sends += l->rail[i].send_size;
	uint32_t pending = mst_verbs_pow2_above(sends); /* each has a request of its own at least */
	o->entry = calloc(entries, sizeof(*o->entry));
	o->pending = calloc(pending, sizeof(*o->pending));
	o->mask = entries - 1;
	o->pending_mask = pending - 1;
	return o->entry != NULL && o->pending != NULL ? 0 : -ENOMEM;
}

void mst_verbs_out_free(struct mst_verbs_out *o)
{
	free(o->entry);
	free(o->pending);
}

/* ---- credits ---- */

static _Atomic uint64_t *credit_word(const struct mst_verbs_memory *m)
{
	return (_Atomic uint64_t *)(void *)(mst_verbs_tail(m) + MST_VERBS_CREDIT_AT);
}

static bool has_credit(struct mst_verbs_link *l)
{
	struct mst_verbs_out *o = &l->out;

	if (o->notified - o->returned < l->out_credits)
		return true;
	/* Relaxed: the count guards nothing here. A peer that lies runs out of receives, or of
	 * room in its own completion queue. */
	uint64_t word = atomic_load_explicit(credit_word(&l->landing), memory_order_relaxed);
	if (word > o->returned && word <= o->notified)
		o->returned = word;
	return o->notified - o->returned < l->out_credits;
}

/* ---- work requests ---- */

static uint32_t room(const struct mst_verbs_rail *r)
{
	return r->send_size - (uint32_t)(r->posted - r->completed);
}

static void post(struct list *list)
{
	struct mst_verbs_rail *r = list->rail;
	struct ibv_send_wr *bad;

	if (list->count == 0)
		return;
	list->wr[list->count - 1].next = NULL;
	int rc = ibv_post_send(r->out, list->wr, &bad);
	list->count = 0;
	if (rc != 0)
		mst_verbs_link_break(r, rc);
}

static struct ibv_send_wr *add(struct list *list)
{
	struct mst_verbs_rail *r = list->rail;

	if (list->count == MST_VERBS_LIST)
		post(list);
	struct ibv_send_wr *wr = &list->wr[list->count];
	*wr = (struct ibv_send_wr){ .wr_id = ++r->posted,
				    .next = wr + 1,
				    .sg_list = &list->sge[list->count],
				    .opcode = IBV_WR_RDMA_WRITE };
	if (++r->silent >= MST_VERBS_SIGNAL_EVERY) {
		wr->send_flags = IBV_SEND_SIGNALED;
		r->silent = 0;
	}
	list->count++;
	return wr;
}

static void report(struct mst_verbs_rail *r, struct ibv_send_wr *wr)
{
	wr->send_flags |= IBV_SEND_SIGNALED;
	r->silent = 0;
}

static void fill(struct mst_verbs_rail *r, struct ibv_send_wr *wr, const struct ibv_mr *mr,
		 const uint8_t *src, size_t bytes, size_t offset)
{
	wr->wr.rdma.remote_addr = r->remote + offset;
	wr->wr.rdma.rkey = r->rkey;
	if (bytes == 0)
		return;
	wr->num_sge = 1;
	*wr->sg_list = (struct ibv_sge){ .addr = (uintptr_t)src,
					 .length = (uint32_t)bytes,
					 .lkey = mr->lkey };
	if (bytes <= r->inline_max)
		wr->send_flags |= IBV_SEND_INLINE;
}

static void add_immediate(struct ibv_send_wr *wr, uint32_t imm)
{
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htonl(imm);
}

/* ---- entries ---- */

/* The next piece of an entry's data goes over this rail. It is the same for whatever is put to one
 * place, however it is cut: so what is put there twice arrives in order. */
static uint32_t rail_of(const struct mst_verbs_link *l, const struct mst_verbs_entry *e)
{
	return (uint32_t)((e->offset + e->done) / MST_VERBS_MESSAGE % l->rail_count);
}

static size_t piece_of(const struct mst_verbs_entry *e)
{
	size_t left = e->bytes - e->done;
	size_t most = MST_VERBS_MESSAGE - (e->offset + e->done) % MST_VERBS_MESSAGE;

	return left < most ? left : most;
}

/* Is the data to travel with the immediate itself? */
static bool is_single(const struct mst_verbs_entry *e)
{
	return e->bytes > 0 && e->offset % MST_VERBS_MESSAGE + e->bytes <= MST_VERBS_MESSAGE;
}

static void add_data(struct mst_verbs_link *l, struct list *lists, struct mst_verbs_entry *e,
		     struct mst_verbs_pending *pending)
{
	struct list *list = &lists[rail_of(l, e)];
	struct mst_verbs_rail *r = list->rail;
	size_t left = e->bytes - e->done, bytes = piece_of(e);
	struct ibv_send_wr *wr = add(list);

	fill(r, wr, e->published ? r->device->published : r->outbox, e->src + e->done, bytes,
	     e->offset + e->done);
	e->done += bytes;
	if (e->notify && is_single(e))
		add_immediate(wr, e->imm);
	pending->until[r->index] = r->posted;
	/* The last pieces, one on each rail, tell that they are through. */
	if (e->signal && left <= l->rail_count * MST_VERBS_MESSAGE)
		report(r, wr);
}

static void add_notice(struct list *list, const struct mst_verbs_entry *e,
		       struct mst_verbs_pending *pending)
{
	struct ibv_send_wr *wr = add(list);

	fill(list->rail, wr, NULL, NULL, 0, 0);
	add_immediate(wr, e->imm);
	pending->until[list->rail->index] = list->rail->posted;
	if (e->signal)
		report(list->rail, wr);
}

static bool has_room_for_notice(const struct mst_verbs_link *l)
{
	for (uint32_t i = 0; i < l->rail_count; i++)
		if (room(&l->rail[i]) < 2) /* one is kept for the credit word */
			return false;
	return true;
}

/* Return: false: no room for all of it. */
static bool add_entry(struct mst_verbs_link *l, struct list *lists, struct mst_verbs_entry *e)
{
	struct mst_verbs_out *o = &l->out;
	struct mst_verbs_pending nobody = { 0 }, *pending = &nobody;

	if (e->signal && o->pending_tail - o->pending_head > o->pending_mask)
		return false; /* ends that nobody has polled */
	if (e->signal)
		pending = &o->pending[o->pending_tail & o->pending_mask];
	if (e->done == 0)
		*pending = (struct mst_verbs_pending){ .cookie = e->cookie };
	uint32_t carrier = e->notify && is_single(e) ? rail_of(l, e) : l->rail_count;
	if (carrier < l->rail_count && !has_room_for_notice(l))
		return false;
	while (e->done < e->bytes) {
		if (room(&l->rail[rail_of(l, e)]) < 2)
			return false;
		add_data(l, lists, e, pending);
	}
	if (e->notify && carrier == l->rail_count && !has_room_for_notice(l))
		return false;
	/* Where there is little data, its rail's immediate has gone with it. */
	for (uint32_t i = 0; e->notify && i < l->rail_count; i++)
		if (i != carrier)
			add_notice(&lists[i], e, pending);
	if (e->signal)
		o->pending_tail++;
	return true;
}

/* Half of what the peer has: less is not worth a write of its own. */
static bool owes_credit(const struct mst_verbs_link *l)
{
	return 2 * (l->polled - l->told) >= l->in_credits && l->polled != l->told;
}

static void add_credit(struct mst_verbs_link *l, struct list *list)
{
	_Atomic uint64_t *word = credit_word(&l->outbox);

	l->told = l->polled;
	l->out.owing = false;
	atomic_store_explicit(word, l->polled, memory_order_relaxed);
	fill(list->rail, add(list), list->rail->outbox, (const uint8_t *)word, sizeof(*word),
	     mst_verbs_peer_tail(l) + MST_VERBS_CREDIT_AT);
}

/* Return: is all of it posted? */
static bool post_waiting(struct mst_verbs_link *l)
{
	struct mst_verbs_out *o = &l->out;
	struct list lists[MST_VERBS_RAILS_MAX];

	if (!l->open || l->state != MST_VERBS_LIVE)
		return true;
	for (uint32_t i = 0; i < l->rail_count; i++) {
		lists[i].rail = &l->rail[i];
		lists[i].count = 0;
	}
	/* Credits go before what may make the peer use them. */
	if ((l->out.owing || owes_credit(l)) && room(&l->rail[0]) > 0)
		add_credit(l, &lists[0]);
	while (o->head != o->tail && add_entry(l, lists, &o->entry[o->head & o->mask]))
		o->head++;
	o->dirty = o->head != o->tail;
	for (uint32_t i = 0; i < l->rail_count; i++)
		post(&lists[i]);
	return !o->dirty;
}

/* Whoever only puts has completions to take in, too: they make room, and open the link. */
static void flush(struct mst_verbs_link *l)
{
	if (l->open && post_waiting(l))
		return;
	mst_verbs_link_gather(l);
	(void)post_waiting(l);
}

void mst_verbs_out_flush(struct mst_verbs_link *l)
{
	if (l->out.dirty)
		flush(l);
}

void mst_verbs_out_return(struct mst_verbs_link *l)
{
	/* Where writes may pass each other the last one may have been passed: it is told twice. */
	bool again = l->home->fabric.relaxed_ordering && l->out.told_twice != l->told;

	l->out.told_twice = l->told;
	l->out.owing = l->polled != l->told || again;
	if (l->out.owing)
		flush(l);
}

void mst_verbs_out_settle(struct mst_verbs_link *l)
{
	if (owes_credit(l))
		flush(l);
}

/* ---- put ---- */

static bool lies_in(const void *at, size_t bytes, const void *base, size_t size)
{
	uintptr_t from = (uintptr_t)at - (uintptr_t)base;

	return base != NULL && (uintptr_t)at >= (uintptr_t)base && from <= size &&
	       bytes <= size - from;
}

static bool is_in_outbox(const struct mst_link *link, const struct mst_put *put)
{
	return (const uint8_t *)put->src == (const uint8_t *)link->outbox + put->offset;
}

/* A word that is put again and again need not queue up: the source is read when it is posted. */
static bool is_queued_already(const struct mst_verbs_out *o, const struct mst_verbs_entry *e)
{
	if (o->head == o->tail || e->notify || e->signal || e->published)
		return false;
	const struct mst_verbs_entry *last = &o->entry[(o->tail - 1) & o->mask];
	return !last->notify && !last->signal && !last->published && last->done == 0 &&
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
static bool make_room(struct mst_verbs_link *l)
{
	struct mst_verbs_out *o = &l->out;

	if (o->tail - o->head <= o->mask)
		return true;
	mst_verbs_link_gather(l);
	flush(l);
	return o->tail - o->head <= o->mask;
}

int mst_verbs_put(struct mst_link *link, const struct mst_put *put)
{
	struct mst_verbs_link *l = (struct mst_verbs_link *)link;
	struct mst_verbs_out *o = &l->out;
	struct mst_verbs_net *home = l->home;

	MST_ASSERT(l->state != MST_VERBS_IDLE);
	if (put->offset > l->peer_bytes || put->bytes > l->peer_bytes - put->offset)
		return -EINVAL;
	if (l->state != MST_VERBS_LIVE)
		return -EPIPE;
	struct mst_verbs_entry e = { .offset = put->offset,
				     .bytes = put->bytes,
				     .src = put->src,
				     .notify = put->notify,
				     .imm = put->imm,
				     .cookie = put->cookie };
	bool composed = put->bytes > 0 && is_in_outbox(link, put);
	e.published = !composed && put->bytes > 0 &&
		      lies_in(put->src, put->bytes, home->net.published, home->net.published_bytes);
	bool foreign = !composed && !e.published;
	e.signal = put->signal && !foreign;
	if ((composed || foreign) && put->bytes > 0 &&
	    (put->offset > link->outbox_bytes || put->bytes > link->outbox_bytes - put->offset))
		return -EINVAL;
	if ((put->notify && !has_credit(l)) || !make_room(l))
		return l->state == MST_VERBS_LIVE ? -EAGAIN : -EPIPE;
	if (foreign) {
		e.src = (const uint8_t *)link->outbox + put->offset;
		copy((uint8_t *)link->outbox + put->offset, put->src, put->bytes);
	}
	if (!is_queued_already(o, &e))
		o->entry[o->tail++ & o->mask] = e;
	o->notified += put->notify;
	o->dirty = true;
	if (!put->more)
		flush(l);
	return foreign ? 1 : 0;
}

/* ---- completions ---- */

bool mst_verbs_out_stirs(const struct mst_verbs_link *l)
{
	const struct mst_verbs_out *o = &l->out;

	if (o->pending_head == o->pending_tail)
		return false;
	const struct mst_verbs_pending *p = &o->pending[o->pending_head & o->pending_mask];
	for (uint32_t i = 0; i < l->rail_count; i++)
		if (l->rail[i].completed < p->until[i])
			return false;
	return true;
}

bool mst_verbs_out_sent(struct mst_verbs_link *l, uint64_t *cookie)
{
	struct mst_verbs_out *o = &l->out;

	if (!mst_verbs_out_stirs(l))
		return false;
	*cookie = o->pending[o->pending_head++ & o->pending_mask].cookie;
	return true;
}

bool mst_verbs_out_idle(const struct mst_verbs_link *l)
{
	for (uint32_t i = 0; i < l->rail_count; i++)
		if (l->rail[i].completed != l->rail[i].posted)
			return false;
	return true;
}

void mst_verbs_out_mark(struct mst_verbs_link *l)
{
	for (uint32_t i = 0; i < l->rail_count; i++) {
		struct list list = { .rail = &l->rail[i] };
		if (l->rail[i].completed == l->rail[i].posted || room(&l->rail[i]) == 0)
			continue;
		struct ibv_send_wr *wr = add(&list);
		fill(list.rail, wr, NULL, NULL, 0, 0);
		report(list.rail, wr);
		post(&list);
	}
}

int mst_verbs_introduce(struct mst_verbs_rail *r)
{
	struct mst_verbs_link *l = r->link;
	size_t at = r->index * MST_VERBS_INTRODUCTION_LINE;
	struct mst_verbs_introduction *intro = (void *)(mst_verbs_tail(&l->outbox) + at);
	struct list list = { .rail = r };
	struct ibv_send_wr *bad;

	*intro = (struct mst_verbs_introduction){ .magic = MST_VERBS_MAGIC,
						  .rkey = r->landing->rkey,
						  .landing = (uintptr_t)l->landing.base };
	struct ibv_send_wr *wr = add(&list);
	fill(r, wr, r->outbox, (const uint8_t *)intro, sizeof(*intro), mst_verbs_peer_tail(l) + at);
	add_immediate(wr, 0);
	report(r, wr);
	wr->next = NULL;
	return -ibv_post_send(r->out, wr, &bad);
}
