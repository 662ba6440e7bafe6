/* SPDX-License-Identifier: MIT */
/* How many processes and threads may be started: what /proc says as text, and made-up hosts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/host/process.h"
#include "common/host/tasks.h"
#include "tests/unit/common/host/host_case.h"
#include "tests/ut.h"

static struct fix_folder host; /* made up */

#define NO_CAPS "0000000000000000"
#define ALL_CAPS "000001ffffffffff"
#define ADMIN "0000000000200000"
#define RESOURCE "0000000001000000"

#define STATUS(uid, threads, caps)                                                                 \
	"Name:\tx\nUid:\t" uid "\t5\t5\t5\nThreads:\t" threads "\nCapInh:\t1\nCapEff:\t" caps "\n"
#define LIMITS(soft)                                                                               \
	"Limit                     Soft Limit           Hard Limit           Units     \n"         \
	"Max stack size            8388608              unlimited            bytes     \n"         \
	"Max processes             " soft "                 9000                 processes \n"

/* ---- text ---- */

static void a_status_is_read_or_refused(void)
{
	static const char *const wrong[] = {
		"",
		"Uid:\t1\nThreads:\t1\nCapEff:\t0\n", /* the first line is the name's */
		"Name:\tx\nUid:\t1\nThreads:\t1\n",
		"Name:\tx\nUid:\t\nThreads:\t1\nCapEff:\t0\n",
		"Name:\tx\nUid:\t-1\nThreads:\t1\nCapEff:\t0\n",
		"Name:\tx\nUid:\t1\nThreads:\tmany\nCapEff:\t0\n",
		"Name:\tx\nUid:\t1\nThreads:\t1\nCapEff:\tffffffffffffffffff\n",
	};
	struct mst_process p = { 0 };

	CU_ASSERT_TRUE_FATAL(mst_process_read(STATUS("1000", "17", RESOURCE), &p));
	CU_ASSERT_EQUAL(p.uid, 1000);
	CU_ASSERT_EQUAL(p.threads, 17);
	CU_ASSERT_EQUAL(p.capabilities, UINT64_C(1) << 24);
	CU_ASSERT_EQUAL(p.pinned_bytes, 0);
	CU_ASSERT_TRUE(
		mst_process_read(STATUS("1000", "17", RESOURCE) "VmPin:\t      12 kB\n", &p));
	CU_ASSERT_EQUAL(p.pinned_bytes, 12288);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_FALSE(mst_process_read(wrong[i], &p));
	CU_ASSERT_EQUAL(p.uid, 1000);
}

static void a_limit_is_read_or_none(void)
{
	CU_ASSERT_EQUAL(mst_process_limit(LIMITS("4096"), "Max processes"), 4096);
	CU_ASSERT_EQUAL(mst_process_limit(LIMITS("0"), "Max processes"), 0);
	CU_ASSERT_EQUAL(mst_process_limit(LIMITS("unlimited"), "Max processes"),
			MST_PROCESS_UNLIMITED);
	CU_ASSERT_EQUAL(mst_process_limit("Limit\n", "Max processes"), MST_PROCESS_UNLIMITED);
	CU_ASSERT_EQUAL(mst_process_limit("", "Max processes"), MST_PROCESS_UNLIMITED);
	CU_ASSERT_EQUAL(mst_process_all("0.1 0.1 0.1 2/345 12345\n"), 345);
	CU_ASSERT_EQUAL(mst_process_all("0.1 0.1 0.1\n"), MST_PROCESS_UNLIMITED);
	CU_ASSERT_EQUAL(mst_process_all("0.1 0.1 0.1 2/\n"), MST_PROCESS_UNLIMITED);
}

/* ---- made-up hosts ---- */

static struct mst_host_tasks found;

static uint64_t may_start(uint64_t want)
{
	mst_host_tasks(host.root, want, &found);
	return found.more;
}

static void put_in(const char *group, const char *max, const char *current)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/pids.max", group);
	fix_folder_put(&host, path, max);
	(void)snprintf(path, sizeof(path), "%s/pids.current", group);
	fix_folder_put(&host, path, current);
}

static void put_process(const char *pid, const char *status, const char *namespace)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	fix_folder_put(&host, path, status);
	(void)snprintf(path, sizeof(path), "/proc/%s/ns/user", pid);
	fix_folder_link(&host, path, namespace);
}

static void a_host_that_says_nothing_allows_all(void)
{
	fix_folder_new(&host);
	CU_ASSERT_EQUAL(may_start(1), MST_TASKS_UNLIMITED);
	CU_ASSERT_PTR_NULL(found.name);
	fix_folder_free(&host);
}

static void the_tightest_of_all_ancestors_counts(void)
{
	fix_folder_new(&host);
	fix_folder_put(&host, "/proc/self/cgroup", "0::/a/b/c\n");
	fix_folder_put(&host, "/proc/self/mountinfo", HOST_V2("/", "/cg"));
	put_in("/cg/a/b/c", "max\n", "3\n");
	CU_ASSERT_EQUAL(may_start(1), MST_TASKS_UNLIMITED);
	put_in("/cg/a/b", "20\n", "5\n");
	put_in("/cg/a", "100\n", "90\n"); /* most of them others' */
	CU_ASSERT_EQUAL(may_start(1), 10);
	CU_ASSERT_STRING_EQUAL(found.name, "pids.max");
	CU_ASSERT_STRING_EQUAL(found.group, "/a");
	CU_ASSERT(found.limit == 100 && found.used == 90);
	put_in("/cg/a/b", "4\n", "5\n"); /* lowered since */
	CU_ASSERT_EQUAL(may_start(1), 0);
	CU_ASSERT_STRING_EQUAL(found.group, "/a/b");
	put_in("/cg/a/b", "few\n", "5\n");
	CU_ASSERT_EQUAL(may_start(1), 10);
	put_in("/cg/a/b", "1\n", "none\n"); /* what is used is not told: it may be nothing */
	CU_ASSERT_EQUAL(may_start(1), 10);
	fix_folder_free(&host);
}

