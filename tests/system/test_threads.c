/* SPDX-License-Identifier: MIT */
/* Whole jobs in one process, over shared memory or (argument "far") over a transport that does not
 * map; with one server or (argument "two") with two that share the vector. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/session/network_choice.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/system/test_job.h"
#include "tests/transport/far.h"
#include "tests/ut.h"

#define SETTINGS_MAX 16

static const struct mst_transport *transport = &mst_shm;
static bool two;

/* The library knows the transports of a release; here one more. */
int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why);
int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why)
{
	(void)c;
	(void)why;
	*out = strncmp(welcome->server[0].address, "far:", 4) == 0 ? &far : &mst_shm;
	return 0;
}

static int push_and_wait(struct test_worker *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster_contribution say = { .size = sizeof(say), .weight = 1 };
	uint64_t ticket;
	int rc = test_worker_start(c, m, &out);

	while (rc == 0 && !out.finished) {
		float *g = muster_gradient(m);
		if (g == NULL)
			return -ENOENT;
		for (uint64_t i = 0; i < TEST_JOB_ELEMS; i++)
			g[i] = test_worker_value(c->rank, out.version, i);
		if (c->rank == 3)
			mst_sleep_ns(2 * MST_MS);
		rc = muster_push(m, &say, &ticket);
		c->pushed += ticket != 0;
		if (rc == 0)
			rc = test_worker_wait(c, m, &out);
	}
	return rc;
}

static void *test_worker_main(void *arg)
{
	struct test_worker *c = arg;

	test_worker_live(c, push_and_wait);
	if (c->rc != 0)
		fprintf(stderr, "rank %u: %s\n", c->rank, c->reason);
	return NULL;
}

/* A leader, and a follower if there is to be one. */
static void servers_open(struct test_job *t, struct test_job *follower, const char *const *settings)
{
	const char *all[SETTINGS_MAX + 3] = { "servers", two ? "2" : "1" };

	for (int i = 0; settings[i] != NULL; i++) {
		CU_ASSERT_FATAL(i < SETTINGS_MAX);
		all[2 + i] = settings[i];
	}
	test_job_open(t, transport, all);
	if (two)
		test_job_open(follower, transport,
			      (const char *const[]){ "join", mst_plane_address(t->plane), NULL });
}

/* The follower first: the leader waits for it to go. */
static void servers_close(struct test_job *t, struct test_job *follower)
{
	if (two) {
		test_job_close(follower);
		CU_ASSERT_EQUAL(follower->over, 1);
	}
	test_job_close(t);
	CU_ASSERT_EQUAL(t->over, 1);
}

static void test_worker_is_sound(const struct test_worker *c)
{
	CU_ASSERT_EQUAL(c->rc, 0);
	CU_ASSERT_EQUAL(c->wrong, 0);
	CU_ASSERT_EQUAL(c->verdicts, c->pushed);
	CU_ASSERT(c->versions > 0);
}

static void job_is_sound(const char *const *settings, enum muster_owner owner)
{
	struct test_worker c[TEST_JOB_WORKERS] = { 0 };
	struct test_job t, follower;

	servers_open(&t, &follower, settings);
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		c[r].owner = owner;
	test_job_live(&t, c, test_worker_main);
	servers_close(&t, &follower);
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		test_worker_is_sound(&c[r]);
	CU_ASSERT_EQUAL(far_spoiled, 0);
}

/* ---- two jobs in one process ---- */

struct job_life {
	struct test_job *test_job;
	struct test_worker c[TEST_JOB_WORKERS];
};

static void *life_main(void *arg)
{
	struct job_life *life = arg;

	test_job_live(life->test_job, life->c, test_worker_main);
	return NULL;
}

/* Nothing of a job is the process's: other owners, policies and ends, at the same time. */
static void two_jobs_do_not_notice_each_other(void)
{
	static const char *const settings[2][7] = {
		{ "policy", "backup:3", "commits", "150", NULL },
		{ "policy", "bsp", "owner", "workers", "commits", "60", NULL },
	};
	static struct job_life life[2];
	struct test_job t[2], follower[2];
	pthread_t thread[2];

	memset(life, 0, sizeof(life));
	for (int j = 0; j < 2; j++) {
		servers_open(&t[j], &follower[j], settings[j]);
		life[j].test_job = &t[j];
		for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
			life[j].c[r].owner = j == 0 ? MUSTER_SERVERS_OWN : MUSTER_WORKERS_OWN;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[j], NULL, life_main, &life[j]), 0);
	}
	for (int j = 0; j < 2; j++) {
		pthread_join(thread[j], NULL);
		servers_close(&t[j], &follower[j]);
		for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
			test_worker_is_sound(&life[j].c[r]);
	}
}

