/* SPDX-License-Identifier: MIT */
/*
 * The ledger counts contributions and decides. Pure: events and now_ns go in, decisions come out;
 * it has no clock and no thread, and allocates nothing after mst_ledger_new(). The same code runs
 * in the server, in the simulator and in a replay.
 *
 * Usage: call mst_ledger_handle() for each event, then mst_ledger_next() until it returns false;
 * when the queue of events is empty, call mst_ledger_tick(). Every shard executes the decisions in
 * this order.
 *
 * The cost of an event is in proportion to what is decided on it, not to the number of members. The
 * ledger looks at all members only when the job starts or ends, when the rule changes, when
 * patience has run out, and when it looks for stragglers.
 *
 * Time in which the server does not listen to its workers does not count here: neither a lease nor
 * patience runs meanwhile. The event MST_EV_HEARD says that the server has listened; it must come a
 * few times in each lease.
 *
 * A contribution is identified by (rank, incarnation, seq). An event whose incarnation is not the
 * rank's present one is ignored (PROTOCOL 1).
 */
#ifndef MST_SERVER_CORE_LEDGER_LEDGER_H
#define MST_SERVER_CORE_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/ledger/config.h"
#include "server/core/ledger/decision.h"
#include "server/core/ledger/event.h"
#include "server/core/ledger/verdicts.h"
#include "server/core/policy/majority.h"
#include "server/core/stragglers/straggler.h"

struct mst_ledger;

/* Allocates all memory that the ledger will ever need. The rule must have passed mst_rule_check().
 * Return: 0, -EINVAL (a number of @cfg is out of range), -ENOMEM. */
int mst_ledger_new(const struct mst_ledger_cfg *cfg, struct mst_ledger **out);
void mst_ledger_free(struct mst_ledger *l); /* accepts NULL */

void mst_ledger_handle(struct mst_ledger *l, const struct mst_ledger_event *ev, uint64_t now_ns);
/* Judges timers. To be called when no event is queued, at the latest at mst_ledger_deadline(). */
void mst_ledger_tick(struct mst_ledger *l, uint64_t now_ns);
/* What has arrived within the last @lag_ns may not have been reported yet, because it is still
 * being read. So timers of the open step are judged so much later: what had come in time comes
 * first. */
void mst_ledger_lag(struct mst_ledger *l, uint64_t lag_ns);
/* A job that has not started by @until_ns fails: in place of join_until_ns. */
void mst_ledger_gather(struct mst_ledger *l, uint64_t until_ns);
/* When the next timer may be due; MST_NEVER: no timer runs. */
uint64_t mst_ledger_deadline(const struct mst_ledger *l);
/* Takes the next decision, in order.
 * Return: false if there is none; only then is the event completely handled. */
bool mst_ledger_next(struct mst_ledger *l, struct mst_decision *out);

/* The record of the version in @buffer. It is valid until a later commit names the same buffer. */
const struct mst_record *mst_ledger_record(const struct mst_ledger *l, uint32_t buffer);

/* The record of @version; NULL: its buffer has another version by now. It is valid for as long as
 * the record of a buffer. */
const struct mst_record *mst_ledger_record_of(const struct mst_ledger *l, uint64_t version);

/* Views for the server, tools and tests; none of them changes the ledger. */
/* version buffers that shards need */
uint32_t mst_ledger_buffers(const struct mst_ledger_cfg *cfg);
uint32_t mst_ledger_entries(const struct mst_ledger_cfg *cfg); /* most contributions in a set */
uint64_t mst_ledger_bytes(const struct mst_ledger_cfg *cfg);   /* mst_ledger_new() allocates them */
uint64_t mst_ledger_version(const struct mst_ledger *l);       /* the newest one decided */
bool mst_ledger_started(const struct mst_ledger *l);
const struct mst_rule *mst_ledger_rule(const struct mst_ledger *l); /* of the open step */
const struct mst_controller *mst_ledger_controller(const struct mst_ledger *l); /* in force */

/* The generation that runs; its number is 0 if none has begun, or they are not counted. */
struct mst_generation_view {
	uint64_t number;
	uint64_t began;            /* the version that it began with */
	struct mst_claimed newest; /* what it began with; number 0: with nothing */
};
struct mst_generation_view mst_ledger_generation(const struct mst_ledger *l);

struct mst_member_view {
	uint32_t incarnation; /* 0: this rank has never joined */
	bool live;            /* joined and not ended */
	bool behind;          /* lacks versions that are gone, and is left out of the steps */
	bool rests;           /* the job goes on without it until it returns */
	bool held; /* its ask waits for the next version, because its contribution was late */
	bool started;
	bool awaited; /* the open step waits for this rank */
	bool asks;    /* the rank has an ask open, so the step does not wait for anything of it */
	/* contributions counted; a new member starts at the minimum of the roster */
	uint64_t clock;
};
void mst_ledger_member(const struct mst_ledger *l, uint32_t rank, struct mst_member_view *out);

/* What the judge says of a rank at @now_ns. Times are of the caller's clock, and total_ns is how
 * long it was a straggler until now. */
struct mst_straggler mst_ledger_straggler(const struct mst_ledger *l, uint32_t rank,
					  uint64_t now_ns);
/* How long the gradients of the fast ranks take, on average; 0: it is not known. */
uint64_t mst_ledger_fast_ns(const struct mst_ledger *l);
/* Return: a rank that was found to be a straggler, or to be none any more, since this was called
 * last; the caller tells of it. MST_RANK_NONE: there is no more. */
uint32_t mst_ledger_next_found(struct mst_ledger *l);

/* Writes what a checkpoint of the version that is being saved keeps. To be called for each SAVE
 * before the next event. @out->rank has room for every rank of the job. */
void mst_ledger_keep(const struct mst_ledger *l, struct mst_kept *out);

/* The ranks that the start counts. To be asked before it, or when it has failed. */
void mst_ledger_gathered(struct mst_ledger *l, struct mst_gathered *out);
/* Is this rank, of the generation before, none of this one, and has not come? */
bool mst_ledger_lacks_outside(const struct mst_ledger *l, uint32_t rank);

/* The samples in all versions. */
double mst_ledger_samples(const struct mst_ledger *l);

/* The median of the norms that --norm-limit goes by; NaN: there is none. */
double mst_ledger_norm_median(const struct mst_ledger *l);
/* The verdicts that the rank's last started session may not have heard. From an admission on they
 * do not change until that session, or a later one, has started or pushed; another thread may read
 * them during that time. */
const struct mst_verdicts *mst_ledger_verdicts(const struct mst_ledger *l, uint32_t rank);

#endif
