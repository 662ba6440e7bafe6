/* SPDX-License-Identifier: MIT */
/*
 * The decisions of the ledger, which every shard executes in their order, and the record of what a
 * version was made of.
 */
#ifndef MST_SERVER_CORE_LEDGER_DECISION_H
#define MST_SERVER_CORE_LEDGER_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/optim/optim.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "common/wire/rule.h"
#include "muster/muster.h"
#include "server/core/ledger/event.h"
#include "server/core/policy/factor.h"
#include "server/core/ranks.h"

#define MST_BUFFER_NONE UINT32_MAX

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
	/* goal: `who` has given a version to end with: it is the job's, unless that is lower */
	MST_DO_GOAL,
};

/* The version that a job ends with. */
struct mst_goal {
	uint64_t version; /* 0: there is none */
	uint32_t rank;    /* that has given it; MST_RANK_NONE: --commits */
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
	MST_EVICT_UNTAKEN,  /* the same, and it has not taken the state in time */
	MST_EVICT_ASKED,    /* an operator has asked for it; for the rule, the worker is lost */
	/* the same: it has not the version that the generation began with, and nobody brought it */
	MST_EVICT_APART,
	MST_EVICT_TOO_LATE, /* workers own: it joined, and the job ended before it had a version */
	/* the start takes a later number than the one that the worker was told: another worker has
	 * been at a start of the same */
	MST_EVICT_OUTNUMBERED,
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
	MST_FINISH_CLOSED,       /* failed: the same, and no other server takes its place */
	/* failed: this server stood still for so long that its workers gave it up */
	MST_FINISH_STOOD,
	/* failed: workers came back from a generation, and the next one did not begin in time */
	MST_FINISH_NOT_BEGUN,
	/* failed: a worker comes back that has been at the start of a later generation */
	MST_FINISH_SUPERSEDED,
};
/* Has the job failed? */
static inline bool mst_finish_failed(enum mst_finish_why why)
{
	return why >= MST_FINISH_JOIN_TIMEOUT;
}

/* The error that a worker is told: a negative errno; 0 where nothing is wrong. */
int mst_evict_error(enum mst_evict_why why);
int mst_finish_error(enum mst_finish_why why);
/* The same for a job that goes on at other servers (--server-patience), if @goes_on: MST_AGAIN
 * where the worker may come back, to them or to this one. */
int mst_evict_word(enum mst_evict_why why, bool goes_on);
int mst_finish_word(enum mst_finish_why why, bool goes_on);

struct mst_decision {
	enum mst_decision_kind kind;
	struct mst_identity who;
	union {
		struct {
			uint64_t cookie;
			int error;
			uint64_t number; /* ADMIT: that the generation has, or is to have */
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
			/* The norm of the mean gradient over the samples, after the worker has
			 * limited it. NaN: the norm is not known. Infinite: the data are not
			 * finite. */
			double norm;
			double samples; /* of the contribution; 0: its weight is out of range */
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
		struct {
			enum mst_evict_why evict;
			/* A worker that has left: the seq of its last header, as it has
			 * said, and of the last that every shard has reported, with all
			 * before it. Else both are 0. */
			uint64_t announced, came;
		};
		struct {
			enum mst_finish_why why;
			uint64_t version;
		} finish;
		struct {
			/* WANT, HAND: of the asking; BEHIND: how many states in a row were too old
			 * for this worker when it had taken them */
			uint64_t number;
			uint64_t version; /* BEHIND: the newest; HAND: of the state */
		} state;
		struct {
			struct mst_goal of_job;
			uint64_t asked;
		} goal;
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
	double samples;   /* samples of all contributions */
	double total;     /* the same in all versions up to this one */
	uint32_t workers; /* of the job when it was made; 0: not known */
	double loss; /* mean over the samples of the contributions that gave one; NaN: none did */
	double loss_samples;         /* these samples */
	struct mst_lr_scale_of rate; /* what lr_scale is computed from */
	double lr_scale;             /* scale x schedule, and what a distance allows */
	/* window, until_asked, by_micro and pace are of the rule of the step that this version
	 * opens. */
	uint32_t window;
	bool until_asked; /* workers compute until they are asked to hand in */
	bool by_micro;    /* workers hand over every micro-batch */
	struct mst_pace pace;
	float divisor;                 /* 1 where the rule does not divide */
	float scalar[MST_SCALARS_MAX]; /* of the optimiser; zeroes where workers own */
	float average;                 /* what is left of the moving average; 0: there is none */
	uint32_t entry_count;
	struct mst_entry *entry; /* in order of counting */
	uint32_t share_count;
	struct mst_lane_share *share; /* by rank */
};

#endif
