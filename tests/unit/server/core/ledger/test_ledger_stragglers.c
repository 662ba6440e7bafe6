/* SPDX-License-Identifier: MIT */
/* What the judge of stragglers is told of a job, by policy, and what it says of it. */
#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

#define WORKERS 4u

static struct mst_straggler verdict(const struct ledger_job *j, uint32_t rank)
{
	return mst_ledger_straggler(j->ledger, rank, j->now_ns);
}

static bool is_now(const struct ledger_job *j, uint32_t rank, enum mst_straggler_kind kind)
{
	struct mst_straggler of = verdict(j, rank);

	return of.now && of.sure && of.kind == kind;
}

static void wait_ms(struct ledger_job *j, uint64_t ms)
{
	job_wait(j, ms * MST_MS, -1);
	job_forget(j);
}

/* A step in which ranks 0 to 2 take 20 ms, and rank 3 comes after so many more. */
static void step(struct ledger_job *j, uint64_t later_ms)
{
	wait_ms(j, 20);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(j, rank);
	if (later_ms > 0)
		wait_ms(j, later_ms);
	job_push(j, 3);
	job_forget(j);
}

static void born(struct ledger_job *j, const char *policy)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, WORKERS);

	job_born(j, &cfg);
}

static void a_slow_rank_is_found_told_once_and_let_go(void)
{
	struct ledger_job j;

	born(&j, "bsp");
	for (int i = 0; i < 40; i++)
		step(&j, 40);
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_SLOW));
	CU_ASSERT_DOUBLE_EQUAL(verdict(&j, 3).ratio, 3, 0.1);
	CU_ASSERT_EQUAL(verdict(&j, 0).kind, MST_STRAGGLER_NONE);
	CU_ASSERT_EQUAL(mst_ledger_fast_ns(j.ledger), 20 * MST_MS);
	/* From its first gradient that the fast ranks' were known for. */
	CU_ASSERT(verdict(&j, 3).waited_ns > 30 * 40 * MST_MS);
	CU_ASSERT(verdict(&j, 3).waited_ns <= 40 * 40 * MST_MS);
	CU_ASSERT_EQUAL(mst_ledger_next_found(j.ledger), 3);
	CU_ASSERT_EQUAL(mst_ledger_next_found(j.ledger), MST_RANK_NONE);
	for (int i = 0; i < 40; i++)
		step(&j, 0);
	CU_ASSERT_FALSE(verdict(&j, 3).now);
	CU_ASSERT_EQUAL(mst_ledger_next_found(j.ledger), 3);
	uint64_t total_ns = verdict(&j, 3).total_ns;
	CU_ASSERT(total_ns > 30 * 60 * MST_MS);
	for (int i = 0; i < 40; i++)
		step(&j, 0);
	CU_ASSERT_EQUAL(verdict(&j, 3).total_ns, total_ns);
	job_close(&j);
}

/* Nothing is committed meanwhile, so a look at each version would see nothing. */
static void who_stands_still_is_found_while_the_step_waits(void)
{
	struct ledger_job j;

	born(&j, "bsp");
	for (int i = 0; i < 20; i++)
		step(&j, 0);
	wait_ms(&j, 20);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	wait_ms(&j, 1500);
	job_tick(&j);
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_STALLED));
	CU_ASSERT(verdict(&j, 3).ratio > 70);
	CU_ASSERT_EQUAL(mst_ledger_next_found(j.ledger), 3);
	job_lose(&j, 3, 0);
	CU_ASSERT_FALSE(verdict(&j, 3).now);
	CU_ASSERT_DOUBLE_EQUAL((double)verdict(&j, 3).waited_ns, 1500e6, 30e6);
	job_close(&j);
}

/* The gradient for which it stood still is part of the evidence that it is slow. */
static void no_time_of_a_straggler_counts_twice(void)
{
	struct ledger_job j;

	born(&j, "bsp");
	for (int i = 0; i < 40; i++)
		step(&j, 0);
	step(&j, 40);
	wait_ms(&j, 20);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	wait_ms(&j, 1500);
	job_tick(&j);
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_STALLED));
	job_push(&j, 3);
	job_forget(&j);
	CU_ASSERT_FALSE(verdict(&j, 3).now);
	for (int i = 0; i < 10; i++)
		step(&j, 40);
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_SLOW));
	CU_ASSERT(verdict(&j, 3).total_ns >= 1500 * MST_MS);
	CU_ASSERT(verdict(&j, 3).total_ns <= (60 + 1520 + 10 * 60) * MST_MS);
	CU_ASSERT(verdict(&j, 3).waited_ns >= 1500 * MST_MS);
	CU_ASSERT(verdict(&j, 3).waited_ns <= (40 + 1500 + 10 * 40) * MST_MS);
	job_close(&j);
}

