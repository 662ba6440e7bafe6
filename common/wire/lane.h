/* SPDX-License-Identifier: MIT */
/*
 * What travels by one-sided put: the layout of the two landing regions of a session with one
 * server, the records in them, and the 32-bit immediate that announces a record.
 *
 *   up   (worker to server):  ask | headers[slots] | gradients[slots], each in its rank's colour
 *   down (server to worker):  sessions | advice | cells[slots], the last slot's first: verdict,
 *                             grant | answer | record | result
 *
 * So what mostly falls together, an answer and what became of the slot before, lies together, and
 * is one write.
 *
 * All fields are little-endian and fixed in width; the host must be little-endian (asserted). A
 * record is written whole by one put, alone or with others, and announced by an immediate. A reader
 * copies a record once and validates the copy: what a peer can write is never trusted twice.
 */
#ifndef MST_WIRE_LANE_H
#define MST_WIRE_LANE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/rule.h"

#define MST_SLOTS_MAX 4u
#define MST_WORKERS_MAX 4096u
#define MST_ELEMS_MAX (UINT64_C(1) << 40) /* of a vector: sizes in bytes fit a size_t by far */
#define MST_VERSION_NONE UINT64_MAX
/* Samples of a contribution: beyond 2^53 they cannot be counted one by one in a double. */
#define MST_WEIGHT_MAX 9007199254740992.0

/* The immediate: kind, slot, and the low bits of the grant's epoch (a check, not an identity). */
enum mst_imm_kind {
	MST_IMM_HEADER = 1, /* up: headers[slot] is written, and with it all of the contribution */
	MST_IMM_ABANDON,    /* up: grant (slot, epoch) is given up; nothing of it is in flight */
	MST_IMM_ASK,        /* up: ask is written */
	MST_IMM_SESSION,    /* down: sessions[slot] is written */
	MST_IMM_GRANT,      /* down: grants[slot] */
	MST_IMM_VERDICT,    /* down: verdicts[slot] */
	/* down: record and answer are written, the result where it is copied, and verdicts[slot]
	 * and grants[slot] of the slots that the immediate names: what falls together is told
	 * at once */
	MST_IMM_ANSWER,
};
#define MST_IMM_EPOCH_MASK 0x00ffffffu

static inline uint32_t mst_imm(enum mst_imm_kind kind, uint32_t slot, uint64_t epoch)
{
	return (uint32_t)kind << 28 | (slot & 0xfu) << 24 | (uint32_t)(epoch & MST_IMM_EPOCH_MASK);
}
static inline enum mst_imm_kind mst_imm_kind(uint32_t imm)
{
	return (enum mst_imm_kind)(imm >> 28);
}
static inline uint32_t mst_imm_slot(uint32_t imm)
{
	return imm >> 24 & 0xfu;
}
static inline uint32_t mst_imm_epoch(uint32_t imm)
{
	return imm & MST_IMM_EPOCH_MASK;
}

/* Of ANSWER: sets of slots, bit by bit. */
static inline uint32_t mst_imm_answer(uint32_t verdicts, uint32_t grants)
{
	return (uint32_t)MST_IMM_ANSWER << 28 | (grants & 0xfu) << 4 | (verdicts & 0xfu);
}
static inline uint32_t mst_imm_verdicts(uint32_t imm)
{
	return imm & 0xfu;
}
static inline uint32_t mst_imm_grants(uint32_t imm)
{
	return imm >> 4 & 0xfu;
}

/* Header flags. */
#define MST_HEADER_FULL 1u  /* ends the worker's own batch */
#define MST_HEADER_SUM 2u   /* data are a sum over the samples */
#define MST_HEADER_EMPTY 4u /* no data: outside the window before it was sent */
#define MST_HEADER_PASS 8u  /* nothing to give: weight 0, no data */
#define MST_HEADER_ASK 16u  /* the ask fields count */

struct mst_lane_ask {
	uint64_t number; /* from 1 in each session */
	uint64_t have;   /* version the worker holds; MST_VERSION_NONE: none */
};

