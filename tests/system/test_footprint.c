/* SPDX-License-Identifier: MIT */
/* A job in one process, servers and workers: once it runs, nothing of ours takes memory or gives it
 * back, whatever the policy. The allocator is counted by the linker. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>

#include "tests/system/town.h"
#include "tests/ut.h"

#define BEGIN 20u /* versions until which anything may still be set up */
#define STEPS 200u

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
static atomic_uint begun;                  /* citizens that are through with their start */

/* One that has the processors to itself could be past BEGIN before others are set up. */
static void await_all(void)
{
	atomic_fetch_add(&begun, 1);
	while (atomic_load(&begun) < TOWN_WORKERS)
		sched_yield();
}

static int step(struct citizen *c, struct muster *m, struct muster_outcome *out)
{
	struct muster_contribution say = { .weight = 1, .loss = (double)NAN };
	float *g = muster_gradient(m);

	if (g == NULL)
		return -1;
	for (uint64_t i = 0; i < TOWN_ELEMS; i++)
		g[i] = citizen_value(c->rank, out->version, i);
	int rc = muster_push(m, &say, NULL);
	return rc == 0 ? citizen_wait(c, m, out) : rc;
}

static int live(struct citizen *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = citizen_start(c, m, &out);

	await_all();
	while (rc == 0 && !out.finished) {
		rc = step(c, m, &out);
		if (c->rank == 0 && out.version >= BEGIN && atomic_load(&calls_then) == 0)
			atomic_store(&calls_then, atomic_load(&calls));
		if (c->rank == 0 && out.version <= STEPS)
			atomic_store(&calls_now, atomic_load(&calls));
	}
	return rc;
}

static void *citizen_main(void *arg)
{
	citizen_live(arg, live);
	return NULL;
}

/* The last versions are left out: workers go, and take what they had with them. @member: another
 * server, that joins the first. */
static void nothing_is_allocated(const char *const *settings, enum muster_owner owner,
				 struct town *member)
{
	struct citizen c[TOWN_WORKERS] = { 0 };
	struct town t;

	atomic_store(&calls_then, 0);
	atomic_store(&begun, 0);
	town_open(&t, &mst_shm, settings);
	if (member != NULL)
		town_open(member, &mst_shm,
			  (const char *const[]){ "join", mst_admin_address(t.admin), NULL });
	for (uint32_t r = 0; r < TOWN_WORKERS; r++)
		c[r].owner = owner;
	town_live(&t, c, citizen_main);
	if (member != NULL)
		town_close(member);
	town_close(&t);
	for (uint32_t r = 0; r < TOWN_WORKERS; r++)
		CU_ASSERT_EQUAL(c[r].rc, 0);
	CU_ASSERT(c[0].versions > 0);
	CU_ASSERT(atomic_load(&calls_then) > 0);
	CU_ASSERT_EQUAL(atomic_load(&calls_now), atomic_load(&calls_then));
}

/* With a lease so long that no heartbeat, which is no part of a step, falls in between. */
#define END "commits", "260", "lease", "600s"
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
		struct town member;                                                                \
		nothing_is_allocated(                                                              \
			(const char *const[]){ __VA_ARGS__, "servers", "2", END, NULL }, owner,    \
			&member);                                                                  \
		CU_ASSERT_EQUAL(member.over, 1);                                                   \
		CU_ASSERT(member.server != NULL);                                                  \
	}

JOB(bsp, MUSTER_SERVERS_OWN, "policy", "bsp")
JOB(backup, MUSTER_SERVERS_OWN, "policy", "backup:3")
JOB(workers_own, MUSTER_WORKERS_OWN, "policy", "bsp", "owner", "workers")
JOB(kbatchasync, MUSTER_SERVERS_OWN, "policy", "kbatchasync:9")
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
