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
 * ledger looks at all members only when the job starts or ends, when the rule changes, and when
 * patience has run out.
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
#include <stddef.h>
#include <stdint.h>

#include "common/optim/optim.h"
#include "common/optim/schedule.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "common/wire/part.h"
#include "common/wire/rule.h"
#include "muster/muster.h"
#include "server/core/ledger/fates.h"
#include "server/core/policy/controller.h"
#include "server/core/policy/factor.h"

#define MST_BUFFER_NONE UINT32_MAX
/* The most workers that the ledger can count; the wire carries fewer. */
#define MST_LEDGER_WORKERS_MAX 65536u
#define MST_LEDGER_SHARDS_MAX 64u /* a set of shards is one 64-bit word */

/* The shard of the leader that reads all asks. Asks arrive in the same lane as headers, so an
 * ask is read after all that its worker pushed before it, and before all that the worker pushes
 * next. */
#define MST_SHARD_LEAD 0u

/* Which versions are saved, as checkpoints. Besides, the newest version is saved at the end of the
 * job. */
struct mst_saves {
	bool wanted;       /* false: none is, and what follows is not read */
	uint64_t commits;  /* one when so many versions have been made since the last; 0: never */
	uint64_t every_ns; /* one when so much time has passed since the last; 0: never */
	/* But not before so much time has passed since the last save has begun. A save costs each
	 * server some calls that wait for the disk, however short the vector is. */
	uint64_t pause_ns;
};

/* What a checkpoint keeps of a ledger. */
struct mst_kept_rank {
	uint32_t incarnation; /* of its last session */
	uint64_t clock;
	uint32_t contributions; /* that the version is made of; not needed to go on */
};
struct mst_kept {
	uint64_t version;
	double samples; /* in all versions up to this one */
	uint32_t ranks;
	struct mst_kept_rank *rank; /* of each rank */
	/* Of the controller in force: for mst_controller_resume(), before the ledger is made. */
	uint32_t figures;
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];
};

struct mst_ledger_cfg {
	/* The job's ranks are 0 .. workers - 1, at most MST_LEDGER_WORKERS_MAX. The job starts when
	 * all of them have started. */
	uint32_t workers;
	uint32_t shards;  /* how many must report a contribution full, 1 .. 64 */
	uint32_t slots;   /* per session, 1 .. MST_SLOTS_MAX */
	uint32_t buffers; /* version buffers besides the history and catch_up, >= 3 */
	/* workers own: how many of the newest versions are kept; servers own: 0 */
	uint32_t history;
	/* workers own: how many more are kept for a worker that comes back with a state */
	uint32_t catch_up;
	bool in_place; /* workers can read a version where the shards keep it */
	/* true: copies are sent, so each lasts as long as its worker's link takes; false: the shard
	 * copies */
	bool sent;
	enum muster_owner owner;
	struct mst_rule rule;             /* of the first step */
	struct mst_controller controller; /* of the policy that the job starts with */
	struct mst_optimizer optimizer;   /* its row is NULL where workers own */
	struct mst_schedule schedule;     /* of the learning rate */
	/* The rate of a version is at most this over the square of the distance between the
	 * parameters that its gradient was computed on and those that it moves; 0: no bound. Then
	 * the version that each worker was given last is kept, versions are made one at a time,
	 * and each rule has a window of 0 or a quorum of 1. */
	double distance;
	uint64_t commits_max; /* the job ends there; 0: never */
	double samples_max;   /* the job ends there; 0: never */
	double average;       /* decay of the moving average of the parameters; 0: there is none */
	uint64_t lease_ns;
	uint64_t join_until_ns; /* a job that has not started by then fails; MST_NEVER: no limit */
	struct mst_saves saves;
	/* A contribution is refused if its norm is above so many times the median (outliers.h); 0:
	 * there is no limit. Above 0 every shard measures what it reports full. */
	double norm_limit;
	/* The checkpoint that the job goes on from; NULL: the job begins with version 0. Where
	 * servers own, the shards have its parameters already, and a worker is told to send its
	 * state only where there is a tensor table, which comes with it. It is read by
	 * mst_ledger_new() only. */
	const struct mst_kept *kept;
	bool tensors; /* workers have given a tensor table, which one of them is to send */
};

struct mst_identity {
	uint32_t rank;
	uint32_t incarnation; /* from 1 */
};

