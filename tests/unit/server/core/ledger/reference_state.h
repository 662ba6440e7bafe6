/* SPDX-License-Identifier: MIT */
/*
 * What the reference ledger remembers. Nothing is ever thrown away: a session that has ended, a
 * contribution that was judged, a step that was committed all stay in their lists.
 */
#ifndef MST_TESTS_UNIT_SERVER_CORE_REFERENCE_STATE_H
#define MST_TESTS_UNIT_SERVER_CORE_REFERENCE_STATE_H

#include "tests/unit/server/core/ledger/reference_ledger.h"

/* A contribution, from its first report on. */
struct gift {
	struct mst_lane_header header; /* as the first shard told it */
	uint64_t shards;               /* set of those that have reported it */
	uint64_t first_ns;             /* when the first did */
	double squares;                /* what they have told, added up */
	bool damaged;                  /* one of them has said so */
	bool judged;
};

/* An answer that shards are still copying out. */
struct copy {
	uint64_t number, version;
	uint64_t shards; /* set of those that are done */
};

/* How long something took each time, in order. */
struct spans {
	uint64_t *ns;
	size_t count;
};

struct session {
	struct mst_identity who;
	bool ended;
	bool rests;
	bool rejected; /* its last gift was stale under a rule that has it computed again */
	bool awaited;  /* it was answered since, and computes that gift again: others wait for it */

	uint64_t linked; /* set of shards */
	bool far;        /* what it gets is sent to it */
	bool ready;      /* START was heard */
	bool started;    /* ready, and linked to all */
	bool offers;
	uint64_t first; /* the first version it may be given */
	uint64_t clock;
	uint64_t excused,
		excused_in; /* 1 + the gift for which it was, or 0; the newest version then */
	uint64_t heard_ns;
	bool has_norm;
	double norm; /* of the last gift that was looked at for its norm */
	/* Samples that it has handed over since its last batch ended, and those of that batch; 0:
	 * none has ended. */
	double batch, last_batch;

	struct gift *gift; /* gift[i] has seq i + 1; reported by no shard where there is a gap */
	size_t gift_count;
	uint64_t judged;                   /* seq of the last one that was judged */
	uint64_t epoch[MST_SLOTS_MAX];     /* of the present grant */
	uint64_t abandoned[MST_SLOTS_MAX]; /* set of shards that reported it given up */
	bool leaving;
	uint64_t leave_seq;
	uint64_t mute; /* set of shards that its links bring nothing more to */

	bool asking;
	struct mst_lane_ask ask; /* the last one */
	uint64_t after;          /* it comes after this gift */
	uint64_t given;          /* what it was last answered with; MST_VERSION_NONE */
	uint64_t asked_ns;
	bool counted_since_answer;
	bool computes;      /* it was answered, and no header has come since */
	uint64_t answer_ns; /* when it was */
	bool late;          /* the ask came with a gift that was late, and was not looked at yet */
	bool held;          /* it was, and waits for the next version */
	bool in_place;      /* it reads `reads` where the shards keep it */
	uint64_t reads;
	struct copy *copy;
	size_t copy_count;
};

/* The step that makes version `newest + 1`, and those before it. */
struct reference_step {
	struct reference_version made; /* entry[] is the set */
	bool *rostered, *counted, *passed;
	bool counting; /* first_count_ns is valid */
	uint64_t first_count_ns;
	uint64_t opened_ns;    /* or when all had passed, and it began again */
	bool triggered;        /* PROTOCOL 3, "Triggers" */
	uint64_t triggered_ns; /* when it was */
	bool overdue;          /* it commits with what it has */
	bool waited;           /* it has been held for as long as it may be */
};

struct reference {
	struct mst_ledger_cfg cfg;
	struct mst_rule rule, next_rule;
	bool rule_changes;

	struct session **session;
	size_t session_count;
	struct session **live; /* by rank: its session, or NULL */
	uint32_t *incarnation; /* by rank; 0: never joined */
	uint64_t now_ns;       /* of the event or tick at hand */
	uint64_t moved_ns;     /* a step opened, or a worker was heard or answered */
	struct spans *stride;  /* by rank: from an answer to the next header */
	struct spans steps;
	uint64_t join_until_ns;

	bool born;
	bool has_state;         /* version 0 has been sent, perhaps before the job is born */
	struct session *sender; /* told to send its start state */
	bool asked_to_finish, all_left, stopped, finished;
	/* The version to end with, which a worker has given if that is not --commits; 0: none. */
	uint64_t goal;
	uint32_t goal_rank;
	bool goal_passed; /* it had been made when a worker gave it */
	/* An operator has asked for it: until then the open step may still become whole. */
	bool end_waits;
	uint64_t end_waits_ns;
	/* The job is to end well, once these shards have all said that they are done. */
	bool settling;
	enum mst_finish_why settle_why;
	uint64_t settled;

	struct reference_step *step; /* step[v] makes version v; step[0] is empty */
	size_t step_count;           /* newest + 2 once born: the last is open */
	double samples;              /* committed so far */
	/* The version that is being saved (MST_VERSION_NONE: none is), and the version that was
	 * saved last. */
	uint64_t saving, saved_last;
	uint64_t saved; /* set of shards that have said so, or that they cannot */
	bool save_failed, save_again;
	bool saved_ever;   /* one was begun, */
	uint64_t saved_ns; /* the last then */
	/* The version whose average is lent, and the shards that have returned it. */
	uint64_t lent, returned;
	bool lend_again;
	uint32_t last; /* rank that was counted last: it is answered first */

