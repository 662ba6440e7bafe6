/* SPDX-License-Identifier: MIT */
/*
 * What comes through the channel of a link, as it is once it has been decrypted: whatever bytes
 * there are, and wherever they are cut, all that is stored, all that arrives and the end are those
 * of a reader that takes the bytes one frame after the other. So nothing is stored outside of the
 * region, nothing before its header is here, no small write in part, and no notice beyond the
 * credits.
 *
 * An input has the lane in 4 bytes; then pieces, each a byte with its length and the piece.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/transport/channel.h"
#include "common/transport/tcp/tcp.h"
#include "tests/fuzz/input.h"

#define BYTES_MAX 4096u /* of an input */
#define NOTIFIED 5u     /* notices that this end has sent, for the peer to acknowledge */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a channel that gives a piece at a time ---- */

struct given {
	const uint8_t *at;
	size_t left;
	bool ends; /* after it the channel does */
};

static ssize_t give(struct mst_stream *s, const struct iovec *to, uint32_t count)
{
	struct given *p = (struct given *)s;
	ssize_t all = 0;

	if (p->left == 0)
		return p->ends ? 0 : -EAGAIN;
	for (uint32_t i = 0; i < count; i++) {
		size_t n = to[i].iov_len < p->left ? to[i].iov_len : p->left;
		if (n > 0)
			memcpy(to[i].iov_base, p->at, n);
		p->at += n;
		p->left -= n;
		all += (ssize_t)n;
	}
	return all;
}

static bool holds(struct mst_stream *s)
{
	return ((struct given *)s)->left > 0;
}

static void close_none(struct mst_stream *s)
{
	(void)s;
}

static const struct mst_stream_ops stream = { .why = mst_stream_no_why, .close = close_none };
static const struct mst_channel_ops channel = { .stream = &stream,
						.receive = give,
						.holds = holds };

/* ---- the reader that it is compared with ---- */

struct plain_reader {
	uint8_t heard[BYTES_MAX];
	size_t at, end;
	uint8_t region[BYTES_MAX];
	uint32_t imm[BYTES_MAX / MST_TCP_FRAME_BYTES];
	uint64_t arrived, credited;
	bool broken;
};

static bool accepts(struct plain_reader *r, const struct mst_tcp_link *l,
		    const struct mst_tcp_frame *f)
{
	if (f->kind == MST_TCP_CREDIT) {
		if (f->offset < r->credited || f->offset > l->out.notified)
			return false;
		r->credited = f->offset;
	}
	if (!mst_tcp_frame_notifies(f))
		return true;
	if (r->arrived - l->out.told >= l->queue.in_credits)
		return false;
	r->imm[r->arrived++] = f->imm;
	return true;
}

/* A payload that is here in part is stored in part, unless it is small. */
static void read_on(struct plain_reader *r, const struct mst_tcp_link *l)
{
	struct mst_tcp_frame f;
	struct mst_reason why;

	while (!r->broken && r->end - r->at >= MST_TCP_FRAME_BYTES) {
		size_t has = r->end - r->at - MST_TCP_FRAME_BYTES;
		mst_tcp_frame_decode(r->heard + r->at, &f);
		r->broken = mst_tcp_frame_check(&f, &l->in.bounds, &why) != 0;
		if (r->broken || (has < f.length && f.length <= MST_TCP_SMALL_BYTES))
			return;
		size_t n = has < f.length ? has : f.length;
		if (n > 0)
			memcpy(r->region + f.offset, r->heard + r->at + MST_TCP_FRAME_BYTES, n);
		if (has < f.length)
			return;
		r->at += MST_TCP_FRAME_BYTES + f.length;
		r->broken = !accepts(r, l, &f);
	}
}

/* ---- both ---- */

struct stage {
	struct mst_tcp_net net;
	struct mst_region apart;
	uint8_t elsewhere[BYTES_MAX];
	struct mst_tcp_link *link;
	struct given piece;
	struct plain_reader reader;
	uint64_t polled;
};