static void version_1_is_read_too(void)
{
	fix_folder_new(&host);
	fix_folder_put(&host, "/proc/self/cgroup", "8:pids:/x\n4:memory:/y\n0::/z\n");
	fix_folder_put(&host, "/proc/self/mountinfo",
		       HOST_V1("/", "/cg/pids", "pids") HOST_V1("/", "/cg/memory", "memory")
			       HOST_V2("/", "/cg/unified"));
	put_in("/cg/pids/x", "7\n", "2\n");
	put_in("/cg/memory/y", "1\n", "1\n"); /* no such files there, really */
	CU_ASSERT_EQUAL(may_start(1), 5);
	put_in("/cg/unified/z", "6\n", "2\n");
	CU_ASSERT_EQUAL(may_start(1), 4);
	fix_folder_free(&host);
}

#define HERE "user:[1]"

/* A user with 5 tasks in two processes, others' beside them, and a limit of 12. */
static void put_user(const char *caps)
{
	char status[160];

	(void)snprintf(status, sizeof(status), STATUS("1000", "2", "%s"), caps);
	fix_folder_new(&host);
	fix_folder_put(&host, "/proc/loadavg", "0.1 0.1 0.1 1/400 9\n");
	fix_folder_put(&host, "/proc/self/limits", LIMITS("12"));
	put_process("self", status, HERE);
	put_process("41", status, HERE);
	put_process("42", STATUS("1000", "3", NO_CAPS), HERE);
	put_process("43", STATUS("1001", "300", NO_CAPS), HERE);
	put_process("44", STATUS("1000", "50", NO_CAPS), "user:[2]"); /* a container's, perhaps */
	fix_folder_put(&host, "/proc/45/status",
		       STATUS("1000", "40", NO_CAPS)); /* may not be looked into */
	fix_folder_put(&host, "/proc/sys/status", STATUS("1000", "9", NO_CAPS));
}

static void a_users_own_tasks_count(void)
{
	put_user(NO_CAPS);
	CU_ASSERT_EQUAL(may_start(8), 7);
	CU_ASSERT_STRING_EQUAL(found.name, "RLIMIT_NPROC");
	CU_ASSERT(found.limit == 12 && found.used == 5);
	fix_folder_put(&host, "/proc/self/limits", LIMITS("3"));
	CU_ASSERT_EQUAL(may_start(1), 0);
	fix_folder_free(&host);
}

static void root_and_who_may_exceed_limits_are_not_bound(void)
{
	static const char *const caps[] = { ADMIN, RESOURCE, ALL_CAPS };

	for (unsigned i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		put_user(caps[i]);
		CU_ASSERT_EQUAL(may_start(100), MST_TASKS_UNLIMITED);
		fix_folder_free(&host);
	}
	put_user(NO_CAPS);
	fix_folder_put(&host, "/proc/self/status", STATUS("0", "1", NO_CAPS));
	CU_ASSERT_EQUAL(may_start(100), MST_TASKS_UNLIMITED);
	fix_folder_free(&host);
}

static void no_process_is_looked_at_where_the_whole_host_has_few(void)
{
	put_user(NO_CAPS);
	fix_folder_put(&host, "/proc/loadavg", "0.1 0.1 0.1 1/9 9\n");
	CU_ASSERT_EQUAL(may_start(3), MST_TASKS_UNLIMITED);
	CU_ASSERT_EQUAL(may_start(4), 7);
	fix_folder_free(&host);
}

static void the_real_host_lets_this_test_start_something(void)
{
	struct mst_reason why = { "" };

	CU_ASSERT_EQUAL(mst_host_tasks_check("nobody", 0, NULL, &why), 0);
	CU_ASSERT_EQUAL(mst_host_tasks_check("one thread", 1, NULL, &why), 0);
	CU_ASSERT_STRING_EQUAL(why.text, "");
	CU_ASSERT_STRING_EQUAL(mst_host_tasks_failed(-ENOMEM, &why), strerror(ENOMEM));
	CU_ASSERT_PTR_NOT_NULL(strstr(mst_host_tasks_failed(-EAGAIN, &why), "ulimit"));
}

static CU_TestInfo cases[] = {
	{ "a status is read or refused", a_status_is_read_or_refused },
	{ "a limit is read or none", a_limit_is_read_or_none },
	{ "a host that says nothing allows all", a_host_that_says_nothing_allows_all },
	{ "the tightest of all ancestors counts", the_tightest_of_all_ancestors_counts },
	{ "version 1 is read too", version_1_is_read_too },
	{ "a user's own tasks count", a_users_own_tasks_count },
	{ "root and who may exceed limits are not bound",
	  root_and_who_may_exceed_limits_are_not_bound },
	{ "no process is looked at where the whole host has few",
	  no_process_is_looked_at_where_the_whole_host_has_few },
	{ "the real host lets this test start something",
	  the_real_host_lets_this_test_start_something },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("tasks", cases);
}
