/* SPDX-License-Identifier: MIT */
/*
 * What travels by one-sided put: the layout of the two inbound regions of a session with one
 * server, the records in them, and the 32-bit immediate that announces a record.
 *
 *   up   (worker to server):  ask | headers[slots] | gradients[slots], each in its rank's colour
 *   down (server to worker):  sessions | hint | mark | slots, the last one first: verdict,
 *                             grant | answer | record | result
 *
 * What is usually sent at the same time, an answer and the verdict and grant of the slot before,
 * lies side by side, so that it is one write.
 *
 * All fields are little-endian and fixed in width; the host must be little-endian (asserted). A
 * record is written whole by one put, alone or with others, and announced by an immediate. A reader
 * copies a record once and validates the copy, since the peer may overwrite the original at any
 * time.
 */
#ifndef MST_WIRE_LANE_H
#define MST_WIRE_LANE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/range.h"
#include "common/wire/rule.h"

#define MST_SLOTS_MAX 4u
#define MST_WORKERS_MAX 4096u
#define MST_ELEMS_MAX (UINT64_C(1) << 40) /* of a vector: sizes in bytes fit a size_t by far */
#define MST_VERSION_NONE UINT64_MAX

/* The immediate: kind, slot, and the low bits of the grant's epoch (a check, not an identity). */
enum mst_imm_kind {
	MST_IMM_HEADER = 1, /* up: headers[slot] is written, and so is all of the contribution */
	MST_IMM_ABANDON,    /* up: grant (slot, epoch) is given up; nothing of it is in flight */
	MST_IMM_ASK,        /* up: ask is written */
	MST_IMM_SESSION,    /* down: sessions[slot] is written */
	MST_IMM_GRANT,      /* down: grants[slot] */
	MST_IMM_VERDICT,    /* down: verdicts[slot] */
	/* down: record and answer are written; so are the result, if it is copied, and the verdicts
	 * and grants of the slots that the immediate names. One immediate announces all of them. */
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

/* The immediate of ANSWER has two sets of slots, a bit for each slot. */
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

/* The preemption hint: contributions on versions older than this cannot count any more; and what is
 * finished of a contribution on this version is wanted now. */
static inline uint64_t mst_hint_word(uint64_t version, bool hand_in)
{
	return version << 1 | (hand_in ? 1u : 0u);
}
static inline uint64_t mst_hint_version(uint64_t word)
{
	return word >> 1;
}
static inline bool mst_hint_wants(uint64_t word)
{
	return word & 1u;
}

/* Header flags. */
#define MST_HEADER_FULL 1u /* ends the worker's own batch */
#define MST_HEADER_SUM 2u  /* data are a sum over the samples */
/* no data: the contribution was outside the window before it was sent */
#define MST_HEADER_EMPTY 4u
#define MST_HEADER_PASS 8u      /* asked to hand in, and nothing is finished: weight 0, no data */
#define MST_HEADER_ASK 16u      /* the header also carries an ask */
#define MST_HEADER_LOSS 32u     /* the loss is given; else its field has no meaning */
#define MST_HEADER_CLIPPED 64u  /* the factor `clip` is given; else it is 1 */
#define MST_HEADER_NORM 128u    /* the norm is given; else its field has no meaning */
#define MST_HEADER_CHECKED 256u /* the checksum is given; else its field has no meaning */
#define MST_HEADER_PART 512u    /* a micro-batch, whose batch goes on in the next contribution */

struct mst_lane_ask {
	uint64_t number; /* from 1 in each session */
	uint64_t have;   /* version the worker holds; MST_VERSION_NONE: none */
};

/* An ask without a header. */
struct mst_lane_lone_ask {
	struct mst_lane_ask ask;
	uint64_t given_up; /* gradients of this session abandoned because of a hint to give up */
};

/* Header and record have room for members of later releases. `size` says how many bytes the sender
 * has filled; it zeroes the bytes after them. A receiver takes a member after them for 0, and does
 * not look at what it does not know itself: so the protocol number stays when a member is added, at
 * the beginning of `reserved`. What there was when the number rose last, each sender must fill. */
struct mst_lane_header {
	uint64_t seq;   /* number of the header in this session, from 1 */
	uint64_t epoch; /* of the grant it uses */
	uint64_t tag;   /* version the contribution was computed on */
	double weight;
	double loss;
	double norm; /* NORM: of the data, over the whole vector, before `clip` */
	struct mst_lane_ask ask;
	uint16_t slot;
	/* How many tickets right before this one have verdicts that no outcome has brought yet. The
	 * verdicts of all tickets before those have been heard. Less than MUSTER_TICKETS_MAX. */
	uint16_t unheard;
	uint32_t flags;
	float clip;    /* CLIPPED: what the contribution is multiplied by, above 0 and at most 1 */
	uint32_t sum;  /* CHECKED: mst_crc32c_linear() of the data in this server's part */
	uint32_t size; /* MST_HEADER_SIZE */
	uint8_t reserved[44];
};
#define MST_HEADER_SIZE ((uint32_t)offsetof(struct mst_lane_header, reserved))
#define MST_HEADER_SIZE_MIN 84u

enum mst_session_state { MST_SESSION_RUNNING, MST_SESSION_FINISHED, MST_SESSION_ENDED };

/* Two words: one for the job's end, one for the worker's. Each is written only once, so no word
 * changes while it is read. The immediate has its index as the slot. */
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
	uint64_t ticket; /* seq of its header */
	uint64_t counted_in;
	uint32_t verdict; /* enum muster_verdict */
	uint32_t pad;
};

