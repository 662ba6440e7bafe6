/* SPDX-License-Identifier: MIT */
/*
 * The observer holds a world against the guarantees of docs/protocol.md. It sees what workers push
 * and are told, what goes over the links, and the stream of decisions; it shares no code with the
 * ledger, the slots, the sums or the client, only the records of common/wire.
 *
 * After every decision and every outcome:
 *   - a contribution is judged once, after its header was put, within the rule's window;
 *   - what is counted is in the next version, once, with the coefficient it must have;
 *   - versions are committed one by one, each from just what was counted, with the right divisor
 *     and rate, by enough contributions and not by more;
 *   - who waits after each push is never late under `bsp`, nor beyond the bound of `ssp`, nor given
 *     a version older than the one it was counted in, whether its pushes asked or not;
 *   - a verdict that no outcome has brought is told to the next session;
 *   - a slot is granted anew only after its contribution was judged, and used only while granted;
 *     what is being sent, from it or from registered memory, is left alone until it has been sent;
 *   - the bits a worker reads are those of the record's sum, when it gets them and when it lets go;
 *   - an ask is answered at once unless the rule parks it, a commit that is due is made, and who
 *     computes when a trigger ends the step is asked to hand in: judged whenever the ledger has
 *     nothing more to decide (steps.c);
 *   - a version tells the window and the pace of the rule of the step that it opens;
 *   - every server executes what the leader decides, in its order, each once;
 *   - a worker says the same to all servers, and uses a slot when all have granted it;
 *   - nobody is ended, told an error, or kept waiting for longer than promised, without a fault
 *     that excuses it: a lost server is the end for everybody, in words that name it, and one that
 *     is away for less than its lease is nobody's;
 *   - what is saved of a version are its bits, and they stand still while they are written; a
 *     checkpoint exists when every server has written its part; and nobody waits for a disk
 *     (saves.c);
 *   - nothing is allocated once all have joined and had a version.
 *
 * The first violation stops the world; obs_violation() tells it.
 */
#ifndef MST_TESTS_SIM_OBSERVER_H
#define MST_TESTS_SIM_OBSERVER_H

#include "common/checkpoint/manifest/manifest.h"
#include "muster/muster.h"
#include "server/core/ledger/ledger.h"
#include "tests/sim/plan.h"

