/* SPDX-License-Identifier: MIT */
/*
 * What the peer sends. The payload of a write is received where it belongs, and in the same call
 * what follows it, to the stash: mostly the next headers. A write that is small enough to be a word
 * that somebody reads without an arrival is stored from the stash once all of it is there, so that
 * no cut of the stream shows in it.
 *
 * Nothing is stored before its header has been checked against the bounds of this link.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/transport/channel.h"
#include "common/transport/tcp/tcp.h"

/* A step is bounded, so that a link that sends much leaves the others their turn. Frames that hold
 * nothing are bounded by their bytes. Through a channel a receive may bring a byte, if its records
 * are as short, and costs as much as one that brings many. */
#define STEP_BYTES ((size_t)1 << 20)
#define STEP_RECEIVES 256u
/* So much of a payload comes before this end is woken, if so much is to come. */
#define MARK_BYTES (UINT32_C(256) << 10)
#define MARK_MIN_BYTES ((size_t)32 << 10)

static_assert(MST_TCP_STASH_BYTES >= MST_TCP_FRAME_BYTES + MST_TCP_SMALL_BYTES,
	      "a small frame lies in the stash as a whole");

/* ---- where bytes go ---- */

/* No write goes across the ends of what lies apart. */
static uint8_t *place_of(const struct mst_tcp_link *l, uint64_t offset)
{
	const struct mst_export *e = &l->export;

	if (e->region != NULL && offset >= e->at && offset < e->at + e->bytes)
		return e->region->base + e->offset + (offset - e->at);
	return l->inbound.base + offset;
}

/* Aligned words are stored whole, and only once. */
static void store_small(uint8_t *to, const uint8_t *from, size_t bytes)
{
	uint64_t word;

	while (bytes > 0) {
		if ((uintptr_t)to % sizeof(word) != 0 || bytes < sizeof(word)) {
			*to++ = *from++;
			bytes--;
			continue;
		}
		memcpy(&word, from, sizeof(word));
		/* Relaxed: what it guards is the reader's affair; an arrival is what orders. */
		atomic_store_explicit((_Atomic uint64_t *)(void *)to, word, memory_order_relaxed);
		to += sizeof(word);
		from += sizeof(word);
		bytes -= sizeof(word);
	}
}

/* ---- what a frame means ---- */

static int broke(struct mst_tcp_link *l, const char *what)
{
	struct mst_reason said;

	mst_reason_set(&said, "%s", what);
	return mst_reason_fail(&l->link.why, -EPROTO,
			       "%s broke the rules of the connection, with %s: it is of another "
			       "version of muster, or broken, or hostile",
			       l->peer, said.text);
}

/* Relies on what this end has told, not on what it has polled: the peer knows no more. */
static int arrive(struct mst_tcp_link *l)
{
	struct mst_reason what;

	if (l->in.arrived - l->out.told >= l->queue.in_credits ||
	    !mst_spsc_push(l->arrivals, &l->in.frame.imm)) {
		mst_reason_set(&what,
			       "notice %" PRIu64 ", of which %" PRIu64
			       " have been polled and %" PRIu32 " more are allowed",
			       l->in.arrived + 1, l->out.told, l->queue.in_credits);
		return broke(l, what.text);
	}
	l->in.arrived++;
	l->io_news = true;
	return 0;
}

static int take_credit(struct mst_tcp_link *l)
{
	uint64_t polled = l->in.frame.offset;
	struct mst_reason what;

	if (polled < l->in.credited || polled > l->out.notified) {
		mst_reason_set(&what,
			       "an acknowledgement of %" PRIu64 " notices, where %" PRIu64
			       " were sent and %" PRIu64 " are acknowledged",
			       polled, l->out.notified, l->in.credited);
		return broke(l, what.text);
	}
	l->in.credited = polled;
	/* Relaxed: as the queue reads it; the count guards nothing. */
	atomic_store_explicit(&l->in_word, polled, memory_order_relaxed);
	return 0;
}

/* Its payload is in place. */
static int finish(struct mst_tcp_link *l)
{
	l->in.open = false;
	if (mst_tcp_frame_notifies(&l->in.frame))
		return arrive(l);
	return l->in.frame.kind == MST_TCP_CREDIT ? take_credit(l) : 0;
}

/* ---- the stash ---- */

/* Return: 1: the header of a frame was taken, and all of a small one; 0: more is needed first. */
static int take_header(struct mst_tcp_link *l)
{
	struct mst_tcp_in *in = &l->in;
	const uint8_t *at = in->stash + in->at;
	size_t has = in->end - in->at;
	struct mst_tcp_frame f;
	struct mst_reason what;

	if (has < MST_TCP_FRAME_BYTES)
		return 0;
	mst_tcp_frame_decode(at, &f);
	if (mst_tcp_frame_check(&f, &in->bounds, &what) != 0)
		return broke(l, what.text);
	bool small = f.length <= MST_TCP_SMALL_BYTES;
	if (small && has < MST_TCP_FRAME_BYTES + f.length)
		return 0;
	in->frame = f;
	in->done = 0;
	in->open = true;
	in->at += MST_TCP_FRAME_BYTES;
	if (!small)
		return 1;
	if (f.length > 0)
		store_small(place_of(l, f.offset), at + MST_TCP_FRAME_BYTES, f.length);
	in->at += f.length;
	int rc = finish(l);
	return rc != 0 ? rc : 1;
}