enum mst_ledger_event_kind {
	MST_EV_JOIN,   /* a process wants to join: join */
	MST_EV_LINKED, /* the worker's links with one shard are up: shard */
	MST_EV_START,  /* the worker is ready, and asks for its first version: offers */
	/* the start state that the worker was told to send has arrived at every shard */
	MST_EV_STATE,
	MST_EV_FULL,      /* a shard has read a header: shard, header */
	MST_EV_ABANDONED, /* all rails of a shard have brought ABANDON: shard, slot, epoch */
	MST_EV_ASK,       /* ask; MST_SHARD_LEAD has read it */
	MST_EV_ANSWERED,  /* a shard has sent all of a copied answer: shard, number */
	MST_EV_HEARTBEAT,
	MST_EV_HEARD,  /* every worker's connection was read to its end after heard_ns */
	MST_EV_LEAVE,  /* seq: of its last header */
	MST_EV_LOST,   /* the worker's control connection or a link is gone: error */
	MST_EV_FINISH, /* the worker wants the job to end */
	/* policy: another one; each of its rules has passed mst_rule_check() */
	MST_EV_POLICY,
	MST_EV_REST,    /* rests: the worker is to rest, or to return */
	MST_EV_SERVER,  /* shard: of a server that is gone for good */
	MST_EV_SPOILT,  /* a version has an infinite or NaN element, and is not published: spoilt */
	MST_EV_SETTLED, /* a shard has executed all decisions before SETTLE: shard */
	/* A shard has the mean of a version, whose optimiser has a reduce phase: reduced. With
	 * norms of tensors it reports MST_EDGE_SUMS sums, in order, else one. Where the rate
	 * depends on a distance, its square follows, or is all. */
	MST_EV_REDUCED,
	MST_EV_STOP,  /* the server is being stopped: the job ends with the newest version */
	MST_EV_SAVED, /* a shard has written its part of a version, or has failed to: saved */
	MST_EV_LEND,  /* the average is to be lent, as it is after the newest version */
	/* lent: a shard does not read any more what LEND has lent. Of each shard once for each
	 * LEND. */
	MST_EV_RETURNED,
	/* An operator wants the worker's session to end. It goes on where the loss of a worker that
	 * takes part makes the job fail. */
	MST_EV_EVICT,
	MST_EV_END, /* an operator wants the job to end, with the step that is open */
	/* given: the worker's state has come, or it has none to give */
	MST_EV_GIVEN,
	MST_EV_TAKEN, /* given: the worker has all of the state with this number */
	/* metric: the worker has reported a value, which is finite; for the controller */
	MST_EV_METRIC,
};

/* Where an element that is infinite or NaN comes from. */
enum mst_spoil {
	MST_SPOIL_GRADIENT, /* one contribution has it */
	/* a sum of several contributions has it, and their data are no longer there */
	MST_SPOIL_SUM,
	MST_SPOIL_STEP, /* no contribution has it: the sum or the optimiser's step has overflowed */
};

struct mst_spoilt {
	uint64_t version;
	uint64_t element;  /* index of the first such element in the whole vector */
	uint32_t kind;     /* enum mst_spoil */
	uint32_t rank;     /* GRADIENT: the rank; SUM: the first of the ranks */
	uint32_t rank_end; /* SUM: one after the last of the ranks */
};

struct mst_ledger_event {
	enum mst_ledger_event_kind kind;
	/* not for JOIN, HEARD, POLICY, SERVER, END and what is about work */
	struct mst_identity who;
	union {
		struct {
			uint64_t cookie; /* returned with ADMIT or REFUSE */
			int32_t rank;    /* the rank wanted; -1: any free rank */
			bool comes_back; /* the worker gives and takes states */
		} join;
		uint32_t shard; /* LINKED, SETTLED, SERVER */
		bool offers;    /* START */
		struct {
			uint32_t shard;
			struct mst_lane_header header;
			/* Of its part of the data, where the shard measures: the sum of the
			 * squares, infinite where the data are not finite; */
			double squares;
			bool damaged; /* it is not what the worker pushed */
		} full;
		struct {
			uint32_t shard, slot;
			uint64_t epoch;
		} abandoned;
		struct {
			struct mst_lane_ask ask;
			/* gradients given up so far in this session; for statistics alone */
			uint64_t given_up;
		};
		struct {
			uint32_t shard;
			uint64_t number;
		} answered;
		uint64_t heard_ns; /* HEARD: read from the same clock as now_ns */
		uint64_t seq;      /* LEAVE */
		int error;         /* LOST: negative errno */
		struct {
			struct mst_rule rule;
			/* Lent until the event has been handled. NULL: the rule stays. */
			const struct mst_controller *controller;
		};
		bool rests; /* REST */
		struct mst_spoilt spoilt;
		struct {
			uint32_t shard;
			uint64_t version;
			/* Which of the sums it is. Of the edges: enum mst_edge_sum. */
			uint32_t sum;
			bool spans;  /* as in struct mst_edges */
			float decay; /* the weight decay of the tensor at that edge */
			struct mst_exact_sum squares; /* that sum, over the shard's part */
		} reduced;
		struct {
			uint32_t shard;
			uint64_t version;
			bool failed;
		} saved;
		struct {
			uint32_t shard;
			uint64_t version;
		} lent; /* RETURNED */
		struct {
			uint64_t number;
			uint64_t version; /* GIVEN; MST_VERSION_NONE: it gives none */
		} given;
		struct mst_metric metric;
	};
};

