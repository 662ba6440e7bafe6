/* SPDX-License-Identifier: MIT */
/*
 * The judge where steps do not wait for all: who is given up, or late, is found by how often; how
 * long steps waited for a straggler; and what the verdict on a rank says.
 *
 *   test_late_ranks          the promises
 *   test_late_ranks table    the table of docs/policies.md
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/server/core/stragglers/timed_job.h"
#include "tests/ut.h"

/* Steps that need so many of so many ranks. */
struct race {
	const char *name;
	uint32_t ranks, quorum;
	bool preempts;
};
static const struct race races[] = {
	{ "ksync:7 of 8", 8, 7, true },     { "ksync:4 of 8", 8, 4, true },
	{ "ksync:60 of 64", 64, 60, true }, { "backup:7 of 8", 8, 7, false },
	{ "backup:4 of 8", 8, 4, false },   { "backup:60 of 64", 64, 60, false },
};
enum { RACES = sizeof(races) / sizeof(races[0]) };

static void open_race(struct timed_job *j, const struct race *r, enum times shape, uint64_t seed)
{
	job_open(j, shape, r->ranks, seed);
	j->quorum = r->quorum;
	j->preempts = r->preempts;
}

static enum mst_straggler_kind found(struct timed_job *j, uint32_t rank)
{
	(void)mst_stragglers_look(&j->judge, rank, j->now_ns);
	const struct mst_straggler *of = &j->judge.found[rank];
	return of->now ? of->kind : MST_STRAGGLER_NONE;
}

/* Return: how often a rank was found to be a straggler and is none. One that is at a gradient for
 * as long as twenty others is one. */
static uint32_t false_alarms(const struct race *r, enum times shape, uint32_t steps, uint64_t seed)
{
	bool was[MOST_RANKS] = { false };
	uint32_t alarms = 0;
	struct timed_job j;

	open_race(&j, r, shape, seed);
	for (uint32_t i = 0; i < steps; i++) {
		job_race(&j);
		for (uint32_t rank = 0; rank < r->ranks; rank++) {
			enum mst_straggler_kind kind = found(&j, rank);
			bool now = kind == MST_STRAGGLER_SLOW || kind == MST_STRAGGLER_LATE;
			alarms += now && !was[rank];
			was[rank] = now;
		}
	}
	job_close(&j);
	return alarms;
}

static uint32_t steps_until_found(const struct race *r, enum times shape, double factor,
				  uint64_t seed)
{
	uint32_t count = 0;
	struct timed_job j;

	open_race(&j, r, shape, seed);
	job_races(&j, 60 + (uint32_t)seed % 20);
	j.factor[3] = factor;
	do {
		job_race(&j);
		count++;
	} while (found(&j, 3) == MST_STRAGGLER_NONE && count < 10000);
	job_close(&j);
	return count;
}

static uint32_t found_within(const struct race *r, enum times shape, double factor, double share)
{
	uint32_t count[SEEDS];

	for (uint32_t i = 0; i < SEEDS; i++)
		count[i] = steps_until_found(r, shape, factor, 2000 + i);
	qsort(count, SEEDS, sizeof(count[0]), by_size_u32);
	return count[(uint32_t)(share * SEEDS) - 1];
}

static void table(void)
{
	printf("| policy | times of a gradient, ms | false alarms in 1000 steps | "
	       "3 times as slow | 10 times |\n|---|---|---|---|---|\n");
	for (unsigned i = 0; i < RACES; i++)
		for (unsigned shape = UNIFORM; shape < SHAPES; shape++) {
			uint32_t steps = 160000 / races[i].ranks;
			printf("| `%s` | %s | %.2f |", races[i].name, shape_name[shape],
			       1000.0 * false_alarms(&races[i], shape, steps, 98) / steps);
			for (int k = 0; k < 2; k++) {
				double factor = (double[]){ 3, 10 }[k];
				printf(" %u, %u |", found_within(&races[i], shape, factor, 0.5),
				       found_within(&races[i], shape, factor, 0.95));
			}
			printf("\n");
		}
}

/* ---- how often ---- */

static void of_equal_ranks_hardly_one_is_a_straggler_in_a_thousand_steps(void)
{
	for (unsigned i = 0; i < RACES; i++)
		for (unsigned shape = UNIFORM; shape < SHAPES; shape++)
			CU_ASSERT(false_alarms(&races[i], shape, 2000, 61) <= 9);
}

static void who_gives_up_or_is_late_is_found(void)
{
	for (unsigned i = 0; i < RACES; i++) {
		CU_ASSERT(found_within(&races[i], UNIFORM, 3, 0.95) <= 30);
		CU_ASSERT(found_within(&races[i], SEXP, 3, 0.95) <= 30);
		if (races[i].quorum > races[i].ranks / 2)
			CU_ASSERT(found_within(&races[i], EXP, 10, 0.95) <= 30);
	}
}

