/* SPDX-License-Identifier: MIT */
/* Control groups as text, and made-up hosts of every kind of hierarchy. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/host/cgroup.h"
#include "common/host/memory.h"
#include "tests/unit/common/host/host_case.h"
#include "tests/ut.h"

static struct fix_folder host; /* made up */

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* ---- where a group lies ---- */

static struct mst_cgroup found[MST_CGROUPS_MAX];

static bool finds(const char *groups, const char *mounts, const char *expected)
{
	char got[2 * MST_CGROUP_PATH];

	if (mst_cgroup_find(groups, mounts, "memory", found) != 1)
		return expected == NULL;
	(void)snprintf(got, sizeof(got), "%s%s", found[0].mount, found[0].group);
	return expected != NULL && strcmp(got, expected) == 0;
}

#define V2 HOST_V2
#define V1 HOST_V1

static void a_group_is_found_below_its_mount(void)
{
	CU_ASSERT(finds("0::/a/b\n", V2("/", "/sys/fs/cgroup"), "/sys/fs/cgroup/a/b"));
	CU_ASSERT(finds("0::/\n", V2("/", "/sys/fs/cgroup"), "/sys/fs/cgroup"));
	CU_ASSERT(finds("5:cpu,cpuacct:/c\n4:hugetlb,memory:/a:1\n",
			V1("/", "/cg/cpu", "cpu,cpuacct") V1("/", "/cg/memory", "memory"),
			"/cg/memory/a:1"));
	CU_ASSERT(finds("0::/a\\040b\n", V2("/", "/my\\040groups"), "/my groups/a b"));
}

/* Docker with the host's namespace: the mount begins at the container's group. */
static void a_mount_may_begin_at_the_group_itself(void)
{
	CU_ASSERT(finds("4:memory:/docker/0a\n", V1("/docker/0a", "/cg", "memory"), "/cg"));
	CU_ASSERT(finds("4:memory:/docker/0a/x\n", V1("/docker/0a", "/cg", "memory"), "/cg/x"));
	CU_ASSERT(finds("4:memory:/docker/0ab\n", V1("/docker/0a", "/cg", "memory"), NULL));
}

/* A namespace's root is "/"; what was mounted outside of it begins above. */
static void a_mount_from_outside_the_namespace_shows_an_ancestor(void)
{
	CU_ASSERT(finds("0::/\n", V2("/../..", "/cg"), "/cg"));
	CU_ASSERT(finds("0::/x\n", V2("/..", "/cg"), "/cg"));
	CU_ASSERT(finds("0::/../y\n", V2("/..", "/cg"), "/cg/y"));
	CU_ASSERT(finds("0::/../y\n", V2("/../..", "/cg"), "/cg"));
	CU_ASSERT(finds("0::/../y\n", V2("/", "/cg"), NULL)); /* moved out: nothing shows it */
	CU_ASSERT(finds("0::/\n", V2("/../z", "/cg"), NULL));
	CU_ASSERT(finds("0::/a/../../b\n", V2("/", "/cg"), NULL));
}

static void the_mount_that_shows_most_ancestors_is_taken(void)
{
	CU_ASSERT(finds("0::/a/b\n", V2("/a", "/one") V2("/", "/two") V2("/a/b", "/three"),
			"/two/a/b"));
	CU_ASSERT(finds("0::/a\n", V2("/", "/under") V2("/", "/over"), "/over/a"));
}

static void what_is_no_group_or_no_mount_is_left_out(void)
{
	CU_ASSERT(finds("", "", NULL));
	CU_ASSERT(finds("0::/a\n", "", NULL));
	CU_ASSERT(finds("0::/a\n", "31 23 0:28 / /sys rw - sysfs sysfs rw\n", NULL));
	CU_ASSERT(finds("0::a\n", V2("/", "/cg"), NULL));
	CU_ASSERT(finds("0:\n0\n::\n", V2("/", "/cg"), NULL));
	CU_ASSERT(finds("0::/a\n", "31 23 0:28 / /cg rw shared:1\n31 23\n\n-\n", NULL));
	CU_ASSERT(finds("1:name=memory:/a\n", V1("/", "/cg", "name=memory"), NULL));
}

