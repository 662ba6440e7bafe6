/* SPDX-License-Identifier: MIT */
/* The ledger and checkpoints: which versions are saved, and how a job goes on from one. */
#include <errno.h>

#include "common/base/clock.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/unit/server/core/ledger/save_case.h"
#include "tests/ut.h"

static void a_version_is_saved_every_so_many_commits(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 2);
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	save_case_push(&j, 1);
	CU_ASSERT_EQUAL(save_case_count(&j), 1);
	CU_ASSERT_EQUAL(save_case_last(&j), 3);
	save_case_all_reported(&j, 3);
	save_case_push(&j, 3);
	CU_ASSERT_EQUAL(save_case_count(&j), 2);
	CU_ASSERT_EQUAL(save_case_last(&j), 6);
	job_close(&j);
}

static void a_version_is_saved_after_so_much_time(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	cfg.saves.every_ns = 10 * MST_SECOND;
	job_born(&j, &cfg);
	job_wait(&j, 9 * MST_SECOND, -1);
	save_case_push(&j, 1);
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT_EQUAL(save_case_count(&j), 0); /* nothing has changed since */
	save_case_push(&j, 1);
	CU_ASSERT_EQUAL(save_case_last(&j), 2);
	job_close(&j);
}

/* Short vectors make versions faster than a disk can be asked to keep them. */
static void saves_are_so_much_time_apart(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	cfg.saves.pause_ns = 10 * MST_SECOND;
	job_born(&j, &cfg);
	save_case_push(&j, 2);
	CU_ASSERT_EQUAL(save_case_last(&j), 2); /* the first waits for nothing */
	save_case_all_reported(&j, 2);
	save_case_push(&j, 3);
	job_wait(&j, 9 * MST_SECOND, -1);
	save_case_push(&j, 1);
	CU_ASSERT_EQUAL(save_case_count(&j), 1);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT_EQUAL(save_case_count(&j), 1); /* nothing has changed since */
	save_case_push(&j, 1);
	CU_ASSERT_EQUAL(save_case_last(&j), 7); /* the newest, not one that was due before */
	save_case_all_reported(&j, 7);
	save_case_push(&j, 1);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_EQUAL(save_case_last(&j), 8); /* that of the last version waits for nothing */
	job_close(&j);
}

static void a_job_that_saves_nothing_saves_nothing(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 1);
	struct ledger_job j;

	cfg.saves.wanted = false;
	job_born(&j, &cfg);
	save_case_push(&j, 3);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	job_close(&j);
}

/* However many versions come meanwhile, its buffer is not given to any of them. */
static void a_buffer_is_held_until_every_server_has_saved_it(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 1);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 1);
	uint32_t held = job_last(&j, MST_DO_SAVE, -1)->commit.buffer;
	job_forget(&j);
	for (int i = 0; i < 20; i++) {
		save_case_push(&j, 1);
		CU_ASSERT_NOT_EQUAL(job_last(&j, MST_DO_COMMIT, -1)->commit.buffer, held);
		if (i == 10)
			save_case_reported(&j, 1, 1, false);
	}
	CU_ASSERT_EQUAL(save_case_count(&j), 0); /* one after the other */
	save_case_reported(&j, 0, 1, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SAVED, -1), 1);
	bool again = false;
	for (int i = 0; i < 20; i++) {
		save_case_push(&j, 1);
		if (save_case_count(&j) == 1 && i == 0)
			save_case_all_reported(&j, save_case_last(&j));
		again |= job_last(&j, MST_DO_COMMIT, -1)->commit.buffer == held;
		save_case_all_reported(&j, save_case_last(&j));
	}
	CU_ASSERT(again);
	job_close(&j);
}

