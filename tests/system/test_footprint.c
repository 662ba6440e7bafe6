/* SPDX-License-Identifier: MIT */
/* A job in one process, servers and workers: once it runs, nothing of ours takes memory or gives it
 * back, whatever the policy. The allocator is counted by the linker. */
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "tests/system/test_job.h"
#include "tests/ut.h"

#define BEGIN 20u /* versions until which anything may still be set up */
#define STEPS 900u
/* While nobody has seen this version, the last is far: each worker has at most two gradients on
 * their way. */
#define NEAR_THE_END 950u

static atomic_ulong calls; /* of the allocator, so far */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void __real_free(void *p);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void __wrap_free(void *p);

void *__wrap_malloc(size_t bytes)
{
	atomic_fetch_add(&calls, 1);
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	atomic_fetch_add(&calls, 1);
	return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *p, size_t bytes)
{
	atomic_fetch_add(&calls, 1);
	return __real_realloc(p, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	atomic_fetch_add(&calls, 1);
	return __real_aligned_alloc(align, bytes);
}

void __wrap_free(void *p)
{
	atomic_fetch_add(&calls, 1);
	__real_free(p);
}

static atomic_ulong calls_then, calls_now; /* when rank 0 had seen BEGIN, and STEPS versions */
static atomic_ulong newest;                /* version that any of them has seen */
/* Workers that have made enough steps: the first may set something up, and under a policy that
 * drops stragglers a job is far before a slow worker makes its own. */
#define STEPS_TO_SETTLE 5u
static atomic_uint settled;
static atomic_uint begun; /* workers that are through with their start */
/* A step takes so long until rank 0 has counted for the first time: a thread that stands still for
 * seconds on a slow host does not miss the job. */
#define AWAITING_NS (100 * MST_MS)

/* One that has the processors to itself could be past BEGIN before others are set up. */
static void await_all(void)
{
	atomic_fetch_add(&begun, 1);
	while (atomic_load(&begun) < TEST_JOB_WORKERS)
		sched_yield();
}

static int step(struct test_worker *c, struct muster *m, struct muster_outcome *out)
{
	struct muster_contribution say = { .size = sizeof(say), .weight = 1 };
	float *g = muster_gradient(m);

	if (g == NULL)
		return -1;
	for (uint64_t i = 0; i < TEST_JOB_ELEMS; i++)
		g[i] = test_worker_value(c->rank, out->version, i);
	int rc = muster_push(m, &say, NULL);
	return rc == 0 ? test_worker_wait(c, m, out) : rc;
}

static void see(uint64_t version)
{
	unsigned long before = atomic_load(&newest);

	while (version > before && !atomic_compare_exchange_weak(&newest, &before, version))
		continue;
}

/* Rank 0 may be held up while others bring the job to its end, where much is freed. A count that
 * was taken so late is not one of steps. */
static void count_calls(uint64_t version)
{
	bool all_settled = atomic_load(&settled) == TEST_JOB_WORKERS;
	unsigned long count = atomic_load(&calls);

	if (!all_settled || version < BEGIN || version > STEPS ||
	    atomic_load(&newest) >= NEAR_THE_END)
		return;
	if (atomic_load(&calls_then) == 0)
		atomic_store(&calls_then, count);
	atomic_store(&calls_now, count);
}

static int live(struct test_worker *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = test_worker_start(c, m, &out);

	await_all();
	for (uint32_t steps = 1; rc == 0 && !out.finished; steps++) {
		if (atomic_load(&newest) >= BEGIN && atomic_load(&calls_then) == 0)
			mst_sleep_ns(AWAITING_NS);
		rc = step(c, m, &out);
		if (steps == STEPS_TO_SETTLE)
			atomic_fetch_add(&settled, 1);
		see(out.version);
		if (c->rank == 0)
			count_calls(out.version);
	}
	return rc;
}

static void *test_worker_main(void *arg)
{
	test_worker_live(arg, live);
	return NULL;
}

static uint32_t threads_here(void)
{
	DIR *tasks = opendir("/proc/self/task");
	uint32_t count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(tasks);
	for (const struct dirent *d; (d = readdir(tasks)) != NULL;)
		count += d->d_name[0] != '.';
	closedir(tasks);
	return count;
}

void __tsan_init(void) __attribute__((weak)); /* the thread sanitizer's, where it is there */

/* Threads between two jobs. The thread sanitizer has one of its own from the first pthread_create()
 * on. */
static uint32_t threads_at_rest(void)
{
	return __tsan_init != NULL ? 2 : 1;
}

/* Nobody joins the thread that closes what workers of the job before had passed. It frees something
 * when it ends, which is no part of a step of the next job. */
static void await_threads_of_before(void)
{
	while (threads_here() > threads_at_rest()) /* the time limit of the test ends a hang */
		mst_sleep_ns(MST_MS);
}

/* The last versions are left out: workers go, and take what they had with them. @follower: another
 * server, that joins the first. */
static void nothing_is_allocated(const char *const *settings, enum muster_owner owner,
				 struct test_job *follower)
{
	struct test_worker c[TEST_JOB_WORKERS] = { 0 };
	struct test_job t;

	await_threads_of_before();
	atomic_store(&calls_then, 0);
	atomic_store(&calls_now, 0);
	atomic_store(&newest, 0);
	atomic_store(&settled, 0);
	atomic_store(&begun, 0);
	test_job_open(&t, &mst_shm, settings);
	if (follower != NULL)
		test_job_open(follower, &mst_shm,
			      (const char *const[]){ "join", mst_plane_address(t.plane), NULL });
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		c[r].owner = owner;
	test_job_live(&t, c, test_worker_main);
	if (follower != NULL)
		test_job_close(follower);
	test_job_close(&t);
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		CU_ASSERT_EQUAL(c[r].rc, 0);
	CU_ASSERT(c[0].versions > 0);
	CU_ASSERT(atomic_load(&calls_then) > 0);
	CU_ASSERT_EQUAL(atomic_load(&calls_now), atomic_load(&calls_then));
}

/* With a lease so long that no heartbeat, which is no part of a step, falls in between. */
#define END "commits", "1000", "lease", "600s"
#define JOB(name, owner, ...)                                                                      \
	static void name(void)                                                                     \
	{                                                                                          \
		nothing_is_allocated((const char *const[]){ __VA_ARGS__, END, NULL }, owner,       \
				     NULL);                                                        \
	}
/* The same by two servers. */
#define JOB_OF_TWO(name, owner, ...)                                                               \
	static void name(void)                                                                     \
	{                                                                                          \
		struct test_job follower;                                                          \
		nothing_is_allocated(                                                              \
			(const char *const[]){ __VA_ARGS__, "servers", "2", END, NULL }, owner,    \
			&follower);                                                                \
		CU_ASSERT_EQUAL(follower.over, 1);                                                 \
		CU_ASSERT(follower.server != NULL);                                                \
	}

JOB(bsp, MUSTER_SERVERS_OWN, "policy", "bsp")
JOB(backup, MUSTER_SERVERS_OWN, "policy", "backup:3")
JOB(workers_own, MUSTER_WORKERS_OWN, "policy", "bsp", "owner", "workers")
JOB(kbatchasync, MUSTER_SERVERS_OWN, "policy", "kbatchasync:9")
JOB(recorded, MUSTER_SERVERS_OWN, "policy", "backup:3", "record", "/dev/null")
JOB(async_in_turn, MUSTER_SERVERS_OWN, "policy", "async", "buffers", "3")
JOB_OF_TWO(bsp_of_two, MUSTER_SERVERS_OWN, "policy", "bsp")
JOB_OF_TWO(backup_of_two, MUSTER_SERVERS_OWN, "policy", "backup:3")
JOB_OF_TWO(workers_own_of_two, MUSTER_WORKERS_OWN, "policy", "bsp", "owner", "workers")
JOB_OF_TWO(kbatchasync_of_two, MUSTER_SERVERS_OWN, "policy", "kbatchasync:9")

static CU_TestInfo cases[] = {
	{ "bsp: a step allocates nothing", bsp },
	{ "backup: a step allocates nothing", backup },
	{ "workers own: a step allocates nothing", workers_own },
	{ "kbatchasync: a step allocates nothing", kbatchasync },
	{ "recorded: a step allocates nothing", recorded },
	{ "async: a step allocates nothing", async_in_turn },
	{ "two servers, bsp: a step allocates nothing", bsp_of_two },
	{ "two servers, backup: a step allocates nothing", backup_of_two },
	{ "two servers, workers own: a step allocates nothing", workers_own_of_two },
	{ "two servers, kbatchasync: a step allocates nothing", kbatchasync_of_two },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("footprint", cases);
}
