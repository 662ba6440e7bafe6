/* SPDX-License-Identifier: MIT */
/*
 * The ledger's private state, and the functions that its files call of each other. Only the files
 * of the ledger include this header, and one test that counts everything again
 * (tests/unit/server/core/ledger/ledger_check.c):
 *
 *   ledger.c   the public functions: allocation, dispatch of events, queue of decisions, views
 *   life.c     start and end of sessions and of the job; timers
 *   judge.c    contributions: verdicts and counting
 *   outliers.c  which norms are too far from the others
 *   step.c     the open step: roster, commit condition, commit, change of rule
 *   reduce.c   the reduce phase of the optimiser: what shards have reported, and what follows
 *   trigger.c  what ends a step before its quorum is there, and the collection of what is finished
 *   ask.c      which worker goes on, with which version, and which buffers that holds
 *   save.c     which versions are saved as checkpoints
 *   lend.c     the average of the weights, for who asks
 *   handing.c  who gives its state to a worker that lacks versions which are gone
 *   late.c     whether a worker that was late starts again at once
 *   stragglers.c  who is slow, and rests for it if the policy wants that
 *   waits.c    asks, sorted by what they wait for
 *   census.c   members, sorted by what they are to the open step
 *
 * A function that changes a member calls mst_changed() at its end, so that no event has to look at
 * all members.
 *
 * The handling of every event ends with mst_settle(): it commits if the condition is met, ends the
 * job if that is due, then judges every ask that waits, and repeats this until nothing more
 * follows. So whatever the order of events, no worker is left waiting for something that has
 * already happened.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_H
#define MST_SERVER_CORE_LEDGER_STATE_H

#include "common/base/listening.h"
#include "server/core/ledger/census.h"
#include "server/core/ledger/config.h"
#include "server/core/ledger/decision.h"
#include "server/core/ledger/event.h"
#include "server/core/ledger/ledger.h"
#include "server/core/ledger/member.h"
#include "server/core/ledger/outliers.h"
#include "server/core/ledger/store.h"
#include "server/core/ledger/tempo.h"
#include "server/core/ledger/waits.h"
#include "server/core/policy/rule.h"
#include "server/core/policy/starts.h"

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
	uint64_t pause_until;   /* until then none is, but the newest if that is asked for */
};

/* The average while it is lent; lend.c. */
struct mst_ledger_lending {
	uint64_t version;  /* MST_VERSION_NONE: it is not lent */
	uint64_t reported; /* the shards that do not read it any more, as a set */
	bool due;          /* it is to be lent again when all have reported */
};

/* The state that one worker gives to those that are behind; handing.c. */
struct mst_handing {
	enum mst_handing_state {
		MST_HANDING_IDLE,
		MST_HANDING_ASKED, /* the donor has been asked, and has not given all of it */
		MST_HANDING_TAKEN, /* those that waited are being sent it */
	} state;
	uint64_t number;   /* of the last asking, from 1 */
	uint64_t round;    /* in which no worker is asked twice, from 1 */
	uint64_t round_ns; /* when it began */
	struct mst_identity donor;
	uint64_t version; /* ASKED: the oldest that the state can be of; TAKEN: of the state */
	uint64_t asked_ns;
	uint64_t idle_ns; /* IDLE: since then */
};

enum mst_phase { MST_PHASE_GATHERING, MST_PHASE_RUNNING, MST_PHASE_ENDED };

/* The reduce phase of the version behind the last one that was applied. */
struct mst_reduction {
	uint64_t applied;
	uint64_t reported;             /* the shards that have reported all of it, as a set */
	uint8_t sums[MST_SERVERS_MAX]; /* how many sums a shard has reported */
	/* Of the parameters that the gradient was computed on, and those that it moves: the square
	 * of their distance, in what has been reported. */
	struct mst_exact_sum distance;
	struct mst_exact_sum squares; /* of the mean, in what has been reported */
	/* Of the tensor that is cut by the border behind a shard, the same; and whether the next
	 * border cuts the same tensor. */
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
	bool end_due; /* the job ends as soon as what is counted has been committed */
	/* While this is set, the open step is only committed if its rule is met: for a job that is
	 * stopped, and for some time for a job that an operator ends. */
	bool end_whole;
	uint64_t end_whole_until; /* MST_FINISH_ASKED: when that time is over */
	enum mst_finish_why end_why;
	uint32_t resting; /* members that take part and rest */
	bool settling;    /* SETTLE has been decided */
	uint64_t settled; /* the shards that have reported SETTLED, as a set */
	bool has_start_state;
	bool begins;        /* all is there that the job starts with */
	bool lacks_tensors; /* the job has its start state from a checkpoint, and no tensor table */
	struct mst_reduction reduction;