static void a_server_that_fails_to_write_fails_the_checkpoint_alone(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 2);
	save_case_reported(&j, 1, 2, true);
	save_case_reported(&j, 0, 2, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SAVED, -1), 1);
	CU_ASSERT_TRUE(job_last(&j, MST_DO_SAVED, -1)->saved.failed);
	save_case_push(&j, 2);
	CU_ASSERT_EQUAL(save_case_last(&j), 4);
	save_case_all_reported(&j, 4);
	CU_ASSERT_FALSE(job_last(&j, MST_DO_SAVED, -1)->saved.failed);
	job_close(&j);
}

/* Reports of another version, reports that come twice, and reports while nothing is saved. */
static void reports_that_cannot_be_change_nothing(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_reported(&j, 1, 0, false);
	save_case_push(&j, 2);
	save_case_reported(&j, 1, 1, false);
	save_case_reported(&j, 1, 2, false);
	save_case_reported(&j, 1, 2, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SAVED, -1), 0);
	save_case_reported(&j, 0, 2, false);
	save_case_reported(&j, 0, 2, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SAVED, -1), 1);
	job_close(&j);
}

/* ---- the end of the job ---- */

static void the_last_version_is_saved_before_the_end_is_told(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	cfg.commits_max = 4;
	job_born(&j, &cfg);
	save_case_push(&j, 4);
	CU_ASSERT_EQUAL(save_case_last(&j), 4);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_COMMITS));
	size_t at = 0, finish = 0;
	for (size_t i = 0; i < j.seen_count; i++) {
		at = j.seen[i].kind == MST_DO_SAVE ? i : at;
		finish = j.seen[i].kind == MST_DO_FINISH ? i : finish;
	}
	CU_ASSERT(at < finish);
	job_close(&j);
}

static void the_last_version_is_saved_once(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	cfg.commits_max = 4;
	job_born(&j, &cfg);
	save_case_push(&j, 2);
	save_case_all_reported(&j, 2);
	save_case_push(&j, 2);
	CU_ASSERT_EQUAL(save_case_count(&j), 2);
	save_case_all_reported(&j, 4);
	CU_ASSERT_EQUAL(save_case_count(&j), 2);
	job_close(&j);
}

static void the_last_version_waits_for_the_checkpoint_before(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	cfg.commits_max = 3;
	job_born(&j, &cfg);
	save_case_push(&j, 3);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_COMMITS));
	CU_ASSERT_EQUAL(save_case_last(&j), 2);
	save_case_all_reported(&j, 2);
	CU_ASSERT_EQUAL(save_case_last(&j), 3);
	save_case_all_reported(&j, 3);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SAVED, -1), 2);
	job_close(&j);
}

/* Else the end of the job could be told between the two. */
static void that_another_version_follows_is_said_with_the_one_before(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	cfg.commits_max = 3;
	job_born(&j, &cfg);
	save_case_push(&j, 3);
	save_case_all_reported(&j, 2);
	CU_ASSERT_TRUE(job_last(&j, MST_DO_SAVED, -1)->saved.again);
	save_case_all_reported(&j, 3);
	CU_ASSERT_FALSE(job_last(&j, MST_DO_SAVED, -1)->saved.again);
	job_close(&j);
}

static void a_job_that_loses_its_workers_is_saved(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 2);
	job_lose(&j, 0, -EPIPE);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_TOO_FEW));
	CU_ASSERT_EQUAL(save_case_last(&j), 2);
	job_close(&j);
}

/* The others may be writing: until they have done so they read what is saved, and can be told to
 * save nothing else. */
static void a_server_that_is_lost_fails_the_checkpoint(void)
{
	struct mst_ledger_event lost = { .kind = MST_EV_SERVER, .shard = 1 };
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 3);
	job_event(&j, &lost);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SAVED, -1), 0);
	save_case_reported(&j, 0, 2, false);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SAVED, -1), 1);
	CU_ASSERT_TRUE(job_last(&j, MST_DO_SAVED, -1)->saved.failed);
	CU_ASSERT_FALSE(job_last(&j, MST_DO_SAVED, -1)->saved.again);
	CU_ASSERT_EQUAL(save_case_count(&j),
			1); /* nor is the newest version saved: a part of it is lost */
	job_close(&j);
}