enum mst_decision_kind {
	MST_DO_ADMIT,      /* join: cookie; who; slots are granted with epoch 1 */
	MST_DO_REFUSE,     /* join: cookie, error -EEXIST -ENOSPC -ERANGE -ESHUTDOWN -ESTALE */
	MST_DO_SEND_STATE, /* tell `who` to send its start state; it goes to `buffer` */
	MST_DO_START,      /* the job starts: its first version is in `buffer` */
	/* count: now in the set of the open step for good; keep the slot until it has been read */
	MST_DO_COUNT,
	MST_DO_VERDICT, /* verdict: tell the worker */
	MST_DO_REGRANT, /* grant: the slot may be granted again, once this shard has read it */
	/* version, buffer: sum all that was counted since the last commit; see the record */
	MST_DO_COMMIT,
	/* apply: the mean of this version, which COMMIT has left, is multiplied by a factor, and
	 * the version is made of it. Only where there is a reduce phase: that of the optimiser, or
	 * because the rate depends on a distance. */
	MST_DO_APPLY,
	/* version, buffer: write this version, which is the newest, with all the vectors that the
	 * optimiser keeps as they are at this version, and report MST_EV_SAVED */
	MST_DO_SAVE,
	MST_DO_SAVED, /* saved: every shard has reported; the leader alone has to know */
	/* commit.version, which is the newest: the average as it is after this version may be read
	 * until MST_EV_RETURNED is reported, and stays as it is for so long */
	MST_DO_LEND,
	MST_DO_RELEASE, /* answer: an ask is answered */
	/* advice: contributions on older versions cannot count any more; and what the worker has
	 * finished of one on this version is wanted now */
	MST_DO_ADVISE,
	MST_DO_EVICT, /* evict: the session ends; why */
	/* The job is about to end without a failure: report MST_EV_SETTLED when all commits decided
	 * before have been executed and are known to be finite. Nothing is counted any more. */
	MST_DO_SETTLE,
	MST_DO_POLICY, /* policy: the rule of the open step has changed: mst_ledger_rule() */
	/* rests: the job goes on without the worker, whose session stays; or with it again, from
	 * the next step on */
	MST_DO_REST,
	MST_DO_FINISH, /* finish: the job has ended; why, last version */
	/* What follows is for the leader's control side alone. */
	MST_DO_BEHIND, /* state: the worker lacks versions that are gone, and has to take a state */
	MST_DO_WANT,   /* state: the worker is asked for its state: report MST_EV_GIVEN */
	MST_DO_HAND,   /* state: the worker gets the state that was given: report MST_EV_TAKEN */
	MST_DO_HANDED, /* nobody needs that state any more */
};

enum mst_evict_why {
	MST_EVICT_LEFT,  /* the worker left; nothing is wrong */
	MST_EVICT_LOST,  /* connection closed */
	MST_EVICT_LEASE, /* silent for longer than its lease */
	/* the worker is alive, but the step has waited for it for longer than patience */
	MST_EVICT_PATIENCE,
	MST_EVICT_INVALID,  /* the worker broke the protocol */
	MST_EVICT_STALE,    /* workers own: the version it needs next is older than the history */
	MST_EVICT_NO_STATE, /* the same, and no worker has given its state */
	MST_EVICT_OUTRUN,   /* the same, and the job was faster than the worker took states */
	MST_EVICT_ASKED,    /* an operator has asked for it; for the rule, the worker is lost */
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
	MST_FINISH_SERVER,       /* failed: a server is lost, and with it a part of every version */
	MST_FINISH_SPOILT,       /* failed: a version had an infinite or NaN element */
	MST_FINISH_STOPPED,      /* failed: the server was told to end */
};
/* Has the job failed? */
static inline bool mst_finish_failed(enum mst_finish_why why)
{
	return why >= MST_FINISH_JOIN_TIMEOUT;
}

