/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"
#include "tools/sim/schedule.h"

static struct mst_sim_changes changes;
static struct mst_sim_switches switches;
static struct mst_reason why;

static int read(enum mst_sim_change_kind kind, const char *text)
{
	struct mst_option_list list = { .count = 1, .item = { text } };

	return mst_sim_changes_read(&changes, kind, &list, &why);
}

static void begin(void)
{
	changes = (struct mst_sim_changes){ .workers = 8 };
}

/* All of these at once. Return: as mst_sim_changes_order(). */
static int order(const char *kill, const char *freeze, const char *join)
{
	begin();
	if (kill != NULL)
		CU_ASSERT(read(MST_SIM_KILL, kill) == 0);
	if (freeze != NULL)
		CU_ASSERT(read(MST_SIM_FREEZE, freeze) == 0);
	if (join != NULL)
		CU_ASSERT(read(MST_SIM_JOIN, join) == 0);
	return mst_sim_changes_order(&changes, &why);
}

static void changes_come_in_order_of_time(void)
{
	CU_ASSERT(order("3@20s", "5@500ms", "3@1min") == 0);
	CU_ASSERT_EQUAL_FATAL(changes.count, 3);
	CU_ASSERT(changes.at[0].rank == 5 && changes.at[0].at_ns == 500 * MST_MS);
	CU_ASSERT(changes.at[1].rank == 3 && changes.at[1].kind == MST_SIM_KILL);
	CU_ASSERT(changes.at[2].kind == MST_SIM_JOIN && changes.at[2].at_ns == 60 * MST_SECOND);
}

static void what_is_no_rank_and_time_is_refused(void)
{
	static const char *const bad[] = {
		"",      "3",     "@",     "@5s",   "3@",    "x@5s",    "3@5",
		"3@-5s", "-3@5s", "3@5s@", "3@5 s", " 3@5s", "3@9000h", "99999999999999999999999@5s"
	};

	begin();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(read(MST_SIM_KILL, bad[i]) != 0);
		CU_ASSERT(strstr(why.text, "--kill") != NULL && strstr(why.text, "3@20s") != NULL);
	}
	CU_ASSERT(read(MST_SIM_FREEZE, "8@5s") != 0);
	CU_ASSERT_STRING_EQUAL(why.text,
			       "option --freeze: \"8@5s\": the ranks of 8 workers are 0 to 7");
	CU_ASSERT_EQUAL(changes.count, 0);
}

static void what_cannot_happen_is_refused(void)
{
	CU_ASSERT(order(NULL, NULL, "3@5s") != 0);
	CU_ASSERT(strstr(why.text, "--join: rank 3 at 5.00 s: this rank has not been killed") !=
		  NULL);
	CU_ASSERT(order("3@9s", NULL, "3@5s") != 0);
	CU_ASSERT(order("3@5s", "3@9s", NULL) != 0);
	CU_ASSERT(strstr(why.text, "already been killed") != NULL);
	CU_ASSERT(order("3@5s", NULL, "3@5s") != 0);
	CU_ASSERT(strstr(why.text, "at the same time") != NULL);
	CU_ASSERT(order("3@9s", "3@5s", "3@10s") == 0);
	CU_ASSERT(order("3@9s", "3@5s", "3@7s") == 0);
}

static void a_nap_has_a_length(void)
{
	static const char *const bad[] = { "3@20s",    "3@20s,",      "3@20s,0ms",  "3@20s,-1s",
					   "3@,200ms", "3@20s,5,5ms", "3@20s,9000h" };

	begin();
	CU_ASSERT(read(MST_SIM_NAP, "3@20s,200ms") == 0);
	CU_ASSERT_EQUAL_FATAL(changes.count, 1);
	CU_ASSERT(changes.at[0].rank == 3 && changes.at[0].at_ns == 20 * MST_SECOND);
	CU_ASSERT_EQUAL(changes.at[0].length_ns, 200 * MST_MS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(read(MST_SIM_NAP, bad[i]) != 0);
		CU_ASSERT(strstr(why.text, "--nap") != NULL &&
			  strstr(why.text, "3@20s,200ms") != NULL);
	}
	CU_ASSERT(read(MST_SIM_KILL, "3@20s,200ms") != 0);
}