static void a_server_that_is_lost_last_is_not_waited_for(void)
{
	struct mst_ledger_event lost = { .kind = MST_EV_SERVER, .shard = 1 };
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 3);
	save_case_reported(&j, 0, 2, false);
	job_event(&j, &lost);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SAVED, -1), 1);
	CU_ASSERT_TRUE(job_last(&j, MST_DO_SAVED, -1)->saved.failed);
	job_close(&j);
}

/* A follower that is stopped leaves when its part is written, however long the others take. */
static void a_server_that_is_lost_after_its_report_fails_nothing(void)
{
	struct mst_ledger_event lost = { .kind = MST_EV_SERVER, .shard = 1 };
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 3);
	save_case_reported(&j, 1, 2, false);
	job_event(&j, &lost);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SAVED, -1), 0);
	save_case_reported(&j, 0, 2, false);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SAVED, -1), 1);
	CU_ASSERT_FALSE(job_last(&j, MST_DO_SAVED, -1)->saved.failed);
	CU_ASSERT_EQUAL(save_case_count(&j), 1);
	job_close(&j);
}

static void what_is_to_be_saved_after_the_loss_of_a_server_fails(void)
{
	struct mst_ledger_event lost = { .kind = MST_EV_SERVER, .shard = 1 };
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 3);
	job_tell(&j, 0, MST_EV_FINISH);
	job_event(&j, &lost);
	CU_ASSERT_EQUAL(save_case_count(&j),
			1); /* not while this server still writes the one before */
	save_case_reported(&j, 0, 2, false);
	CU_ASSERT_TRUE(job_last(&j, MST_DO_SAVED, -1)->saved.again);
	CU_ASSERT_EQUAL(save_case_last(&j), 3);
	save_case_reported(&j, 0, 3, false);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SAVED, -1), 2);
	CU_ASSERT_TRUE(job_last(&j, MST_DO_SAVED, -1)->saved.failed);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_SAVED, -1)->saved.version, 3);
	job_close(&j);
}

static void a_version_that_is_not_finite_is_not_saved(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 2);
	job_spoilt(&j, 2);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_SPOILT));
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	job_close(&j);
}

/* Its factor will never come. */
static void a_version_that_is_never_made_is_not_saved(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	cfg.optimizer.parameter[MST_SGD_CLIP] = 1;
	job_born(&j, &cfg);
	save_case_push(&j, 1);
	job_lose(&j, 0, -EPIPE);
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	job_close(&j);
}

/* ---- going on ---- */

static struct mst_kept_rank ranks_of_before[2] = {
	{ .incarnation = 3, .clock = 17, .contributions = 1 },
	{ .incarnation = 1, .clock = 15, .contributions = 1 }
};
static const struct mst_kept before = {
	.version = 40, .samples = 640, .ranks = 2, .rank = ranks_of_before
};

static void what_is_kept_is_of_the_version_that_is_saved(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct mst_kept_rank rank[1];
	struct mst_kept kept = { .rank = rank };
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 2);
	mst_ledger_keep(j.ledger, &kept);
	CU_ASSERT_EQUAL(kept.version, 2);
	CU_ASSERT_EQUAL(kept.samples, 2);
	CU_ASSERT_EQUAL(kept.ranks, 1);
	CU_ASSERT_EQUAL(rank[0].incarnation, 1);
	CU_ASSERT_EQUAL(rank[0].clock, 2);
	CU_ASSERT_EQUAL(rank[0].contributions, 1);
	job_close(&j);
}

/* Rank 0 gives 3 contributions and rank 1 gives 1. Return: how far rank 0 is ahead in what is kept,
 * if it is lost before that or is not. */
