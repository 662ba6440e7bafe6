/* SPDX-License-Identifier: MIT */
/* Sync-Switch with statistics that are made up. */
#include <errno.h>
#include <string.h>

#include "common/base/reason.h"
#include "server/core/policy/policy.h"
#include "tests/ut.h"

#define ALL 1000.0

static struct mst_reason why;
static struct mst_policy policy;

static void begin(const char *text)
{
	policy = (struct mst_policy){ .rule = { .divide = true, .min_workers = 1 } };
	CU_ASSERT_EQUAL_FATAL(mst_policy_parse(text, &policy, &why), 0);
}

static bool commit(double samples)
{
	struct mst_commit_view view = { .samples_total = samples, .samples_max = ALL };

	return mst_controller_decide(&policy.controller, &view, &policy.rule);
}

/* A commit of 10 samples, while there are so many stragglers. */
static bool commit_ten(double before, uint32_t stragglers)
{
	struct mst_commit_view view = { .samples = 10,
					.samples_total = before + 10,
					.samples_max = ALL,
					.stragglers = stragglers };

	return mst_controller_decide(&policy.controller, &view, &policy.rule);
}

static const char *because(void)
{
	static char text[128];

	mst_controller_why(&policy.controller, &policy.rule, text, sizeof(text));
	return text;
}

static void bsp_holds_until_the_share_is_done_and_async_for_good(void)
{
	begin("syncswitch:0.25");
	CU_ASSERT_EQUAL(policy.rule.quorum, 0);
	CU_ASSERT_STRING_EQUAL(because(), "until 0.25 of all samples are done");
	CU_ASSERT_FALSE(commit(249));
	CU_ASSERT_TRUE(commit(253));
	CU_ASSERT_EQUAL(policy.rule.quorum, 1);
	CU_ASSERT_EQUAL(policy.rule.window, MST_WINDOW_MAX);
	CU_ASSERT_EQUAL(policy.rule.release, MST_RELEASE_PUSH);
	CU_ASSERT_STRING_EQUAL(because(), "253 samples are done, and the share of bsp was 0.25");
	CU_ASSERT_FALSE(commit(900));
	CU_ASSERT_EQUAL(policy.rule.quorum, 1);
}

static void its_name_is_that_of_the_rule_in_force(void)
{
	char now[64];

	begin("syncswitch:0.5");
	mst_controller_now(&policy.controller, &policy.rule, now, sizeof(now));
	CU_ASSERT_STRING_EQUAL(now, "bsp");
	commit(500);
	mst_controller_now(&policy.controller, &policy.rule, now, sizeof(now));
	CU_ASSERT_STRING_EQUAL(now, "async");
}

/* ---- stragglers ---- */

static bool is_async(void)
{
	return policy.rule.quorum == 1 && policy.rule.release == MST_RELEASE_PUSH;
}

static void greedy_goes_async_while_there_is_a_straggler(void)
{
	begin("syncswitch:0.1,greedy");
	CU_ASSERT_FALSE(commit_ten(0, 0));
	CU_ASSERT_TRUE(commit_ten(10, 1));
	CU_ASSERT_TRUE(is_async());
	CU_ASSERT_STRING_EQUAL(because(), "1 straggler, until it is gone");
	CU_ASSERT_FALSE(commit_ten(20, 2));
	CU_ASSERT_STRING_EQUAL(because(), "2 stragglers, until they are gone");
	CU_ASSERT_TRUE(commit_ten(30, 0));
	CU_ASSERT_FALSE(is_async());
	CU_ASSERT_STRING_EQUAL(because(), "until 0.1 of all samples are done");
}

/* 100 samples are to be under bsp: 20 were before, and 80 have to follow. */
static void samples_of_such_a_while_are_not_in_the_share(void)
{
	begin("syncswitch:0.1,greedy");
	commit_ten(0, 0);
	CU_ASSERT_TRUE(commit_ten(10, 1));
	for (double before = 20; before < 490; before += 10)
		CU_ASSERT_FALSE(commit_ten(before, 1));
	CU_ASSERT_TRUE(commit_ten(490, 0));
	for (double before = 500; before < 570; before += 10)
		CU_ASSERT_FALSE(commit_ten(before, 0));
	CU_ASSERT_TRUE(commit_ten(570, 0));
	CU_ASSERT_TRUE(is_async());
	CU_ASSERT_STRING_EQUAL(because(), "580 samples are done, and the share of bsp was 0.1");
	CU_ASSERT_FALSE(commit_ten(580, 1)); /* then nothing is done about stragglers */
	CU_ASSERT_FALSE(commit_ten(590, 0));
}

static void elastic_stays_and_has_stragglers_rest_until_the_change(void)
{
	struct mst_straggler_test test;

	begin("syncswitch:0.1,elastic=paper,0.5,7");
	CU_ASSERT_TRUE(mst_controller_rests_stragglers(&policy.controller, &test));
	CU_ASSERT_EQUAL(test.deviations, 0.5);
	CU_ASSERT_EQUAL(test.windows, 7);
	CU_ASSERT_FALSE(commit_ten(0, 1));
	CU_ASSERT_FALSE(is_async());
	CU_ASSERT_TRUE(commit_ten(90, 1));
	CU_ASSERT_FALSE(mst_controller_rests_stragglers(&policy.controller, &test));
	CU_ASSERT_FALSE(mst_controller_watches(&policy.controller, &test));
}

static void who_does_not_ask_for_it_is_not_watched(void)
{
	struct mst_straggler_test test;

	begin("syncswitch:0.1");
	CU_ASSERT_FALSE(mst_controller_watches(&policy.controller, &test));
	begin("syncswitch:0.1,greedy");
	CU_ASSERT_TRUE(mst_controller_watches(&policy.controller, &test));
	CU_ASSERT_EQUAL(test.deviations, 1);
	CU_ASSERT_EQUAL(test.windows, 5);
	CU_ASSERT_FALSE(mst_controller_rests_stragglers(&policy.controller, &test));
}

