/* SPDX-License-Identifier: MIT */
/*
 * A worker contributes, asks, gives up and waits in every order, beside three others at a real
 * server. What is promised comes: after a wait that has returned 1, the next one has its outcome
 * without anybody's help. Rank 0 is that worker; one thread makes the calls of all of them. The
 * argument is the network, shared memory by default.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/system/test_job.h"
#include "tests/transport/named.h"
#include "tests/ut.h"

#define LONG_MS 60000u
#define CALLS "PKLAOW" /* call() says which they are */
#define LENGTH 4       /* of an order */

static const struct mst_transport *transport = &mst_shm;
static struct test_job job;
static struct test_worker worker[TEST_JOB_WORKERS];
static struct muster *handle[TEST_JOB_WORKERS];
static char order[LENGTH + 1];
/* What rank 0 has done, and is to have. */
static bool asks;       /* it has asked, and has no outcome yet */
static bool asks_again; /* and has pushed, passed or pulled meanwhile */
static bool promised;   /* its last wait returned 1, so the next has an outcome to bring */
static uint64_t promises;

static void *begin(void *arg)
{
	struct test_worker *c = arg;
	struct muster_options opt = test_worker_options(c);
	struct muster_outcome out = MUSTER_OUTCOME;

	opt.wait_ms = LONG_MS;
	opt.join_ms = LONG_MS;
	c->rc = muster_open(&opt, &handle[c->rank]);
	if (c->rc == 0)
		c->rc = test_worker_start(c, handle[c->rank], &out);
	return NULL;
}

/* Without a free slot it does nothing. */
static void contribute(uint32_t rank, bool keep)
{
	struct muster_contribution say = { .size = sizeof(say), .weight = 1, .keep = keep };
	float *g = muster_gradient(handle[rank]);

	if (g == NULL)
		return;
	memset(g, 0, TEST_JOB_ELEMS * sizeof(*g));
	CU_ASSERT_EQUAL(muster_push(handle[rank], &say, NULL), 0);
}

/* Ends the test: other threads still have the job. */
static void fails(const char *what)
{
	printf("order %s: %s: %s\n", order, what, muster_error(handle[0]));
	exit(1);
}

/* An outcome, if one is there. Return: as muster_try_wait(). */
static int look(void)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = promised ? muster_wait(handle[0], &out) : muster_try_wait(handle[0], &out);

	if (rc < 0 && (promised || rc != -EAGAIN))
		fails(promised ? "what is promised does not come" : "a try");
	promised = rc == 1 && (worker[0].owner == MUSTER_SERVERS_OWN || !asks_again);
	promises += promised;
	asks = rc == -EAGAIN;
	asks_again &= rc != 0;
	return rc;
}

/* The others hand in what they can, and go on with what they get. */
static void others(void)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc;

	for (uint32_t r = 1; r < TEST_JOB_WORKERS; r++) {
		while ((rc = muster_try_wait(handle[r], &out)) == 1)
			continue;
		if (rc == 0)
			contribute(r, false);
	}
}

/* Rank 0 makes one of CALLS; in its place the others may go on. A wait takes two milliseconds at
 * most, as it may have to wait for the others, whose calls are still to come. */
static void call(char what)
{
	struct pollfd pfd = { .fd = muster_fd(handle[0]), .events = POLLIN };
	bool keep = what == 'K';

	switch (what) {
	case 'P': /* push */
	case 'K': /* push and keep the result */
		contribute(0, keep);
		break;
	case 'L':
		CU_ASSERT_EQUAL(muster_pull(handle[0]), 0);
		break;
	case 'A': /* passes where its gradient is wanted */
		CU_ASSERT_EQUAL(muster_abandon(handle[0]), 0);
		break;
	case 'W':
		if (look() == -EAGAIN && poll(&pfd, 1, 2) == 1)
			(void)look();
		return;
	default: /* 'O' */
		others();
		return;
	}
	promised &= what == 'A' && worker[0].owner == MUSTER_SERVERS_OWN;
	asks_again |= asks;
	asks |= what == 'P' || what == 'L';
}

