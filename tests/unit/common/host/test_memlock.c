/* SPDX-License-Identifier: MIT */
/* What a process may pin for a device, and whether it is that limit which forbids more. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "common/host/memlock.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define ALL_OF_THE_HOST "         0          0 4294967295\n"
#define IPC_LOCK "0000000000004000"
#define ALL_OTHERS "000001ffffffbfff"
#define STATUS(caps) "Name:\tx\nUid:\t1\nThreads:\t1\nCapEff:\t" caps "\nVmPin:\t      12 kB\n"

static struct fix_folder host;

static struct mst_memlock read_with(const char *status, const char *uid_map)
{
	struct mst_memlock lock;

	fix_folder_put(&host, "/proc/thread-self/status", status);
	fix_folder_put(&host, "/proc/self/uid_map", uid_map);
	mst_host_memlock(host.root, &lock);
	return lock;
}

static void what_is_pinned_and_who_is_exempt_is_read(void)
{
	struct mst_memlock lock;

	fix_folder_new(&host);
	mst_host_memlock(host.root, &lock);
	CU_ASSERT_EQUAL(lock.pinned_bytes, 0);
	CU_ASSERT_FALSE(lock.exempt);
	lock = read_with(STATUS(IPC_LOCK), ALL_OF_THE_HOST);
	CU_ASSERT_EQUAL(lock.pinned_bytes, 12288);
	CU_ASSERT_TRUE(lock.exempt);
	CU_ASSERT_FALSE(read_with(STATUS(ALL_OTHERS), ALL_OF_THE_HOST).exempt);
	CU_ASSERT_FALSE(read_with(STATUS(IPC_LOCK), "0 1000 1\n").exempt);
	CU_ASSERT_FALSE(read_with(STATUS(IPC_LOCK), "0 0 65536\n").exempt);
	CU_ASSERT_FALSE(read_with(STATUS(IPC_LOCK), "\n").exempt);
	fix_folder_free(&host);
}

static void the_limits_are_those_of_the_process(void)
{
	struct rlimit was, low;
	struct mst_memlock lock;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_MEMLOCK, &was), 0);
	low = (struct rlimit){ 4096, was.rlim_max };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	mst_host_memlock("", &lock);
	CU_ASSERT_EQUAL(lock.soft_bytes, 4096);
	CU_ASSERT_EQUAL(lock.hard_bytes,
			was.rlim_max == RLIM_INFINITY ? MST_MEMLOCK_UNLIMITED : was.rlim_max);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_MEMLOCK, &was), 0);
}

static void the_limit_forbids_what_is_beyond_it(void)
{
	struct mst_memlock lock = { .soft_bytes = 65536, .pinned_bytes = 12288 };

	CU_ASSERT_FALSE(mst_memlock_forbids(&lock, 53248));
	CU_ASSERT_TRUE(mst_memlock_forbids(&lock, 53248 + 4096));
	CU_ASSERT_TRUE(mst_memlock_forbids(&lock, UINT64_MAX));
	lock.exempt = true;
	CU_ASSERT_FALSE(mst_memlock_forbids(&lock, UINT64_MAX));
	lock = (struct mst_memlock){ .soft_bytes = MST_MEMLOCK_UNLIMITED, .pinned_bytes = 12288 };
	CU_ASSERT_FALSE(mst_memlock_forbids(&lock, (uint64_t)1 << 62));
}

static CU_TestInfo cases[] = {
	{ "what is pinned, and who is exempt, is read", what_is_pinned_and_who_is_exempt_is_read },
	{ "the limits are those of the process", the_limits_are_those_of_the_process },
	{ "the limit forbids what is beyond it", the_limit_forbids_what_is_beyond_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("memory that may be locked", cases);
}