/* It is told to give up at each commit, and never has a gradient. */
static void who_gives_up_each_gradient_is_late(void)
{
	struct ledger_job j;

	born(&j, "ksync:3");
	for (uint64_t i = 1; i <= 40; i++) {
		wait_ms(&j, 20);
		for (uint32_t rank = 0; rank < 3; rank++)
			job_push(&j, rank);
		struct mst_ledger_event ev = { .kind = MST_EV_ASK,
					       .who = j.worker[3].who,
					       .ask = { .number = ++j.worker[3].asks,
							.have = j.worker[3].have },
					       .given_up = i };
		job_event(&j, &ev);
		job_forget(&j);
	}
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_LATE));
	CU_ASSERT_EQUAL(verdict(&j, 3).waited_ns, 0);
	CU_ASSERT_EQUAL(verdict(&j, 0).kind, MST_STRAGGLER_NONE);
	job_close(&j);
}

/* Its gradients take hardly longer, and each comes after the commit. */
static void whose_gradients_are_dropped_is_late(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:3", WORKERS);
	struct ledger_job j;

	cfg.rule.late_start = MST_LATE_START_NOW;
	job_born(&j, &cfg);
	for (int i = 0; i < 40; i++)
		step(&j, 5);
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_LATE));
	CU_ASSERT_EQUAL(verdict(&j, 3).waited_ns, 0);
	job_close(&j);
}

static void under_async_a_rank_is_slow_and_no_step_waits(void)
{
	struct ledger_job j;

	born(&j, "async");
	for (int i = 0; i < 160; i++) {
		wait_ms(&j, 20);
		for (uint32_t rank = 0; rank < 3; rank++)
			job_push(&j, rank);
		wait_ms(&j, 5);
		if (i % 4 == 3)
			job_push(&j, 3);
		job_forget(&j);
	}
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_SLOW));
	CU_ASSERT_DOUBLE_EQUAL(verdict(&j, 3).ratio, 4, 0.1);
	CU_ASSERT_EQUAL(verdict(&j, 3).waited_ns, 0);
	job_close(&j);
}

/* A round of nonblocking: all hand in after the same time, and rank 3 has a fourth of the samples,
 * or nothing. */
static void round_of(struct ledger_job *j, bool passes)
{
	struct mst_lane_header h;

	wait_ms(j, 20);
	h = job_header(j, 0);
	h.weight = 8;
	h.flags |= MST_HEADER_FULL;
	job_full_all(j, 0, &h);
	for (uint32_t rank = 1; rank < 3; rank++) {
		h = job_header(j, rank);
		h.weight = 8;
		job_full_all(j, rank, &h);
	}
	if (passes) {
		job_pass(j, 3);
	} else {
		h = job_header(j, 3);
		h.weight = 2;
		job_full_all(j, 3, &h);
	}
	job_forget(j);
}

static void who_has_fewer_samples_in_the_same_time_is_slow(void)
{
	struct ledger_job j;

	born(&j, "nonblocking");
	for (int i = 0; i < 60; i++)
		round_of(&j, false);
	CU_ASSERT_EQUAL(job_version(&j), 60);
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_SLOW));
	CU_ASSERT_DOUBLE_EQUAL(verdict(&j, 3).ratio, 4, 0.1);
	CU_ASSERT_EQUAL(verdict(&j, 0).kind, MST_STRAGGLER_NONE);
	job_close(&j);
}

static void who_passes_is_still_at_it(void)
{
	struct ledger_job j;

	born(&j, "nonblocking");
	for (int i = 0; i < 60; i++)
		round_of(&j, i % 2 == 0);
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_SLOW));
	CU_ASSERT_DOUBLE_EQUAL(verdict(&j, 3).ratio, 8, 0.2);
	job_close(&j);
}

/* Rank 3 is slow, and rank 2 stands still; then all have time for a last test. */
static void nobody_is_a_straggler_after_the_end_of_the_job(void)
{
	struct ledger_job j;

	born(&j, "async");
	for (int i = 0; i < 160; i++) {
		wait_ms(&j, 20);
		for (uint32_t rank = 0; rank < (i % 4 == 3 ? 4 : 3); rank++)
			job_push(&j, rank);
		job_forget(&j);
	}
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_SLOW));
	for (int i = 0; i < 60; i++) {
		wait_ms(&j, 20);
		job_push(&j, 0);
		job_push(&j, 1);
	}
	job_tell(&j, 0, MST_EV_FINISH);
	job_forget(&j);
	uint64_t slow_ns = verdict(&j, 3).total_ns, held_ns = verdict(&j, 2).total_ns;
	wait_ms(&j, 5000);
	CU_ASSERT_EQUAL(verdict(&j, 0).kind, MST_STRAGGLER_NONE);
	CU_ASSERT_EQUAL(verdict(&j, 2).kind, MST_STRAGGLER_STALLED);
	CU_ASSERT(held_ns > 0 && verdict(&j, 2).total_ns == held_ns);
	CU_ASSERT(slow_ns > 0 && verdict(&j, 3).total_ns == slow_ns);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		CU_ASSERT_FALSE(verdict(&j, rank).now);
	job_lose(&j, 2, 0);
	CU_ASSERT_EQUAL(verdict(&j, 2).total_ns, held_ns);
	CU_ASSERT_EQUAL(mst_ledger_next_found(j.ledger), MST_RANK_NONE);
	job_close(&j);
}

