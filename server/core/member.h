/* SPDX-License-Identifier: MIT */
/*
 * A member: all the ledger knows of one rank. The rank stays, its sessions come and go; each has an
 * incarnation of its own. Pure bookkeeping: what follows from it, the ledger decides.
 */
#ifndef MST_SERVER_CORE_MEMBER_H
#define MST_SERVER_CORE_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/lane.h"
#include "muster/muster.h"
#include "server/core/ledger.h"

enum mst_member_state {
	MST_MEMBER_ABSENT,  /* no session */
	MST_MEMBER_JOINED,  /* admitted; links and start are still to come */
	MST_MEMBER_STARTED, /* every shard is linked, and it has called start: it takes part */
	MST_MEMBER_LEAVING, /* takes part no more; its last headers are still to be judged */
};

/* What has been reported of the grant that is out on one slot. */
struct mst_pending {
	struct mst_lane_header header; /* the first shard's report; all others must be alike */
	uint32_t full_count;           /* shards that reported it full; 0: none */
	uint32_t abandoned_count;
	uint64_t *full; /* which shards */
	uint64_t *abandoned;
	uint64_t epoch;    /* of the grant */
	uint64_t since_ns; /* the first shard's report */
};

struct mst_member {
	uint32_t rank;

	/* The session. */
	enum mst_member_state state;
	uint32_t incarnation;
	uint32_t link_count;
	uint64_t *linked; /* which shards */
	bool start_called, offers, sends_state;
	uint64_t lease_until;
	uint64_t judged; /* seq of the last judged header */
	uint64_t leave_seq;
	struct mst_pending pending[MST_SLOTS_MAX];

	/* Its part in the job. */
	bool rostered;          /* the open step waits for it, or has its contribution */
	uint64_t first_version; /* a joiner in mid-run starts with what its first step makes */
	uint64_t clock;
	bool owes; /* counted since its last answer: the clock bound applies */

	/* Its part in the open step, across incarnations. */
	uint32_t step_count;
	double step_samples;
	bool passed;

	/* Its ask, and what it reads. */
	struct mst_lane_ask ask;
	bool asks;
	uint64_t given; /* the version it was last answered with; MST_VERSION_NONE */
	uint64_t asked_ns;
	uint32_t reads;       /* buffer held because it is read in place; MST_BUFFER_NONE */
	uint32_t read_before; /* what it read until it asked: given back if it is up to date */
	uint32_t copies;      /* buffer held because it is being copied; MST_BUFFER_NONE */
	uint64_t copy_number; /* ask that copy answers */
	uint32_t copy_count;
	uint64_t *copied; /* shards that have sent all of it */

	/* Verdicts its worker may not have heard, by slot; those of the session before. */
	struct muster_fate fate[MST_SLOTS_MAX];
	struct muster_fate past_fate[MST_SLOTS_MAX];
	uint32_t past_fate_count;
};

/* Words of memory one member's shard sets need. */
size_t mst_member_words(uint32_t shards);
/* @words: mst_member_words() of them, zeroed, the member's from now on. */
void mst_member_init(struct mst_member *m, uint32_t rank, uint32_t shards, uint64_t *words);

static inline bool mst_member_is(const struct mst_member *m, uint32_t incarnation)
{
	return m->state != MST_MEMBER_ABSENT && m->incarnation == incarnation;
}
/* Does it take part, until all it sent has been judged? */
static inline bool mst_member_takes_part(const struct mst_member *m)
{
	return m->state == MST_MEMBER_STARTED || m->state == MST_MEMBER_LEAVING;
}
/* Does the open step have nothing of it? */
static inline bool mst_member_missing(const struct mst_member *m)
{
	return m->rostered && m->step_count == 0 && !m->passed;
}

/* A new session: next incarnation, every slot granted with epoch 1. */
void mst_member_admit(struct mst_member *m, uint32_t shards, uint64_t lease_until);
/* The one function that assigns the state; asserts that the move is legal. */
void mst_member_enter(struct mst_member *m, enum mst_member_state next);
/* The session is over: keeps the fates for the next one. */
void mst_member_end(struct mst_member *m);

/* A shard's links are up; true once all @shards are. */
bool mst_member_link(struct mst_member *m, uint32_t shard, uint32_t shards);

/* A shard reports. Return: false if that breaks the protocol: repeated, another header than the
 * other shards', a seq that cannot be, or both full and abandoned. */
bool mst_member_report_full(struct mst_member *m, uint32_t shard, uint32_t slots,
			    const struct mst_lane_header *h);
bool mst_member_report_abandoned(struct mst_member *m, uint32_t shard, uint32_t slot,
				 uint64_t epoch);

/* The pending header with the next seq, if all @shards have reported it; NULL: not yet. */
struct mst_pending *mst_member_next(struct mst_member *m, uint32_t slots, uint32_t shards);
/* Any pending header with this seq, reported by one shard or more; NULL: none. */
struct mst_pending *mst_member_pending(struct mst_member *m, uint32_t slots, uint64_t seq);
/* The grant on this slot is used up: the next epoch is granted, nothing of it is reported. */
void mst_member_regrant(struct mst_member *m, uint32_t slot, uint32_t shards);

#endif
