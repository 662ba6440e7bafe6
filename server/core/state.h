/* SPDX-License-Identifier: MIT */
/*
 * The ledger's own state, and how its rooms call each other. Only the files of the ledger include
 * this one:
 *
 *   ledger.c   the public face: allocation, dispatch of events, queue of decisions, views
 *   life.c     birth and end of sessions and of the job; timers
 *   judge.c    contributions: verdicts and counting
 *   step.c     the open step: roster, commit condition, commit, change of rule
 *   ask.c      who goes on, with what, and which buffers that holds
 *
 * Every event ends in mst_settle(): commit if the condition is met, end the job if it is due,
 * then judge every parked ask, again and again until nothing more follows. So no order of events
 * can leave somebody waiting for what has happened.
 */
#ifndef MST_SERVER_CORE_STATE_H
#define MST_SERVER_CORE_STATE_H

#include "server/core/ledger.h"
#include "server/core/member.h"
#include "server/core/rule.h"
#include "server/core/store.h"

enum mst_phase { MST_PHASE_GATHERING, MST_PHASE_RUNNING, MST_PHASE_ENDED };

struct mst_ledger {
	struct mst_ledger_cfg cfg;
	struct mst_rule rule;      /* of the open step */
	struct mst_rule next_rule; /* from the next version on */
	bool rule_changes;

	enum mst_phase phase;
	bool end_due; /* the job is to end as soon as what is counted is committed */
	enum mst_finish_why end_why;
	bool has_start_state;

	struct mst_member *member; /* cfg.workers of them */
	struct mst_store store;
	struct mst_record *record; /* by buffer */

	/* The open step. */
	struct mst_entry *entry; /* all entries: the open step's first, then each record's */
	uint32_t entry_count, entry_max;
	uint32_t counted_last;   /* rank */
	uint64_t first_count_ns; /* patience runs from here; 0: nothing counted */
	double samples_total;    /* in all commits */

	uint64_t now_ns; /* of the event or tick at hand */
	uint64_t last_tick_ns, join_until;

	/* Memory of the members, the store and the records. */
	uint64_t *words;
	struct mst_store_buffer *buffer;
	struct mst_lane_share *share;

	struct mst_decision *queue;
	uint32_t queue_size, queue_head, queue_count;
};

/* ledger.c */
struct mst_decision *mst_decide(struct mst_ledger *l, enum mst_decision_kind kind,
				const struct mst_member *m);
void mst_settle(struct mst_ledger *l);

/* life.c */
void mst_life_join(struct mst_ledger *l, uint64_t cookie, int32_t rank);
void mst_life_linked(struct mst_ledger *l, struct mst_member *m, uint32_t shard);
void mst_life_start(struct mst_ledger *l, struct mst_member *m, bool offers);
void mst_life_state(struct mst_ledger *l, struct mst_member *m);
void mst_life_leave(struct mst_ledger *l, struct mst_member *m, uint64_t seq);
/* A worker asks for the end of the job; or the figures of the job have been reached. */
void mst_life_end(struct mst_ledger *l, enum mst_finish_why why);
/* Ends @m's session for something that is its own fault or fate; what that means for the job
 * follows on_loss and min_workers. */
void mst_life_lose(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why);
/* Ends it if it is leaving and all it sent has been judged. */
void mst_life_leave_if_judged(struct mst_ledger *l, struct mst_member *m);
/* Nothing can be committed any more: not even what an end that is due still waits for. */
void mst_life_server_lost(struct mst_ledger *l);
void mst_life_tick(struct mst_ledger *l);
void mst_life_finish_if_due(struct mst_ledger *l);
uint64_t mst_life_deadline(const struct mst_ledger *l);

/* judge.c */
void mst_judge_full(struct mst_ledger *l, struct mst_member *m, uint32_t shard,
		    const struct mst_lane_header *h);
/* Judges one contribution that every shard has reported. False: there is none, or a commit is due
 * first. */
bool mst_judge_next(struct mst_ledger *l);
void mst_judge_abandoned(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint32_t slot,
			 uint64_t epoch);
/* Its session ends: what was reported and is not judged yet is cancelled, in order of seq. */
void mst_judge_cancel(struct mst_ledger *l, struct mst_member *m);

/* step.c */
void mst_step_open(struct mst_ledger *l);
/* Looks after a step that nobody can commit: its roster is empty, or all of it has passed. */
void mst_step_revive(struct mst_ledger *l);
uint64_t mst_step_clock_min(const struct mst_ledger *l);
struct mst_rule_step mst_step_view(const struct mst_ledger *l);
/* Is a commit due, whether or not a buffer is free for it? */
bool mst_step_due(const struct mst_ledger *l);
void mst_step_commit_if_due(struct mst_ledger *l);
void mst_step_policy(struct mst_ledger *l, const struct mst_rule *rule);

/* ask.c */
/* It asks, and reads no more what it had. Return: false if the ask breaks the protocol. */
bool mst_ask_take(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_ask *ask);
/* Answers every parked ask whose time has come. */
void mst_ask_judge_all(struct mst_ledger *l);
/* Is the ask of @m parked by the clock bound alone? */
bool mst_ask_bound_parks(const struct mst_ledger *l, const struct mst_member *m,
			 uint64_t clock_min);
void mst_ask_answered(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint64_t number);
/* Its session ends: lets go of what it reads and of what is copied to it. */
void mst_ask_drop(struct mst_ledger *l, struct mst_member *m);

#endif
