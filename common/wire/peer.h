/* SPDX-License-Identifier: MIT */
/*
 * What travels by one-sided put between the servers of a job: reports from a follower up to the
 * leader, decisions down. In each direction there is a ring of entries in the inbound region of the
 * receiver, and one word after it:
 *
 *   entries[window] | acknowledged
 *
 * Entries are numbered from 1 on; an entry lies at (number - 1) modulo the window, and its
 * immediate is the low bits of its number. Its place is used again only when the other end has
 * acknowledged that it has executed that number. The acknowledgement travels in the entries that
 * the other end sends itself, or, if it sends none, in the word, which has an immediate that no
 * number has.
 */
#ifndef MST_WIRE_PEER_H
#define MST_WIRE_PEER_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/exact_sum.h"
#include "common/wire/lane.h"
#include "common/wire/part.h"

#define MST_PEER_IMM_MASK 0x0fffffffu
#define MST_PEER_IMM_ACK 0x10000000u
#define MST_PEER_WINDOW_MIN 64u
#define MST_PEER_WINDOW_MAX 4096u /* devices have only a few thousand receives */
#define MST_PEER_SCALARS 4u       /* of a version */

/* After each kind: the fields of the entry that it uses. */
enum mst_peer_kind {
	/* Up. */
	MST_PEER_LINKED = 1, /* who; the worker's link with this server is up */
	/* who, header; value: the bits of a double, the sum of the squares of the server's part of
	 * the data; code: 1: that is not what the worker pushed */
	MST_PEER_FULL,
	MST_PEER_ABANDONED, /* who, slot, value: the grant's epoch */
	MST_PEER_ANSWERED,  /* who, value: the ask's number */
	/* who, code: negative errno; value: 1: besides, the link with the worker is gone, and all
	 * that has come over it has been reported */
	MST_PEER_LOST,
	MST_PEER_SPOILT,  /* spoilt */
	MST_PEER_SETTLED, /* all orders before SETTLE have been executed */
	/* value: the version; squares: of its mean, in the server's part. With norms of tensors
	 * also slot: which sum of squares it is, enum mst_edge_sum; code: one tensor goes on beyond
	 * both borders of the part; coefficient: the weight decay of the tensor at that border */
	MST_PEER_REDUCED,
	MST_PEER_SAVED,    /* value: the version; code: 0, or 1: the server has not written it */
	MST_PEER_RETURNED, /* value: the version whose average is not read any more */
	/* Down. */
	MST_PEER_START,   /* commit.version, commit.buffer: of the first version */
	MST_PEER_COUNT,   /* who, slot, coefficient; code: ranks may contribute again in a step */
	MST_PEER_REGRANT, /* who, slot, value: epoch */
	MST_PEER_COMMIT,  /* commit */
	MST_PEER_RELEASE, /* who, answer */
	MST_PEER_EVICT,   /* who, code: enum mst_evict_why */
	MST_PEER_FINISH,  /* code: enum mst_finish_why; value: the last version */
	MST_PEER_SETTLE,  /* report when all orders before this one have been executed */
	/* value: the version; coefficient: what its mean is multiplied by; trust */
	MST_PEER_APPLY,
	MST_PEER_SAVE, /* commit.version, commit.buffer: write the newest version */
	MST_PEER_LEND, /* value: the newest version, whose average may be read */
	MST_PEER_KINDS,
};

struct mst_peer_entry {
	uint64_t number;
	uint64_t ack; /* the last number of the other direction that was executed here */
	uint32_t kind;
	uint32_t rank, incarnation; /* who */
	uint32_t slot;
	uint64_t value;
	int32_t code;
	float coefficient;
	union {
		struct mst_lane_header header;
		struct mst_lane_answer answer;
		struct {
			uint64_t version;
			uint32_t buffer; /* START too */
			float divisor;
			float scalar[MST_PEER_SCALARS]; /* of the optimiser */
			float average;                  /* what is left of the moving average */
			uint32_t read; /* the version that it is compared with; or UINT32_MAX */
		} commit;
		struct {
			uint64_t version, element;
			uint32_t kind; /* enum mst_spoil */
			uint32_t rank, rank_end;
			uint32_t pad;
		} spoilt;
		struct mst_exact_sum squares;
		struct {
			/* by border between two servers: the trust ratio of the tensor that it
			 * cuts */
			float trust[MST_SERVERS_MAX - 1];
			float scalar[MST_PEER_SCALARS]; /* in place of those of COMMIT */
		} apply;
		uint8_t bytes[144];
	};
};
static_assert(sizeof(struct mst_peer_entry) == 192, "on the wire: three cache lines");

/* How many entries may be unacknowledged in each direction. For a worker there are at most, until
 * it has heard from all servers: each slot counted, committed, regranted; an answer; an end. */
static inline uint32_t mst_peer_window(uint32_t workers, uint32_t slots)
{
	uint64_t need = (uint64_t)workers * (4 * slots + 4);
	uint32_t window = MST_PEER_WINDOW_MIN;

	while (window < need && window < MST_PEER_WINDOW_MAX)
		window *= 2;
	return window;
}
static inline uint32_t mst_peer_imm(uint64_t number)
{
	return (uint32_t)(number & MST_PEER_IMM_MASK);
}
static inline size_t mst_peer_at(uint64_t number, uint32_t window)
{
	return (size_t)((number - 1) % window) * sizeof(struct mst_peer_entry);
}
static inline size_t mst_peer_ack_at(uint32_t window)
{
	return window * sizeof(struct mst_peer_entry);
}
/* The bytes of the inbound region of one direction, and the immediates that may be outstanding in
 * it. */
static inline size_t mst_peer_bytes(uint32_t window)
{
	return mst_peer_ack_at(window) + 4096;
}
static inline uint32_t mst_peer_credits(uint32_t window)
{
	return window + 8;
}

#endif
