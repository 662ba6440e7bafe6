/* SPDX-License-Identifier: MIT */
/* The stragglers that are named, and what is promised for replacing all of them: against traces
 * that were made twice, with stragglers and without. */
#include <math.h>
#include <stdlib.h>

#include "common/base/rand.h"
#include "tests/unit/tools/plan/plan_case.h"
#include "tools/plan/replaced.h"

/* ---- traces ---- */

enum drawn { UNIFORM, SHIFTED, EXPONENTIAL };

struct made {
	enum drawn drawn;
	uint32_t steps, ranks;
	uint64_t slow; /* a bit for each rank that is */
	double factor;
	uint32_t from, to;   /* the steps in which they are */
	double longer;       /* every third step is so much longer, for all ranks */
	bool is_replacement; /* other ranks stand in their place */
};

static double draw(enum drawn drawn, struct mst_rand *rand)
{
	double u = mst_rand_unit(rand);

	switch (drawn) {
	case UNIFORM:
		return 18000 + 4000 * u;
	case SHIFTED:
		return 10000 - 10000 * log(1 - u);
	default:
		return -20000 * log(1 - u);
	}
}

static double time_of(const struct made *m, uint32_t step, uint32_t rank, struct mst_rand *rand)
{
	bool slow = m->slow >> rank & 1 && step >= m->from && step < m->to && !m->is_replacement;
	double us = draw(m->drawn, rand) * (slow ? m->factor : 1);

	return m->longer > 0 && step % 3 == 0 ? us * m->longer : us;
}

static void make(const struct made *m, struct mst_arrivals *a)
{
	struct mst_arrival_rows rows = { 0 };
	struct mst_rand rand;

	mst_rand_seed(&rand, 11);
	rows.row = calloc((size_t)m->steps * m->ranks, sizeof(*rows.row));
	CU_ASSERT_FATAL(rows.row != NULL);
	for (uint32_t step = 0; step < m->steps; step++)
		for (uint32_t rank = 0; rank < m->ranks; rank++)
			rows.row[rows.count++] = (struct mst_arrival_row){
				.step = 100 + step,
				.rank = rank,
				.us = time_of(m, step, rank, &rand),
				.known = true,
				.counted = true,
			};
	CU_ASSERT_EQUAL_FATAL(mst_arrivals_new(&rows, a, &plan_case_why), 0);
	mst_rows_free(&rows);
}

static double mean_all(const struct mst_arrivals *a)
{
	double sum = 0;

	for (uint32_t step = 0; step < a->steps; step++)
		sum += a->sorted[(size_t)step * a->ranks + a->ranks - 1];
	return sum / a->steps;
}

/* How much faster the job is with others in the place of the slow ranks. */
static double truth_of(struct made m)
{
	struct mst_arrivals a;

	make(&m, &a);
	double slow_us = mean_all(&a);
	mst_arrivals_free(&a);
	m.is_replacement = true;
	make(&m, &a);
	double replaced_us = mean_all(&a);
	mst_arrivals_free(&a);
	return slow_us / replaced_us;
}

static struct mst_arrivals a;
static struct mst_slow slow;
static double speedup; /* with others in the place of all stragglers */

/* Judges the trace at hand. */
static void judge(void)
{
	double *replaced = calloc(a.steps, sizeof(*replaced)), sum = 0;

	CU_ASSERT_FATAL(replaced != NULL);
	CU_ASSERT_EQUAL_FATAL(mst_slow_find(&a, &slow), 0);
	CU_ASSERT_EQUAL_FATAL(mst_replaced_fill(&a, &slow, 1, replaced), 0);
	for (uint32_t step = 0; step < a.steps; step++)
		sum += replaced[step];
	speedup = mean_all(&a) * a.steps / sum;
	free(replaced);
}

static void judge_made(const struct made *m)
{
	make(m, &a);
	judge();
}