	struct mst_member *member; /* cfg.workers of them */
	struct mst_census census;
	struct mst_waits waits;
	struct mst_ranks expired; /* the ranks whose leases a tick has found to be over */
	struct mst_store store;
	struct mst_record *record; /* by buffer */

	/* The open step. */
	/* memory of all entries: first those of the open step, then of each record */
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
	bool overdue;            /* the step commits with what it has */
	/* Where the policy looks for stragglers: the gradients of the window that runs, and how
	 * many stragglers there are. */
	uint32_t window, stragglers;
	bool watches;           /* the policy looked for them at the last commit */
	bool put_to_rest;       /* some rest because they are stragglers */
	struct mst_tempo steps; /* how long the last steps took */
	struct mst_starts starts;
	struct mst_commit_norms norms; /* of the version that was applied last */
	struct mst_outliers outliers;
	uint64_t active_ns;   /* when a worker last sent something or was given something */
	double samples_total; /* in all commits */
	struct mst_ledger_save save;
	struct mst_ledger_lending lending;
	struct mst_handing handing;

	/* All times of the ledger are of this clock. It stands still while the server does not
	 * listen. */
	struct mst_listening listening;
	bool heard;      /* MST_EV_HEARD has come since the last tick: leases are to be judged */
	uint64_t now_ns; /* of the event or tick being handled */
	uint64_t lag_ns; /* mst_ledger_lag() */
	uint64_t join_until;

	/* Memory that members, the store and the records point into. */
	struct mst_fates *fates;
	struct mst_stride *stride;
	struct mst_store_buffer *buffer;
	struct mst_lane_share *share;

	struct mst_decision *queue;
	uint32_t queue_size, queue_head, queue_count;
};

/* Has the job all the commits, or all the samples, that it is to end with? */
static inline bool mst_has_commits(const struct mst_ledger *l)
{
	return l->cfg.commits_max > 0 && l->store.newest >= l->cfg.commits_max;
}
static inline bool mst_has_samples(const struct mst_ledger *l)
{
	return l->cfg.samples_max > 0 && l->samples_total >= l->cfg.samples_max;
}

/* Can more contributions still come into the open step? Not if the job ends with what is counted,
 * or does not commit it. */
static inline bool mst_step_gathers(const struct mst_ledger *l)
{
	return l->phase == MST_PHASE_RUNNING && !l->settling && (!l->end_due || l->end_whole);
}

/* When a timer of the open step is judged that is due at @due_ns. */
static inline uint64_t mst_judged_at(const struct mst_ledger *l, uint64_t due_ns)
{
	return due_ns < UINT64_MAX - l->lag_ns ? due_ns + l->lag_ns : due_ns;
}

/* ledger.c */
struct mst_decision *mst_decide(struct mst_ledger *l, enum mst_decision_kind kind,
				const struct mst_member *m);
void mst_settle(struct mst_ledger *l);
/* Must be called after every change of @m: brings the census up to date and has @m's ask tried
 * again. */
void mst_changed(struct mst_ledger *l, struct mst_member *m);

/* life.c */
void mst_life_join(struct mst_ledger *l, const struct mst_ledger_event *ev);
void mst_life_linked(struct mst_ledger *l, struct mst_member *m, uint32_t shard);
void mst_life_start(struct mst_ledger *l, struct mst_member *m, bool offers);
void mst_life_state(struct mst_ledger *l, struct mst_member *m);
void mst_life_leave(struct mst_ledger *l, struct mst_member *m, uint64_t seq);
/* Lets the job end, because a worker asks for it or a limit of the job has been reached. */
void mst_life_end(struct mst_ledger *l, enum mst_finish_why why);
/* The same for an operator. The open step is waited for, so that the last version is made as all
 * others are; but not for long, because a worker that hangs may be why the job is to end. */
void mst_life_end_whole(struct mst_ledger *l);
/* The server is being stopped: the job ends with the newest version, as soon as that is made. A
 * step that lacks contributions is given up. */
void mst_life_stop(struct mst_ledger *l);
/* Ends @m's session. What that means for the job follows from on_loss and min_workers. */
void mst_life_lose(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why);
/* The same because an operator wants it, if it does not make the job fail under on_loss. */
void mst_life_evict(struct mst_ledger *l, struct mst_member *m);
/* Ends @m's session if the worker has left and all it sent has been judged. */
void mst_life_leave_if_judged(struct mst_ledger *l, struct mst_member *m);
/* Lets the job fail. Nothing is committed any more, not even what the end of the job still waits
 * for. */
