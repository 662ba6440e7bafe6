/* SPDX-License-Identifier: MIT */
/* What the observer's files share, from observer.c to readers.c. Nobody else includes this. */
#ifndef MST_TESTS_SIM_OBSERVER_STATE_H
#define MST_TESTS_SIM_OBSERVER_STATE_H

#include "server/core/policy/rule.h"
#include "tests/sim/expect.h"
#include "tests/sim/observer.h"

/* A decision that every server executes. */
struct obs_order {
	enum mst_decision_kind kind;
	struct mst_identity who;
	uint64_t figure[4];
};

/* What a checkpoint keeps beside vectors. */
struct obs_kept {
	double samples;                        /* in all versions */
	uint32_t incarnation[SIM_WORKERS_MAX]; /* by rank */
};

/* What has become of versions that are saved: saves.c. */
struct obs_saves {
	uint64_t decided; /* the newest version that is to be saved, or that the job began with */
	bool in_flight;   /* not every server has reported of it */
	uint64_t due;     /* by --checkpoint-every, the newest that is to be saved */
	bool any;         /* one was to be saved in this job */
	/* Sets of servers: that have begun their part of it; that have ended; that have failed. */
	uint32_t begun, ended, failed;
	uint32_t parts; /* set: parts of it that have begun */
	char save[MST_CHECKPOINT_SAVE_LEN];
	uint64_t whole;    /* the newest version of which every part is written; 0: none is */
	uint64_t manifest; /* the newest whose manifest was begun */
	uint64_t settled;  /* the newest that is a checkpoint, or has failed to be one */
	bool keeps;        /* it has just been decided: what is kept is that of now */
	struct obs_kept kept, whole_kept; /* with the one decided, and with the whole one */
	uint64_t promised;                /* the ledger has to decide that this version is saved */
	bool server_lost;                 /* of the job, for good */
	uint64_t owed;                    /* before the leader ends, this version is settled */
	uint64_t stopped_ns;              /* when the leader was told to end; 0: it was not */
};

enum obs_slot_state { SLOT_GRANTED, SLOT_SPENT, SLOT_JUDGED };

struct obs_session {
	uint32_t rank, incarnation;
	uint32_t born;               /* the generation that has admitted it */
	uint32_t process;            /* of its rank */
	const struct obs_worker *of; /* whose it is, once it has handed in */
	uint64_t tickets_before;     /* of that worker, before this session */
	bool live, started, rogue, dawdled;
	bool behind; /* it has to take a state, and is no part of steps until it is up to date */
	bool fell_behind; /* it has been so once */
	uint64_t handed;  /* the version of the state that it is given */
	bool outlier;     /* something of it was refused for its norm */
	uint64_t headers; /* put so far */
	uint64_t judged;  /* of them */
	/* steps.c */
	uint32_t links; /* to servers */
	bool start_called, leaves;
	uint32_t unlinked;     /* servers whose link with it is gone */
	bool rostered, passed; /* of the open step */
	bool rests, has_rested;
	bool asks;                /* an ask of it is open */
	bool late;                /* it came with a contribution that was late to the open step */
	double batch, last_batch; /* samples of the batch at hand so far, and of the one before */
	uint64_t clock;           /* counted, since clocks began */
	uint64_t given;     /* the version that it was last answered with; what it computes ... */
	bool grows;         /* ... grows until it is asked for */
	bool wanted;        /* it was last advised to hand in ... */
	uint64_t wanted_of; /* ... what it computes on this version */
	bool waited;        /* it has had an outcome since the last of them */
	bool heard;         /* it has had one at all */
	uint64_t died_ns;   /* its process has; 0: it lives */
	/* readers.c */
	bool far;        /* its link with the leader does not map memory */
	uint64_t reads;  /* the version that it was last given in place, and one more; 0: none */
	uint64_t copies; /* the answer that is copied or sent to it; 0: none is ... */
	uint32_t copied; /* ... set: by these servers all of it was */
	enum obs_slot_state slot[MST_SLOTS_MAX];
	uint64_t spent_by[MST_SLOTS_MAX]; /* seq; 0: given up */
	/* Sets of servers: that were told of what is in the slot; that have granted it anew. */
	uint32_t told[MST_SLOTS_MAX], granted[MST_SLOTS_MAX];
	struct mst_lane_header header[MST_SLOTS_MAX]; /* as the first was told */
	struct expect_item *items;                    /* newest first */
	struct obs_session *next;
};

/* Changes of policy, over all generations. */
struct obs_changes {
	struct mst_rule rule[SIM_FAULTS_MAX];
	uint32_t count, begun;           /* the generation has begun under that one */
	uint32_t known[SIM_WORKERS_MAX]; /* by rank: how many; 0: none, or it is of the start */
};

