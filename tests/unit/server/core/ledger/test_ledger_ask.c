/* SPDX-License-Identifier: MIT */
/* The ledger and asks: who goes on, with which version, and what that holds (PROTOCOL 7). */
#include <errno.h>
#include <math.h>

#include "tests/policies.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

static const struct mst_decision *answer(const struct ledger_job *j, uint32_t rank)
{
	return job_last(j, MST_DO_RELEASE, (int)rank);
}

/* ---- Going on ---- */

static void counted_worker_goes_on_with_its_own_version(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	CU_ASSERT_PTR_NULL(answer(&j, 0));
	job_push(&j, 1);
	CU_ASSERT_EQUAL(answer(&j, 0)->answer.version, 1);
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.version, 1);
	job_close(&j);
}

/* The others have waited anyway, and the next step will wait for it. */
static void who_was_counted_last_is_answered_first(void)
{
	static const uint32_t order[] = { 3, 0, 1, 2 };
	struct mst_ledger_cfg cfg = job_cfg("bsp", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 1);
	job_push(&j, 0);
	job_push(&j, 2);
	job_forget(&j);
	job_push(&j, 3);
	size_t found = 0;
	for (size_t i = 0; i < j.seen_count && found < 4; i++)
		if (j.seen[i].kind == MST_DO_RELEASE)
			CU_ASSERT_EQUAL(j.seen[i].who.rank, order[found++]);
	CU_ASSERT_EQUAL(found, 4);
	job_close(&j);
}

static void late_worker_goes_on_at_once(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:1", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_LATE);
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.version, 1);
	job_close(&j);
}

/* Else: async to bsp, all gradients in flight are late, all wait for a commit nobody can cause. */
static void gradients_in_flight_at_a_change_to_bsp_hang_nobody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 3);
	struct mst_rule rule = job_rule("bsp");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	job_push(&j, 0); /* version 1 by async, and then bsp */
	job_push(&j, 1);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_verdict(&j, 2), MUSTER_LATE);
	for (uint32_t rank = 0; rank < 3; rank++) {
		CU_ASSERT_EQUAL(j.worker[rank].have, 1);
		job_push(&j, rank);
	}
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

/* Else: bsp, one NaN is refused and its worker waits for the commit that waits for it. */
static void refused_worker_goes_on_at_once(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	struct mst_lane_header h = job_header(&j, 1);
	h.weight = (double)NAN;
	job_full(&j, 1, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_REFUSED);
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.where, MST_WHERE_KEEP);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void pull_is_answered_at_once_under_every_rule(void)
{
	for (size_t i = 0; i < POLICY_ROWS; i++) {
		struct mst_ledger_cfg cfg = job_cfg(policy_rows[i].text, 2);
		struct ledger_job j;
		job_born(&j, &cfg);
		job_ask(&j, 1);
		CU_ASSERT_EQUAL(answer(&j, 1)->answer.where, MST_WHERE_KEEP);
		job_close(&j);
	}
}

static void leader_waits_for_the_clock_bound(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:1", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(answer(&j, 0)->answer.version, 1);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 1);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 2);
	CU_ASSERT_EQUAL(answer(&j, 0)->answer.version, 3);
	job_close(&j);
}

static void clock_bound_follows_the_roster(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:0", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	CU_ASSERT_PTR_NULL(answer(&j, 0));
	job_tell(&j, 1, MST_EV_LOST);
	CU_ASSERT_EQUAL(answer(&j, 0)->answer.version, 1);
	job_close(&j);
}

static void two_asks_at_once_end_the_session(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_ask(&j, 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_EVICT, 0)->evict, MST_EVICT_INVALID);
	job_close(&j);
}

/* ---- Workers own ---- */

static struct mst_ledger_cfg workers_own(const char *policy, uint32_t workers, uint32_t history)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = history;
	return cfg;
}

static void versions_are_delivered_one_by_one(void)
{
	struct mst_ledger_cfg cfg = workers_own("backup:1", 2, 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (int i = 0; i < 3; i++)
		job_push(&j, 0);
	for (uint64_t version = 1; version <= 3; version++) {
		job_ask(&j, 1);
		CU_ASSERT_EQUAL(answer(&j, 1)->answer.version, version);
		CU_ASSERT_EQUAL(answer(&j, 1)->answer.newest, 3);
	}
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.where, MST_WHERE_KEEP);
	job_close(&j);
}