static void who_is_alive_may_take_a_nap(void)
{
	CU_ASSERT(order("3@9s", NULL, "3@10s") == 0);
	CU_ASSERT(read(MST_SIM_NAP, "3@5s,10s") == 0 && read(MST_SIM_NAP, "3@11s,1s") == 0);
	CU_ASSERT(mst_sim_changes_order(&changes, &why) == 0);
	CU_ASSERT(read(MST_SIM_NAP, "3@9500ms,1s") == 0);
	CU_ASSERT(mst_sim_changes_order(&changes, &why) != 0);
	CU_ASSERT(strstr(why.text, "--nap: rank 3 at 9.50 s: this rank has already been killed") !=
		  NULL);
	CU_ASSERT(order(NULL, "3@9s", NULL) == 0);
	CU_ASSERT(read(MST_SIM_NAP, "3@10s,1s") == 0);
	CU_ASSERT(mst_sim_changes_order(&changes, &why) != 0);
	CU_ASSERT(strstr(why.text, "frozen") != NULL);
	begin();
	CU_ASSERT(read(MST_SIM_NAP, "3@5s,1s") == 0 && read(MST_SIM_JOIN, "3@9s") == 0);
	CU_ASSERT(mst_sim_changes_order(&changes, &why) != 0);
}

static int read_switches(const char *first, const char *second)
{
	struct mst_option_list list = { .count = second != NULL ? 2 : 1,
					.item = { first, second } };
	struct mst_rule base = { .divide = true, .patience_ns = 7 };

	switches.count = 0;
	return mst_sim_switches_read(&switches, &list, &base, &why);
}

static void switches_come_in_order_of_versions(void)
{
	CU_ASSERT(read_switches("async@500", "backup:-1@20") == 0);
	CU_ASSERT_EQUAL_FATAL(switches.count, 2);
	CU_ASSERT(switches.at[0].version == 20 && switches.at[0].rule.quorum == -1);
	CU_ASSERT(switches.at[1].version == 500 && switches.at[1].rule.quorum == 1);
	CU_ASSERT(switches.at[1].rule.divide && switches.at[1].rule.patience_ns == 7);
	CU_ASSERT_STRING_EQUAL(switches.text[0], "backup:-1@20");
}

static void what_is_no_policy_and_version_is_refused(void)
{
	CU_ASSERT(read_switches("async", NULL) != 0);
	CU_ASSERT(strstr(why.text, "async@500") != NULL);
	CU_ASSERT(read_switches("async@", NULL) != 0);
	CU_ASSERT(read_switches("async@-1", NULL) != 0);
	CU_ASSERT(read_switches("async@5s", NULL) != 0);
	CU_ASSERT(read_switches("asink@5", NULL) != 0);
	CU_ASSERT(strstr(why.text, "--switch: \"asink@5\": unknown policy \"asink\"") != NULL);
	CU_ASSERT(read_switches("async@5", "bsp@5") != 0);
	CU_ASSERT(strstr(why.text, "another switch at version 5") != NULL);
}

static CU_TestInfo cases[] = {
	{ "changes come in order of time", changes_come_in_order_of_time },
	{ "what is no rank and time is refused", what_is_no_rank_and_time_is_refused },
	{ "what cannot happen is refused", what_cannot_happen_is_refused },
	{ "switches come in order of versions", switches_come_in_order_of_versions },
	{ "what is no policy and version is refused", what_is_no_policy_and_version_is_refused },
	{ "a nap has a length", a_nap_has_a_length },
	{ "who is alive may take a nap", who_is_alive_may_take_a_nap },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_schedule", cases);
}
