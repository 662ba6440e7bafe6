/* SPDX-License-Identifier: MIT */
/*
 * What travels over the connection of a link: once a hello and its answer, then frames. Pure.
 *
 * A frame is a header, and for writes the bytes that it announces. All figures are little-endian.
 * What a peer sends is checked here, before a byte of it is placed.
 */
#ifndef MST_TRANSPORT_TCP_FRAME_H
#define MST_TRANSPORT_TCP_FRAME_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/transport.h"

#define MST_TCP_MAGIC 0x7063746du
#define MST_TCP_VERSION 1u
#define MST_TCP_BYTES_MAX ((size_t)1 << 44)
#define MST_TCP_CREDITS_MAX (1u << 14)

#define MST_TCP_FRAME_BYTES 24u
#define MST_TCP_HELLO_BYTES 64u
#define MST_TCP_ANSWER_BYTES 16u

enum mst_tcp_kind {
	MST_TCP_WRITE = 1,    /* @length bytes follow, for @offset of the inbound region */
	MST_TCP_WRITE_NOTIFY, /* the same, and then the immediate arrives */
	MST_TCP_NOTIFY,       /* only the immediate */
	MST_TCP_CREDIT,       /* @offset: how many immediates have been polled, of all so far */
	MST_TCP_STILL,        /* nothing: the peer's kernel is to acknowledge it */
};

struct mst_tcp_frame {
	uint32_t kind, imm;
	uint64_t offset, length;
};

/* Where a peer may write: the inbound region, of which the part from `from` to `end` may lie
 * elsewhere. No write goes across these two places; both 0: there is no such part. */
struct mst_tcp_bounds {
	size_t bytes, from, end;
};

void mst_tcp_frame_encode(const struct mst_tcp_frame *f, uint8_t out[MST_TCP_FRAME_BYTES]);
void mst_tcp_frame_decode(const uint8_t in[MST_TCP_FRAME_BYTES], struct mst_tcp_frame *out);
/* 0; -EPROTO, with a sentence that has the figures: no lawful peer sends that. */
int mst_tcp_frame_check(const struct mst_tcp_frame *f, const struct mst_tcp_bounds *bounds,
			struct mst_reason *why);

static inline bool mst_tcp_frame_notifies(const struct mst_tcp_frame *f)
{
	return f->kind == MST_TCP_WRITE_NOTIFY || f->kind == MST_TCP_NOTIFY;
}

/* The connector's first bytes. */
struct mst_tcp_hello {
	uint32_t version;
	uint8_t token[MST_TOKEN_LEN];
	struct mst_lanes lanes;
	/* The part of the down lane that lies elsewhere at the connector; bytes 0: none. */
	uint64_t at, bytes;
};

void mst_tcp_hello_encode(const struct mst_tcp_hello *h, uint8_t out[MST_TCP_HELLO_BYTES]);
/* 0; -EPROTO: it is none; -EPROTONOSUPPORT: of another version, which *out tells; -EINVAL: it asks
 * for what cannot be. */
int mst_tcp_hello_decode(const uint8_t in[MST_TCP_HELLO_BYTES], struct mst_tcp_hello *out);
/* Can the first @count bytes be those of a hello? */
bool mst_tcp_hello_begins(const uint8_t *in, size_t count);

/* The error of an answer: nobody expects this caller here. Other errors are negative errno: -EACCES
 * the owner has sent it away, as over any network; -EINVAL the hello asks for what cannot be;
 * -ETIMEDOUT the hello came too late; -EPROTO it is none. */
#define MST_TCP_UNKNOWN (-ENOKEY)
#define MST_TCP_WANTS_TLS (-EKEYREJECTED) /* and has got plain bytes */

/* The acceptor's. */
struct mst_tcp_answer {
	uint32_t version;
	int32_t error; /* 0: let in; negative errno */
};

void mst_tcp_answer_encode(const struct mst_tcp_answer *a, uint8_t out[MST_TCP_ANSWER_BYTES]);
/* 0, -EPROTO, -EPROTONOSUPPORT, as of a hello. */
int mst_tcp_answer_decode(const uint8_t in[MST_TCP_ANSWER_BYTES], struct mst_tcp_answer *out);

/* 0; -EINVAL: more than any real lane. */
int mst_tcp_lanes_check(const struct mst_lanes *lanes);

#endif