static uint64_t kept_ahead(const char *policy, bool is_lost)
{
	struct mst_ledger_cfg cfg = save_case_cfg(policy, 2, 1);
	struct mst_kept_rank rank[2];
	struct mst_kept kept = { .rank = rank };
	struct ledger_job j;

	job_born(&j, &cfg);
	for (int i = 0; i < 3; i++)
		job_push(&j, 0);
	job_push(&j, 1);
	if (is_lost)
		job_lose(&j, 0, -EPIPE);
	mst_ledger_keep(j.ledger, &kept);
	job_close(&j);
	return rank[0].clock - rank[1].clock;
}

static void the_clock_of_a_lost_rank_is_kept_as_that_of_the_slowest(void)
{
	CU_ASSERT_EQUAL(kept_ahead("ssp:9", false), 2);
	CU_ASSERT_EQUAL(kept_ahead("ssp:9", true), 0);
}

static void clocks_that_no_rule_bounds_are_kept_equal(void)
{
	CU_ASSERT_EQUAL(kept_ahead("async", false), 0);
}

/* Rank 0 has pushed twice, and has heard the first verdict.
 * @out: what its rank has in the checkpoint of @version. */
static void kept_verdicts(uint64_t generation, uint64_t version, struct mst_kept_rank out[1])
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, version);
	struct mst_kept kept = { .rank = out };
	struct ledger_job j;

	cfg.generation_id = generation;
	job_born(&j, &cfg);
	save_case_push(&j, 2);
	mst_ledger_keep(j.ledger, &kept);
	job_close(&j);
}

/* Servers own: who comes back to the checkpoint is told what it may not have heard. */
static void verdicts_that_were_not_heard_are_kept(void)
{
	struct mst_kept_rank rank[1];

	kept_verdicts(7, 2, rank);
	CU_ASSERT_EQUAL_FATAL(rank[0].verdicts, 1);
	CU_ASSERT(rank[0].verdict[0].ticket == 2 && rank[0].verdict[0].counted_in == 2 &&
		  rank[0].verdict[0].verdict == MUSTER_COUNTED);
	kept_verdicts(7, 1, rank); /* the second counts in version 2 */
	CU_ASSERT_EQUAL(rank[0].verdicts, 0);
	kept_verdicts(0, 2, rank); /* nobody comes back */
	CU_ASSERT_EQUAL(rank[0].verdicts, 0);
}

static void verdicts_that_were_kept_are_told(void)
{
	struct mst_kept_rank rank[1] = { { .incarnation = 3,
					   .verdicts = 2,
					   .verdict = { { 17, 39, MUSTER_COUNTED },
							{ 19, 0, MUSTER_LATE } } } };
	struct mst_kept kept = { .version = 40, .samples = 1, .ranks = 1, .rank = rank };
	struct muster_push_verdict told[MUSTER_TICKETS_MAX];
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	cfg.kept = &kept;
	cfg.generation_id = 7;
	job_open(&j, &cfg);
	const struct mst_verdicts *of = mst_ledger_verdicts(j.ledger, 0);
	CU_ASSERT_EQUAL(of->incarnation, 3);
	CU_ASSERT_EQUAL_FATAL(mst_verdicts_list(of, told), 2);
	CU_ASSERT(told[0].ticket == 17 && told[0].counted_in == 39 &&
		  told[0].verdict == MUSTER_COUNTED);
	CU_ASSERT(told[1].ticket == 19 && told[1].verdict == MUSTER_LATE);
	job_close(&j);
}