/* The error that a worker is told: a negative errno; 0 where nothing is wrong. */
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
			bool repeats; /* the rank may be counted again in this step */
		} count;
		struct {
			uint64_t seq, tag;
			uint64_t counted_in; /* 0 unless counted */
			uint32_t slot;
			enum muster_verdict verdict;
			/* Of the mean gradient over the samples, as limited by the worker; NaN: it
			 * is not known. Infinite: the data are not finite. */
			double norm;
			double samples; /* in it; 0: its weight cannot be */
		} verdict;
		struct {
			uint64_t epoch;
			uint32_t slot;
		} grant;
		struct {
			uint64_t version;
			uint32_t buffer; /* SEND_STATE, START, COMMIT, SAVE; not LEND */
			/* COMMIT, where the rate depends on a distance: the version that the
			 * gradient was computed on; else MST_BUFFER_NONE */
			uint32_t read;
		} commit;
		struct {
			uint64_t version;
			float factor;
			/* For each border between two shards: the trust ratio of the tensor that
			 * the border cuts, if one does. */
			float trust[MST_SERVERS_MAX - 1];
			float scalar[MST_SCALARS_MAX]; /* in place of those of COMMIT */
		} apply;
		struct {
			uint64_t version;
			bool failed; /* a shard has not written its part */
			bool again;  /* SAVE follows: the last version waited for this one */
		} saved;
		struct {
			uint64_t number, version, newest;
			uint32_t buffer;
			enum mst_where where; /* COPIED: report MST_EV_ANSWERED when sent */
		} answer;
		struct {
			uint64_t version;
			bool hand_in;
		} advice;
		struct {
			uint64_t version; /* that the open step makes */
			bool whole;  /* the new rule is in force; else its quorum alone, for this
				       step */
			bool adapts; /* the policy in force has chosen it */
		} policy;
		bool rests;
		enum mst_evict_why evict;
		struct {
			enum mst_finish_why why;
			uint64_t version;
		} finish;
		struct {
			uint64_t number;  /* WANT, HAND: of the asking */
			uint64_t version; /* BEHIND: the newest; HAND: of the state */
		} state;
	};
};

/* One counted contribution, as the record keeps it. */
struct mst_entry {
	struct mst_identity who;
	uint64_t seq;
	uint64_t tag;
	double samples;
	double loss;       /* mean over its samples; NaN: the worker gave none */
	double norm;       /* of its data; NaN: the worker told none */
	double base;       /* base weight (factor.h) */
	float coefficient; /* (factor.h) */
	uint32_t slot;
};

/* Everything a version was made of (PROTOCOL 5). */
struct mst_record {
	uint64_t version;
	double samples; /* samples of all contributions */
	double loss; /* mean over the samples of the contributions that gave one; NaN: none did */
	double loss_samples;         /* these samples */
	struct mst_lr_scale_of rate; /* what lr_scale is computed from */
	double lr_scale;             /* scale x schedule, and what a distance allows */
	/* Of the rule of the step that this version opens. */
	uint32_t window;
	bool until_asked; /* workers compute until they are asked to hand in */
	struct mst_pace pace;
	float divisor;                 /* 1 where the rule does not divide */
	float scalar[MST_SCALARS_MAX]; /* of the optimiser; zeroes where workers own */
	float average;                 /* what is left of the moving average; 0: there is none */
	uint32_t entry_count;
	struct mst_entry *entry; /* in order of counting */
	uint32_t share_count;
	struct mst_lane_share *share; /* by rank */
};

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

/* Writes what a checkpoint of the version that is being saved keeps. To be called for each SAVE
 * before the next event. @out->rank has room for every rank of the job. */
void mst_ledger_keep(const struct mst_ledger *l, struct mst_kept *out);

/* The median of the norms that --norm-limit goes by; NaN: there is none. */
double mst_ledger_norm_median(const struct mst_ledger *l);
/* The verdicts that the rank's last started session may not have heard. From an admission on they
 * do not change until that session, or a later one, has started or pushed; another thread may read
 * them during that time. */
const struct mst_fates *mst_ledger_fates(const struct mst_ledger *l, uint32_t rank);

#endif