/* The versions that a generation goes on from, and those that it has made. */
struct obs_line {
	uint64_t newest;
	uint64_t number;                     /* of the generation; 0: nobody was told of it yet */
	uint32_t maker[SIM_COMMITS_MAX + 1]; /* the generation, and one more; 0: none */
	double samples[SIM_COMMITS_MAX + 1]; /* in all versions up to this one */
};

/* What a process had with its last outcome, and will claim. */
struct obs_had {
	bool any;
	uint32_t generation;
	uint64_t version;
};

struct obs_state {
	const struct sim_plan *plan;
	char violation[512];
	struct obs_session *sessions;
	uint64_t commits, judged;
	uint64_t applied; /* of the commits, those whose reduce phase has ended */
	bool finished, end_asked;
	bool spoiled_counts; /* what is counted may be anything: a NaN too */
	bool ever_lost;      /* a session has ended, or come again */
	bool ever_behind;    /* one has ended because it was too slow */
	enum mst_finish_why why;
	/* Counted, and not yet committed; in order. */
	struct expect_item *open[SIM_WORKERS_MAX * (MST_MICRO_MAX + MST_SLOTS_MAX)];
	uint32_t open_count;
	uint64_t first_count_ns; /* of the open step */

	/* The rule, and the open step under it: steps.c. */
	struct mst_rule rule, next_rule;
	struct mst_rule step_rule[SIM_COMMITS_MAX + 1]; /* of the step that a version opens */
	bool returning;                                 /* some were told to return, just now */
	bool rule_changes;                              /* to next_rule, with the next version */
	bool policy_due;    /* it has, and the decision that says so follows */
	bool adapts;        /* the policy has chosen next_rule, and says so next */
	bool switch_due;    /* it has to, for enough samples are done ... */
	bool switched;      /* ... and it has */
	uint32_t roster;    /* when the open step opened */
	bool answers_event; /* nothing but a change of rule was asked for since */
	bool ever_changed, ever_rested;
	struct obs_changes changes;
	bool lowered;       /* the open step needs fewer than at first */
	bool held;          /* some that were late to the open step were held */
	uint64_t all_since; /* steps of versions before may be of another rule */
	bool started, settling;
	/* The leader's ledger has been told to stop: and which version is the last one then. */
	bool stops;
	uint64_t stops_at;
	uint64_t now_ns; /* that the ledger was told last */
	uint64_t opened_ns, first_count_at_ns, collecting_ns;
	bool collecting;      /* all are asked to hand in */
	bool full;            /* under a rule by micro-batches: one has handed over a batch ... */
	uint64_t full_ns;     /* ... then */
	uint32_t early_voids; /* how often all have passed for no reason */

	bool far[SIM_WORKERS_MAX]; /* by rank: the newest link with the leader */

	uint64_t allocations;          /* when the second version was committed */
	uint64_t buffer_version[1024]; /* and one more; 0: none */

	/* Several servers. */
	struct obs_order *order; /* what the leader has decided, in order */
	uint32_t order_count, order_size;
	uint32_t executed[SIM_SERVERS_MAX];
	uint64_t executed_commits[SIM_SERVERS_MAX];
	uint32_t server_hit; /* set: something has happened to them */
	uint32_t ended, ended_well;
	uint64_t lost_ns;       /* a server was lost for good; 0: none was */
	uint64_t stays_ns;      /* a follower that was told to end may stay so long */
	uint64_t server_gap_ns; /* that faults have kept servers from others, all together */
	bool lost_unheard;      /* a server was lost, and nothing says so but its silence */

	uint64_t finished_ns; /* when the end of the job was decided; 0: it was not */
	double samples;       /* in all versions */

	/* Generations: returns.c. */
	uint32_t losses;                               /* of all servers */
	struct obs_had had[SIM_WORKERS_MAX];           /* by rank */
	uint32_t process[SIM_WORKERS_MAX];             /* the youngest, by rank ... */
	bool was_in[SIM_WORKERS_MAX];                  /* ... has been in a generation */
	struct obs_line *line[EXPECT_GENERATIONS_MAX]; /* NULL: it has not started */
	bool all_have_begun;
	uint32_t beside; /* versions that an earlier leader has made since this one has started */
	uint64_t disturbed_ns; /* when anybody was last lost, or came in the place of one */
	bool committed;        /* a version has been made since then */

	struct obs_kept kept; /* with the newest checkpoint */
	struct obs_kept begun_with;
	struct obs_saves saves;
};
extern struct obs_state obs;

/* The job is over: has it failed? So it has, too, if all workers have left before its goal. */
static inline bool obs_job_failed(void)
{
	bool left = obs.why == MST_FINISH_LEFT && obs.plan->commits > obs.commits;

	return left || mst_finish_failed(obs.why);
}

