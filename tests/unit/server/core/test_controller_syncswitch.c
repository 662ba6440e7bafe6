/* SPDX-License-Identifier: MIT */
/* Sync-Switch with statistics that are made up. */
#include <errno.h>
#include <string.h>

#include "server/core/policy.h"
#include "tests/ut.h"

#define ALL 1000.0

static char why[512];
static struct mst_policy policy;

static void begin(const char *text)
{
	policy = (struct mst_policy){ .rule = { .divide = true, .min_workers = 1 } };
	CU_ASSERT_EQUAL_FATAL(mst_policy_parse(text, &policy, why, sizeof(why)), 0);
}

static bool commit(double samples)
{
	struct mst_commit_view view = { .samples_total = samples, .samples_max = ALL };

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
	CU_ASSERT_STRING_EQUAL(because(), "253 samples, 0.25 of all, were done under bsp");
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

/* What --patience, --lr-scale and others say holds before the change and after it. */
static void both_rules_keep_what_other_options_say(void)
{
	struct mst_policy p = {
		.rule = { .divide = true, .linear = true, .patience_ns = 7, .min_workers = 2 }
	};

	CU_ASSERT_EQUAL_FATAL(mst_policy_parse("syncswitch:0.5", &p, why, sizeof(why)), 0);
	struct mst_rule then = *mst_controller_then(&p.controller);
	CU_ASSERT(p.rule.linear && p.rule.divide && p.rule.patience_ns == 7);
	CU_ASSERT(then.linear && then.divide && then.patience_ns == 7 && then.min_workers == 2);
}

static void a_share_is_between_none_and_all(void)
{
	static const char *const bad[] = { "syncswitch",      "syncswitch:",    "syncswitch:0",
					   "syncswitch:1",    "syncswitch:1.5", "syncswitch:-0.1",
					   "syncswitch:0.1,", "syncswitch:10%", "syncswitch:bsp" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mst_policy p = { .rule = { .divide = true } };
		CU_ASSERT_EQUAL(mst_policy_parse(bad[i], &p, why, sizeof(why)), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, "as in syncswitch:0.1"));
	}
}

static void without_an_end_in_samples_it_is_refused(void)
{
	struct mst_rule_context ctx = { .owner = MUSTER_SERVERS_OWN, .workers = 4, .slots = 1 };

	begin("syncswitch:0.5");
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, why, sizeof(why)), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "say --samples N"));
	ctx.samples_max = ALL;
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, why, sizeof(why)), 0);
}

/* async needs servers that own, so bsp may not begin where it could not follow. */
static void both_rules_are_checked(void)
{
	struct mst_rule_context ctx = {
		.owner = MUSTER_WORKERS_OWN, .workers = 4, .slots = 2, .samples_max = ALL
	};

	begin("syncswitch:0.5");
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, why, sizeof(why)), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "--owner servers"));
	struct mst_rule from = policy.rule;
	CU_ASSERT_EQUAL(mst_policy_switch_check(&from, &policy, &ctx, why, sizeof(why)), -EINVAL);
}

static CU_TestInfo cases[] = {
	{ "bsp holds until the share is done, and async for good",
	  bsp_holds_until_the_share_is_done_and_async_for_good },
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
