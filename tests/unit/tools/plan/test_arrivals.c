/* SPDX-License-Identifier: MIT */
/* The times by step and rank, and what stands in for those that are missing. The estimator's values
 * were computed apart, forwards, as a product of shares that survive. */
#include <errno.h>
#include <math.h>

#include "tests/unit/tools/plan/plan_case.h"

static struct mst_arrivals a;

static double time_of(uint32_t step, uint32_t rank)
{
	return a.us[step * a.ranks + rank];
}

static double arrival(uint32_t step, uint32_t k)
{
	return a.sorted[step * a.ranks + k - 1];
}

static bool refuses(const char *named, const char *text)
{
	int rc = plan_case_arrivals(text, &a);

	if (rc == -EINVAL && strstr(plan_case_why.text, named) != NULL)
		return true;
	printf("    %d: %s\n", rc, plan_case_why.text);
	return false;
}

static void arrivals_are_in_order_in_each_step(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_arrivals(PLAN_CASE_DRAWN, &a), 0);
	CU_ASSERT(a.steps == 6 && a.ranks == 4);
	CU_ASSERT(a.absent == 0 && a.censored == 0);
	CU_ASSERT(time_of(1, 1) == 388 && time_of(5, 3) == 127);
	CU_ASSERT(arrival(1, 1) == 51 && arrival(1, 3) == 331 && arrival(1, 4) == 388);
	mst_arrivals_free(&a);
}

static void rows_may_come_in_any_order_and_steps_have_any_number(void)
{
	CU_ASSERT_EQUAL_FATAL(
		plan_case_arrivals(PLAN_CASE_TRACE "70,1,4\n12,0,1\n70,0,3\n12,1,2\n", &a), 0);
	CU_ASSERT(a.steps == 2 && a.gap == 57);
	CU_ASSERT(time_of(0, 0) == 1 && time_of(0, 1) == 2 && time_of(1, 0) == 3 &&
		  time_of(1, 1) == 4);
	mst_arrivals_free(&a);
}

static void missing_times_are_the_estimators_mean_beyond_their_bounds(void)
{
	struct mst_lifetime t[] = {
		{ 3, 0, true }, { 5, 1, false }, { 6, 2, true }, { 6, 3, false },
		{ 8, 4, true }, { 2, 5, false }, { 9, 6, true }, { 1, 7, true },
	};
	double sum = 0;

	CU_ASSERT_EQUAL(mst_lifetimes_complete(t, 8), 0);
	for (int i = 0; i < 8; i++) {
		sum += t[i].us;
		CU_ASSERT_TRUE(t[i].known);
		if (t[i].step == 1)
			CU_ASSERT_DOUBLE_EQUAL(t[i].us, 7.875, 1e-9);
		if (t[i].step == 3)
			CU_ASSERT_DOUBLE_EQUAL(t[i].us, 8.5, 1e-9);
		if (t[i].step == 5)
			CU_ASSERT_DOUBLE_EQUAL(t[i].us, 7.0625, 1e-9);
	}
	CU_ASSERT_DOUBLE_EQUAL(sum / 8, 6.3046875, 1e-9);
}

static void bounds_that_nothing_lies_beyond_stay_bounds(void)
{
	struct mst_lifetime t[] = {
		{ 4, 0, false }, { 5, 1, true }, { 7, 2, false }, { 9, 3, false }
	};

	CU_ASSERT_EQUAL(mst_lifetimes_complete(t, 4), 3);
	/* 4 is followed by 5, or by what is longer than 7 or than 9: (5 + 7 + 9) / 3 */
	CU_ASSERT(t[0].step == 0 && !t[0].known);
	CU_ASSERT_DOUBLE_EQUAL(t[0].us, 7, 1e-9);
	CU_ASSERT(t[1].us == 5 && t[1].known);
	CU_ASSERT(t[2].us > 7 && t[2].us < 7.000001 && !t[2].known);
	CU_ASSERT(t[3].us > 9 && t[3].us < 9.000001 && !t[3].known);
}

/* Rank 2 misses steps 0 and 1, since it is at the gradient of step 2 of another run of luck: what
 * it is known to take beyond 5 and 6 is 30. */
static void a_rank_that_is_missing_is_later_than_the_step(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_arrivals(PLAN_CASE_RECORDING
						 "0,0,0,4,counted\n1,0,0,5,counted\n"
						 "0,1,10,14,counted\n1,1,10,16,counted\n"
						 "0,2,20,24,counted\n1,2,20,25,counted\n"
						 "2,2,20,50,late\n",
						 &a),
			      0);
	CU_ASSERT(a.steps == 3 && a.ranks == 3 && a.absent == 2 && a.censored == 2);
	CU_ASSERT(time_of(0, 2) == 30 && time_of(1, 2) == 30 && time_of(2, 2) == 30);
	CU_ASSERT(a.at_least_cells == 0 && a.at_least[2] == 0);
	mst_arrivals_free(&a);
}

/* Rank 3 is later than the commit, which is rank 1's 5, and not later than rank 2's 30. */
static void a_late_gradient_bounds_no_other(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_arrivals(PLAN_CASE_RECORDING
						 "0,0,0,4,counted\n1,0,0,5,counted\n"
						 "2,0,0,30,late\n0,1,30,34,counted\n"
						 "1,1,30,35,counted\n2,1,30,36,late\n"
						 "3,1,30,31,cancelled\n",
						 &a),
			      0);
	CU_ASSERT(time_of(0, 3) > 5 && time_of(0, 3) < 5.000001);
	CU_ASSERT(time_of(1, 3) > 5 && time_of(1, 3) < 5.000001);
	CU_ASSERT(a.at_least[2] == 2 && a.at_least[3] == 2 && a.at_least[1] == 0);
	mst_arrivals_free(&a);
}