/* A worker that hands its loop to the library, and whose waits are cut short all the time. */
struct impatient {
	uint64_t computed, applied, cut_short;
};

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	struct impatient *i = ctx;

	memset(grad, 0, TEST_JOB_ELEMS * sizeof(float));
	c->weight = 1;
	c->full = true;
	i->computed++;
	return 0;
}

static int apply(void *ctx, const struct muster_outcome *out)
{
	struct impatient *i = ctx;

	i->applied += out->fresh;
	return 0;
}

static int train_impatiently(struct test_worker *c, struct muster *m)
{
	struct impatient i = { 0 };
	struct muster_hooks hooks = {
		.size = sizeof(hooks), .ctx = &i, .compute = compute, .apply = apply
	};
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = test_worker_start(c, m, &out);

	while (rc == 0 && (rc = muster_train(m, &hooks)) == -ETIMEDOUT) {
		i.cut_short++;
		rc = 0;
	}
	c->pushed = i.computed;
	c->versions = i.applied;
	c->verdicts = i.cut_short;
	return rc;
}

static void *impatient_main(void *arg)
{
	struct test_worker *c = arg;

	if (c->rank != 0)
		return test_worker_main(arg);
	struct muster_options opt = test_worker_options(c);
	struct muster *m = NULL;
	opt.wait_ms = 1;
	c->rc = muster_open(&opt, &m);
	if (c->rc == 0)
		c->rc = train_impatiently(c, m);
	muster_close(m);
	return NULL;
}

/* Rank 3 takes 2 ms and more for each of its steps, so that rank 0's waits of 1 ms run out. */
static void a_loop_cut_short_goes_on(void)
{
	struct test_worker c[TEST_JOB_WORKERS] = { 0 };
	struct test_job t, follower;

	servers_open(&t, &follower,
		     (const char *const[]){ "policy", "bsp", "commits", "40", NULL });
	test_job_live(&t, c, impatient_main);
	servers_close(&t, &follower);
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		CU_ASSERT_EQUAL(c[r].rc, 0);
	CU_ASSERT(c[0].verdicts > 0);
	CU_ASSERT_EQUAL(c[0].versions, 40);
	CU_ASSERT_EQUAL(c[0].pushed, 40);
}

#define JOB(name, owner, ...)                                                                      \
	static void name(void)                                                                     \
	{                                                                                          \
		job_is_sound((const char *const[]){ __VA_ARGS__, NULL }, owner);                   \
	}

JOB(bsp, MUSTER_SERVERS_OWN, "policy", "bsp", "commits", "100")
JOB(backup, MUSTER_SERVERS_OWN, "policy", "backup:3", "commits", "100")
JOB(recorded, MUSTER_SERVERS_OWN, "policy", "backup:3", "commits", "100", "record", "/dev/null")
JOB(workers_own, MUSTER_WORKERS_OWN, "policy", "bsp", "owner", "workers", "commits", "100")
JOB(workers_own_backup, MUSTER_WORKERS_OWN, "policy", "backup:3", "owner", "workers", "commits",
    "100", "history", "200")
JOB(kbatchasync, MUSTER_SERVERS_OWN, "policy", "kbatchasync:9", "commits", "60")
JOB(async_few_buffers, MUSTER_SERVERS_OWN, "policy", "async", "commits", "200", "buffers", "3")
JOB(ssp, MUSTER_SERVERS_OWN, "policy", "ssp:1", "commits", "100", "chunk", "4K")

static CU_TestInfo cases[] = {
	{ "bsp: every ticket one verdict, every worker at the end", bsp },
	{ "backup: the same with a late worker", backup },
	{ "recorded: the same while its rows are written", recorded },
	{ "workers own: every result is the mean over its set", workers_own },
	{ "workers own under backup: the same with a late worker", workers_own_backup },
	{ "kbatchasync: contributions are added up, nobody runs dry", kbatchasync },
	{ "async with three buffers: answers are copied when places run out", async_few_buffers },
	{ "ssp in small chunks", ssp },
	{ "two jobs in one process do not notice each other", two_jobs_do_not_notice_each_other },
	{ "a training loop cut short goes on where it was", a_loop_cut_short_goes_on },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	mst_log_open("test", MST_LOG_WARN);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "far") == 0)
			transport = &far;
		two |= strcmp(argv[i], "two") == 0;
	}
	return ut_main("threads", cases);
}