/* ---- outliers.c ---- */

/* A verdict; @item: what it is of, NULL if that may be anything. */
void obs_outliers_judged(const struct mst_decision *d, const struct expect_item *item);
/* The rank's session has ended. */
void obs_outliers_forget(uint32_t rank);
/* Another job begins. */
void obs_outliers_forget_all(void);
/* The rule changes. */
void obs_outliers_change(const struct mst_rule *from, const struct mst_rule *to);

/* ---- steps.c ---- */

bool obs_repeats(void);
bool obs_rank_is_open(uint32_t rank);
void obs_start_steps(void);
/* The open step is committed, and its set is empty. */
void obs_next_step(void);
void obs_revive(void);
/* All ranks that were to return have returned. */
void obs_returned(void);
void obs_regranted(const struct mst_decision *d);
void obs_rested(const struct mst_decision *d);
void obs_policy(void);
void obs_advised(const struct mst_decision *d);
void obs_counted_full(void);
/* A contribution of a session is judged: its batch is measured, once. */
void obs_measure(struct obs_session *s, struct expect_item *item);
/* The contribution has been counted under a rule by micro-batches. */
void obs_counted_micro(const struct obs_session *s);
void obs_check_quorum(void);
void obs_check_timer(void);
void obs_goes_on(const struct mst_decision *d, const struct mst_record *record);
void obs_orders(const struct obs_worker *w, const struct muster_outcome *out);

/* ---- returns.c ---- */

/* The session of the worker that has the ticket; NULL: none that is known. */
struct obs_session *obs_session_of(const struct obs_worker *w, uint64_t ticket);
/* The generation begins with this version. */
void obs_returns_start(uint64_t version);
void obs_returns_committed(const struct mst_record *r);
void obs_returns_end(void);

/* ---- lines.c ---- */

/* The generation begins with @version, on the line of @from; NULL: with the first of a run. */
void obs_line_begins(const struct obs_had *from, uint64_t version);
void obs_line_grows(void);
/* Is the contribution counted in a version that is not on the line of the generation? */
bool obs_is_void(const struct expect_item *item);
/* The worker has an outcome, or a state, of the generation that its session is of. */
void obs_line_moves(struct obs_worker *w);
/* What the outcome says of its generation. */
void obs_line_numbered(const struct obs_worker *w, uint64_t number);
void obs_line_withdrawn(struct obs_worker *w, uint64_t withdrawn);
/* The newest that those have had who start; NULL: none of them has had an outcome. */
const struct obs_had *obs_newest_had(void);
/* Does the rank start with the others, and claim what it had? */
bool obs_claims(uint32_t rank);

/* ---- behind.c ---- */

void obs_behind(const struct mst_decision *d);
void obs_handed(const struct mst_decision *d);
void obs_taken(struct obs_session *s);
void obs_caught_up(struct obs_session *s, uint64_t version);

/* ---- changes.c ---- */

void obs_changes_asked(const struct mst_rule *rule);
/* A generation begins. */
void obs_changes_start(void);

/* ---- readers.c ---- */

void obs_readers_event(struct obs_session *s, const struct mst_ledger_event *ev);
/* It asks, and so has got what was copied or sent to it. */
void obs_readers_ask(struct obs_session *s);
void obs_readers_answered(struct obs_session *s, const struct mst_decision *d);
/* Does a shard copy a version to anybody? A commit may wait for that, and for nothing else. */
bool obs_shards_copy(void);
/* May its ask wait for a buffer? Only if it is far, and while others hold buffers for long. */
bool obs_may_lack_room(const struct obs_session *s);

struct obs_session *obs_find(uint32_t rank, uint32_t incarnation);
struct expect_item *obs_item(const struct obs_session *s, uint64_t seq);
const char *obs_verdict_name(enum muster_verdict verdict);
/* ---- saves.c ---- */

void obs_saves_start(uint64_t version);
void obs_saves_committed(void);
void obs_saves_finished(void);
void obs_saves_event(const struct mst_ledger_event *ev);
void obs_saves_settled(void);
void obs_save_decided(const struct mst_decision *d);
void obs_saved_decided(const struct mst_decision *d);
/* It ends by itself. */
void obs_saves_server_ended(uint32_t server);

/* The leader has decided this. */
void obs_order_keep(const struct mst_decision *d, const struct mst_record *record);
bool obs_names_cause(const char *reason);
void obs_check_servers(void);
/* For how long, at most, no lease of a worker has run because a server was silent. */
uint64_t obs_leases_stood_ns(void);
/* The end of the job is decided now: not long after what caused it. */
void obs_end_decided(void);

#endif