/* ---- the two rules ---- */

/* What --patience, --lr-scale and others say holds before the change and after it. */
static void both_rules_keep_what_other_options_say(void)
{
	struct mst_policy p = {
		.rule = { .divide = true, .linear = true, .patience_ns = 7, .min_workers = 2 }
	};

	CU_ASSERT_EQUAL_FATAL(mst_policy_parse("syncswitch:0.5", &p, &why), 0);
	struct mst_rule then = *mst_controller_then(&p.controller);
	CU_ASSERT(p.rule.linear && p.rule.divide && p.rule.patience_ns == 7);
	CU_ASSERT(then.linear && then.divide && then.patience_ns == 7 && then.min_workers == 2);
}

static void a_share_is_between_none_and_all(void)
{
	static const char *const bad[] = { "syncswitch",
					   "syncswitch:",
					   "syncswitch:0",
					   "syncswitch:1",
					   "syncswitch:1.5",
					   "syncswitch:-0.1",
					   "syncswitch:0.1,",
					   "syncswitch:10%",
					   "syncswitch:bsp",
					   "syncswitch:0.1,1",
					   "syncswitch:0.1,greed",
					   "syncswitch:0.1,greedy,",
					   "syncswitch:0.1,greedy,1",
					   "syncswitch:0.1,greedy=paper,x",
					   "syncswitch:0.1,greedy=papers",
					   "syncswitch:0.1,elastic=paper,1,0",
					   "syncswitch:0.1,elastic=paper,1,5,",
					   "syncswitch:0.1,greedyelastic" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mst_policy p = { .rule = { .divide = true } };
		CU_ASSERT_EQUAL(mst_policy_parse(bad[i], &p, &why), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "as in syncswitch:0.1,greedy=paper,1,5"));
	}
}

static void without_an_end_in_samples_it_is_refused(void)
{
	struct mst_rule_context ctx = { .owner = MUSTER_SERVERS_OWN, .workers = 4, .slots = 1 };

	begin("syncswitch:0.5");
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "say --samples N"));
	ctx.samples_max = ALL;
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, &why), 0);
}

/* async needs servers that own, so bsp may not begin where it could not follow. */
static void both_rules_are_checked(void)
{
	struct mst_rule_context ctx = {
		.owner = MUSTER_WORKERS_OWN, .workers = 4, .slots = 2, .samples_max = ALL
	};

	begin("syncswitch:0.5");
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--owner servers"));
	struct mst_rule from = policy.rule;
	CU_ASSERT_EQUAL(mst_policy_switch_check(&from, &policy, &ctx, &why), -EINVAL);
}

static void from_a_checkpoint_it_goes_on_where_it_was(void)
{
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];

	begin("syncswitch:0.5");
	commit(400);
	CU_ASSERT(mst_controller_keep(&policy.controller, figure) <= MST_CONTROLLER_FIGURES);
	begin("syncswitch:0.5");
	CU_ASSERT_TRUE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	CU_ASSERT_EQUAL(policy.rule.quorum, 0);
	CU_ASSERT_TRUE(commit(500));
	(void)mst_controller_keep(&policy.controller, figure);
	begin("syncswitch:0.5");
	CU_ASSERT_TRUE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	CU_ASSERT_EQUAL(policy.rule.quorum, 1); /* async, for good */
	CU_ASSERT_FALSE(commit(510));
	CU_ASSERT_STRING_EQUAL(because(), "500 samples are done, and the share of bsp was 0.5");
}

/* What was counted while a straggler had all go async stays out of the share. */
static void from_a_checkpoint_it_comes_back_from_its_straggler(void)
{
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];

	begin("syncswitch:0.5,greedy");
	CU_ASSERT_TRUE(commit_ten(0, 1));
	CU_ASSERT_FALSE(commit_ten(10, 1));
	(void)mst_controller_keep(&policy.controller, figure);
	begin("syncswitch:0.5,greedy");
	CU_ASSERT_TRUE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	CU_ASSERT_EQUAL(policy.rule.quorum, 1);
	CU_ASSERT_TRUE(commit_ten(20, 0));
	CU_ASSERT_EQUAL(policy.rule.quorum, 0);
	CU_ASSERT_FALSE(commit_ten(500, 0));
	CU_ASSERT_TRUE(commit_ten(510, 0));
}

static CU_TestInfo cases[] = {
	{ "from a checkpoint it goes on where it was", from_a_checkpoint_it_goes_on_where_it_was },
	{ "from a checkpoint it comes back from its straggler",
	  from_a_checkpoint_it_comes_back_from_its_straggler },
	{ "bsp holds until the share is done, and async for good",
	  bsp_holds_until_the_share_is_done_and_async_for_good },
	{ "greedy goes async while there is a straggler",
	  greedy_goes_async_while_there_is_a_straggler },
	{ "samples of such a while are not in the share",
	  samples_of_such_a_while_are_not_in_the_share },
	{ "elastic stays, and has stragglers rest until the change",
	  elastic_stays_and_has_stragglers_rest_until_the_change },
	{ "who does not ask for it is not watched", who_does_not_ask_for_it_is_not_watched },
	{ "its name is that of the rule in force", its_name_is_that_of_the_rule_in_force },
	{ "both rules keep what other options say", both_rules_keep_what_other_options_say },
	{ "a share is between none and all", a_share_is_between_none_and_all },
	{ "without an end in samples it is refused", without_an_end_in_samples_it_is_refused },
	{ "both rules are checked", both_rules_are_checked },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("controller_syncswitch", cases);
}