static void end(void)
{
	mst_slow_free(&slow);
	mst_arrivals_free(&a);
}

static uint64_t named(void)
{
	uint64_t bits = 0;

	for (uint32_t rank = 0; rank < a.ranks; rank++)
		bits |= (uint64_t)slow.rank[rank].straggler << rank;
	return bits;
}

/* ---- promises ---- */

/* Jobs whose ranks of these bits are slow from the first step to the last. */
static const struct {
	uint32_t ranks;
	uint64_t slow;
	double factor;
} jobs[] = { { 4, 0x8, 10 }, { 6, 0x12, 2.2 }, { 8, 0xa5, 3 }, { 8, 0xa7, 5 }, { 16, 0x8001, 3 } };

static struct made job(enum drawn drawn, unsigned i)
{
	return (struct made){ .drawn = drawn,
			      .steps = 200,
			      .ranks = jobs[i].ranks,
			      .slow = jobs[i].slow,
			      .factor = jobs[i].factor,
			      .to = 200 };
}

static void all_slow_ranks_are_named_and_no_other(void)
{
	for (unsigned drawn = UNIFORM; drawn <= EXPONENTIAL; drawn++)
		for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
			struct made m = job((enum drawn)drawn, i);
			judge_made(&m);
			CU_ASSERT_EQUAL(named(), m.slow);
			CU_ASSERT_EQUAL(slow.persistent, slow.stragglers);
			end();
		}
}

static void what_replacing_all_of_them_brings_is_what_it_brings(void)
{
	for (unsigned drawn = UNIFORM; drawn <= EXPONENTIAL; drawn++)
		for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
			struct made m = job((enum drawn)drawn, i);
			double truth = truth_of(m), near = drawn == UNIFORM ? 0.01 : 0.1;
			judge_made(&m);
			CU_ASSERT_DOUBLE_EQUAL(speedup / truth, 1, near);
			end();
		}
}

/* A step that is longer for all ranks is not shorter for one that takes a straggler's place. */
static void steps_that_are_longer_for_all_ranks_stay_so(void)
{
	struct made m = { UNIFORM, 200, 8, 0x44, 2, 0, 200, 4, false };
	double truth = truth_of(m);

	judge_made(&m);
	CU_ASSERT_EQUAL(named(), m.slow);
	CU_ASSERT_DOUBLE_EQUAL(speedup / truth, 1, 0.02);
	end();
}

