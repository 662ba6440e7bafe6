/* SPDX-License-Identifier: MIT */
/*
 * The judge of who is slow, against histories whose truth is known: workers in steps that wait for
 * all of them, whose gradients take times of a distribution, some of them a factor longer.
 *
 *   test_stragglers          the promises, with seeds that nothing was tuned on
 *   test_stragglers table    the table of docs/policies.md
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/server/core/stragglers/timed_job.h"
#include "tests/ut.h"

static uint32_t count_slow(const struct timed_job *j)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < j->ranks; rank++)
		count += job_is_slow(j, rank);
	return count;
}

/* ---- nobody is slow ---- */

/* Return: how often a rank was found slow in so many steps. */
static uint32_t false_alarms(enum times shape, uint32_t ranks, uint32_t steps, uint64_t seed)
{
	bool was[MOST_RANKS] = { false };
	uint32_t alarms = 0;
	struct timed_job j;

	job_open(&j, shape, ranks, seed);
	for (uint32_t i = 0; i < steps; i++) {
		job_step(&j);
		for (uint32_t rank = 0; rank < ranks; rank++) {
			bool now = job_is_slow(&j, rank);
			alarms += now && !was[rank];
			was[rank] = now;
		}
	}
	job_close(&j);
	return alarms;
}

static void of_equal_ranks_hardly_one_is_slow_in_a_thousand_steps(void)
{
	for (unsigned shape = 0; shape < SHAPES; shape++) {
		CU_ASSERT(false_alarms(shape, 8, 10000, 71) <= 10);
		CU_ASSERT(false_alarms(shape, 64, 2000, 72) <= 6);
	}
	CU_ASSERT_EQUAL(false_alarms(CONST, 8, 10000, 73), 0);
	CU_ASSERT_EQUAL(false_alarms(UNIFORM, 64, 2000, 74), 0);
}

/* A rank that is always a fifth slower is there with much evidence, and holds up nobody much. */
static void a_rank_that_is_a_little_slower_is_not_slow(void)
{
	struct timed_job j;

	for (unsigned shape = CONST; shape <= UNIFORM; shape++) {
		job_open(&j, shape, 8, 81);
		j.factor[3] = 1.2;
		for (int i = 0; i < 1000; i++) {
			job_step(&j);
			CU_ASSERT_FALSE(job_is_slow(&j, 3));
		}
		job_close(&j);
	}
}

/* ---- one is slow ---- */

/* Return: how many of its own gradients a rank makes slowly, until it is found. It was as fast as
 * the others for some time. */
static uint32_t gradients_until_found(enum times shape, uint32_t ranks, double factor,
				      uint64_t seed)
{
	uint32_t count = 0;
	struct timed_job j;

	job_open(&j, shape, ranks, seed);
	job_steps(&j, 60 + (uint32_t)seed % 20);
	mst_stragglers_forget(&j.judge, 3);
	j.factor[3] = factor;
	do {
		job_step(&j);
		count++;
	} while (!job_is_slow(&j, 3) && count < 10000);
	job_close(&j);
	return count;
}

/* The number of gradients in which @share of the seeds have found the rank. */
static uint32_t found_within(enum times shape, uint32_t ranks, double factor, double share)
{
	uint32_t count[SEEDS];

	for (uint32_t i = 0; i < SEEDS; i++)
		count[i] = gradients_until_found(shape, ranks, factor, 1000 + i);
	qsort(count, SEEDS, sizeof(count[0]), by_size_u32);
	return count[(uint32_t)(share * SEEDS) - 1];
}

static void a_slow_rank_is_found_within_30_gradients_in_95_of_100_seeds(void)
{
	static const double factor[] = { 3, 10, 20 };

	for (unsigned shape = CONST; shape <= EXP; shape++)
		for (int i = 0; i < 3; i++)
			CU_ASSERT(found_within(shape, 8, factor[i], 0.95) <= 30);
	CU_ASSERT(found_within(EXP, 64, 3, 0.95) <= 30);
}

static void one_of_four_three_of_eight_and_five_of_eight_are_found(void)
{
	static const struct {
		uint32_t ranks, slow;
	} jobs[] = { { 4, 1 }, { 8, 3 }, { 8, 5 }, { 64, 40 } };

	for (unsigned shape = CONST; shape <= SEXP; shape++)
		for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
			struct timed_job j;
			job_open(&j, shape, jobs[i].ranks, 300 + i);
			for (uint32_t rank = 0; rank < jobs[i].slow; rank++)
				j.factor[rank] = 5;
			job_steps(&j, 100);
			for (uint32_t rank = 0; rank < jobs[i].slow; rank++)
				CU_ASSERT_TRUE(job_is_slow(&j, rank));
			CU_ASSERT_EQUAL(count_slow(&j), jobs[i].slow);
			job_close(&j);
		}
}