struct mst_lane_header {
	uint64_t seq;   /* of headers in this session, from 1; what users call the ticket */
	uint64_t epoch; /* of the grant it uses */
	uint64_t tag;   /* version the contribution was computed on */
	double weight;
	double loss;
	struct mst_lane_ask ask;
	uint32_t slot;
	uint32_t flags;
};

enum mst_session_state { MST_SESSION_RUNNING, MST_SESSION_FINISHED, MST_SESSION_ENDED };

/* Each is written once, so that no word changes while it is read. The immediate names it as a
 * slot. */
enum { MST_SESSION_OF_JOB, MST_SESSION_OF_WORKER, MST_SESSION_WORDS };

struct mst_lane_session {
	uint32_t state;   /* enum mst_session_state */
	int32_t error;    /* ENDED: negative errno */
	uint64_t version; /* FINISHED: the last version there will be */
};

struct mst_lane_grant {
	uint64_t epoch;
};

struct mst_lane_verdict {
	uint64_t ticket;
	uint64_t counted_in;
	uint32_t verdict; /* enum muster_verdict */
	uint32_t pad;
};

/* Where the result of an answer is. */
enum mst_where {
	MST_WHERE_KEEP,     /* you are up to date: go on reading what you had */
	MST_WHERE_IN_PLACE, /* in the server's published memory, buffer `buffer` */
	MST_WHERE_COPIED,   /* in the result area of this region */
	MST_WHERE_NOWHERE,  /* version 0, and nobody offered a start state */
};

struct mst_lane_answer {
	uint64_t number; /* of the ask */
	uint64_t version;
	uint64_t newest; /* newest version decided, >= version */
	uint32_t where;  /* enum mst_where */
	uint32_t buffer;
};

struct mst_lane_share {
	uint32_t rank;
	uint32_t count;
	double weight;
};

/* The record of a version: who is in it and what it was made with; share[share_count] follows. */
struct mst_lane_record {
	uint64_t version;
	double weight;   /* samples in it */
	double lr_scale; /* scale x schedule */
	float divisor;   /* D of PROTOCOL 5 */
	float rate;      /* eta; 0 where workers own */
	uint32_t window; /* of the rule in force for the step this version opens */
	uint32_t preempt;
	uint32_t share_count;
	uint32_t pad;
	struct mst_lane_share share[];
};

static_assert(sizeof(struct mst_lane_ask) == 16, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_header) == 64, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_session) == 16, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_verdict) == 24, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_answer) == 32, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_share) == 16, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_record) == 48, "on the wire: no padding");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian");

/* Byte offsets of both regions. Both ends compute them from the same figures of the welcome. */
struct mst_lane_layout {
	uint32_t slots;
	bool parted;
	size_t slot_bytes;   /* one gradient of the server's range */
	size_t result_bytes; /* one result of it */
	size_t up_ask, up_header[MST_SLOTS_MAX], up_bytes;
	size_t up_gradient[MST_SLOTS_MAX]; /* a gradient in any colour: mst_lane_gradient() */
	size_t down_session[MST_SESSION_WORDS], down_advice, down_answer, down_grant[MST_SLOTS_MAX],
		down_verdict[MST_SLOTS_MAX];
	size_t down_record, down_result, down_bytes;
	uint32_t up_credits, down_credits; /* immediates that can be outstanding each way */
};

struct mst_lane_figures {
	uint64_t elems; /* of the server's range */
	uint32_t type_bytes, result_type_bytes;
	uint32_t slots, workers;
	/* One of several servers: a worker maps the parts of a gradient side by side, so all begin
	 * on a page, without a colour. */
	bool parted;
};

/* The figures must have been checked: elems 1 .. MST_ELEMS_MAX, element bytes 2 or 4, slots and
 * workers from 1 to their maxima. Records lie on 64-byte lines of their own, the result on a
 * 4096-byte bound. */
void mst_lane_layout(const struct mst_lane_figures *f, struct mst_lane_layout *out);

/* Where the gradient of a slot begins in the landing of @rank's session: on a 64-byte line, the
 * ranks' apart from each other modulo 4096, and large ones by pages; parted: on a page. */
size_t mst_lane_gradient(const struct mst_lane_layout *l, uint32_t slot, uint32_t rank);

#endif