static void worker_that_is_behind_the_history_is_stale(void)
{
	struct mst_ledger_cfg cfg = workers_own("backup:1", 2, 2);
	struct ledger_job j;

	cfg.rule.min_workers = 2;
	job_born(&j, &cfg);
	for (int i = 0; i < 3; i++) {
		job_push(&j, 0);
		job_answered(&j, 0);
	}
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_EVICT, 1)->evict, MST_EVICT_STALE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_join(&j, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_REFUSE, -1)->join.error, -ESTALE);
	job_close(&j);
}

/* The commit condition is judged after every end of a session, this one too. */
static void end_of_a_stale_worker_lets_the_others_commit(void)
{
	struct mst_ledger_cfg cfg = workers_own("backup:1", 2, 1);
	struct mst_rule rule = job_rule("bsp");
	struct ledger_job j;

	job_born(&j, &cfg);
	for (int i = 0; i < 2; i++) {
		job_push(&j, 0);
		job_answered(&j, 0);
	}
	job_policy(&j, &rule);
	job_push(&j, 0);
	job_answered(&j, 0);
	job_push(&j, 0); /* bsp: waits for rank 1 */
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_EVICT, 1)->evict, MST_EVICT_STALE);
	CU_ASSERT_EQUAL(job_version(&j), 4);
	job_close(&j);
}

static void joiner_gets_the_whole_history(void)
{
	struct mst_ledger_cfg cfg = workers_own("bsp", 2, 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 1, MST_EV_LOST);
	job_push(&j, 0);
	job_enter(&j, 1);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.version, 0);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.version, 1);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.version, 2);
	job_close(&j);
}

/* ---- Version buffers ---- */

static struct mst_ledger_cfg in_place(const char *policy, uint32_t workers, uint32_t buffers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.in_place = true;
	cfg.buffers = buffers;
	return cfg;
}

static uint32_t committed_to(const struct ledger_job *j)
{
	return job_last(j, MST_DO_COMMIT, -1)->commit.buffer;
}

/* Else kbatchsync's answer overwrites the parameters the worker is computing on. */
static void worker_that_is_up_to_date_goes_on_reading_its_buffer(void)
{
	struct mst_ledger_cfg cfg = in_place("kbatchsync:2", 2, 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 0); /* version 1 */
	CU_ASSERT_EQUAL_FATAL(answer(&j, 0)->answer.where, MST_WHERE_IN_PLACE);
	uint32_t reads = answer(&j, 0)->answer.buffer;
	job_push(&j, 0);
	CU_ASSERT_EQUAL_FATAL(answer(&j, 0)->answer.where, MST_WHERE_KEEP);
	job_ask(&j, 1); /* lets version 0 go */
	for (int i = 0; i < 5; i++) {
		struct mst_lane_header h = job_header(&j, 1);
		h.tag = job_version(&j);
		job_full(&j, 1, 0, &h);
		job_answered(&j, 1);
		CU_ASSERT_NOT_EQUAL(committed_to(&j), reads);
	}
	CU_ASSERT(job_version(&j) >= 3);
	job_close(&j);
}

static void slow_readers_never_hold_a_commit_up(void)
{
	struct mst_ledger_cfg cfg = in_place("async", 6, 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 5; rank++) { /* each reads another version, and stops */
		job_push(&j, rank);
		job_answered(&j, rank);
	}
	for (int i = 0; i < 20; i++) {
		job_push(&j, 5);
		job_answered(&j, 5);
	}
	CU_ASSERT_EQUAL(job_version(&j), 25);
	job_close(&j);
}

static void slow_readers_of_the_history_never_hold_a_commit_up(void)
{
	struct mst_ledger_cfg cfg = in_place("backup:1", 4, 3);
	struct ledger_job j;

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = 2;
	job_open(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++) {
		job_join(&j, (int32_t)rank);
		job_link(&j, rank, 0);
		job_start(&j, rank, true);
	}
	job_tell(&j, 0, MST_EV_STATE);
	job_push(&j, 3);
	job_push(&j, 3);
	job_ask(&j, 1); /* rank 0 reads version 0, 1 reads 1, 2 reads 2; and all of them stop */
	job_ask(&j, 2);
	job_ask(&j, 2);
	job_answered(&j, 2);
	for (int i = 0; i < 20; i++) {
		job_push(&j, 3);
		job_answered(&j, 3);
	}
	CU_ASSERT_EQUAL(job_version(&j), 22);
	job_close(&j);
}