void mst_life_fail(struct mst_ledger *l, enum mst_finish_why why);
void mst_life_settled(struct mst_ledger *l, uint32_t shard);
/* If nobody takes part in the steps, those who rest return. */
void mst_life_wake_if_alone(struct mst_ledger *l);
void mst_life_rest(struct mst_ledger *l, struct mst_member *m, bool rests);
/* Brings the ledger's clock to @now_ns, less the time in which the server did not listen. */
void mst_life_look(struct mst_ledger *l, uint64_t now_ns);
void mst_life_heard(struct mst_ledger *l, uint64_t heard_ns, uint64_t now_ns);
void mst_life_tick(struct mst_ledger *l);
/* Ends the job if that is due, but for what is said of it. Return: true if it has ended now. */
bool mst_life_finish_if_due(struct mst_ledger *l);
void mst_life_tell_finish(struct mst_ledger *l);
/* Starts the job if that is due; its first step is still to be opened.
 * Return: true if it has started now. */
bool mst_life_begin_if_due(struct mst_ledger *l);
/* The first step is open: has the bound hold for the ranks that a checkpoint has kept ahead. */
void mst_life_bound(struct mst_ledger *l);
/* @handing_ns: when what is handed from worker to worker has a timer that is due. */
uint64_t mst_life_deadline(const struct mst_ledger *l, uint64_t handing_ns);

/* judge.c */
void mst_judge_full(struct mst_ledger *l, struct mst_member *m, const struct mst_ledger_event *ev);
/* Judges one contribution that every shard has reported.
 * Return: false if there is none, or if a commit is due first. */
bool mst_judge_next(struct mst_ledger *l);
void mst_judge_abandoned(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint32_t slot,
			 uint64_t epoch);
/* When a session ends: cancels what was reported and has not been judged, in the order of seq. */
void mst_judge_cancel(struct mst_ledger *l, struct mst_member *m);

/* step.c */
void mst_step_open(struct mst_ledger *l);
/* Lets a step go on that no member can commit: its roster is empty, or all members have passed. */
void mst_step_revive(struct mst_ledger *l);
/* The least clock on the roster; 0: the roster is empty. */
uint64_t mst_step_clock_min(const struct mst_ledger *l);
struct mst_rule_step mst_step_view(const struct mst_ledger *l);
/* A gradient on this version has arrived, whatever its verdict. */
void mst_step_arrived(struct mst_ledger *l, uint64_t version);
/* Is a commit due, whether or not a buffer is free for it? */
bool mst_step_due(const struct mst_ledger *l);
/* Commits the open step if that is due, and nothing more: the next step is still to be opened.
 * Return: the record of the version; NULL: nothing is committed. */
const struct mst_record *mst_step_commit_if_due(struct mst_ledger *l);
void mst_step_control(struct mst_ledger *l, const struct mst_record *r);
/* Under a rule that preempts, tells the members that compute that another step is open. */
void mst_step_preempt(struct mst_ledger *l);
/* @controller: NULL: there is none. */
void mst_step_policy(struct mst_ledger *l, const struct mst_rule *rule,
		     const struct mst_controller *controller);

/* reduce.c */
/* Does the newest version wait for what the shards report of it? */
bool mst_reduce_is_due(const struct mst_ledger *l);
/* A shard has reported of the mean of a version. */
void mst_reduce_reported(struct mst_ledger *l, const struct mst_ledger_event *ev);

/* trigger.c */
/* A contribution has been counted that ends its worker's batch. */
void mst_trigger_full(struct mst_ledger *l);
/* Judges the timers of the open step. */
void mst_trigger_tick(struct mst_ledger *l);
/* When the next of them may be due; MST_NEVER: none runs. */
uint64_t mst_trigger_deadline(const struct mst_ledger *l);
/* @m has just been answered: if everybody is asked to hand in, so is @m; and if nobody will ask for
 * what it computes. */
void mst_trigger_answered(struct mst_ledger *l, const struct mst_member *m);
/* Nobody had anything to hand in: the step begins again. */
void mst_trigger_again(struct mst_ledger *l);
/* Another rule is in force: asks for the contributions that grow until they are asked for, if no
 * step is going to. */
