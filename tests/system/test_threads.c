/* SPDX-License-Identifier: MIT */
/*
 * The whole system in one process: control plane, data side and workers, each a thread. Here the
 * thread sanitizer sees every access of both sides to slots and results.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "muster/muster.h"
#include "server/admin.h"
#include "tests/ut.h"

#define ELEMS 5000u
#define WORKERS 4u

struct town {
	struct mst_server_options options;
	struct mst_options parsed;
	struct mst_admin *admin;
	pthread_t control, data;
	struct mst_server *server;
	atomic_bool stop_data;
	int over;
};

static void *data_main(void *arg)
{
	struct town *t = arg;

	while (!atomic_load(&t->stop_data)) {
		uint64_t now = mst_now_ns();
		if (!mst_server_step(t->server, now))
			mst_server_wait(t->server, now);
	}
	return NULL;
}

static void *control_main(void *arg)
{
	struct town *t = arg;

	while ((t->over = mst_admin_over(t->admin)) == 0) {
		mst_admin_step(t->admin, mst_now_ns());
		if (t->server == NULL && mst_admin_server(t->admin) != NULL) {
			t->server = mst_admin_server(t->admin);
			pthread_create(&t->data, NULL, data_main, t);
		}
		mst_admin_wait(t->admin, 20 * MST_MS);
	}
	return NULL;
}

/* @settings: pairs of name and value, then NULL. */
static void town_open(struct town *t, const char *const *settings)
{
	char why[512];

	*t = (struct town){ 0 };
	CU_ASSERT_EQUAL_FATAL(mst_options_init(&t->parsed, mst_server_table, &t->options), 0);
	for (; *settings != NULL; settings += 2)
		CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, settings[0], settings[1]), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "listen", "127.0.0.1:0"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "workers", "4"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_server_options_check(&t->options, why, sizeof(why)), 0);
	struct mst_admin_cfg cfg = { .options = &t->options,
				     .stream = &mst_tcp,
				     .transport = &mst_shm };
	CU_ASSERT_EQUAL_FATAL(mst_admin_new(&cfg, &t->admin, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t->control, NULL, control_main, t), 0);
}

static void town_close(struct town *t)
{
	pthread_join(t->control, NULL);
	atomic_store(&t->stop_data, true);
	mst_server_wake(t->server);
	pthread_join(t->data, NULL);
	mst_admin_free(t->admin);
	mst_options_free(&t->parsed);
}

/* A worker: pushes what only depends on rank and tag, and keeps account of its tickets. */
struct citizen {
	const struct town *town;
	uint32_t rank;
	enum muster_owner owner;
	uint64_t pushed, verdicts, wrong, versions;
	int rc;
};

static float value(uint32_t rank, uint64_t tag, uint64_t i)
{
	return (float)((rank + 1) * 3 + tag % 7 + i % 5);
}

/* The mean over the set, of integers: exact in any order. */
static void check_mean(struct citizen *c, const struct muster_outcome *out)
{
	const float *result = out->result;

	for (uint64_t i = 0; i < ELEMS && out->set_len > 0; i += 613) {
		float sum = 0;
		for (uint32_t k = 0; k < out->set_len; k++)
			sum += value(out->set[k].rank, out->version - 1, i);
		c->wrong += result[i] != sum / (float)out->set_len;
	}
}

static void note(struct citizen *c, const struct muster_outcome *out)
{
	c->verdicts += out->ticket != 0;
	if (!out->fresh)
		return;
	c->versions++;
	if (c->owner == MUSTER_WORKERS_OWN)
		check_mean(c, out);
}

static int live(struct citizen *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster_contribution say = { .weight = 1, .loss = (double)NAN };
	float *own = calloc(ELEMS, sizeof(*own));
	uint64_t ticket;

	int rc = muster_start(m, c->owner == MUSTER_SERVERS_OWN ? own : NULL, &out);
	free(own);
	while (rc >= 0 && !out.finished) {
		float *g = muster_gradient(m);
		if (g == NULL)
			return -ENOENT;
		for (uint64_t i = 0; i < ELEMS; i++)
			g[i] = value(c->rank, out.version, i);
		if (c->rank == 3)
			mst_sleep_ns(2 * MST_MS);
		rc = muster_push(m, &say, &ticket);
		c->pushed += ticket != 0;
		do {
			rc = rc < 0 ? rc : muster_wait(m, &out);
			if (rc >= 0)
				note(c, &out);
		} while (rc == 1 && !out.finished);
	}
	return rc < 0 ? rc : 0;
}

