/* SPDX-License-Identifier: MIT */
/*
 * The ledger: counts arrivals and decides. Pure: events and now_ns in, decisions out; no clock, no
 * thread, no allocation after mst_ledger_new(). The same code runs in the server, in the simulator
 * and in a replay.
 *
 * Usage: for each event mst_ledger_handle(), then mst_ledger_next() until it says false; when the
 * queue of events is empty, mst_ledger_tick(). Every shard executes the decisions in this order.
 *
 * A contribution is (rank, incarnation, seq). An event whose incarnation is not the rank's present
 * one is ignored (PROTOCOL 1).
 */
#ifndef MST_SERVER_CORE_LEDGER_H
#define MST_SERVER_CORE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/lane.h"
#include "common/wire/rule.h"
#include "muster/muster.h"

#define MST_BUFFER_NONE UINT32_MAX

struct mst_ledger_cfg {
	uint32_t workers; /* the job's ranks are 0 .. workers - 1; birth waits for all of them */
	uint32_t shards;  /* how many must report a contribution full */
	uint32_t slots;   /* per session, 1 .. MST_SLOTS_MAX */
	uint32_t buffers; /* version buffers besides the history, >= 3 */
	uint32_t history; /* workers own: newest versions kept; servers own: 0 */
	bool in_place;    /* workers can read a version where the shards keep it */
	bool sent;        /* else: a copy takes as long as its worker's link does, not the shard */
	enum muster_owner owner;
	struct mst_rule rule;
	double lr;            /* servers own */
	bool lr_linear;       /* rate x contributions counted / workers */
	uint64_t commits_max; /* the job ends there; 0: never */
	double samples_max;   /* likewise */
	uint64_t lease_ns, join_timeout_ns;
};

struct mst_identity {
	uint32_t rank;
	uint32_t incarnation; /* from 1 */
};

enum mst_ledger_event_kind {
	MST_EV_JOIN,      /* somebody wants to join: join */
	MST_EV_LINKED,    /* its links with one shard are up: shard */
	MST_EV_START,     /* it is ready, and asks for its first version: offers */
	MST_EV_STATE,     /* the start state it was told to send is in its buffer, everywhere */
	MST_EV_FULL,      /* a shard has read a header: shard, header */
	MST_EV_ABANDONED, /* all rails of a shard have brought ABANDON: shard, slot, epoch */
	MST_EV_ASK,       /* ask */
	MST_EV_ANSWERED,  /* a shard has sent all of a copied answer: shard, number */
	MST_EV_HEARTBEAT,
	MST_EV_LEAVE,  /* seq: of its last header */
	MST_EV_LOST,   /* its control connection or a link is gone: error */
	MST_EV_FINISH, /* it wants the job to end */
	MST_EV_POLICY, /* rule: has passed mst_rule_check() */
	MST_EV_SERVER, /* a server of the job is gone for good */
};

struct mst_ledger_event {
	enum mst_ledger_event_kind kind;
	struct mst_identity who; /* not for JOIN, POLICY and SERVER */
	union {
		struct {
			uint64_t cookie; /* comes back with ADMIT or REFUSE */
			int32_t rank;    /* wanted; -1: any that is free */
		} join;
		uint32_t shard; /* LINKED */
		bool offers;    /* START */
		struct {
			uint32_t shard;
			struct mst_lane_header header;
		} full;
		struct {
			uint32_t shard, slot;
			uint64_t epoch;
		} abandoned;
		struct mst_lane_ask ask;
		struct {
			uint32_t shard;
			uint64_t number;
		} answered;
		uint64_t seq; /* LEAVE */
		int error;    /* LOST: negative errno */
		struct mst_rule rule;
	};
};

enum mst_decision_kind {
	MST_DO_ADMIT,      /* join: cookie; who; slots are granted with epoch 1 */
	MST_DO_REFUSE,     /* join: cookie, error -EEXIST -ENOSPC -ERANGE -ESHUTDOWN -ESTALE */
	MST_DO_SEND_STATE, /* tell `who` to send its start state; it goes to `buffer` */
	MST_DO_START,      /* the job starts: version 0 is in `buffer` */
	MST_DO_COUNT,   /* count: for good in the set of the open step; keep the slot till read */
	MST_DO_VERDICT, /* verdict: tell the worker */
	MST_DO_REGRANT, /* grant: the slot may be granted anew, once this shard has read it */
	MST_DO_COMMIT, /* version, buffer: sum what was counted since the last commit; see record */
	MST_DO_RELEASE, /* answer: an ask is answered */
	MST_DO_ADVISE,  /* version: what was computed on an older one cannot count any more */
	MST_DO_EVICT,   /* evict: the session ends; why */
	MST_DO_POLICY,  /* the rule of the open step has changed: mst_ledger_rule() */
	MST_DO_FINISH,  /* finish: the job has ended; why, last version */
};

enum mst_evict_why {
	MST_EVICT_LEFT,     /* it left; nothing is wrong */
	MST_EVICT_LOST,     /* connection closed */
	MST_EVICT_LEASE,    /* silent for longer than its lease */
	MST_EVICT_PATIENCE, /* alive, but the step waited for it longer than patience */
	MST_EVICT_INVALID,  /* broke the protocol */
	MST_EVICT_STALE,    /* workers own: behind the history */
};

