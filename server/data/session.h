/* SPDX-License-Identifier: MIT */
/*
 * A worker's session with one server: its link, and the state of each slot (PROTOCOL 6).
 *
 * The control thread makes it and frees it; in between it belongs to the data thread, from the
 * LINKED request to the OVER notice. So memory that a late write may still hit is freed only when
 * the link is detached and the last read is done.
 */
#ifndef MST_SERVER_DATA_SESSION_H
#define MST_SERVER_DATA_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/transport/transport.h"
#include "common/wire/lane.h"
#include "server/core/ledger/ledger.h"
#include "server/data/shard.h"

enum mst_slot_state {
	/* Its owner may write, nobody reads. */
	MST_SLOT_GRANTED,
	/* The server may read; what its owner writes now can spoil only itself. Or it has been
	 * given up, and nobody reads it. */
	MST_SLOT_FULL,
};

/* A slot, and while its contribution is counted and not yet summed also a summand of a step. */
struct mst_slot {
	struct mst_session *session;
	uint32_t index;
	enum mst_slot_state state;
	uint64_t epoch;      /* of the grant that is out, or was used */
	uint64_t next_epoch; /* the ledger permits this grant after the last read; 0: not yet */
	bool read;           /* counted: it is still to be read */
	float coefficient;
	struct mst_slot *next; /* summand of the same step */
	/* The last of each: put, or due. */
	struct mst_lane_verdict verdict;
	struct mst_lane_grant grant;
};

struct mst_session {
	struct mst_identity who;
	struct mst_link *link;
	struct mst_slot slot[MST_SLOTS_MAX];
	uint32_t busy;   /* slots still to be read, queued answers, and results on their way */
	uint32_t unsent; /* of those, results on their way: MST_SENT follows for each */
	/* By shard: the element of its range up to which the queued answer is on its way. */
	uint64_t sent[MST_SHARDS_MAX];
	bool answering; /* an answer is queued: no honest worker asks again before it has it */
	bool asked;     /* reported; its answer is not decided yet, and no second may be out */
	/* Slots whose verdict, or grant, is still to be put. */
	uint32_t verdicts_due, grants_due;
	/* Hint, as mst_hint_word() makes it: the newest there is, the last that was put, whether
	 * that is on its way. */
	uint64_t hint, advised;
	bool advising;
	uint64_t marked; /* the mark that was put last, over a transport that does not map; or 0 */
	bool lost; /* reported to the ledger: once is enough; `why`, or else link->why, tells why */
	struct mst_reason why; /* what the worker sent against the protocol, or "" */
	bool over;             /* evicted or left: nothing is put to it any more */
	/* At a follower: of another incarnation, whose link is up while the end of this one is
	 * still on its way from the leader. */
	struct mst_session *next;
	bool said_over; /* the control thread has been told that it may free it */
};

#endif