static void *citizen_main(void *arg)
{
	struct citizen *c = arg;
	struct muster_options opt = MUSTER_OPTIONS;
	struct muster *m;

	opt.server = mst_admin_address(c->town->admin);
	opt.rank = (int32_t)c->rank;
	opt.elems = ELEMS;
	opt.owner = c->owner;
	c->rc = muster_open(&opt, &m);
	if (c->rc != 0)
		return NULL;
	c->rc = live(c, m);
	if (c->rc != 0)
		fprintf(stderr, "rank %u: %s\n", c->rank, muster_error(m));
	muster_close(m);
	return NULL;
}

static void job_is_sound(const char *const *settings, enum muster_owner owner)
{
	struct citizen c[WORKERS];
	pthread_t thread[WORKERS];
	struct town t;

	town_open(&t, settings);
	for (uint32_t r = 0; r < WORKERS; r++) {
		c[r] = (struct citizen){ .town = &t, .rank = r, .owner = owner };
		pthread_create(&thread[r], NULL, citizen_main, &c[r]);
	}
	for (uint32_t r = 0; r < WORKERS; r++) {
		pthread_join(thread[r], NULL);
		CU_ASSERT_EQUAL(c[r].rc, 0);
		CU_ASSERT_EQUAL(c[r].wrong, 0);
		CU_ASSERT_EQUAL(c[r].verdicts, c[r].pushed);
		CU_ASSERT(c[r].versions > 0);
	}
	town_close(&t);
	CU_ASSERT_EQUAL(t.over, 1);
}

/* A worker that hands its loop to the library, and whose waits are cut short all the time. */
struct impatient {
	uint64_t computed, applied, cut_short;
};

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	struct impatient *i = ctx;

	memset(grad, 0, ELEMS * sizeof(float));
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

static void *impatient_main(void *arg)
{
	struct citizen *c = arg;
	struct impatient i = { 0 };
	struct muster_hooks hooks = { .ctx = &i, .compute = compute, .apply = apply };
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster_options opt = MUSTER_OPTIONS;
	float *own = calloc(ELEMS, sizeof(*own));
	struct muster *m;

	opt.server = mst_admin_address(c->town->admin);
	opt.rank = (int32_t)c->rank;
	opt.elems = ELEMS;
	opt.wait_ms = 1;
	c->rc = muster_open(&opt, &m);
	if (c->rc != 0)
		return NULL;
	c->rc = muster_start(m, own, &out);
	free(own);
	while (c->rc == 0 && (c->rc = muster_train(m, &hooks)) == -ETIMEDOUT) {
		i.cut_short++;
		c->rc = 0;
	}
	c->pushed = i.computed;
	c->versions = i.applied;
	c->verdicts = i.cut_short;
	muster_close(m);
	return NULL;
}

/* Rank 3 takes 2 ms and more for each of its steps, so that rank 0's waits of 1 ms run out. */
static void a_loop_cut_short_goes_on(void)
{
	struct citizen c[WORKERS];
	pthread_t thread[WORKERS];
	struct town t;

	town_open(&t, (const char *const[]){ "policy", "bsp", "commits", "40", NULL });
	for (uint32_t r = 0; r < WORKERS; r++) {
		c[r] = (struct citizen){ .town = &t, .rank = r };
		pthread_create(&thread[r], NULL, r == 0 ? impatient_main : citizen_main, &c[r]);
	}
	for (uint32_t r = 0; r < WORKERS; r++) {
		pthread_join(thread[r], NULL);
		CU_ASSERT_EQUAL(c[r].rc, 0);
	}
	town_close(&t);
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
JOB(workers_own, MUSTER_WORKERS_OWN, "policy", "bsp", "owner", "workers", "commits", "100")
JOB(workers_own_backup, MUSTER_WORKERS_OWN, "policy", "backup:3", "owner", "workers", "commits",
    "100", "history", "200")
JOB(kbatchasync, MUSTER_SERVERS_OWN, "policy", "kbatchasync:9", "commits", "60")
JOB(async_few_buffers, MUSTER_SERVERS_OWN, "policy", "async", "commits", "200", "buffers", "3")
JOB(ssp, MUSTER_SERVERS_OWN, "policy", "ssp:1", "commits", "100", "chunk", "4K")

static CU_TestInfo cases[] = {
	{ "bsp: every ticket one verdict, every worker at the end", bsp },
	{ "backup: the same with a late worker", backup },
	{ "workers own: every result is the mean over its set", workers_own },
	{ "workers own under backup: the same with a late worker", workers_own_backup },
	{ "kbatchasync: contributions fold, nobody runs dry", kbatchasync },
	{ "async with three buffers: answers are copied when places run out", async_few_buffers },
	{ "ssp in small chunks", ssp },
	{ "a training loop cut short goes on where it was", a_loop_cut_short_goes_on },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	mst_log_open("test", MST_LOG_WARN);
	return ut_main("threads", cases);
}