/* The last version answers all, who then have nothing to compute. */
static void a_last_test_is_no_gradient_that_takes_long(void)
{
	struct ledger_job j;

	born(&j, "bsp");
	for (int i = 0; i < 40; i++)
		step(&j, 0);
	wait_ms(&j, 20);
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		if (rank + 1 == WORKERS)
			job_tell(&j, 0, MST_EV_FINISH);
		job_push(&j, rank);
	}
	job_forget(&j);
	wait_ms(&j, 5000);
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		CU_ASSERT_EQUAL(verdict(&j, rank).kind, MST_STRAGGLER_NONE);
		CU_ASSERT_EQUAL(verdict(&j, rank).total_ns, 0);
	}
	job_close(&j);
}

/* All hand in after the same time: little at first, for programs are slow then, and later more. */
static void who_began_slowly_does_not_stand_still(void)
{
	struct ledger_job j;

	born(&j, "anytime:1000");
	for (int i = 0; i < 40; i++) {
		wait_ms(&j, 600);
		for (uint32_t rank = 0; rank < WORKERS && i > 20; rank++)
			CU_ASSERT_EQUAL(verdict(&j, rank).kind, MST_STRAGGLER_NONE);
		wait_ms(&j, 400);
		for (uint32_t rank = 0; rank < WORKERS; rank++) {
			struct mst_lane_header h = job_header(&j, rank);
			h.weight = i == 0 ? 1 : 60;
			job_full_all(&j, rank, &h);
		}
		job_forget(&j);
	}
	CU_ASSERT_EQUAL(job_version(&j), 40);
	CU_ASSERT_DOUBLE_EQUAL((double)mst_ledger_fast_ns(j.ledger), 1e9, 1e6);
	wait_ms(&j, 21000);
	job_tick(&j);
	CU_ASSERT(is_now(&j, 3, MST_STRAGGLER_STALLED));
	CU_ASSERT_DOUBLE_EQUAL(verdict(&j, 3).ratio, 21, 0.1);
	job_close(&j);
}

/* Its micro-batches have twice the samples, and take twice as long. */
static void who_has_larger_micro_batches_is_not_slow(void)
{
	struct ledger_job j;

	born(&j, "nonblocking:0,16");
	for (int i = 0; i < 200; i++) {
		wait_ms(&j, 20);
		for (uint32_t rank = 0; rank < WORKERS; rank++) {
			if (rank == 3 && i % 2 == 0)
				continue;
			struct mst_lane_header h = job_header(&j, rank);
			h.weight = rank == 3 ? 16 : 8;
			h.flags |= i % 8 == 7 ? 0 : MST_HEADER_PART;
			job_full_all(&j, rank, &h);
		}
		job_forget(&j);
	}
	CU_ASSERT(job_version(&j) > 10);
	CU_ASSERT(mst_ledger_fast_ns(j.ledger) > 0);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		CU_ASSERT_EQUAL(verdict(&j, rank).kind, MST_STRAGGLER_NONE);
	job_close(&j);
}

/* Whole batches take longer than parts, and say nothing of them. */
static void what_a_contribution_is_changes_and_all_are_compared_anew(void)
{
	struct mst_rule parts = job_rule("nonblocking");
	struct ledger_job j;

	born(&j, "bsp");
	for (int i = 0; i < 40; i++)
		step(&j, 0);
	CU_ASSERT(mst_ledger_fast_ns(j.ledger) > 0);
	job_policy(&j, &parts);
	step(&j, 0);
	CU_ASSERT_EQUAL(mst_ledger_fast_ns(j.ledger), 0);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a slow rank is found, told of once, and let go",
	  a_slow_rank_is_found_told_once_and_let_go },
	{ "who stands still is found while the step waits",
	  who_stands_still_is_found_while_the_step_waits },
	{ "no time of a straggler counts twice", no_time_of_a_straggler_counts_twice },
	{ "who gives up each gradient is late", who_gives_up_each_gradient_is_late },
	{ "whose gradients are dropped is late", whose_gradients_are_dropped_is_late },
	{ "under async a rank is slow, and no step waits",
	  under_async_a_rank_is_slow_and_no_step_waits },
	{ "who has fewer samples in the same time is slow",
	  who_has_fewer_samples_in_the_same_time_is_slow },
	{ "who passes is still at it", who_passes_is_still_at_it },
	{ "who has larger micro-batches is not slow", who_has_larger_micro_batches_is_not_slow },
	{ "what a contribution is changes, and all are compared anew",
	  what_a_contribution_is_changes_and_all_are_compared_anew },
	{ "nobody is a straggler after the end of the job",
	  nobody_is_a_straggler_after_the_end_of_the_job },
	{ "who began slowly does not stand still", who_began_slowly_does_not_stand_still },
	{ "a last test is no gradient that takes long",
	  a_last_test_is_no_gradient_that_takes_long },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger stragglers", cases);
}