/* Where the result of an answer is. */
enum mst_where {
	MST_WHERE_KEEP,     /* the worker has the newest version: it goes on reading what it had */
	MST_WHERE_IN_PLACE, /* in the server's published memory, buffer `buffer` */
	MST_WHERE_COPIED,   /* in the result area of this region */
	MST_WHERE_NOWHERE,  /* version 0, and no worker offered a start state */
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

/* What the rule of the step that a version opens says to workers, besides its numbers:
 * contributions grow until they are asked for, whatever batches end meanwhile. */
#define MST_RECORD_UNTIL_ASKED 1u

/* The record of a version: who is in it; share[share_count] follows. The figures from window to
 * alpha are of the rule of the step that this version opens (rule.h). */
struct mst_lane_record {
	uint64_t version;
	double weight;   /* samples in it */
	double lr_scale; /* scale x schedule */
	double alpha;
	uint32_t local_steps, push_every, fetch_every;
	uint32_t window;
	uint32_t flags;
	uint32_t share_count;
	uint32_t size;     /* MST_RECORD_SIZE */
	uint32_t by_micro; /* not 0: every micro-batch is a contribution */
	double samples;    /* in all versions up to this one */
	uint32_t workers;  /* of the job when it was made; 0: not known */
	uint8_t reserved[20];
	struct mst_lane_share share[];
};
#define MST_RECORD_SIZE ((uint32_t)offsetof(struct mst_lane_record, reserved))
#define MST_RECORD_SIZE_MIN 60u

/* What was copied of a peer's header or record: zeroes all that the peer has not filled or this
 * release does not know.
 * Return: false: the peer has filled less than it must. */
bool mst_lane_header_trim(struct mst_lane_header *copy);
bool mst_lane_record_trim(struct mst_lane_record *copy);

static_assert(sizeof(struct mst_lane_ask) == 16, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_lone_ask) == 24, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_header) == 128, "on the wire: two cache lines");
static_assert(MST_HEADER_SIZE >= MST_HEADER_SIZE_MIN, "on the wire: nothing is taken away");
static_assert(sizeof(struct mst_lane_session) == 16, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_verdict) == 24, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_answer) == 32, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_share) == 16, "on the wire: no padding");
static_assert(sizeof(struct mst_lane_record) == 96, "on the wire: two shares fill its second line");
static_assert(MST_RECORD_SIZE >= MST_RECORD_SIZE_MIN, "on the wire: nothing is taken away");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian");

/* ---- marks (PROTOCOL 7) ----
 *
 * Where workers may come back to another server, one must know what it holds without a server that
 * tells it: the version that it was given last, or what a server had begun to write over it. So a
 * server writes the number of a version before the first byte of that version, into a word beside
 * the result area of a lane, or into that of a version buffer. */

/* Does a job have marks? @owner: enum muster_owner. */
bool mst_lane_marks(uint32_t owner, uint64_t server_patience_ns);

/* In a lane a version is marked in a word for each rail of the link; the others stay 0. */
#define MST_MARK_WORDS 8u

/* Bytes of the marks of version buffers: the word of a buffer follows the words of those before.
 * They begin where a further buffer would. */
size_t mst_lane_marks_bytes(uint32_t buffers);

/* Byte offsets of both regions. Both ends compute them from the same figures of the welcome. */
struct mst_lane_layout {
	uint32_t slots;
	bool parted;
	size_t slot_bytes;   /* one gradient of the server's range */
	size_t result_bytes; /* one result of it */
	size_t up_ask, up_header[MST_SLOTS_MAX], up_bytes;
	size_t up_gradient[MST_SLOTS_MAX]; /* a gradient in any colour: mst_lane_gradient() */
	size_t down_session[MST_SESSION_WORDS], down_hint, down_mark, down_answer,
		down_grant[MST_SLOTS_MAX], down_verdict[MST_SLOTS_MAX];
	size_t down_record, down_result, down_bytes;
	uint32_t up_credits, down_credits; /* immediates that can be outstanding each way */
};

struct mst_lane_figures {
	uint64_t elems; /* of the server's range */
	uint32_t type_bytes, result_type_bytes;
	uint32_t slots, workers;
	/* There are several servers: a worker maps the parts of a gradient side by side, so each
	 * part begins on a page, without a colour. */
	bool parted;
};

/* The figures must have been checked: elems 1 .. MST_ELEMS_MAX, element bytes 2 or 4, slots and
 * workers from 1 to their maxima. Records lie on 64-byte lines of their own, the result on a
 * 4096-byte bound. */
void mst_lane_layout(const struct mst_lane_figures *f, struct mst_lane_layout *out);

/* Where the gradient of a slot begins in the inbound region of @rank's session: on a 64-byte line,
 * at a different place modulo 4096 for neighbouring ranks, and for large ones also on a different
 * page; with `parted` on a page. */
size_t mst_lane_gradient(const struct mst_lane_layout *l, uint32_t slot, uint32_t rank);

#endif