static void numbers_are_what_the_kernel_writes(void)
{
	uint64_t value;

	CU_ASSERT(mst_cgroup_number("max\n", &value) && value == MST_CGROUP_NONE);
	CU_ASSERT(mst_cgroup_number("9223372036854771712\n", &value) && value == MST_CGROUP_NONE);
	CU_ASSERT(mst_cgroup_number("9223372036854710272\n", &value) && value == MST_CGROUP_NONE);
	CU_ASSERT(mst_cgroup_number("99999999999999999999999\n", &value) &&
		  value == MST_CGROUP_NONE);
	CU_ASSERT(mst_cgroup_number("314572800\n", &value) && value == 300 * MIB);
	CU_ASSERT(mst_cgroup_number("0", &value) && value == 0);
	CU_ASSERT(!mst_cgroup_number("", &value) && !mst_cgroup_number("\n1", &value));
	CU_ASSERT(!mst_cgroup_number("-1\n", &value) && !mst_cgroup_number("12 kB\n", &value));
	CU_ASSERT_EQUAL(mst_cgroup_field("file 1\ninactive_file 22\n", "inactive_file"), 22);
	CU_ASSERT_EQUAL(mst_cgroup_field("inactive_file_x 22\n", "inactive_file"), 0);
	CU_ASSERT_EQUAL(mst_cgroup_field("inactive_file\ninactive_file 1", "inactive_file"), 0);
}

/* ---- made-up hosts ---- */

static void put_in(const char *group, const char *file, uint64_t bytes)
{
	char path[256], text[32];

	(void)snprintf(path, sizeof(path), "%s/%s", group, file);
	(void)snprintf(text, sizeof(text), "%" PRIu64 "\n", bytes);
	fix_folder_put(&host, path, text);
}

static uint64_t has_free(void)
{
	struct mst_host_memory m;

	mst_host_memory(host.root, &m);
	return m.free_bytes;
}

static void put_host(const char *groups, const char *mounts)
{
	fix_folder_new(&host);
	fix_folder_put(&host, "/proc/meminfo",
		       "MemTotal:  18874368 kB\nMemFree:  1 kB\nMemAvailable: 17825792 kB\n");
	fix_folder_put(&host, "/proc/self/cgroup", groups);
	fix_folder_put(&host, "/proc/self/mountinfo", mounts);
}

static void without_groups_the_host_counts(void)
{
	struct mst_host_memory m;
	char text[200];

	fix_folder_new(&host);
	CU_ASSERT_EQUAL(has_free(), MST_MEMORY_UNKNOWN);
	mst_host_memory(host.root, &m);
	CU_ASSERT_EQUAL(mst_host_memory_share(&m), MST_MEMORY_UNKNOWN);
	fix_folder_free(&host);
	put_host("0::/\n", V2("/", "/cg"));
	CU_ASSERT_EQUAL(has_free(), 17 * GIB);
	mst_host_memory(host.root, &m);
	CU_ASSERT_STRING_EQUAL(mst_host_memory_source(&m, text, sizeof(text)),
			       "of what the host has free");
	fix_folder_free(&host);
}

/* The leaf has no limit, or not even the files; its grandparent has. */
static void the_tightest_of_all_ancestors_counts(void)
{
	struct mst_host_memory m;
	char text[200];

	put_host("0::/a/b/c\n", V2("/", "/cg"));
	fix_folder_put(&host, "/cg/a/b/memory.max", "max\n");
	put_in("/cg/a/b", "memory.current", 90 * MIB);
	put_in("/cg/a", "memory.max", 300 * MIB);
	put_in("/cg/a", "memory.current", 100 * MIB);
	CU_ASSERT_EQUAL(has_free(), 200 * MIB);
	mst_host_memory(host.root, &m);
	CU_ASSERT_EQUAL(mst_host_memory_share(&m), 150 * MIB);
	CU_ASSERT_STRING_EQUAL(mst_host_memory_source(&m, text, sizeof(text)),
			       "of what is free in control group /a, memory.max 300.0 MiB");
	put_in("/cg/a/b", "memory.max", 250 * MIB);
	CU_ASSERT_EQUAL(has_free(), 160 * MIB);
	put_in("/cg/a", "memory.current", 170 * MIB); /* by others */
	CU_ASSERT_EQUAL(has_free(), 130 * MIB);
	put_in("/cg/a/b", "memory.high", 150 * MIB);
	CU_ASSERT_EQUAL(has_free(), 60 * MIB);
	fix_folder_free(&host);
}

/* It was "no limit" once, so that a group that had nothing left could be given everything. */
static void a_group_beyond_its_limit_has_nothing_free(void)
{
	struct mst_host_memory m;

	put_host("0::/a\n", V2("/", "/cg"));
	put_in("/cg/a", "memory.max", 300 * MIB);
	put_in("/cg/a", "memory.current", 310 * MIB);
	CU_ASSERT_EQUAL(has_free(), 0);
	mst_host_memory(host.root, &m);
	CU_ASSERT_EQUAL(mst_host_memory_share(&m), 0);
	fix_folder_free(&host);
}