static void stage_open(struct stage *s, struct fuzz_input *in)
{
	struct mst_tcp_link_cfg cfg = { .connector = true };
	struct mst_reason why;

	memset(s, 0, sizeof(*s));
	cfg.lanes.down_bytes = fuzz_next(in) * 16u;
	cfg.lanes.down_credits = fuzz_next(in) % 8u;
	s->apart = (struct mst_region){ .base = s->elsewhere, .bytes = sizeof(s->elsewhere) };
	cfg.export.at = fuzz_next(in) * 8u;
	cfg.export.bytes = fuzz_next(in) * 8u;
	cfg.export.region = &s->apart;
	if (cfg.export.bytes == 0 || !mst_region_may_export(&cfg.export, cfg.lanes.down_bytes))
		cfg.export = (struct mst_export){ 0 };
	MST_ASSERT(mst_tcp_link_new(&s->net, &cfg, &s->link, &why) == 0);
	s->link->conn.channel = &channel;
	s->link->conn.stream = (struct mst_stream *)&s->piece;
	s->link->out.notified = NOTIFIED;
}

static bool is_apart(const struct mst_tcp_link *l, size_t at)
{
	return at >= l->in.bounds.from && at < l->in.bounds.end;
}

/* Byte by byte, of all memory that a store could have gone to. */
static void compare_regions(const struct stage *s)
{
	const struct mst_tcp_link *l = s->link;

	for (size_t at = 0; at < l->inbound.bytes; at++) {
		bool inside = at < l->in.bounds.bytes && !is_apart(l, at);
		MST_ASSERT(l->inbound.base[at] == (inside ? s->reader.region[at] : 0));
	}
	for (size_t i = 0; i < sizeof(s->elsewhere); i++) {
		size_t at = l->in.bounds.from + i;
		bool inside = is_apart(l, at);
		MST_ASSERT(s->elsewhere[i] == (inside ? s->reader.region[at] : 0));
	}
}

/* @polls: the owner takes what has arrived, and tells the peer so. */
static void compare_arrivals(struct stage *s, bool polls)
{
	struct mst_tcp_link *l = s->link;
	uint32_t imm;

	MST_ASSERT(l->in.arrived == s->reader.arrived);
	MST_ASSERT(l->in.credited == s->reader.credited);
	while (polls && mst_spsc_pop(l->arrivals, &imm))
		MST_ASSERT(imm == s->reader.imm[s->polled++]);
	MST_ASSERT(!polls || s->polled == s->reader.arrived);
	l->out.told = s->polled;
}

/* Return: false: the link has ended. */
static bool take_piece(struct stage *s, const uint8_t *at, size_t count, bool polls)
{
	struct plain_reader *r = &s->reader;
	int rc = 1;

	memcpy(r->heard + r->end, at, count);
	r->end += count;
	read_on(r, s->link);
	s->piece = (struct given){ at, count, false };
	while (rc > 0)
		rc = mst_tcp_in_step(s->link);
	MST_ASSERT(rc == (r->broken ? -EPROTO : 0));
	MST_ASSERT((rc != 0) == (s->link->link.why.text[0] != '\0'));
	compare_regions(s);
	compare_arrivals(s, polls);
	return rc == 0;
}

static void end(struct stage *s)
{
	s->piece = (struct given){ .ends = true };
	MST_ASSERT(mst_tcp_in_step(s->link) == -EPIPE);
	MST_ASSERT(s->link->link.why.text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stage s;
	struct fuzz_input in = { data, data + (size < BYTES_MAX ? size : BYTES_MAX) };
	bool goes = true;

	stage_open(&s, &in);
	while (goes && in.at < in.end) {
		size_t count = fuzz_next(&in);
		bool polls = count % 2 == 0;
		const uint8_t *at = fuzz_take(&in, &count);
		goes = count == 0 || take_piece(&s, at, count, polls);
	}
	if (goes)
		end(&s);
	mst_tcp_link_free(&s.link->link);
	return 0;
}