/* Its gradients are hardly slower, and each comes too late. */
static void who_is_always_a_little_too_late_is_late_and_not_slow(void)
{
	struct timed_job j;

	open_race(&j, &races[3], CONST, 62);
	j.factor[3] = 1.3;
	job_races(&j, 100);
	CU_ASSERT_EQUAL(found(&j, 3), MST_STRAGGLER_LATE);
	CU_ASSERT(j.judge.found[3].ratio > 1.2 && j.judge.found[3].ratio < 1.31);
	j.factor[3] = 1;
	job_races(&j, 40);
	CU_ASSERT_EQUAL(found(&j, 3), MST_STRAGGLER_NONE);
	job_close(&j);
}

/* One of equal ranks is always the last. Where it comes a fiftieth of a step after the step, nobody
 * is helped if it is named. */
static void who_is_late_by_less_than_a_tenth_of_a_step_is_no_straggler(void)
{
	struct timed_job j;

	open_race(&j, &races[3], CONST, 63);
	j.factor[3] = 1.02;
	for (int i = 0; i < 300; i++) {
		job_race(&j);
		CU_ASSERT_EQUAL(found(&j, 3), MST_STRAGGLER_NONE);
	}
	CU_ASSERT(mst_misses_recent(&j.judge.misses[3]) > 10);
	job_close(&j);
}

static void who_is_late_by_next_to_nothing_now_is_late_no_more(void)
{
	struct timed_job j;

	open_race(&j, &races[3], CONST, 67);
	j.factor[3] = 1.3;
	job_races(&j, 100);
	CU_ASSERT_EQUAL(found(&j, 3), MST_STRAGGLER_LATE);
	j.factor[3] = 1.02;
	job_races(&j, 100);
	CU_ASSERT_EQUAL(found(&j, 3), MST_STRAGGLER_NONE);
	CU_ASSERT(mst_misses_recent(&j.judge.misses[3]) > 10);
	job_close(&j);
}

static void if_all_are_late_alike_nobody_is(void)
{
	struct timed_job j;

	open_race(&j, &races[1], CONST, 64);
	for (int i = 0; i < 500; i++)
		for (uint32_t rank = 0; rank < 8; rank++)
			mst_stragglers_gave_up(&j.judge, rank, j.now_ns);
	for (uint32_t rank = 0; rank < 8; rank++)
		CU_ASSERT_EQUAL(found(&j, rank), MST_STRAGGLER_NONE);
	job_close(&j);
}

/* ---- how long steps waited ---- */

/* All ranks of a step that waits for all. */
static void open_bsp(struct timed_job *j)
{
	job_open(j, CONST, 8, 65);
	j->quorum = 8;
}

static void look_at_all(struct timed_job *j)
{
	for (uint32_t rank = 0; rank < j->ranks; rank++)
		(void)found(j, rank);
}

static double waited_ms(const struct timed_job *j, uint32_t rank)
{
	return (double)j->judge.found[rank].waited_ns / MS;
}

/* Steps before it was found count too: they are why it was. */
static void steps_wait_for_a_slow_rank_from_its_first_slow_gradient_on(void)
{
	struct timed_job j;

	open_bsp(&j);
	job_races(&j, 40);
	j.factor[3] = 10;
	for (int i = 0; i < 30; i++) {
		job_race(&j);
		look_at_all(&j);
	}
	CU_ASSERT_DOUBLE_EQUAL(waited_ms(&j, 3), 30 * 180, 1);
	CU_ASSERT_DOUBLE_EQUAL((double)mst_straggler_total(&j.judge.found[3], j.now_ns) / MS,
			       30 * 200, 1);
	CU_ASSERT_EQUAL(waited_ms(&j, 2), 0);
	job_close(&j);
}

/* Each is told by how much it was later than those who are no stragglers. */
static void steps_wait_for_each_of_two_slow_ranks(void)
{
	struct timed_job j;

	open_bsp(&j);
	job_races(&j, 40);
	j.factor[3] = 10;
	j.factor[5] = 6;
	for (int i = 0; i < 100; i++) {
		job_race(&j);
		look_at_all(&j);
	}
	CU_ASSERT(waited_ms(&j, 3) > 90 * 180 && waited_ms(&j, 3) <= 100 * 180);
	CU_ASSERT(waited_ms(&j, 5) > 90 * 100 && waited_ms(&j, 5) <= 100 * 100);
	job_close(&j);
}