static void a_rank_that_is_slow_for_a_while_is_named_with_its_steps(void)
{
	struct made m = { UNIFORM, 200, 8, 0x8, 4, 70, 130, 0, false };
	double truth = truth_of(m);

	judge_made(&m);
	const struct mst_slow_rank *r = &slow.rank[3];
	CU_ASSERT_EQUAL(named(), m.slow);
	CU_ASSERT(r->slow == 60 && r->periods == 1 && r->first == 70 && r->last == 129);
	CU_ASSERT_EQUAL(a.number[r->first], 170);
	CU_ASSERT_DOUBLE_EQUAL(r->ratio, 4, 0.1);
	CU_ASSERT_FALSE(r->persistent);
	CU_ASSERT_DOUBLE_EQUAL(speedup / truth, 1, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(r->cost_us / 60 / 58500, 1, 0.02); /* 80 ms instead of 21.5 */
	end();
}

/* With exponential times nobody can say to the step when a phase began. */
static void a_phase_is_found_whatever_the_distribution(void)
{
	for (unsigned drawn = UNIFORM; drawn <= EXPONENTIAL; drawn++) {
		struct made m = { (enum drawn)drawn, 200, 8, 0x20, 5, 0, 60, 0, false };
		judge_made(&m);
		CU_ASSERT_EQUAL(named(), m.slow);
		CU_ASSERT(slow.rank[5].slow >= 50 && slow.rank[5].slow <= 70);
		end();
	}
}

static void of_equal_ranks_none_is_named(void)
{
	for (unsigned drawn = UNIFORM; drawn <= EXPONENTIAL; drawn++)
		for (uint32_t ranks = 2; ranks <= 64; ranks *= 2) {
			struct made m = { (enum drawn)drawn, 300, ranks, 0, 1, 0, 0, 0, false };
			judge_made(&m);
			CU_ASSERT_EQUAL(named(), 0);
			CU_ASSERT_DOUBLE_EQUAL(speedup, 1, 1e-9);
			end();
		}
}

static void if_all_are_slow_none_is(void)
{
	struct made m = { UNIFORM, 200, 4, 0xf, 5, 0, 200, 0, false };

	judge_made(&m);
	CU_ASSERT_EQUAL(named(), 0);
	end();
}

static void of_two_ranks_the_slow_one_is_named(void)
{
	struct made m = { UNIFORM, 100, 2, 0x1, 3, 0, 100, 0, false };

	judge_made(&m);
	CU_ASSERT_EQUAL(named(), m.slow);
	CU_ASSERT_DOUBLE_EQUAL(speedup / truth_of(m), 1, 0.02);
	end();
}

/* Each rank is slow in its turn, so no rank is left that never is. */
static void if_each_rank_has_its_phase_all_are_named(void)
{
	struct mst_arrival_rows rows = { .row = calloc(1600, sizeof(*rows.row)) };

	CU_ASSERT_FATAL(rows.row != NULL);
	for (uint32_t i = 0; i < 1600; i++)
		rows.row[i] = (struct mst_arrival_row){
			.step = i / 8,
			.rank = i % 8,
			.us = (1000 + i % 7) * (i / 8 / 25 == i % 8 ? 3 : 1),
			.known = true,
			.counted = true,
		};
	rows.count = 1600;
	CU_ASSERT_EQUAL_FATAL(mst_arrivals_new(&rows, &a, &plan_case_why), 0);
	judge();
	CU_ASSERT_EQUAL(named(), 0xff);
	CU_ASSERT_EQUAL(slow.persistent, 0);
	CU_ASSERT_DOUBLE_EQUAL(speedup, 3, 0.02);
	mst_rows_free(&rows);
	end();
}

/* Rank 3 left at step 60: what is missing is no slow gradient. */
static void a_rank_that_left_is_not_slow(void)
{
	static char text[16384];
	size_t used = (size_t)snprintf(text, sizeof(text), PLAN_CASE_RECORDING);

	for (unsigned step = 0; step < 150; step++)
		for (unsigned rank = 0; rank < (step < 60 ? 4 : 3); rank++)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "%u,%u,0,%u,counted\n", rank, step,
						 100 + 10 * rank + step % 5);
	CU_ASSERT_EQUAL_FATAL(plan_case_arrivals(text, &a), 0);
	judge();
	CU_ASSERT_EQUAL(named(), 0);
	end();
}

static CU_TestInfo cases[] = {
	{ "all slow ranks are named, and no other", all_slow_ranks_are_named_and_no_other },
	{ "what replacing all of them brings is what it brings",
	  what_replacing_all_of_them_brings_is_what_it_brings },
	{ "steps that are longer for all ranks stay so",
	  steps_that_are_longer_for_all_ranks_stay_so },
	{ "a rank that is slow for a while is named with its steps",
	  a_rank_that_is_slow_for_a_while_is_named_with_its_steps },
	{ "a phase is found whatever the distribution",
	  a_phase_is_found_whatever_the_distribution },
	{ "of equal ranks none is named", of_equal_ranks_none_is_named },
	{ "if all are slow, none is", if_all_are_slow_none_is },
	{ "of two ranks the slow one is named", of_two_ranks_the_slow_one_is_named },
	{ "if each rank has its phase, all are named", if_each_rank_has_its_phase_all_are_named },
	{ "a rank that left is not slow", a_rank_that_left_is_not_slow },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("planner_slow", cases);
}