void obs_begin(const struct sim_plan *plan);
/* Everybody has gone home, and another job goes on with @version. */
void obs_go_on(const struct sim_plan *plan, uint64_t version);
/* Other servers take the place of those that are lost, and the same workers come back. */
void obs_next_generation(void);
/* From 0. */
uint32_t obs_generation(void);
/* The leader of an earlier generation is alive, and makes a version beside the later one. */
void obs_commits_beside(uint32_t generation, const struct mst_record *record);
/* Everybody has gone home. */
void obs_end(void);
/* NULL: none. */
const char *obs_violation(void);
void obs_violated(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Versions committed, contributions judged so far. */
uint64_t obs_commits(void);
uint64_t obs_judged(void);
/* Has anybody ever joined? */
bool obs_began(void);
/* Has it ended it well? */
bool obs_is_done(void);
/* Has every rank had an outcome, once? */
bool obs_all_have_begun(void);
/* Another process of the rank comes, which knows nothing of the one before. */
void obs_enters(uint32_t rank);
/* Has the ledger ended the job? */
bool obs_finished(void);

/* ---- what a worker tells of itself; @incarnation as it was told ---- */

struct obs_worker {
	uint32_t rank, incarnation;
	uint64_t tickets_before; /* that were issued before its session */
	bool excused;            /* a fault has hit it, or everybody: errors are no wonder */
	bool rogue;
	uint64_t content; /* of the contribution it fills: obs_value() */
	bool spoils;      /* which has a NaN in it */
	uint64_t last_ticket_told;
	uint64_t last_version;
	uint32_t last_of;      /* the generation of the last outcome */
	uint64_t voided;       /* versions that it has lost since then */
	bool unsure;           /* generations that it knows nothing of have begun since then */
	uint64_t average_from; /* what that was when it first asked for the average that comes */
	const void *result;    /* that it reads */
	uint64_t result_version;
	bool reads_void; /* they changed while it read them, because its session had ended */
};

/* Element @i of contribution @content. */
float obs_value(uint64_t content, uint64_t i);
/* The start state that @rank offers. */
float obs_start_value(uint32_t rank, uint64_t i);

/* It has begun to break the rules: only others are held against what they do from now on. */
void obs_turns_rogue(struct obs_worker *w);
void obs_dies(const struct obs_worker *w);
/* Somebody is lost, or comes: a job that outlives its servers may make a pause. */
void obs_disturbed(void);
/* A process of this rank has a link with the leader. @far: over a transport that maps no memory. */
void obs_linked(uint32_t rank, bool far);
/* Its header goes out: seen on the link by net.h's watch. */
void obs_header(const struct obs_worker *w, uint32_t server, const struct mst_lane_header *header);
/* What it was sending has changed. */
void obs_spoiled(const struct obs_worker *w);
void obs_abandon(const struct obs_worker *w, uint32_t server, uint32_t slot);
void obs_outcome(struct obs_worker *w, const struct muster_outcome *out);
/* It has taken the state of another worker, which had its last outcome in generation @of. */
void obs_takes(struct obs_worker *w, uint64_t version, uint32_t of);
/* Has it not come to the servers that have started? What it has may be of another line. */
bool obs_is_apart(const struct obs_worker *w);
/* The policy in force, with an outcome. */
void obs_policy_told(const struct obs_worker *w, const char *policy);
/* It has the average of a version, which is not older than the last one it was given
 * before it asked. */
void obs_average(const struct obs_worker *w, const float *average, uint64_t version);
/* With its welcome it is told these verdicts. */
void obs_verdicts(const struct obs_worker *w, const struct muster_push_verdict *verdict,
		  uint32_t count);
/* It is about to let go of what it reads, which must have stood still unless its session has
 * ended. */
void obs_lets_go(struct obs_worker *w);
/* Somebody asks for the end of the job: what is counted by then is a version, however few it is. */
void obs_end_asked(void);
/* A call has succeeded, or failed. */
void obs_success(const struct obs_worker *w, const char *call);
void obs_error(const struct obs_worker *w, const char *call, int error, const char *reason);
/* A call has returned after @took_ns of the world's clock. It must not take more than @most_ns. */
void obs_took(const struct obs_worker *w, const char *call, uint64_t took_ns, uint64_t most_ns);

/* ---- what the leader decides, in order, and what servers do ---- */

/* The ledger is given an event, or the time; and it has nothing more to decide. */
void obs_event(const struct mst_ledger_event *ev, uint64_t now_ns);
void obs_tick(uint64_t now_ns);
void obs_settled(void);
/* The policy has chosen another rule, and the decision that says so follows. */
void obs_adapts(const struct mst_rule *rule);
void obs_decided(const struct mst_decision *d, const struct mst_record *record);
/* Another server than the leader carries it out. */
void obs_executed(uint32_t server, const struct mst_decision *d, const struct mst_record *record);
/* A grant is put to a worker. */
void obs_granted(struct mst_identity who, uint32_t server, uint32_t slot);
/* A fault is about to hit a server, which has not ended yet. */
void obs_server_hit(const struct sim_fault *f, bool lives);
/* It ends by itself, and says so: the job has finished, or failed. */
void obs_server_ended(uint32_t server, bool well);

/* ---- what is saved: saves.c ---- */

struct sim_part;
/* A server begins to write its part of a version; the part has been written, or writing it has
 * failed. */
void obs_part_begins(uint32_t server, const struct sim_part *part);
void obs_part_ended(uint32_t server, uint64_t version, int error);
/* The same of a manifest, which makes the checkpoint exist. */
void obs_manifest_begins(const struct mst_checkpoint_manifest *manifest);
void obs_manifest_ended(uint64_t version, int error);
/* A server is told to end. */
void obs_server_stops(uint32_t server);

#endif
