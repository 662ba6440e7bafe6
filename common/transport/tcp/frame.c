/* SPDX-License-Identifier: MIT */
#include "common/transport/tcp/frame.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- figures ---- */

static void store(uint8_t *out, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t load(const uint8_t *in, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)in[i] << 8 * i;
	return value;
}

/* ---- frames ---- */

void mst_tcp_frame_encode(const struct mst_tcp_frame *f, uint8_t out[MST_TCP_FRAME_BYTES])
{
	store(out, f->kind, 4);
	store(out + 4, f->imm, 4);
	store(out + 8, f->offset, 8);
	store(out + 16, f->length, 8);
}

void mst_tcp_frame_decode(const uint8_t in[MST_TCP_FRAME_BYTES], struct mst_tcp_frame *out)
{
	*out = (struct mst_tcp_frame){ .kind = (uint32_t)load(in, 4),
				       .imm = (uint32_t)load(in + 4, 4),
				       .offset = load(in + 8, 8),
				       .length = load(in + 16, 8) };
}

static int check_write(const struct mst_tcp_frame *f, const struct mst_tcp_bounds *bounds,
		       struct mst_reason *why)
{
	if (f->length == 0)
		return mst_reason_fail(why, -EPROTO, "a write of no bytes");
	if (f->offset > bounds->bytes || f->length > bounds->bytes - f->offset)
		return mst_reason_fail(why, -EPROTO,
				       "a write of %" PRIu64 " bytes at %" PRIu64
				       ", where it may write %zu",
				       f->length, f->offset, bounds->bytes);
	uint64_t end = f->offset + f->length;
	if ((f->offset < bounds->from && end > bounds->from) ||
	    (f->offset < bounds->end && end > bounds->end))
		return mst_reason_fail(why, -EPROTO,
				       "a write of %" PRIu64 " bytes at %" PRIu64
				       ", across an end of what lies apart from %zu to %zu",
				       f->length, f->offset, bounds->from, bounds->end);
	return 0;
}

int mst_tcp_frame_check(const struct mst_tcp_frame *f, const struct mst_tcp_bounds *bounds,
			struct mst_reason *why)
{
	switch (f->kind) {
	case MST_TCP_WRITE:
	case MST_TCP_WRITE_NOTIFY:
		return check_write(f, bounds, why);
	case MST_TCP_NOTIFY:
	case MST_TCP_CREDIT:
	case MST_TCP_STILL:
		if (f->length == 0)
			return 0;
		return mst_reason_fail(why, -EPROTO,
				       "a frame of kind %" PRIu32
				       ", which has no bytes, with %" PRIu64,
				       f->kind, f->length);
	default:
		return mst_reason_fail(why, -EPROTO,
				       "a frame of kind %" PRIu32 ", and there are kinds %d to %d",
				       f->kind, MST_TCP_WRITE, MST_TCP_STILL);
	}
}

/* ---- the beginning ---- */

int mst_tcp_lanes_check(const struct mst_lanes *lanes)
{
	if (lanes->up_bytes <= MST_TCP_BYTES_MAX && lanes->down_bytes <= MST_TCP_BYTES_MAX &&
	    lanes->up_credits <= MST_TCP_CREDITS_MAX && lanes->down_credits <= MST_TCP_CREDITS_MAX)
		return 0;
	return -EINVAL;
}

void mst_tcp_hello_encode(const struct mst_tcp_hello *h, uint8_t out[MST_TCP_HELLO_BYTES])
{
	store(out, MST_TCP_MAGIC, 4);
	store(out + 4, h->version, 4);
	memcpy(out + 8, h->token, sizeof(h->token));
	store(out + 24, h->lanes.up_bytes, 8);
	store(out + 32, h->lanes.down_bytes, 8);
	store(out + 40, h->lanes.up_credits, 4);
	store(out + 44, h->lanes.down_credits, 4);
	store(out + 48, h->at, 8);
	store(out + 56, h->bytes, 8);
}

bool mst_tcp_hello_begins(const uint8_t *in, size_t count)
{
	uint8_t magic[4];

	store(magic, MST_TCP_MAGIC, sizeof(magic));
	return memcmp(in, magic, count < sizeof(magic) ? count : sizeof(magic)) == 0;
}

int mst_tcp_hello_decode(const uint8_t in[MST_TCP_HELLO_BYTES], struct mst_tcp_hello *out)
{
	*out = (struct mst_tcp_hello){ .version = (uint32_t)load(in + 4, 4),
				       .lanes = { .up_bytes = load(in + 24, 8),
						  .down_bytes = load(in + 32, 8),
						  .up_credits = (uint32_t)load(in + 40, 4),
						  .down_credits = (uint32_t)load(in + 44, 4) },
				       .at = load(in + 48, 8),
				       .bytes = load(in + 56, 8) };
	memcpy(out->token, in + 8, sizeof(out->token));
	if (load(in, 4) != MST_TCP_MAGIC)
		return -EPROTO;
	if (out->version != MST_TCP_VERSION)
		return -EPROTONOSUPPORT;
	if (mst_tcp_lanes_check(&out->lanes) != 0 || out->bytes > out->lanes.down_bytes ||
	    out->at > out->lanes.down_bytes - out->bytes)
		return -EINVAL;
	return 0;
}

void mst_tcp_answer_encode(const struct mst_tcp_answer *a, uint8_t out[MST_TCP_ANSWER_BYTES])
{
	store(out, MST_TCP_MAGIC, 4);
	store(out + 4, a->version, 4);
	store(out + 8, (uint32_t)a->error, 4);
	store(out + 12, 0, 4);
}

int mst_tcp_answer_decode(const uint8_t in[MST_TCP_ANSWER_BYTES], struct mst_tcp_answer *out)
{
	*out = (struct mst_tcp_answer){ .version = (uint32_t)load(in + 4, 4),
					.error = (int32_t)load(in + 8, 4) };
	if (load(in, 4) != MST_TCP_MAGIC)
		return -EPROTO;
	return out->version == MST_TCP_VERSION ? 0 : -EPROTONOSUPPORT;
}
