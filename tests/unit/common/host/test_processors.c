/* SPDX-License-Identifier: MIT */
/* How many processors this process may use: its own affinity, and made-up control groups. */
#include <sched.h>

#include "common/host/processors.h"
#include "tests/unit/common/host/host_case.h"
#include "tests/ut.h"

static struct fix_folder host; /* made up */
static cpu_set_t all;
static uint32_t here; /* by the affinity */

static void begin(const char *groups, const char *mounts)
{
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(all), &all), 0);
	here = (uint32_t)CPU_COUNT(&all);
	fix_folder_new(&host);
	fix_folder_put(&host, "/proc/self/cgroup", groups);
	fix_folder_put(&host, "/proc/self/mountinfo", mounts);
}

static void expect(uint32_t quota)
{
	CU_ASSERT_EQUAL(mst_host_processors(host.root), quota < here ? quota : here);
}

static void end(void)
{
	fix_folder_free(&host);
}

static void without_quotas_the_affinity_says(void)
{
	begin("0::/a\n", HOST_V2("/", "/cg"));
	expect(here);
	fix_folder_put(&host, "/cg/a/cpu.max", "max 100000\n");
	expect(here);
	end();
}

static void one_processor_of_many_is_one(void)
{
	cpu_set_t one;
	unsigned first = 0;

	begin("", "");
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(one), &one), 0);
	CU_ASSERT_EQUAL(mst_host_processors(host.root), 1);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(all), &all), 0);
	end();
}

static void the_least_quota_above_the_process_holds(void)
{
	begin("0::/pods/mine\n", HOST_V2("/", "/cg"));
	fix_folder_put(&host, "/cg/pods/mine/cpu.max", "900000 100000\n");
	fix_folder_put(&host, "/cg/pods/cpu.max", "100000 100000\n");
	expect(1);
	end();
}

static void a_part_of_a_processor_counts_as_one(void)
{
	static const struct {
		const char *text;
		uint32_t count;
	} quotas[] = {
		{ "1000 100000\n", 1 },
		{ "100000 100000\n", 1 },
		{ "100001 100000\n", 2 },
		{ "150000 100000\n", 2 },
		{ "0 100000\n", 1 },
		{ "100000 0\n", UINT32_MAX },
		{ "-5 100000\n", UINT32_MAX },
		{ "rubbish\n", UINT32_MAX },
		{ "", UINT32_MAX },
	};

	begin("0::/a\n", HOST_V2("/", "/cg"));
	for (size_t i = 0; i < sizeof(quotas) / sizeof(quotas[0]); i++) {
		fix_folder_put(&host, "/cg/a/cpu.max", quotas[i].text);
		expect(quotas[i].count);
	}
	end();
}

static void version_1_has_a_quota_and_a_period(void)
{
	begin("5:cpu,cpuacct:/a\n", HOST_V1("/", "/cpu", "cpu,cpuacct"));
	fix_folder_put(&host, "/cpu/a/cpu.cfs_quota_us", "-1\n");
	fix_folder_put(&host, "/cpu/a/cpu.cfs_period_us", "100000\n");
	expect(here);
	fix_folder_put(&host, "/cpu/a/cpu.cfs_quota_us", "50000\n");
	expect(1);
	end();
}

static CU_TestInfo cases[] = {
	{ "without quotas the affinity says", without_quotas_the_affinity_says },
	{ "one processor of many is one", one_processor_of_many_is_one },
	{ "the least quota above the process holds", the_least_quota_above_the_process_holds },
	{ "a part of a processor counts as one", a_part_of_a_processor_counts_as_one },
	{ "version 1 has a quota and a period", version_1_has_a_quota_and_a_period },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("processors", cases);
}