enum mst_finish_why {
	MST_FINISH_COMMITS,
	MST_FINISH_SAMPLES,
	MST_FINISH_ASKED,
	MST_FINISH_LEFT,         /* the last worker has left */
	MST_FINISH_JOIN_TIMEOUT, /* failed: not all workers started in time */
	MST_FINISH_TOO_FEW,      /* failed: fewer live workers than min_workers */
	MST_FINISH_LOSS,         /* failed: a worker was lost and on_loss is FAIL */
	MST_FINISH_NO_START,     /* failed: servers own and nobody offered a start state */
	MST_FINISH_SERVER,       /* failed: a part of every version is lost with its server */
};
/* Is this end a failure? */
static inline bool mst_finish_failed(enum mst_finish_why why)
{
	return why >= MST_FINISH_JOIN_TIMEOUT;
}

/* What a worker is told for it: a negative errno; 0 where nothing is wrong. */
int mst_evict_error(enum mst_evict_why why);
int mst_finish_error(enum mst_finish_why why);

struct mst_decision {
	enum mst_decision_kind kind;
	struct mst_identity who;
	union {
		struct {
			uint64_t cookie;
			int error;
		} join;
		struct {
			uint64_t seq;
			uint32_t slot;
			float coefficient;
		} count;
		struct {
			uint64_t seq, tag;
			uint64_t counted_in; /* 0 unless counted */
			uint32_t slot;
			enum muster_verdict verdict;
		} verdict;
		struct {
			uint64_t epoch;
			uint32_t slot;
		} grant;
		struct {
			uint64_t version;
			uint32_t buffer; /* SEND_STATE, START, COMMIT */
		} commit;
		struct {
			uint64_t number, version, newest;
			uint32_t buffer;
			enum mst_where where; /* COPIED: report MST_EV_ANSWERED when sent */
		} answer;
		uint64_t version; /* ADVISE */
		enum mst_evict_why evict;
		struct {
			enum mst_finish_why why;
			uint64_t version;
		} finish;
	};
};

/* One counted contribution, as it is recorded. */
struct mst_entry {
	struct mst_identity who;
	uint64_t seq;
	uint64_t tag;
	double samples;
	double loss;       /* mean of its samples; NaN: not told */
	double base;       /* b: its base weight */
	float coefficient; /* c */
	uint32_t slot;
};

/* Everything a version was made of (PROTOCOL 5). */
struct mst_record {
	uint64_t version;
	double samples;  /* in it */
	double loss;     /* mean over the samples of those who told; NaN: nobody did */
	double lr_scale; /* scale x schedule */
	float divisor;   /* 1 where the rule does not divide */
	float rate;      /* lr x lr_scale; 0 where workers own */
	uint32_t entry_count;
	struct mst_entry *entry; /* in order of counting */
	uint32_t share_count;
	struct mst_lane_share *share; /* by rank */
};

struct mst_ledger;

/* Allocates all it will ever need. The rule must have passed mst_rule_check().
 * Return: 0, -EINVAL (figures out of range), -ENOMEM. */
int mst_ledger_new(const struct mst_ledger_cfg *cfg, struct mst_ledger **out);
void mst_ledger_free(struct mst_ledger *l); /* accepts NULL */

void mst_ledger_handle(struct mst_ledger *l, const struct mst_ledger_event *ev, uint64_t now_ns);
/* Judges timers. Call when no event is queued, at the latest at mst_ledger_deadline(). */
void mst_ledger_tick(struct mst_ledger *l, uint64_t now_ns);
/* When the next timer may be due; MST_NEVER: none. */
uint64_t mst_ledger_deadline(const struct mst_ledger *l);
/* The next decision, in order. False: there is none; only then is the event dealt with. */
bool mst_ledger_next(struct mst_ledger *l, struct mst_decision *out);

/* The record of the version in @buffer; valid until the commit that names this buffer again. */
const struct mst_record *mst_ledger_record(const struct mst_ledger *l, uint32_t buffer);

/* What the shells, tools and tests look at; none of it changes anything. */
uint32_t mst_ledger_buffers(const struct mst_ledger_cfg *cfg); /* version buffers shards need */
uint32_t mst_ledger_entries(const struct mst_ledger_cfg *cfg); /* most contributions in a set */
uint64_t mst_ledger_version(const struct mst_ledger *l);       /* newest decided */
bool mst_ledger_started(const struct mst_ledger *l);
const struct mst_rule *mst_ledger_rule(const struct mst_ledger *l); /* of the open step */

struct mst_member_view {
	uint32_t incarnation; /* 0: this rank has never joined */
	bool live;            /* joined and not ended */
	bool started;
	bool awaited;   /* the open step waits for it */
	uint64_t clock; /* contributions counted; a joiner starts at the roster's minimum */
	/* The verdicts of the session before that its worker may not have heard, by slot. */
	struct muster_fate fate[MST_SLOTS_MAX];
	uint32_t fate_count;
};
void mst_ledger_member(const struct mst_ledger *l, uint32_t rank, struct mst_member_view *out);

#endif
