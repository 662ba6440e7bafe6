/* SPDX-License-Identifier: MIT */
/*
 * What travels by one-sided put between the servers of a job: reports up from a member to the lead,
 * decisions down. Each way there is a ring of cells in the other's landing, and behind it one word:
 *
 *   cells[window] | acknowledged
 *
 * A cell has a number, from 1 on, and lies at number - 1 modulo the window; its immediate is the
 * low bits of the number. It is written again only when the other end has said that it has executed
 * that number: in the cells it sends itself, or, when it has nothing to say, in the word, which has
 * the one immediate that no number has.
 */
#ifndef MST_WIRE_PEER_H
#define MST_WIRE_PEER_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/lane.h"

#define MST_PEER_IMM_MASK 0x0fffffffu
#define MST_PEER_IMM_ACK 0x10000000u
#define MST_PEER_WINDOW_MIN 64u
#define MST_PEER_WINDOW_MAX 4096u /* devices have few thousands of receives */

enum mst_peer_kind {
	/* Up. */
	MST_PEER_LINKED = 1, /* who: its link with this server is up */
	MST_PEER_FULL,       /* who: header */
	MST_PEER_ABANDONED,  /* who, slot, value: the grant's epoch */
	MST_PEER_ANSWERED,   /* who, value: the ask's number */
	MST_PEER_LOST,       /* who, code: negative errno */
	/* Down. */
	MST_PEER_START,   /* buffer: of version 0 */
	MST_PEER_COUNT,   /* who, slot, coefficient; code: ranks may contribute again in a step */
	MST_PEER_REGRANT, /* who, slot, value: epoch */
	MST_PEER_COMMIT,  /* commit */
	MST_PEER_RELEASE, /* who, answer */
	MST_PEER_EVICT,   /* who, code: enum mst_evict_why */
	MST_PEER_FINISH,  /* code: enum mst_finish_why; value: the last version */
	MST_PEER_KINDS,
};

struct mst_peer_cell {
	uint64_t number;
	uint64_t ack; /* the last of the other direction that is executed here */
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
			float divisor, rate;
			uint32_t pad;
		} commit;
		uint8_t bytes[80];
	};
};
static_assert(sizeof(struct mst_peer_cell) == 128, "on the wire: no padding");

/* Cells that may be unexecuted each way. Of a worker there are, at most, until it has heard
 * from all servers: each slot counted, committed, regranted; an answer; an end. */
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
	return (size_t)((number - 1) % window) * sizeof(struct mst_peer_cell);
}
static inline size_t mst_peer_ack_at(uint32_t window)
{
	return window * sizeof(struct mst_peer_cell);
}
/* Bytes of one direction's landing, and immediates that may be outstanding there. */
static inline size_t mst_peer_bytes(uint32_t window)
{
	return mst_peer_ack_at(window) + 4096;
}
static inline uint32_t mst_peer_credits(uint32_t window)
{
	return window + 8;
}

#endif