static void a_gradient_given_up_is_later_than_its_step_and_took_longer(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_arrivals(PLAN_CASE_RECORDING
						 "0,0,0,4,counted\n1,0,0,5,counted\n"
						 "2,0,2,6,given_up\n"
						 "0,1,10,14,counted\n1,1,10,16,counted\n"
						 "2,1,10,19,given_up\n",
						 &a),
			      0);
	CU_ASSERT(a.censored == 2 && a.absent == 0 && a.at_least_cells == 2);
	CU_ASSERT(time_of(0, 2) > 5 && time_of(0, 2) < 5.000001);
	CU_ASSERT(time_of(1, 2) > 9 && time_of(1, 2) < 9.000001);
	CU_ASSERT(a.at_least[0] == 0 && a.at_least[1] == 0 && a.at_least[2] == 2);
	CU_ASSERT(a.rank_at_least[0] == 0 && a.rank_at_least[2] == 2);
	mst_arrivals_free(&a);
}

static void of_a_recording_second_gradients_and_open_steps_are_left_out(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_arrivals(PLAN_CASE_RECORDING
						 "0,0,0,4,counted\n0,0,4,6,counted\n"
						 "1,0,0,5,counted\n0,1,10,14,counted\n"
						 "1,1,10,15,counted\n1,2,20,29,cancelled\n",
						 &a),
			      0);
	CU_ASSERT(a.steps == 2 && a.ranks == 2 && a.repeats == 1 && a.open == 1 && a.gap == 0);
	CU_ASSERT(time_of(0, 0) == 4 && time_of(1, 1) == 5);
	mst_arrivals_free(&a);
}

/* A version that was made twice is two steps, each with the times of its own gradients. */
static void each_generation_has_steps_of_its_own(void)
{
	CU_ASSERT_EQUAL_FATAL(
		plan_case_arrivals("rank,version,start_us,ready_us,verdict,generation\n"
				   "0,0,0,4,counted,1\n1,0,0,5,counted,1\n"
				   "0,8,0,6,counted,1\n1,8,0,7,counted,1\n"
				   "0,0,0,8,counted,2\n1,0,0,9,counted,2\n",
				   &a),
		0);
	CU_ASSERT(a.steps == 3 && a.repeats == 0 && a.gap == 7 && a.absent == 0);
	CU_ASSERT(time_of(0, 0) == 4 && time_of(1, 1) == 7 && time_of(2, 0) == 8);
	CU_ASSERT(a.number[0] == 0 && a.number[1] == 8 && a.number[2] == 0);
	mst_arrivals_free(&a);
}

static void a_trace_that_says_nothing_is_refused(void)
{
	CU_ASSERT(refuses("there are 0 steps and 0 workers", PLAN_CASE_TRACE));
	CU_ASSERT(refuses("there are 1 steps and 2 workers", PLAN_CASE_TRACE "0,0,1\n0,1,1\n"));
	CU_ASSERT(refuses("there are 2 steps and 1 workers", PLAN_CASE_TRACE "0,0,1\n1,0,1\n"));
	CU_ASSERT(refuses("all times are 0", PLAN_CASE_TRACE "0,0,0\n0,1,0\n1,0,0\n1,1,0\n"));
	CU_ASSERT(refuses("line 4 repeats worker 1 of step 0, which line 2 has",
			  PLAN_CASE_TRACE "0,1,5\n0,0,5\n0,1,5\n"));
	CU_ASSERT(refuses("worker 0 has no line, though worker 2 has",
			  PLAN_CASE_TRACE "0,1,1\n0,2,1\n1,1,1\n1,2,1\n"));
	CU_ASSERT(refuses("of the 10 times of 2 steps and 5 workers 8 are missing",
			  PLAN_CASE_TRACE "0,4,1\n1,0,1\n"));
	CU_ASSERT(
		refuses("--pair order", PLAN_CASE_RECORDING "0,0,0,1,counted\n4,1,0,1,counted\n"));
}

static CU_TestInfo cases[] = {
	{ "arrivals are in order in each step", arrivals_are_in_order_in_each_step },
	{ "rows may come in any order, and steps have any number",
	  rows_may_come_in_any_order_and_steps_have_any_number },
	{ "missing times are the estimator's mean beyond their bounds",
	  missing_times_are_the_estimators_mean_beyond_their_bounds },
	{ "bounds that nothing lies beyond stay bounds",
	  bounds_that_nothing_lies_beyond_stay_bounds },
	{ "a rank that is missing is later than the step",
	  a_rank_that_is_missing_is_later_than_the_step },
	{ "a late gradient bounds no other", a_late_gradient_bounds_no_other },
	{ "a gradient given up is later than its step, and took longer",
	  a_gradient_given_up_is_later_than_its_step_and_took_longer },
	{ "of a recording second gradients and open steps are left out",
	  of_a_recording_second_gradients_and_open_steps_are_left_out },
	{ "each generation has steps of its own", each_generation_has_steps_of_its_own },
	{ "a trace that says nothing is refused", a_trace_that_says_nothing_is_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("planner_arrivals", cases);
}