void mst_trigger_changed(struct mst_ledger *l);
/* Tells a busy worker on which versions contributions still count. */
void mst_advise(struct mst_ledger *l, const struct mst_member *m, bool hand_in);

/* save.c */
/* Takes what cfg.kept says, in a new ledger. */
void mst_save_resume(struct mst_ledger *l);
void mst_save_started(struct mst_ledger *l);
/* A version has been committed: has it saved if that is due. */
void mst_save_committed(struct mst_ledger *l);
/* The job ends. @made: the shards have made the newest version, or nothing keeps them from it. */
void mst_save_at_end(struct mst_ledger *l, bool made);
/* A server is lost, which ends the job: what it has not written fails. */
void mst_save_server_lost(struct mst_ledger *l, uint32_t shard);
void mst_save_reported(struct mst_ledger *l, const struct mst_ledger_event *ev);

/* lend.c */
void mst_lend_asked(struct mst_ledger *l);
void mst_lend_returned(struct mst_ledger *l, const struct mst_ledger_event *ev);

/* handing.c */
/* The version that @m needs next is gone. */
void mst_handing_lacks(struct mst_ledger *l, struct mst_member *m);
/* Has the version that answers @m's ask, who is behind, still to come? Then it is up to date. */
void mst_handing_reached(struct mst_ledger *l, struct mst_member *m);
/* Does @m wait for a state, or take one? */
static inline bool mst_handing_holds(const struct mst_member *m)
{
	return m->behind == MST_BEHIND_WAITS || m->behind == MST_BEHIND_TAKES;
}
void mst_handing_given(struct mst_ledger *l, struct mst_member *m, uint64_t number,
		       uint64_t version);
void mst_handing_taken(struct mst_ledger *l, struct mst_member *m, uint64_t number);
/* Does what follows from any event: asks a donor, gives one up, pins versions. */
void mst_handing_settle(struct mst_ledger *l);
/* When a donor, or who waits or takes, has had its time; MST_NEVER: none has. */
uint64_t mst_handing_deadline(const struct mst_ledger *l);

/* late.c */
/* Is the ask of @m, whose contribution was late, to wait for the next version? */
bool mst_late_holds(const struct mst_ledger *l, const struct mst_member *m);
/* Lets all asks that are held go on, if the open step may need their workers. */
void mst_late_release_if_needed(struct mst_ledger *l);
void mst_late_release_all(struct mst_ledger *l);
/* When the asks that are held have been held for long enough; MST_NEVER: none is held. */
uint64_t mst_late_deadline(const struct mst_ledger *l);
/* A worker was answered; its next contribution has come. */
void mst_late_answered(struct mst_ledger *l, const struct mst_member *m);
void mst_late_came(struct mst_ledger *l, const struct mst_member *m);

/* stragglers.c */
/* A version has been made of so many gradients, and so many workers are live: judges who is slow,
 * if the policy looks for that and a window is over. */
void mst_stragglers_commit(struct mst_ledger *l, uint32_t gradients, uint32_t live);
/* The session of that rank has ended. */
void mst_stragglers_forget(struct mst_ledger *l, uint32_t rank);
/* Has stragglers rest, or return, as the policy wants. */
void mst_stragglers_rest(struct mst_ledger *l);

/* ask.c */
/* Takes an ask of @m that was sent after its header @after. By asking a worker says that it does
 * not read any more what it had.
 * Return: false if the ask breaks the protocol. */
bool mst_ask_take(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_ask *ask,
		  uint64_t after);
/* Answers every waiting ask that can be answered now. */
void mst_ask_judge_all(struct mst_ledger *l);
/* Has all asks tried again, whatever they wait for, after a change that may concern all of them. */
void mst_ask_try_all(struct mst_ledger *l);
/* After a commit: lets go of the buffers that were held for asks because they had the newest
 * version. */
void mst_ask_new_version(struct mst_ledger *l);
/* Does the ask of @m wait only because of the clock bound? */
bool mst_ask_bound_parks(const struct mst_ledger *l, const struct mst_member *m,
			 uint64_t clock_min);
void mst_ask_answered(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint64_t number);
/* A buffer is not held any more, for whatever holds @buffer: it becomes MST_BUFFER_NONE, as it may
 * have been before. Asks that wait for room are tried again. */
void mst_ask_let_go(struct mst_ledger *l, uint32_t *buffer);
/* When a session ends: lets go of the buffers that the worker reads or that are copied to it. */
void mst_ask_drop(struct mst_ledger *l, struct mst_member *m);

#endif