/* Everybody contributes, and rank 0 gets all that there is. */
static void settle(void)
{
	uint64_t end_ns = mst_deadline_ns(LONG_MS * MST_MS);
	struct pollfd pfd = { .fd = muster_fd(handle[0]), .events = POLLIN };
	int rc;

	call('P');
	others();
	while ((rc = look()) != 0) {
		if (mst_now_ns() > end_ns)
			fails("no outcome");
		if (rc == -EAGAIN && poll(&pfd, 1, 10) == 0)
			others();
	}
}

static void all_orders(void)
{
	static const char calls[] = CALLS;
	uint32_t kinds = sizeof(calls) - 1, total = 1;

	for (uint32_t i = 0; i < LENGTH; i++)
		total *= kinds;
	for (uint32_t n = 0; n < total; n++) {
		uint32_t rest = n;
		for (uint32_t i = 0; i < LENGTH; i++, rest /= kinds)
			order[i] = calls[rest % kinds];
		for (uint32_t i = 0; i < LENGTH; i++)
			call(order[i]);
		while (promised)
			(void)look();
		settle();
	}
}

static void open_job(const char *policy, enum muster_owner owner)
{
	const char *own = owner == MUSTER_SERVERS_OWN ? "servers" : "workers";
	pthread_t thread[TEST_JOB_WORKERS];

	test_job_open(&job, transport,
		      (const char *const[]){ "policy", policy, "owner", own, "slots", "3", NULL });
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++) {
		worker[r] = (struct test_worker){ .test_job = &job, .rank = r, .owner = owner };
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[r], NULL, begin, &worker[r]), 0);
	}
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++) {
		pthread_join(thread[r], NULL);
		CU_ASSERT_EQUAL_FATAL(worker[r].rc, 0);
		CU_ASSERT_FATAL(muster_fd(handle[r]) >= 0);
	}
	asks = asks_again = promised = false;
	promises = 0;
	for (uint32_t r = 1; r < TEST_JOB_WORKERS; r++)
		contribute(r, false);
}

static void close_job(void)
{
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		muster_close(handle[r]);
	test_job_close(&job);
}

/* ---- cases ---- */

#define JOB(name, policy, owner)                                                                   \
	static void name(void)                                                                     \
	{                                                                                          \
		open_job(policy, owner);                                                           \
		all_orders();                                                                      \
		close_job();                                                                       \
		CU_ASSERT(promises > 0);                                                           \
	}

JOB(nonblocking, "nonblocking", MUSTER_SERVERS_OWN)
JOB(nonblocking_workers_own, "nonblocking", MUSTER_WORKERS_OWN)
JOB(bsp, "bsp", MUSTER_SERVERS_OWN)
JOB(bsp_workers_own, "bsp", MUSTER_WORKERS_OWN)
JOB(backup_workers_own, "backup:3", MUSTER_WORKERS_OWN)
JOB(async, "async", MUSTER_SERVERS_OWN)

/* The pull is answered at once, without a version. */
static void a_pull_and_a_push_have_one_outcome(void)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	struct pollfd pfd = { .events = POLLIN };
	int rc;

	open_job("bsp", MUSTER_WORKERS_OWN);
	pfd.fd = muster_fd(handle[0]);
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(muster_pull(handle[0]), 0);
		contribute(0, false);
		while ((rc = muster_try_wait(handle[0], &out)) == -EAGAIN) {
			others();
			(void)poll(&pfd, 1, 1);
		}
		CU_ASSERT_EQUAL(rc, 0);
		CU_ASSERT(out.fresh && out.verdict == MUSTER_COUNTED);
		CU_ASSERT_EQUAL(out.counted_in, out.version);
	}
	close_job();
}

static CU_TestInfo cases[] = {
	{ "nonblocking: what is promised comes", nonblocking },
	{ "nonblocking, workers own: what is promised comes", nonblocking_workers_own },
	{ "bsp: what is promised comes", bsp },
	{ "bsp, workers own: what is promised comes", bsp_workers_own },
	{ "backup, workers own: what is promised comes", backup_workers_own },
	{ "async: what is promised comes", async },
	{ "workers own: a pull and a push have one outcome", a_pull_and_a_push_have_one_outcome },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	if (argc > 1)
		transport = transport_named(argv[1]);
	return ut_main("orders of calls", cases);
}