static void the_ratio_is_that_to_the_fast_ranks(void)
{
	struct timed_job j;

	job_open(&j, CONST, 8, 5);
	j.factor[3] = 4;
	job_steps(&j, 60);
	CU_ASSERT_DOUBLE_EQUAL(mst_stragglers_ratio(&j.judge, 3, j.now_ns), 4, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(mst_stragglers_ratio(&j.judge, 2, j.now_ns), 1, 0.01);
	job_close(&j);
}

/* A gradient that never comes is found by how long it has lasted, and by nothing that came. */
static void a_gradient_that_does_not_come_counts_for_as_long_as_it_lasts(void)
{
	struct timed_job j;

	job_open(&j, EXP, 8, 6);
	job_steps(&j, 40);
	mst_stragglers_began(&j.judge, 3, j.now_ns);
	j.factor[3] = 0;
	uint64_t began_ns = j.now_ns;
	j.now_ns = began_ns + (uint64_t)(10 * 20 * MS);
	CU_ASSERT_FALSE(job_is_slow(&j, 3));
	j.now_ns = began_ns + (uint64_t)(30 * 20 * MS);
	CU_ASSERT_TRUE(job_is_slow(&j, 3));
	CU_ASSERT(mst_stragglers_ratio(&j.judge, 3, j.now_ns) > 5);
	job_close(&j);
}

/* It had some slow gradients before: together with the present one they are enough, long before
 * the present one alone would be. */
static void what_lasts_is_added_to_what_came(void)
{
	struct timed_job j;
	uint32_t steps = 0;

	job_open(&j, UNIFORM, 8, 7);
	job_steps(&j, 40);
	j.factor[3] = 5;
	uint32_t alone = gradients_until_found(UNIFORM, 8, 5, 1000);
	CU_ASSERT_FATAL(alone > 2);
	for (; steps + 1 < 3; steps++)
		job_step(&j);
	while (!job_is_slow(&j, 3)) {
		mst_stragglers_began(&j.judge, 3, j.now_ns);
		j.now_ns += (uint64_t)(100 * MS);
		if (job_is_slow(&j, 3))
			break;
		mst_stragglers_came(&j.judge, 3, j.now_ns);
		CU_ASSERT_FALSE_FATAL(job_is_slow(&j, 3));
		CU_ASSERT_FATAL(++steps < 30);
	}
	job_close(&j);
}

/* ---- what is over ---- */

static void a_rank_that_is_fast_again_is_slow_no_more(void)
{
	for (unsigned shape = CONST; shape <= SEXP; shape++)
		for (uint64_t seed = 400; seed < 420; seed++) {
			struct timed_job j;
			job_open(&j, shape, 8, seed);
			j.factor[3] = 10;
			job_steps(&j, 200);
			CU_ASSERT_TRUE(job_is_slow(&j, 3));
			j.factor[3] = 1;
			job_steps(&j, 100);
			CU_ASSERT_FALSE(job_is_slow(&j, 3));
			job_close(&j);
		}
}

/* Hysteresis: one fast gradient, or ten, say little. */
static void a_slow_rank_stays_slow_through_some_fast_gradients(void)
{
	struct timed_job j;

	job_open(&j, CONST, 8, 8);
	j.factor[3] = 10;
	job_steps(&j, 30);
	j.factor[3] = 1;
	job_steps(&j, 10);
	CU_ASSERT_TRUE(job_is_slow(&j, 3));
	job_close(&j);
}

static void probe(struct timed_job *j, uint32_t rank, double factor)
{
	mst_stragglers_began(&j->judge, rank, j->now_ns);
	mst_stragglers_probed(&j->judge, rank, j->now_ns + (uint64_t)(20 * factor * MS));
}

static void who_rests_may_return_after_three_fast_probes(void)
{
	struct timed_job j;

	job_open(&j, CONST, 8, 9);
	j.factor[3] = 10;
	job_steps(&j, 30);
	mst_stragglers_forget(&j.judge, 3);
	CU_ASSERT_FALSE(mst_stragglers_may_return(&j.judge, 3));
	probe(&j, 3, 10);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_FALSE(mst_stragglers_may_return(&j.judge, 3));
		probe(&j, 3, 1);
	}
	CU_ASSERT_TRUE(mst_stragglers_may_return(&j.judge, 3));
	mst_stragglers_forget(&j.judge, 3);
	CU_ASSERT_FALSE(job_is_slow(&j, 3));
	CU_ASSERT_FALSE(mst_stragglers_may_return(&j.judge, 3));
	job_close(&j);
}

/* ---- edges ---- */

static void if_all_are_slow_nobody_is(void)
{
	struct timed_job j;

	job_open(&j, UNIFORM, 8, 10);
	job_steps(&j, 100);
	for (uint32_t rank = 0; rank < 8; rank++)
		j.factor[rank] = 5;
	job_steps(&j, 400);
	CU_ASSERT_EQUAL(count_slow(&j), 0);
	job_close(&j);
}