static void commit_waits_for_a_copy_on_all_shards(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 4);
	struct ledger_job j;

	cfg.buffers = 3;
	cfg.shards = 2;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	job_push(&j, 2); /* versions 1 to 3; 1 and 2 are still being copied */
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_push(&j, 3);
	CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_forget(&j);
	job_answered(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 4);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_COMMIT, -1), 1);
	job_close(&j);
}

/* Else the set grows beyond its quorum for as long as a shard is slow. */
static void what_comes_while_a_commit_waits_is_judged_after_it(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 4);
	struct ledger_job j;

	cfg.buffers = 3;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++)
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_forget(&j);
	job_push(&j, 0);
	job_leave(&j, 0, 2);
	CU_ASSERT_EQUAL(j.seen_count, 0);
	job_answered(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 5);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_COMMIT, -1), 2);
	CU_ASSERT_EQUAL(mst_ledger_record(j.ledger, committed_to(&j))->entry_count, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_VERDICT, 0)->verdict.counted_in, 5);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_LEFT));
	job_close(&j);
}

static void end_of_a_reader_frees_its_buffer(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 4);
	struct ledger_job j;

	cfg.buffers = 3;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++)
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_version(&j), 4);
	job_close(&j);
}

static void ask_with(struct ledger_job *j, uint32_t rank, uint64_t have)
{
	j->worker[rank].have = have;
	job_ask(j, rank);
}

/* It is the shards' memory, so a worker's word must not decide what is held. */
static void ask_names_the_version_it_was_answered_with(void)
{
	static const uint64_t wrong[] = { 0, 2, 3, MST_VERSION_NONE };
	struct mst_ledger_cfg cfg = in_place("async", 2, 4);
	struct ledger_job j;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		job_born(&j, &cfg);
		job_push(&j, 0);
		job_ask(&j, 1);
		job_push(&j, 0); /* version 2 is there; rank 1 was given 1 */
		job_forget(&j);
		ask_with(&j, 1, wrong[i]);
		CU_ASSERT(job_evicted(&j, 1, MST_EVICT_INVALID));
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 0);
		for (int k = 0; k < 8; k++) /* and what it read is free again */
			job_push(&j, 0);
		CU_ASSERT_EQUAL(job_version(&j), 10);
		job_close(&j);
	}
}

static void ask_before_the_first_answer_names_none(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_join(&j, 0);
	ask_with(&j, 0, 0);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_INVALID));
	job_close(&j);
}

/* With so many read for ever, commits have two to take turns with. */
static void reading_in_place_leaves_two_buffers(void)
{
	struct mst_ledger_cfg cfg = in_place("async", 4, 4);
	struct ledger_job j;

	job_born(&j, &cfg); /* all read version 0 */
	job_push(&j, 0);
	CU_ASSERT_EQUAL(answer(&j, 0)->answer.where, MST_WHERE_IN_PLACE);
	job_push(&j, 1); /* 0 and 1 are being read */
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.where, MST_WHERE_COPIED);
	job_push(&j, 0);                                                /* lets 1 go */
	CU_ASSERT_EQUAL(answer(&j, 0)->answer.where, MST_WHERE_COPIED); /* 2 is being copied */
	job_answered(&j, 0);
	job_answered(&j, 1);
	job_ask(&j, 2);
	CU_ASSERT_EQUAL(answer(&j, 2)->answer.where, MST_WHERE_IN_PLACE);
	job_ask(&j, 3); /* nobody reads 0 any more; and another one may read what is read anyway */
	CU_ASSERT_EQUAL(answer(&j, 3)->answer.where, MST_WHERE_IN_PLACE);
	job_close(&j);
}

/* ---- Answers that are sent ---- */

static struct mst_ledger_cfg sent(const char *policy, uint32_t workers, uint32_t buffers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.sent = true;
	cfg.buffers = buffers;
	return cfg;
}

/* All have had version 0. */
static void all_sent(struct ledger_job *j)
{
	for (uint32_t rank = 0; rank < j->cfg.workers; rank++)
		job_answered(j, rank);
}