	/* Time in which nobody listened is lost: it does not count for anybody. */
	uint64_t looked_ns, heard_ns, lost_ns;
	uint64_t read_ns; /* all that was said until then is known */

	struct mst_decision *decision;
	size_t decision_count;
};

/* An array that had @count elements gets room for one more. */
void *reference_room(void *array, size_t count, size_t size);

static inline struct reference_step *open_step(const struct reference *r)
{
	return &r->step[r->step_count - 1];
}

static inline uint64_t all_shards(const struct reference *r)
{
	return r->cfg.shards == 64 ? UINT64_MAX : (UINT64_C(1) << r->cfg.shards) - 1;
}

struct mst_decision *decide(struct reference *r, enum mst_decision_kind kind,
			    struct mst_identity who);
/* Is the job over, or about to be? */
static inline bool is_ending(const struct reference *r)
{
	return r->finished || r->settling || r->asked_to_finish || r->all_left || r->stopped ||
	       r->goal_passed;
}

/* Can the open step still become whole? */
static inline bool still_gathers(const struct reference *r)
{
	return !r->finished && !r->settling && (!is_ending(r) || r->end_waits || r->stopped);
}

/* The live session of a rank, or NULL. */
struct session *session_of(const struct reference *r, uint32_t rank);
/* Ends a session for @why, with all that follows for the job. */
void session_end(struct reference *r, struct session *s, enum mst_evict_why why);
/* A gift that would be rejected is computed again; what comes of that (reference_again.c). */
void again_judged(struct reference *r, struct session *s, enum muster_verdict verdict);
void again_answered(struct reference *r, struct session *s);
bool again_holds(const struct reference *r, const struct session *s, const struct gift *g);
bool again_given_up(struct reference *r);
/* The same, if it leaves and what is to be judged next cannot come any more. */
void end_if_mute(struct reference *r, struct session *s);
void job_finish(struct reference *r, enum mst_finish_why why);
/* An operator wants the job to end; the server is stopped. */
void end_asked(struct reference *r);
void end_stopped(struct reference *r);
/* A worker wants it to end with this version. */
void end_with(struct reference *r, const struct session *s, uint64_t version);
/* Until when the open step is waited for because of that. */
uint64_t end_due(const struct reference *r);

/* Every so many versions one is to be saved. */
void save_every(struct reference *r);
/* The newest version is to be saved, if it is not yet, now or after the one that is. */
void save_newest(struct reference *r);
void save_reported(struct reference *r, const struct mst_ledger_event *ev);
void lend_asked(struct reference *r);
void lend_returned(struct reference *r, const struct mst_ledger_event *ev);

/* Opens the step after the newest version, with everybody who lives and has started. */
void step_open(struct reference *r);
/* What could have become possible: commits, the end, answers. */
void settle(struct reference *r);
uint32_t step_needed(const struct reference *r, int32_t quorum);
bool step_due(const struct reference *r);
/* Has the step all that it needs, though its commit may be held? */
bool step_met(const struct reference *r);
/* Is it held, for a micro-batch that would be too old after it? */
bool step_held(const struct reference *r);
bool version_held(const struct reference *r, uint64_t version);
uint32_t buffers_free(const struct reference *r);
/* With this version held besides, would two buffers be left for others? */
bool leaves_two(const struct reference *r, uint64_t version);
/* The same if all that shards copy by themselves has been copied. */
bool leaves_two_later(const struct reference *r, uint64_t version);
/* Is it far, or are all? */
static inline bool is_sent_to(const struct reference *r, const struct session *s)
{
	return r->cfg.sent || s->far;
}
void answer_all(struct reference *r);
uint32_t missing_count(const struct reference *r);
/* Does the open step wait for this rank? */
bool is_missing(const struct reference *r, uint32_t rank);
uint64_t least_clock(const struct reference *r);
bool held_by_bound(const struct reference *r, const struct session *s);

void gift_reported(struct reference *r, struct session *s, const struct mst_ledger_event *ev);
void grant_abandoned(struct reference *r, struct session *s, const struct mst_ledger_event *ev);
/* An ask that comes after the gift of seq @after; 0: after none. */
void ask_heard(struct reference *r, struct session *s, struct mst_lane_ask ask, uint64_t after);
/* Tells a worker which versions still count, and whether what it has finished is wanted. */
void advise(struct reference *r, const struct session *s, bool hand_in);
/* A contribution that completes its worker's batch was counted. */
void trigger_full(struct reference *r);
/* When the timer of the open step is due; MST_NEVER: none runs. */
uint64_t trigger_due(const struct reference *r);
void trigger_tick(struct reference *r);
/* While all workers are asked to hand in, a worker that has just been answered is asked, too. */
void trigger_answered(struct reference *r, const struct session *s);
/* Another rule is in force, and perhaps none of its triggers will ever ask for what grows. */
void trigger_gone(struct reference *r);
/* All have passed, or all are gone: the time of the step begins again. */
void trigger_again(struct reference *r);

void span_add(struct spans *spans, uint64_t ns);
/* The median of the last nine spans; 0: there are fewer than three. */
uint64_t span_median(const struct spans *spans);
/* Is this ask to wait for the next version because its worker was late? */
bool late_holds(struct reference *r, struct session *s);
void late_release(struct reference *r);
/* Lets those that are held go on if the step may need them. */
void late_look(struct reference *r);
/* When the workers that are held go on, if nothing else lets them. */
uint64_t late_due(const struct reference *r);

/* Has all been judged that was given before the ask? */
bool ask_is_in_turn(const struct session *s);
/* The last gift that the leader knows of; 0: none. */
uint64_t last_gift(const struct session *s);

#endif
