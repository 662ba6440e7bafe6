/* SPDX-License-Identifier: MIT */
/*
 * The ledger's private state, and how a file of the ledger says what it has decided and what it has
 * changed. Only the files of the ledger include this header, and one test that counts everything
 * again (tests/unit/server/core/ledger/ledger_check.c).
 *
 * The ledger is made of phases, which lie in phases/. A phase handles events of one kind, or does
 * one thing that may follow from any event. The phases do not see each other: only the settling
 * loop (settle.c) and the dispatch of events (ledger.c) call them. What one phase needs to know of
 * another stands in this state. A phase marks there what it has changed:
 *
 *   mst_changed()      a member: for the counts, and for its ask, which is to be tried again
 *   mst_ask_try_all()  something that may concern all asks
 *   mst_life_end()     the job is to end, end_due
 *   begins             all is there that the job starts with
 *   rule_changes       the next step has another rule
 *   overdue            the open step commits with what it has
 *
 * What several phases do, such as to end a session, stands beside this header. It decides at once,
 * because the order of decisions counts. tests/tidy/ranks.txt has the order of all files.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_STATE_H
#define MST_SERVER_CORE_LEDGER_STATE_STATE_H

#include "common/base/listening.h"
#include "server/core/ledger/config.h"
#include "server/core/ledger/counts.h"
#include "server/core/ledger/decision.h"
#include "server/core/ledger/durations.h"
#include "server/core/ledger/event.h"
#include "server/core/ledger/member.h"
#include "server/core/ledger/outliers.h"
#include "server/core/ledger/store.h"
#include "server/core/ledger/waits.h"
#include "server/core/policy/rule.h"
#include "server/core/policy/starts.h"
#include "server/core/stragglers/stragglers.h"

/* Gradients that are computed again and waited for at a time, at most. */
#define MST_RECOMPUTING_MAX 16u

/* The checkpoint that is being written. */
struct mst_ledger_save {
	uint64_t version; /* MST_VERSION_NONE: none is */
	uint32_t buffer;
	uint64_t reported; /* the shards that have reported, as a set */
	uint64_t gone;     /* the shards that never will any more, as a set */
	double samples;    /* in all versions up to that one */
	bool failed;
	bool final_due;         /* the newest version is to be saved when this one has been */
	uint64_t last, last_ns; /* the last version that was to be saved, and when */
	uint64_t pause_until;   /* until then no save begins, but one at the end of the job */
};

/* The average while it is lent; phases/lend.c. */
struct mst_ledger_lending {
	uint64_t version;  /* MST_VERSION_NONE: it is not lent */
	uint64_t reported; /* the shards that do not read it any more, as a set */
	bool due;          /* it is to be lent again when all have reported */
};

/* The state that one worker gives to those that are behind; phases/transfer.c. */
struct mst_transfer {
	enum mst_transfer_state {
		MST_TRANSFER_IDLE,
		MST_TRANSFER_ASKED, /* the donor has been asked, and has not given all of it */
		MST_TRANSFER_TAKEN, /* those that waited are being sent it */
	} state;
	uint64_t number;   /* of the last asking, from 1 */
	uint64_t round;    /* in which no worker is asked twice, from 1 */
	uint64_t round_ns; /* when it began */
	struct mst_identity donor;
	uint64_t version; /* ASKED: the oldest that the state can be of; TAKEN: of the state */
	uint64_t asked_ns;
	uint64_t idle_ns; /* IDLE: since then */
};

/* The generation that runs. */
struct mst_ledger_generation {
	uint64_t number; /* from 1; 0: none has begun, or they are not counted */
	uint64_t next;   /* the number that it has, or takes when it begins */
	uint64_t began;  /* the version that it began with */
	/* What it began with, of the generation before; number 0: there was none. */
	struct mst_claimed newest;
};

/* Ranks of the generation before that this one leaves out, and that have come back; resized.c. */
struct mst_ledger_outside {
	uint64_t ranks[MST_WORKERS_MAX / 64]; /* as a set */
	struct mst_claimed newest; /* that they claim, by generation; number 0: nothing */
};

/* The ranks that are waited for at the start; phases/start.c. */
struct mst_gathering {
	bool changed;     /* who is there is to be looked at */
	uint64_t look_ns; /* and at this time, when somebody is waited for no longer */
	/* Ranks that have not said hello are waited for so long; MST_NEVER: nobody has come back.
	 */
	uint64_t return_until;
};

enum mst_phase { MST_PHASE_GATHERING, MST_PHASE_RUNNING, MST_PHASE_ENDED };

/* The reduce phase of the version after the last one that was applied. */
struct mst_reduction {
	uint64_t applied;
	uint64_t reported;             /* the shards that have reported all of it, as a set */
	uint8_t sums[MST_SERVERS_MAX]; /* how many sums a shard has reported */
	/* The square of the distance between the parameters that the gradient was computed on and
	 * the parameters that it moves, as far as it has been reported. */
	struct mst_exact_sum distance;
	struct mst_exact_sum squares; /* of the mean, as far as they have been reported */
	/* What has been reported of the tensor that is cut by the border after a shard, and whether
	 * the next border cuts the same tensor. */
	struct mst_border {
		struct mst_squares squares;
		float decay;
		bool joins;
	} border[MST_SERVERS_MAX - 1];
};

struct mst_ledger {
	struct mst_ledger_cfg cfg;
	struct mst_rule rule;                              /* of the open step */
	struct mst_rule next_rule;                         /* from the next version on */
	struct mst_controller controller, next_controller; /* of the same policies */
	bool rule_changes;
	bool rule_adapts; /* rule_changes: because the controller has said so */