static void no_step_waits_for_who_comes_after_it(void)
{
	struct timed_job j;

	open_race(&j, &races[3], CONST, 66);
	j.factor[3] = 10;
	for (int i = 0; i < 200; i++) {
		job_race(&j);
		look_at_all(&j);
	}
	CU_ASSERT_EQUAL(found(&j, 3), MST_STRAGGLER_SLOW);
	CU_ASSERT_EQUAL(waited_ms(&j, 3), 0);
	job_close(&j);
}

/* ---- who stands still ---- */

static void who_stands_still_is_held_since_its_gradient_began(void)
{
	struct timed_job j;

	open_bsp(&j);
	job_races(&j, 40);
	uint64_t began_ns = j.now_ns;
	mst_stragglers_began(&j.judge, 3, began_ns);
	j.now_ns = began_ns + (uint64_t)(59 * MS);
	CU_ASSERT_FALSE(mst_stragglers_of(&j.judge, 3, j.now_ns).now);
	j.now_ns = began_ns + (uint64_t)(61 * MS); /* three times as long */
	struct mst_straggler of = mst_stragglers_of(&j.judge, 3, j.now_ns);
	CU_ASSERT(of.now && !of.sure && of.kind == MST_STRAGGLER_STALLED);
	CU_ASSERT_EQUAL(of.since_ns, began_ns);
	CU_ASSERT_EQUAL(found(&j, 3), MST_STRAGGLER_NONE);
	j.now_ns = began_ns + (uint64_t)(401 * MS); /* twenty times */
	CU_ASSERT_TRUE(mst_stragglers_look(&j.judge, 3, j.now_ns));
	CU_ASSERT_FALSE(mst_stragglers_look(&j.judge, 3, j.now_ns));
	of = mst_stragglers_of(&j.judge, 3, j.now_ns);
	CU_ASSERT(of.now && of.sure && of.kind == MST_STRAGGLER_STALLED);
	CU_ASSERT_EQUAL(of.since_ns, began_ns);
	CU_ASSERT_DOUBLE_EQUAL(of.ratio, 20, 0.1);
	mst_stragglers_came(&j.judge, 3, j.now_ns); /* before anybody looks again */
	CU_ASSERT_FALSE(mst_stragglers_of(&j.judge, 3, j.now_ns).now);
	job_close(&j);
}

/* The open step has waited for it until then. */
static void what_it_cost_stays_when_it_has_gone(void)
{
	struct timed_job j;

	open_bsp(&j);
	job_races(&j, 40);
	uint64_t began_ns = j.now_ns;
	for (uint32_t rank = 0; rank < 8; rank++)
		mst_stragglers_began(&j.judge, rank, began_ns);
	for (uint32_t rank = 0; rank < 7; rank++) {
		mst_stragglers_came(&j.judge, rank, began_ns + (uint64_t)(20 * MS));
		mst_stragglers_counted(&j.judge, rank, began_ns + (uint64_t)(20 * MS));
	}
	j.now_ns = began_ns + (uint64_t)(520 * MS);
	CU_ASSERT_EQUAL(found(&j, 7), MST_STRAGGLER_STALLED);
	mst_stragglers_gone(&j.judge, 7, true, j.now_ns);
	mst_stragglers_step(&j.judge, began_ns);
	CU_ASSERT_EQUAL(found(&j, 7), MST_STRAGGLER_NONE);
	CU_ASSERT_DOUBLE_EQUAL(waited_ms(&j, 7), 500, 1);
	CU_ASSERT_DOUBLE_EQUAL((double)mst_straggler_total(&j.judge.found[7], j.now_ns) / MS, 520,
			       1);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "of equal ranks hardly one is a straggler in a thousand steps",
	  of_equal_ranks_hardly_one_is_a_straggler_in_a_thousand_steps },
	{ "who gives up, or is late, is found", who_gives_up_or_is_late_is_found },
	{ "who is always a little too late is late and not slow",
	  who_is_always_a_little_too_late_is_late_and_not_slow },
	{ "who is late by less than a tenth of a step is no straggler",
	  who_is_late_by_less_than_a_tenth_of_a_step_is_no_straggler },
	{ "who is late by next to nothing now is late no more",
	  who_is_late_by_next_to_nothing_now_is_late_no_more },
	{ "if all are late alike nobody is", if_all_are_late_alike_nobody_is },
	{ "steps wait for a slow rank from its first slow gradient on",
	  steps_wait_for_a_slow_rank_from_its_first_slow_gradient_on },
	{ "steps wait for each of two slow ranks", steps_wait_for_each_of_two_slow_ranks },
	{ "no step waits for who comes after it", no_step_waits_for_who_comes_after_it },
	{ "who stands still is held since its gradient began",
	  who_stands_still_is_held_since_its_gradient_began },
	{ "what it cost stays when it has gone", what_it_cost_stays_when_it_has_gone },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "table") == 0) {
		table();
		return 0;
	}
	return ut_main("late ranks", cases);
}
