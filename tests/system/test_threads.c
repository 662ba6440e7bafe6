/* SPDX-License-Identifier: MIT */
/* Whole jobs in one process, over shared memory or (argument "far") over a transport that does not
 * map; with one server or (argument "two") with two that share the vector. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/system/town.h"
#include "tests/transport/far.h"
#include "tests/ut.h"

#define SETTINGS_MAX 16

static const struct mst_transport *transport = &mst_shm;
static bool two;

/* The library knows the transports of a release; here one more. */
const struct mst_transport *__wrap_mst_transport_of(const char *address);
const struct mst_transport *__wrap_mst_transport_of(const char *address)
{
	return strncmp(address, "far:", 4) == 0 ? &far : &mst_shm;
}

static int push_and_wait(struct citizen *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster_contribution say = { .weight = 1, .loss = (double)NAN };
	uint64_t ticket;
	int rc = citizen_start(c, m, &out);

	while (rc == 0 && !out.finished) {
		float *g = muster_gradient(m);
		if (g == NULL)
			return -ENOENT;
		for (uint64_t i = 0; i < TOWN_ELEMS; i++)
			g[i] = citizen_value(c->rank, out.version, i);
		if (c->rank == 3)
			mst_sleep_ns(2 * MST_MS);
		rc = muster_push(m, &say, &ticket);
		c->pushed += ticket != 0;
		if (rc == 0)
			rc = citizen_wait(c, m, &out);
	}
	return rc;
}

static void *citizen_main(void *arg)
{
	struct citizen *c = arg;

	citizen_live(c, push_and_wait);
	if (c->rc != 0)
		fprintf(stderr, "rank %u: %s\n", c->rank, c->sentence);
	return NULL;
}

/* A lead, and a member if there is to be one. */
static void servers_open(struct town *t, struct town *member, const char *const *settings)
{
	const char *all[SETTINGS_MAX + 3] = { "servers", two ? "2" : "1" };

	for (int i = 0; settings[i] != NULL; i++) {
		CU_ASSERT_FATAL(i < SETTINGS_MAX);
		all[2 + i] = settings[i];
	}
	town_open(t, transport, all);
	if (two)
		town_open(member, transport,
			  (const char *const[]){ "join", mst_admin_address(t->admin), NULL });
}

/* The member first: the lead waits for it to go. */
static void servers_close(struct town *t, struct town *member)
{
	if (two) {
		town_close(member);
		CU_ASSERT_EQUAL(member->over, 1);
	}
	town_close(t);
	CU_ASSERT_EQUAL(t->over, 1);
}

static void job_is_sound(const char *const *settings, enum muster_owner owner)
{
	struct citizen c[TOWN_WORKERS] = { 0 };
	struct town t, member;

	servers_open(&t, &member, settings);
	for (uint32_t r = 0; r < TOWN_WORKERS; r++)
		c[r].owner = owner;
	town_live(&t, c, citizen_main);
	servers_close(&t, &member);
	for (uint32_t r = 0; r < TOWN_WORKERS; r++) {
		CU_ASSERT_EQUAL(c[r].rc, 0);
		CU_ASSERT_EQUAL(c[r].wrong, 0);
		CU_ASSERT_EQUAL(c[r].verdicts, c[r].pushed);
		CU_ASSERT(c[r].versions > 0);
	}
	CU_ASSERT_EQUAL(far_spoiled, 0);
}

/* A worker that hands its loop to the library, and whose waits are cut short all the time. */
struct impatient {
	uint64_t computed, applied, cut_short;
};

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	struct impatient *i = ctx;

	memset(grad, 0, TOWN_ELEMS * sizeof(float));
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

static int train_impatiently(struct citizen *c, struct muster *m)
{
	struct impatient i = { 0 };
	struct muster_hooks hooks = { .ctx = &i, .compute = compute, .apply = apply };
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = citizen_start(c, m, &out);

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
	struct citizen *c = arg;

	if (c->rank != 0)
		return citizen_main(arg);
	struct muster_options opt = citizen_options(c);
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
	struct citizen c[TOWN_WORKERS] = { 0 };
	struct town t, member;

	servers_open(&t, &member, (const char *const[]){ "policy", "bsp", "commits", "40", NULL });
	town_live(&t, c, impatient_main);
	servers_close(&t, &member);
	for (uint32_t r = 0; r < TOWN_WORKERS; r++)
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
