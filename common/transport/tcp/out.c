/* SPDX-License-Identifier: MIT */
/*
 * The writes of a link's queue as frames. A payload is sent from where it lies; it has completed
 * when the kernel has its bytes, which are copied by then.
 *
 * A payload of MST_TCP_SMALL_BYTES or less travels through the ring with its frame, copied by the
 * thread that puts, word by word. Its source may be written again before it is sent, and half of
 * the one and half of the other would be a word that nobody has put.
 *
 * An urgent word lies beside the ring, and is composed before what the ring has. So it waits for
 * the frames that are composed already, and these are few where they are large.
 */
#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/transport/tcp/tcp.h"

#define STEP_BYTES ((size_t)1 << 20)
/* Nothing is composed in addition to so much: an urgent word would wait for it. */
#define BATCH_BYTES ((size_t)256 << 10)

/* ---- composing ---- */

static void add_part(struct mst_tcp_out *out, const void *base, size_t bytes)
{
	out->part[out->count] = (struct iovec){ (void *)(uintptr_t)base, bytes };
	out->number[out->count++] = 0;
}

static void add_write(struct mst_tcp_out *out, uint8_t *head, const struct mst_tcp_write *w)
{
	size_t bytes = w->frame.length;
	bool small = bytes <= MST_TCP_SMALL_BYTES;

	if (w->frame.kind == MST_TCP_CREDIT)
		out->told = w->frame.offset;
	out->notified += mst_tcp_frame_notifies(&w->frame);
	mst_tcp_frame_encode(&w->frame, head);
	if (small)
		memcpy(head + MST_TCP_FRAME_BYTES, w->small, bytes);
	add_part(out, head, MST_TCP_FRAME_BYTES + (small ? bytes : 0));
	if (!small)
		add_part(out, w->src, bytes);
	out->number[out->count - 1] = w->number;
	out->report[out->count - 1] = w->report;
}

bool mst_tcp_out_is_urged(const struct mst_tcp_link *l)
{
	/* Relaxed: whoever has put a word calls the io after that. */
	return atomic_load_explicit(&l->urges, memory_order_relaxed) != l->out.urged;
}

/* As the first part. A word that is put meanwhile goes in place of this one, or after it. */
static void add_urgent(struct mst_tcp_link *l)
{
	struct mst_tcp_out *out = &l->out;
	uint8_t *head = out->head[MST_TCP_BATCH];

	/* Acquire: pairs with the release in mst_tcp_out_urge(); the word is that one or newer. */
	out->urged = atomic_load_explicit(&l->urges, memory_order_acquire);
	uint64_t word = atomic_load_explicit(&l->urgent, memory_order_relaxed);
	struct mst_tcp_frame f = { .kind = MST_TCP_WRITE,
				   .offset = l->urgent_at,
				   .length = sizeof(word) };

	mst_tcp_frame_encode(&f, head);
	memcpy(head + MST_TCP_FRAME_BYTES, &word, sizeof(word));
	out->at = 0;
	out->part[0] = (struct iovec){ head, MST_TCP_FRAME_BYTES + sizeof(word) };
	out->number[0] = 0;
}

/* What was put before one of the writes is seen once that is popped: so the look for an urgent word
 * comes after that, and an arrival never before the word. Return: is there anything to send? */
static bool compose(struct mst_tcp_link *l)
{
	struct mst_tcp_out *out = &l->out;
	struct mst_tcp_write w;
	size_t bytes = 0;

	out->at = out->count = 1;
	for (uint32_t i = 0;
	     i < MST_TCP_BATCH && bytes < BATCH_BYTES && mst_spsc_pop(l->writes, &w); i++) {
		add_write(out, out->head[i], &w);
		bytes += w.frame.length;
	}
	if (mst_tcp_out_is_urged(l))
		add_urgent(l);
	return !mst_tcp_out_is_idle(out);
}

void mst_tcp_out_ask(struct mst_tcp_out *out)
{
	struct mst_tcp_frame f = { .kind = MST_TCP_STILL };

	out->at = out->count = 0;
	mst_tcp_frame_encode(&f, out->head[0]);
	add_part(out, out->head[0], MST_TCP_FRAME_BYTES);
}

/* ---- sending ---- */

/* The kernel has taken @bytes more. */
static void advance(struct mst_tcp_link *l, size_t bytes)
{
	struct mst_tcp_out *out = &l->out;

	for (; bytes > 0; out->at++) {
		struct iovec *part = &out->part[out->at];
		size_t n = bytes < part->iov_len ? bytes : part->iov_len;
		part->iov_base = (uint8_t *)part->iov_base + n;
		part->iov_len -= n;
		bytes -= n;
		if (part->iov_len > 0)
			return;
		if (out->number[out->at] == 0)
			continue;
		l->io_news |= out->report[out->at];
		/* Release: pairs with the acquire in mst_tcp_link_gather(); the source is read. */
		atomic_store_explicit(&l->sent, out->number[out->at], memory_order_release);
	}
}