/* Else two generations of a run have the same number, and their versions the same name. */
static void the_number_is_above_all_that_is_known_of_the_run(void)
{
	static const uint64_t numbers[][3] = { /* in the checkpoint, claimed, begun */
					       { 4, 2, 5 }, { 4, 4, 5 }, { 4, 9, 10 },
					       { 4, 0, 5 }, { 0, 3, 4 }, { 0, 0, 1 }
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct mst_ledger_event comes = { .kind = MST_EV_JOIN };
		struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
		struct mst_kept kept = before;
		struct ledger_job j;

		kept.generation = numbers[i][0];
		cfg.kept = &kept;
		cfg.generation_id = 7;
		job_open(&j, &cfg);
		comes.join.rank = 0;
		comes.join.incarnation = 3;
		comes.join.claimed = (struct mst_claimed){ .number = numbers[i][1], .version = 44 };
		job_event(&j, &comes);
		job_link(&j, 0, 0);
		job_start(&j, 0, false);
		job_enter(&j, 1);
		CU_ASSERT(mst_ledger_started(j.ledger) && job_version(&j) == 40);
		CU_ASSERT_EQUAL(mst_ledger_generation(j.ledger).number, numbers[i][2]);
		job_close(&j);
	}
}

static void a_job_goes_on_with_the_version_after_its_checkpoint(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("bsp", 2, 5);
	struct ledger_job j;

	cfg.kept = &before;
	cfg.commits_max = 42;
	job_open(&j, &cfg);
	job_enter(&j, 0);
	job_enter(&j, 1);
	/* nobody is asked for a start state, although both offer one */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 0);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_START, -1), 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_START, -1)->commit.version, 40);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.version, 40);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 40)->total, 640);
	CU_ASSERT_EQUAL(j.worker[0].who.incarnation, 4);
	CU_ASSERT_EQUAL(job_member(&j, 0).clock, 17);
	CU_ASSERT_EQUAL(job_member(&j, 1).clock, 15);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 41);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 41)->version, 41);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 41)->total, 642);
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_COMMITS));
	CU_ASSERT_EQUAL(save_case_last(&j), 42);
	job_close(&j);
}

/* Rank 0 had given 17 and rank 1 15. */
static void the_clock_bound_holds_for_who_was_ahead(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("ssp:1", 2, 0);
	struct ledger_job j;

	cfg.kept = &before;
	job_open(&j, &cfg);
	job_enter(&j, 0);
	job_enter(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 0);
	job_answered(&j, 1);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 1);
	job_close(&j);
}

static void samples_go_on(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("bsp", 2, 0);
	struct ledger_job j;

	cfg.kept = &before;
	cfg.samples_max = 642;
	job_open(&j, &cfg);
	job_enter(&j, 0);
	job_enter(&j, 1);
	job_push(&j, 0);
	CU_ASSERT_FALSE(job_finished(&j, MST_FINISH_SAMPLES));
	job_push(&j, 1);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_SAMPLES));
	job_close(&j);
}

/* However many they are: the count of a job ends where a checkpoint still has it. */
static void samples_stay_within_what_a_checkpoint_takes(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 1);
	struct mst_kept_rank rank[1] = { { .incarnation = 3, .clock = 17, .contributions = 1 } };
	struct mst_kept kept = {
		.version = 40, .samples = MST_SAMPLES_MAX - MST_WEIGHT_MAX, .ranks = 1, .rank = rank
	};
	struct ledger_job j;

	cfg.kept = &kept;
	job_open(&j, &cfg);
	job_enter(&j, 0);
	for (uint64_t version = 41; version < 44; version++) {
		struct mst_lane_header h = job_header(&j, 0);
		h.weight = MST_WEIGHT_MAX;
		job_full_all(&j, 0, &h);
		mst_ledger_keep(j.ledger, &kept);
		CU_ASSERT_EQUAL(kept.version, version);
		CU_ASSERT_EQUAL(kept.samples, MST_SAMPLES_MAX);
		save_case_all_reported(&j, version);
	}
	job_close(&j);
}

/* Their clocks say nothing about the others then. */
static void another_number_of_workers_begins_with_equal_clocks(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("bsp", 3, 0);
	struct ledger_job j;

	cfg.kept = &before;
	job_open(&j, &cfg);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_enter(&j, rank);
	for (uint32_t rank = 0; rank < 3; rank++)
		CU_ASSERT_EQUAL(job_member(&j, rank).clock, 0);
	CU_ASSERT_EQUAL(j.worker[0].who.incarnation, 4);
	CU_ASSERT_EQUAL(j.worker[2].who.incarnation, 1);
	job_close(&j);
}