static void take_payload(struct mst_tcp_link *l)
{
	struct mst_tcp_in *in = &l->in;
	size_t has = in->end - in->at, needs = in->frame.length - in->done;
	size_t n = has < needs ? has : needs;

	memcpy(place_of(l, in->frame.offset) + in->done, in->stash + in->at, n);
	in->at += n;
	in->done += n;
}

/* Takes all that the stash has. What is left of it is the beginning of a header or a small
 * frame. */
static int take_stash(struct mst_tcp_link *l)
{
	struct mst_tcp_in *in = &l->in;
	int rc = 1;

	while (rc > 0) {
		if (in->open) {
			take_payload(l);
			if (in->done < in->frame.length)
				break;
			rc = finish(l);
			if (rc < 0)
				return rc;
		}
		rc = take_header(l);
	}
	memmove(in->stash, in->stash + in->at, in->end - in->at);
	in->end -= in->at;
	in->at = 0;
	return rc < 0 ? rc : 0;
}

/* ---- steps ---- */

static int explain_end(struct mst_tcp_link *l, ssize_t got)
{
	const struct mst_tcp_in *in = &l->in;

	if (got < 0 && mst_tcp_why(&l->conn) != NULL)
		return mst_reason_fail(&l->link.why, -EPIPE, "%s", mst_tcp_why(&l->conn));
	if (got == 0 && in->open)
		return mst_reason_fail(&l->link.why, -EPIPE,
				       "%s has ended the connection in the middle of a put, after "
				       "%zu of %" PRIu64 " bytes",
				       l->peer, in->done, in->frame.length);
	if (got == 0)
		return mst_reason_fail(&l->link.why, -EPIPE, "%s has ended the connection",
				       l->peer);
	return mst_reason_fail(&l->link.why, -EPIPE, "the connection to %s broke: %s", l->peer,
			       strerror((int)-got));
}

/* Receives once; of a payload that is longer than a step, as much as that. Return: bytes; *full:
 * there may be more. */
static ssize_t fetch(struct mst_tcp_link *l, bool *full)
{
	struct mst_tcp_in *in = &l->in;
	struct iovec to[2];
	uint32_t count = 0;
	size_t rest = in->open ? in->frame.length - in->done : 0;
	size_t needs = rest < STEP_BYTES ? rest : STEP_BYTES;
	size_t room = needs == rest ? sizeof(in->stash) - in->end : 0;

	if (in->open)
		to[count++] = (struct iovec){ place_of(l, in->frame.offset) + in->done, needs };
	if (needs == rest)
		to[count++] = (struct iovec){ in->stash + in->end, room };
	ssize_t got = mst_tcp_receive(&l->conn, to, count);
	*full = mst_tcp_holds(&l->conn);
	if (got <= 0)
		return got;
	*full |= (size_t)got == needs + room;
	size_t placed = (size_t)got < needs ? (size_t)got : needs;
	in->done += placed;
	in->end += (size_t)got - placed;
	return got;
}

/* While much of a payload is to come, this end is not woken for each segment of it. To be called
 * before each sleep: with the mark of a payload that is complete, the next frame would not be heard
 * of. Of a channel's bytes some may have been read ahead and not given yet. The mark leaves them
 * out, because it must not be more than what is certain to come. */
static int set_mark(struct mst_tcp_link *l)
{
	struct mst_tcp_in *in = &l->in;
	size_t rest = in->open ? in->frame.length - in->done : 0;
	size_t read = l->conn.channel != NULL ? MST_CHANNEL_AHEAD_MAX : 0;
	uint32_t mark = 0;

	if (rest >= read + MARK_MIN_BYTES)
		mark = rest - read < MARK_BYTES ? (uint32_t)(rest - read) : MARK_BYTES;
	if (mark == in->wake_at)
		return 0;
	int rc = mst_tcp_socket_wake_at(l->conn.fd, mark);
	if (rc == 0)
		in->wake_at = mark;
	else if (mark < in->wake_at)
		return mst_reason_fail(&l->link.why, -EPIPE,
				       "the kernel does not tell of less than %u bytes from %s any "
				       "more: %s",
				       in->wake_at, l->peer, strerror(-rc));
	return 0;
}

int mst_tcp_in_step(struct mst_tcp_link *l)
{
	size_t all = 0;

	for (uint32_t i = 0; i < STEP_RECEIVES && all < STEP_BYTES; i++) {
		bool full = false;
		ssize_t got = fetch(l, &full);
		if (got == -EAGAIN)
			return full ? 1 : set_mark(l);
		if (got <= 0)
			return explain_end(l, got);
		all += (size_t)got;
		int rc = take_stash(l);
		if (rc == 0 && !full)
			rc = set_mark(l);
		if (rc < 0)
			return rc;
		if (!full && !l->hung_up) /* what comes later makes the descriptor ready again */
			return 0;
	}
	return 1;
}

bool mst_tcp_in_discard(struct mst_tcp_link *l)
{
	struct iovec to = { l->in.stash, sizeof(l->in.stash) };
	ssize_t got = 1;

	for (int i = 0; i < 1024 && got > 0; i++)
		got = mst_tcp_receive(&l->conn, &to, 1);
	return got > 0 || got == -EAGAIN;
}