int mst_tcp_out_step(struct mst_tcp_link *l)
{
	struct mst_tcp_out *out = &l->out;
	size_t all = 0;

	while (all < STEP_BYTES) {
		if (mst_tcp_out_is_idle(out) && !compose(l))
			return 0;
		ssize_t done = mst_tcp_send(&l->conn, out->part + out->at, out->count - out->at);
		if (done == -EAGAIN) {
			l->writable = false;
			return 0;
		}
		if (done < 0)
			return (int)done;
		advance(l, (size_t)done);
		all += (size_t)done;
	}
	return 1;
}

/* ---- the queue's half ---- */

static struct mst_tcp_link *link_of(const struct mst_queue *q)
{
	return (struct mst_tcp_link *)q->link;
}

/* Aligned words are read whole. */
static void load_small(uint8_t *to, const uint8_t *from, size_t bytes)
{
	uint64_t word;

	while (bytes > 0) {
		if ((uintptr_t)from % sizeof(word) != 0 || bytes < sizeof(word)) {
			*to++ = *from++;
			bytes--;
			continue;
		}
		/* Relaxed: it is the value of the put, or of a later one to the same place. */
		word = atomic_load_explicit((const _Atomic uint64_t *)(const void *)from,
					    memory_order_relaxed);
		memcpy(to, &word, sizeof(word));
		to += sizeof(word);
		from += sizeof(word);
		bytes -= sizeof(word);
	}
}

static struct mst_tcp_frame frame_of(struct mst_tcp_link *l, const struct mst_queue_write *w)
{
	if (w->bytes > 0 && w->offset == l->queue.word_at)
		/* Relaxed: this thread has written it. */
		return (struct mst_tcp_frame){ .kind = MST_TCP_CREDIT,
					       .offset = atomic_load_explicit(
						       &l->out_word, memory_order_relaxed) };
	return (struct mst_tcp_frame){ .kind = w->bytes == 0 ? MST_TCP_NOTIFY
					       : w->notify   ? MST_TCP_WRITE_NOTIFY
							     : MST_TCP_WRITE,
				       .imm = w->imm,
				       .offset = w->bytes > 0 ? w->offset : 0,
				       .length = w->bytes };
}

/* There is room: the queue knows how many are on their way. */
static void queue_write(struct mst_queue *q, uint32_t rail, const struct mst_queue_write *w)
{
	(void)rail;
	struct mst_tcp_link *l = link_of(q);
	struct mst_tcp_write out = {
		.frame = frame_of(l, w), .src = w->src, .number = w->number, .report = w->report
	};

	if (out.frame.length <= MST_TCP_SMALL_BYTES)
		load_small(out.small, w->src, out.frame.length);
	(void)mst_spsc_push(l->writes, &out);
	l->composed_bytes += out.frame.length;
	l->composed_any = true;
}

static void queue_post(struct mst_queue *q, uint32_t rail)
{
	(void)rail;
	struct mst_tcp_link *l = link_of(q);

	if (!l->composed_any)
		return;
	l->composed_any = false;
	/* Where the kernel takes no more the own io goes on once it does. */
	if (l->io == NULL || !l->io->own || l->writable)
		mst_tcp_io_call(l->io, l);
}

int mst_tcp_out_urge(struct mst_tcp_link *l, const struct mst_put *put)
{
	uint64_t word;

	if (put->bytes != sizeof(word) || put->notify || put->offset % sizeof(word) != 0 ||
	    put->offset > l->queue.peer_bytes || put->bytes > l->queue.peer_bytes - put->offset)
		return -EINVAL;
	if (l->queue.state != MST_QUEUE_LIVE)
		return -EPIPE;
	memcpy(&word, put->src, sizeof(word));
	if (l->urges == 0)
		l->urgent_at = put->offset;
	MST_ASSERT(l->urgent_at == put->offset);
	atomic_store_explicit(&l->urgent, word, memory_order_relaxed);
	/* Release: pairs with the acquire in add_urgent(). */
	atomic_fetch_add_explicit(&l->urges, 1, memory_order_release);
	mst_tcp_io_call(l->io, l);
	return 1;
}

/* A caller that only puts learns of room here. */
static void queue_gather(struct mst_queue *q)
{
	struct mst_tcp_link *l = link_of(q);

	if (l->io == NULL || l->io->own) /* else its io has been called when they were posted */
		mst_tcp_io_call(l->io, l);
	mst_tcp_link_gather(l);
}

const struct mst_queue_ops mst_tcp_queue = {
	.write = queue_write,
	.post = queue_post,
	.gather = queue_gather,
};