	enum mst_phase phase;
	struct mst_goal goal;
	bool end_due; /* the job ends as soon as what is counted has been committed */
	/* While this is set, the open step is only committed if its rule is met: for a job that is
	 * stopped, and for some time for a job that an operator ends. */
	bool end_whole;
	bool for_good; /* MST_FINISH_STOPPED: no other server takes the place of this one */
	uint64_t end_whole_until; /* MST_FINISH_ASKED: when that time is over */
	enum mst_finish_why end_why;
	uint32_t resting; /* members that take part and rest */
	uint32_t far;     /* members that are linked over a network that does not map memory */
	bool settling;    /* SETTLE has been decided */
	uint64_t settled; /* the shards that have reported SETTLED, as a set */
	bool has_start_state;
	bool has_brought; /* the worker that was told to send has sent what it has */
	/* What has come for a later generation, or is to come. */
	struct mst_claimed brought;
	struct mst_ledger_generation generation;
	struct mst_ledger_outside outside;
	struct mst_gathering gathering;
	bool begins;              /* all is there that the job starts with */
	bool resumes;             /* the job goes on from a checkpoint, */
	struct mst_claimed saved; /* which is this; its number is 0 where workers own */
	bool lacks_tensors; /* the job has its start state from a checkpoint, and no tensor table */
	struct mst_reduction reduction;

	struct mst_member *member; /* cfg.workers of them */
	struct mst_counts counts;
	struct mst_waits waits;
	struct mst_ranks expired; /* the ranks whose leases a tick has found to be over */
	struct mst_store store;
	struct mst_record *record; /* by buffer */

	/* The open step. */
	/* memory of all entries: first the entries of the open step, then those of each record */
	struct mst_entry *entry;
	uint32_t entry_count, entry_max;
	uint32_t counted_last; /* the rank that was counted last */
	/* Where the rate depends on a distance: the buffer of the version that the first
	 * contribution was computed on, which is held; MST_BUFFER_NONE: there is none yet. */
	uint32_t compared;
	uint64_t first_count_ns; /* while something is counted: when the first contribution was */
	uint64_t opened_ns;      /* when the step began, or, if nobody had anything, began again */
	bool collecting;         /* everybody has been advised to hand in, */
	uint64_t collecting_ns;  /* since then */
	bool overdue;            /* the step commits with what it has, */
	uint64_t overdue_ns;     /* where a rule does not collect: since then */
	bool unheld;             /* the commit is held no longer */
	/* Where the policy looks for stragglers: the gradients of the window that runs, and how
	 * many stragglers there are. */
	uint32_t window, stragglers;
	bool watches;     /* the policy looked for them at the last commit */
	bool put_to_rest; /* some rest because they are stragglers */
	/* The ranks whose gradients are computed again and waited for; state/recomputing.h. Some of
	 * them may not be waited for any more. */
	uint32_t recomputing[MST_RECOMPUTING_MAX], recomputing_count;
	struct mst_durations steps; /* how long the last steps took */
	struct mst_starts starts;
	struct mst_commit_norms norms; /* of the version that was applied last */
	struct mst_outliers outliers;
	uint64_t active_ns;   /* when a worker last sent something or was given something */
	double samples_total; /* in all commits */
	struct mst_ledger_save save;
	struct mst_ledger_lending lending;
	struct mst_transfer transfer;

	/* All times of the ledger are of this clock. It stands still while the server does not
	 * listen. */
	struct mst_listening listening;
	/* By the real clock: when it was last seen that nobody had been listened to for
	 * cfg.stands_ns; 0: never. */
	uint64_t stood_ns;
	bool heard;      /* MST_EV_HEARD has come since the last tick: leases are to be judged */
	uint64_t now_ns; /* of the event or tick being handled */
	uint64_t lag_ns; /* mst_ledger_lag() */
	uint64_t join_until;

	/* Memory that members, the store and the records point into. */
	struct mst_verdicts *verdicts;
	struct mst_stride *stride;
	struct mst_stragglers judge; /* who is slow */
	struct mst_ranks found; /* of whom it has found something else, which is not told yet */
	double part_samples;    /* each part of a batch is scaled to so many; 0: none came */
	double part_most;       /* the most samples in a part of a batch since the last commit */
	uint32_t unjudged;      /* gradients counted since it has looked */
	uint64_t judged_ns;     /* when it has looked */
	struct mst_store_buffer *buffer;
	struct mst_lane_share *share;

	struct mst_decision *queue;
	uint32_t queue_size, queue_head, queue_count;
};

/* Has the job all the commits, or all the samples, that it is to end with? */
static inline bool mst_has_commits(const struct mst_ledger *l)
{
	return l->goal.version > 0 && l->store.newest >= l->goal.version;
}
static inline bool mst_has_samples(const struct mst_ledger *l)
{
	return l->cfg.samples_max > 0 && l->samples_total >= l->cfg.samples_max;
}

/* Is a version sent to @m, so that it holds its buffer for as long as @m's link takes? */
static inline bool mst_is_far(const struct mst_ledger *l, const struct mst_member *m)
{
	return l->cfg.sent || m->far;
}

/* Queues a decision, on @m if it is about a member; else NULL. */
struct mst_decision *mst_decide(struct mst_ledger *l, enum mst_decision_kind kind,
				const struct mst_member *m);
/* Must be called after every change of @m: brings the counts up to date and has @m's ask tried
 * again. */
void mst_changed(struct mst_ledger *l, struct mst_member *m);
/* The record of @version; NULL: its buffer has another version by now. */
const struct mst_record *mst_record_of(const struct mst_ledger *l, uint64_t version);

#endif