static void one_rank_alone_is_never_slow(void)
{
	struct timed_job j;

	job_open(&j, EXP, 1, 11);
	for (int i = 0; i < 1000; i++) {
		j.factor[0] = i < 500 ? 1 : 50;
		job_step(&j);
		CU_ASSERT_EQUAL(count_slow(&j), 0);
	}
	job_close(&j);
}

static void of_two_ranks_the_slow_one_is_found(void)
{
	struct timed_job j;

	job_open(&j, UNIFORM, 2, 12);
	j.factor[1] = 4;
	job_steps(&j, 60);
	CU_ASSERT_FALSE(job_is_slow(&j, 0));
	CU_ASSERT_TRUE(job_is_slow(&j, 1));
	mst_stragglers_gone(&j.judge, 0, false,
			    j.now_ns); /* then there is nobody that it holds up */
	j.factor[0] = 0;
	job_steps(&j, 80);
	CU_ASSERT_FALSE(job_is_slow(&j, 1));
	job_close(&j);
}

/* The ranks that are there are compared with each other, however many the job was made for. */
static void what_a_rank_was_is_forgotten_with_its_worker(void)
{
	struct timed_job j;

	job_open(&j, CONST, 8, 13);
	j.factor[3] = 10;
	job_steps(&j, 30);
	CU_ASSERT_TRUE(job_is_slow(&j, 3));
	mst_stragglers_gone(&j.judge, 3, false, j.now_ns);
	CU_ASSERT_FALSE(job_is_slow(&j, 3));
	for (uint32_t rank = 3; rank < 8; rank++) {
		mst_stragglers_gone(&j.judge, rank, false, j.now_ns);
		j.factor[rank] = 0;
	}
	for (uint32_t rank = 0; rank < 3; rank++)
		j.factor[rank] = 50;
	job_steps(&j, 100);
	CU_ASSERT_EQUAL(count_slow(&j), 0);
	j.factor[2] = 500;
	job_steps(&j, 30);
	CU_ASSERT_TRUE(job_is_slow(&j, 2));
	job_close(&j);
}

/* ---- the table ---- */

static void table(void)
{
	printf("| times of a gradient, ms | ranks | false alarms in 1000 steps | 3 times as slow | "
	       "10 times | 20 times |\n|---|---|---|---|---|---|\n");
	for (unsigned shape = 0; shape < SHAPES; shape++)
		for (uint32_t ranks = 4; ranks <= 64; ranks *= 2) {
			uint32_t steps = 320000 / ranks;
			printf("| %s | %u | %.2f |", shape_name[shape], ranks,
			       1000.0 * false_alarms(shape, ranks, steps, 99) / steps);
			for (int i = 0; i < 3; i++) {
				double factor = (double[]){ 3, 10, 20 }[i];
				printf(" %u, %u |", found_within(shape, ranks, factor, 0.5),
				       found_within(shape, ranks, factor, 0.95));
			}
			printf("\n");
		}
}

static CU_TestInfo cases[] = {
	{ "of equal ranks hardly one is slow in a thousand steps",
	  of_equal_ranks_hardly_one_is_slow_in_a_thousand_steps },
	{ "a rank that is a little slower is not slow",
	  a_rank_that_is_a_little_slower_is_not_slow },
	{ "a slow rank is found within 30 gradients in 95 of 100 seeds",
	  a_slow_rank_is_found_within_30_gradients_in_95_of_100_seeds },
	{ "one of four, three of eight and five of eight are found",
	  one_of_four_three_of_eight_and_five_of_eight_are_found },
	{ "the ratio is that to the fast ranks", the_ratio_is_that_to_the_fast_ranks },
	{ "a gradient that does not come counts for as long as it lasts",
	  a_gradient_that_does_not_come_counts_for_as_long_as_it_lasts },
	{ "what lasts is added to what came", what_lasts_is_added_to_what_came },
	{ "a rank that is fast again is slow no more", a_rank_that_is_fast_again_is_slow_no_more },
	{ "a slow rank stays slow through some fast gradients",
	  a_slow_rank_stays_slow_through_some_fast_gradients },
	{ "who rests may return after three fast probes",
	  who_rests_may_return_after_three_fast_probes },
	{ "if all are slow, nobody is", if_all_are_slow_nobody_is },
	{ "one rank alone is never slow", one_rank_alone_is_never_slow },
	{ "of two ranks the slow one is found", of_two_ranks_the_slow_one_is_found },
	{ "what a rank was is forgotten with its worker",
	  what_a_rank_was_is_forgotten_with_its_worker },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "table") == 0) {
		table();
		return 0;
	}
	return ut_main("stragglers", cases);
}