/* Each version in order, from the one that the workers offer on. */
static void where_workers_own_they_bring_the_state_of_that_version(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("bsp", 1, 0);
	struct ledger_job j;

	cfg.kept = &before;
	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = 4;
	job_open(&j, &cfg);
	job_join(&j, 0);
	job_link(&j, 0, 0);
	job_link(&j, 0, 1);
	job_start(&j, 0, true);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SEND_STATE, 0), 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_SEND_STATE, 0)->commit.version, 40);
	job_tell(&j, 0, MST_EV_STATE);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_RELEASE, 0), 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.version, 40);
	job_answered(&j, 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.version, 41);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a version is saved every so many commits", a_version_is_saved_every_so_many_commits },
	{ "a version is saved after so much time", a_version_is_saved_after_so_much_time },
	{ "saves are so much time apart", saves_are_so_much_time_apart },
	{ "a job that saves nothing saves nothing", a_job_that_saves_nothing_saves_nothing },
	{ "a buffer is held until every server has saved it",
	  a_buffer_is_held_until_every_server_has_saved_it },
	{ "a server that fails to write fails the checkpoint alone",
	  a_server_that_fails_to_write_fails_the_checkpoint_alone },
	{ "reports that cannot be change nothing", reports_that_cannot_be_change_nothing },
	{ "the last version is saved before the end is told",
	  the_last_version_is_saved_before_the_end_is_told },
	{ "the last version is saved once", the_last_version_is_saved_once },
	{ "the last version waits for the checkpoint before",
	  the_last_version_waits_for_the_checkpoint_before },
	{ "that another version follows is said with the one before",
	  that_another_version_follows_is_said_with_the_one_before },
	{ "a job that loses its workers is saved", a_job_that_loses_its_workers_is_saved },
	{ "a server that is lost fails the checkpoint",
	  a_server_that_is_lost_fails_the_checkpoint },
	{ "a server that is lost after its report fails nothing",
	  a_server_that_is_lost_after_its_report_fails_nothing },
	{ "a server that is lost last is not waited for",
	  a_server_that_is_lost_last_is_not_waited_for },
	{ "what is to be saved after the loss of a server fails",
	  what_is_to_be_saved_after_the_loss_of_a_server_fails },
	{ "a version that is not finite is not saved", a_version_that_is_not_finite_is_not_saved },
	{ "a version that is never made is not saved", a_version_that_is_never_made_is_not_saved },
	{ "what is kept is of the version that is saved",
	  what_is_kept_is_of_the_version_that_is_saved },
	{ "verdicts that were not heard are kept", verdicts_that_were_not_heard_are_kept },
	{ "verdicts that were kept are told", verdicts_that_were_kept_are_told },
	{ "the number is above all that is known of the run",
	  the_number_is_above_all_that_is_known_of_the_run },
	{ "a job goes on with the version after its checkpoint",
	  a_job_goes_on_with_the_version_after_its_checkpoint },
	{ "the clock of a lost rank is kept as that of the slowest",
	  the_clock_of_a_lost_rank_is_kept_as_that_of_the_slowest },
	{ "clocks that no rule bounds are kept equal", clocks_that_no_rule_bounds_are_kept_equal },
	{ "the clock bound holds for who was ahead", the_clock_bound_holds_for_who_was_ahead },
	{ "samples go on", samples_go_on },
	{ "samples stay within what a checkpoint takes",
	  samples_stay_within_what_a_checkpoint_takes },
	{ "another number of workers begins with equal clocks",
	  another_number_of_workers_begins_with_equal_clocks },
	{ "where workers own, they bring the state of that version",
	  where_workers_own_they_bring_the_state_of_that_version },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_save", cases);
}