static void a_slow_link_never_holds_a_commit_up(void)
{
	struct mst_ledger_cfg cfg = sent("async", 6, 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	all_sent(&j);
	job_push(&j, 0); /* version 1 is on its way to rank 0 for ever */
	CU_ASSERT_EQUAL(answer(&j, 0)->answer.where, MST_WHERE_COPIED);
	for (int i = 0; i < 20; i++) {
		job_push(&j, 5);
		CU_ASSERT_EQUAL(answer(&j, 5)->answer.version, job_version(&j));
		job_answered(&j, 5);
	}
	CU_ASSERT_EQUAL(job_version(&j), 21);
	job_close(&j);
}

static void an_ask_waits_while_links_hold_the_buffers(void)
{
	struct mst_ledger_cfg cfg = sent("async", 4, 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	all_sent(&j);
	job_push(&j, 0);
	job_push(&j, 1); /* versions 1 and 2 are on their way */
	job_forget(&j);
	job_push(&j, 2);
	job_push(&j, 3);
	CU_ASSERT_EQUAL(job_version(&j), 4); /* the commits are made */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 0);
	job_answered(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 1);
	CU_ASSERT_EQUAL(answer(&j, 2)->answer.version, 4);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1); /* the same, which costs no more */
	job_close(&j);
}

static void end_of_a_slow_link_lets_the_others_go_on(void)
{
	struct mst_ledger_cfg cfg = sent("async", 4, 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	all_sent(&j);
	job_push(&j, 0);
	job_forget(&j);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 0);
	job_ask(&j, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 1);
	job_close(&j);
}

static void the_last_version_waits_for_no_link(void)
{
	struct mst_ledger_cfg cfg = sent("async", 4, 3);
	struct ledger_job j;

	cfg.commits_max = 2;
	job_born(&j, &cfg);
	all_sent(&j);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_COMMITS));
	CU_ASSERT_EQUAL(answer(&j, 1)->answer.version, 2);
	job_ask(&j, 2);
	CU_ASSERT_EQUAL(answer(&j, 2)->answer.version, 2);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a counted worker goes on with its own version",
	  counted_worker_goes_on_with_its_own_version },
	{ "who was counted last is answered first", who_was_counted_last_is_answered_first },
	{ "a late worker goes on at once", late_worker_goes_on_at_once },
	{ "gradients in flight at a change to bsp hang nobody",
	  gradients_in_flight_at_a_change_to_bsp_hang_nobody },
	{ "a refused worker goes on at once", refused_worker_goes_on_at_once },
	{ "a pull is answered at once under every rule",
	  pull_is_answered_at_once_under_every_rule },
	{ "a leader waits for the clock bound", leader_waits_for_the_clock_bound },
	{ "the clock bound follows the roster", clock_bound_follows_the_roster },
	{ "two asks at once end the session", two_asks_at_once_end_the_session },
	{ "versions are delivered one by one", versions_are_delivered_one_by_one },
	{ "a worker that is behind the history is stale",
	  worker_that_is_behind_the_history_is_stale },
	{ "the end of a stale worker lets the others commit",
	  end_of_a_stale_worker_lets_the_others_commit },
	{ "a joiner gets the whole history", joiner_gets_the_whole_history },
	{ "a worker that is up to date goes on reading its buffer",
	  worker_that_is_up_to_date_goes_on_reading_its_buffer },
	{ "slow readers never hold a commit up", slow_readers_never_hold_a_commit_up },
	{ "slow readers of the history never hold a commit up",
	  slow_readers_of_the_history_never_hold_a_commit_up },
	{ "a commit waits for a copy on all shards", commit_waits_for_a_copy_on_all_shards },
	{ "what comes while a commit waits is judged after it",
	  what_comes_while_a_commit_waits_is_judged_after_it },
	{ "the end of a reader frees its buffer", end_of_a_reader_frees_its_buffer },
	{ "an ask names the version it was answered with",
	  ask_names_the_version_it_was_answered_with },
	{ "an ask before the first answer names none", ask_before_the_first_answer_names_none },
	{ "reading in place leaves two buffers", reading_in_place_leaves_two_buffers },
	{ "a slow link never holds a commit up", a_slow_link_never_holds_a_commit_up },
	{ "an ask waits while links hold the buffers", an_ask_waits_while_links_hold_the_buffers },
	{ "the end of a slow link lets the others go on",
	  end_of_a_slow_link_lets_the_others_go_on },
	{ "the last version waits for no link", the_last_version_waits_for_no_link },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, asks", cases);
}
