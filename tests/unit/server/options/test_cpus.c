/* SPDX-License-Identifier: MIT */
/* Lists of processors. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "server/options/cpus.h"
#include "tests/ut.h"

static struct mst_cpus cpus;
static struct mst_reason why;

static int parse(const char *text)
{
	why.text[0] = '\0';
	return mst_cpus_parse(text, &cpus, &why);
}

static void auto_pins_nowhere(void)
{
	CU_ASSERT_EQUAL(parse("auto"), 0);
	CU_ASSERT_EQUAL(cpus.count, 0);
	CU_ASSERT_EQUAL(mst_cpus_forbidden(&cpus), -1);
}

static void a_list_keeps_its_order(void)
{
	static const uint16_t expected[] = { 8, 0, 1, 2, 3, 1023 };

	CU_ASSERT_EQUAL(parse("8,0-3,1023"), 0);
	CU_ASSERT_EQUAL_FATAL(cpus.count, 6);
	CU_ASSERT_EQUAL(memcmp(cpus.cpu, expected, sizeof(expected)), 0);
	CU_ASSERT_EQUAL(parse("0-1023"), 0);
	CU_ASSERT_EQUAL(cpus.count, MST_CPUS_MAX);
}

static void what_is_no_list_is_refused_with_a_reason(void)
{
	static const char *const bad[] = { "",     ",",    "0,",    "-1",
					   "1-",   "3-1",  "1024",  "a",
					   "0-1a", "0 1",  " 0",    "+1",
					   "0,,1", "1,1",  "0-2,1", "99999999999999999999",
					   "0x1",  "Auto", "0-1-2" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(parse(bad[i]), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, bad[i]));
	}
}

static void who_may_not_run_there_is_told(void)
{
	cpu_set_t all, one;
	unsigned first = 0;
	char text[16];

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(one), &one), 0);
	(void)snprintf(text, sizeof(text), "%u,%u", first, first + 1);
	CU_ASSERT_EQUAL(parse(text), 0);
	CU_ASSERT_EQUAL(mst_cpus_forbidden(&cpus), (int)first + 1);
	(void)snprintf(text, sizeof(text), "%u", first);
	CU_ASSERT_EQUAL(parse(text), 0);
	CU_ASSERT_EQUAL(mst_cpus_forbidden(&cpus), -1);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(all), &all), 0);
}

static CU_TestInfo cases[] = {
	{ "auto pins nowhere", auto_pins_nowhere },
	{ "a list keeps its order", a_list_keeps_its_order },
	{ "what is no list is refused with a sentence", what_is_no_list_is_refused_with_a_reason },
	{ "who may not run there is told", who_may_not_run_there_is_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("cpus", cases);
}
