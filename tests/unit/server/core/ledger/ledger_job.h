/* SPDX-License-Identifier: MIT */
/*
 * A job for tests of the ledger: workers that do exactly what a case says, on a clock that only
 * the case moves, and all decisions since the case last forgot them.
 */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_JOB_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_JOB_H

#include "server/core/ledger/ledger.h"
#include "server/core/policy/policy.h"

#define JOB_RANKS 8u
#define JOB_SEEN 512u
#define JOB_LEASE_NS UINT64_C(5000000000)
#define JOB_PATIENCE_NS UINT64_C(300000000000)

struct job_worker {
	struct mst_identity who;
	uint64_t seq, asks;
	uint64_t heard; /* the newest ticket that has a verdict */
	uint64_t have;  /* version it was last given */
	uint64_t epoch[MST_SLOTS_MAX];
};

struct ledger_job {
	struct mst_ledger *ledger;
	struct mst_ledger_cfg cfg;
	uint64_t now_ns;
	struct job_worker worker[JOB_RANKS];
	bool unsettled; /* the case itself says when the shards have done their work */
	struct mst_decision seen[JOB_SEEN];
	size_t seen_count;
};

/* One shard, two slots, servers own, nobody reads in place; the rule of @policy, shrinking, down to
 * one worker. A case changes what it is about. */
struct mst_ledger_cfg job_cfg(const char *policy, uint32_t workers);
struct mst_rule job_rule(const char *policy);
/* It may be adaptive. */
struct mst_policy job_policy_of(const char *policy);

void job_open(struct ledger_job *j, const struct mst_ledger_cfg *cfg);
/* The same, and everybody joins, starts and has version 0. */
void job_born(struct ledger_job *j, const struct mst_ledger_cfg *cfg);
void job_close(struct ledger_job *j);
void job_forget(struct ledger_job *j);

void job_event(struct ledger_job *j, const struct mst_ledger_event *ev);
/* An event of a rank's present session that needs no more words. */
void job_tell(struct ledger_job *j, uint32_t rank, enum mst_ledger_event_kind kind);
void job_join(struct ledger_job *j, int32_t rank);
void job_link(struct ledger_job *j, uint32_t rank, uint32_t shard);
void job_start(struct ledger_job *j, uint32_t rank, bool offers);
/* Joins, links to all shards and starts. */
void job_enter(struct ledger_job *j, uint32_t rank);
/* The same, over a network that does not map memory; only the link with one shard. */
void job_enter_far(struct ledger_job *j, uint32_t rank);
void job_link_far(struct ledger_job *j, uint32_t rank, uint32_t shard);
/* The next header of @rank: slot 0, weight 1, computed on what it has, asking; it has heard all
 * verdicts. */
struct mst_lane_header job_header(struct ledger_job *j, uint32_t rank);
/* One shard has read it; all have. */
void job_full(struct ledger_job *j, uint32_t rank, uint32_t shard, const struct mst_lane_header *h);
void job_full_all(struct ledger_job *j, uint32_t rank, const struct mst_lane_header *h);
/* job_header() and job_full_all(). */
void job_push(struct ledger_job *j, uint32_t rank);
/* job_push() with this loss; NaN: it tells none. */
void job_push_loss(struct ledger_job *j, uint32_t rank, double loss);
/* The same with nothing to give. */
void job_pass(struct ledger_job *j, uint32_t rank);
void job_ask(struct ledger_job *j, uint32_t rank);
/* All shards have sent the last answer. */
void job_answered(struct ledger_job *j, uint32_t rank);
void job_leave(struct ledger_job *j, uint32_t rank, uint64_t seq);
void job_lose(struct ledger_job *j, uint32_t rank, int error);
void job_policy(struct ledger_job *j, const struct mst_rule *rule);
void job_adapt(struct ledger_job *j, const char *policy);
/* A shard has done all that was decided before SETTLE; it has found a version not finite. */
void job_settled(struct ledger_job *j, uint32_t shard);
void job_spoilt(struct ledger_job *j, uint64_t version);
/* All connections were read to their ends after that time. */
void job_heard(struct ledger_job *j, uint64_t heard_ns);
void job_tick(struct ledger_job *j);
/* Time passes with heartbeats of all but @silent (-1: of all) and ticks often enough. */
void job_wait(struct ledger_job *j, uint64_t ns, int silent);

/* How many of this kind were seen, about @rank or (-1) anybody. */
size_t job_count(const struct ledger_job *j, enum mst_decision_kind kind, int rank);
/* The last of them, or NULL. */
const struct mst_decision *job_last(const struct ledger_job *j, enum mst_decision_kind kind,
				    int rank);
bool job_evicted(const struct ledger_job *j, uint32_t rank, enum mst_evict_why why);
/* For this reason, and once. */
bool job_finished(const struct ledger_job *j, enum mst_finish_why why);
enum muster_verdict job_verdict(const struct ledger_job *j, uint32_t rank);
uint64_t job_version(const struct ledger_job *j);
struct mst_member_view job_member(const struct ledger_job *j, uint32_t rank);

#endif