static void page_cache_is_free_and_shared_memory_is_not(void)
{
	put_host("0::/a\n", V2("/", "/cg"));
	put_in("/cg/a", "memory.max", 300 * MIB);
	put_in("/cg/a", "memory.current", 290 * MIB);
	fix_folder_put(&host, "/cg/a/memory.stat",
		       "anon 10485760\nfile 293601280\nshmem 83886080\n"
		       "inactive_file 104857600\nactive_file 104857600\n");
	CU_ASSERT_EQUAL(has_free(), 210 * MIB);
	fix_folder_free(&host);
}

static void version_1_is_read_too(void)
{
	put_host("4:memory:/a/b\n0::/a/b\n",
		 V1("/", "/cg/memory", "memory") V2("/", "/cg/unified"));
	fix_folder_put(&host, "/cg/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put_in("/cg/memory/a", "memory.limit_in_bytes", 300 * MIB);
	put_in("/cg/memory/a", "memory.usage_in_bytes", 250 * MIB);
	fix_folder_put(&host, "/cg/memory/a/memory.stat",
		       "cache 1\ninactive_file 1\ntotal_cache 262144000\n"
		       "total_inactive_file 52428800\ntotal_active_file 52428800\n");
	CU_ASSERT_EQUAL(has_free(), 150 * MIB);
	put_in("/cg/memory/a", "memory.memsw.limit_in_bytes", 400 * MIB);
	put_in("/cg/memory/a", "memory.memsw.usage_in_bytes", 400 * MIB); /* 150 in swap */
	CU_ASSERT_EQUAL(has_free(), 100 * MIB);
	fix_folder_put(&host, "/cg/memory/a/memory.use_hierarchy",
		       "0\n"); /* it limits only who is in it itself */
	CU_ASSERT_EQUAL(has_free(), 17 * GIB);
	fix_folder_free(&host);
}

/* Version 1 has the controller, or version 2: the other has no such files. */
static void either_hierarchy_of_a_hybrid_host_may_limit(void)
{
	put_host("4:memory:/a\n0::/b\n", V1("/", "/cg/memory", "memory") V2("/", "/cg/unified"));
	put_in("/cg/memory/a", "memory.limit_in_bytes", 500 * MIB);
	CU_ASSERT_EQUAL(has_free(), 500 * MIB);
	put_in("/cg/unified/b", "memory.max", 300 * MIB);
	CU_ASSERT_EQUAL(has_free(), 300 * MIB);
	fix_folder_free(&host);
}

static void files_that_hold_rubbish_are_as_if_they_were_not_there(void)
{
	put_host("0::/a\n", V2("/", "/cg"));
	fix_folder_put(&host, "/cg/a/memory.max", "lots\n");
	CU_ASSERT_EQUAL(has_free(), 17 * GIB);
	put_in("/cg/a", "memory.max", 300 * MIB);
	fix_folder_put(&host, "/cg/a/memory.current", "");
	fix_folder_put(&host, "/cg/a/memory.stat", "inactive_file much\n");
	CU_ASSERT_EQUAL(has_free(), 300 * MIB);
	fix_folder_free(&host);
}

static void the_real_host_says_something(void)
{
	struct mst_host_memory m;

	mst_host_memory("", &m);
	CU_ASSERT(m.free_bytes > 0 && m.free_bytes < MST_MEMORY_UNKNOWN);
}

static CU_TestInfo cases[] = {
	{ "a group is found below its mount", a_group_is_found_below_its_mount },
	{ "a mount may begin at the group itself", a_mount_may_begin_at_the_group_itself },
	{ "a mount from outside the namespace shows an ancestor",
	  a_mount_from_outside_the_namespace_shows_an_ancestor },
	{ "the mount that shows most ancestors is taken",
	  the_mount_that_shows_most_ancestors_is_taken },
	{ "what is no group or no mount is left out", what_is_no_group_or_no_mount_is_left_out },
	{ "numbers are what the kernel writes", numbers_are_what_the_kernel_writes },
	{ "without groups the host counts", without_groups_the_host_counts },
	{ "the tightest of all ancestors counts", the_tightest_of_all_ancestors_counts },
	{ "a group beyond its limit has nothing free", a_group_beyond_its_limit_has_nothing_free },
	{ "page cache is free and shared memory is not",
	  page_cache_is_free_and_shared_memory_is_not },
	{ "version 1 is read too", version_1_is_read_too },
	{ "either hierarchy of a hybrid host may limit",
	  either_hierarchy_of_a_hybrid_host_may_limit },
	{ "files that hold rubbish are as if they were not there",
	  files_that_hold_rubbish_are_as_if_they_were_not_there },
	{ "the real host says something", the_real_host_says_something },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("cgroup", cases);
}
