/* SPDX-License-Identifier: MIT */
#include "tests/system/test_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "tests/ut.h"

/* Where a job does not say otherwise: no thread stands still for so long on a slow host. */
#define LONG_LEASE "60s"

static void *control_main(void *arg)
{
	static const struct mst_cpus anywhere = { .count = 0 };
	struct test_job *t = arg;

	while ((t->over = mst_plane_over(t->plane)) == 0) {
		mst_plane_step(t->plane, mst_now_ns());
		if (t->server == NULL && mst_plane_server(t->plane) != NULL) {
			t->server = mst_plane_server(t->plane);
			CU_ASSERT_EQUAL_FATAL(
				mst_worker_threads_start(t->server, &anywhere, &t->worker_threads),
				0);
		}
		mst_plane_wait(t->plane, 20 * MST_MS);
	}
	return NULL;
}

static void open_recording(struct test_job *t)
{
	struct mst_reason why;

	if (!mst_server_options_record(&t->options))
		return;
	CU_ASSERT_EQUAL_FATAL(mst_recording_new(&t->recording), 0);
	CU_ASSERT_EQUAL_FATAL(
		mst_recording_writer_start(t->options.record, t->recording, &t->writer, &why), 0);
}

void test_job_open(struct test_job *t, const struct mst_transport *transport,
		   const char *const *settings)
{
	const struct mst_networks networks = { 1, { transport }, false };
	struct mst_reason why;

	*t = (struct test_job){ 0 };
	CU_ASSERT_EQUAL_FATAL(mst_options_init(&t->parsed, mst_server_table, &t->options), 0);
	if (strcmp(settings[0], "join") != 0) /* else it is the leader's to say */
		CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "lease", LONG_LEASE), 0);
	for (; *settings != NULL; settings += 2)
		CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, settings[0], settings[1]), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "listen", "127.0.0.1:0"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "workers", "4"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "shards", "2"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_server_options_check(&t->options, &why), 0);
	open_recording(t);
	struct mst_plane_cfg cfg = { .options = &t->options,
				     .recording = t->recording,
				     .stream = &mst_plain,
				     .networks = &networks };
	CU_ASSERT_EQUAL_FATAL(mst_plane_new(&cfg, &t->plane, &why), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t->control, NULL, control_main, t), 0);
}

void test_job_close(struct test_job *t)
{
	struct mst_reason missing;

	pthread_join(t->control, NULL);
	mst_worker_threads_stop(t->worker_threads);
	mst_plane_free(t->plane);
	CU_ASSERT_TRUE(mst_recording_writer_stop(t->writer, &missing));
	mst_recording_free(t->recording);
	mst_options_free(&t->parsed);
}

/* ---- workers ---- */

float test_worker_value(uint32_t rank, uint64_t tag, uint64_t i)
{
	return (float)((rank + 1) * 3 + tag % 7 + i % 5);
}

struct muster_options test_worker_options(const struct test_worker *c)
{
	struct muster_options opt = MUSTER_OPTIONS;

	opt.server = mst_plane_address(c->test_job->plane);
	opt.rank = (int32_t)c->rank;
	opt.elems = TEST_JOB_ELEMS;
	opt.owner = c->owner;
	opt.result_into = c->result_into;
	return opt;
}

/* The mean over the set, of integers: exact in any order. */
static void check_mean(struct test_worker *c, const struct muster_outcome *out)
{
	const float *result = out->result;

	for (uint64_t i = 0; i < TEST_JOB_ELEMS && out->set_len > 0; i += 613) {
		float sum = 0;
		for (uint32_t k = 0; k < out->set_len; k++)
			sum += test_worker_value(out->set[k].rank, out->version - 1, i);
		c->wrong += result[i] != sum / (float)out->set_len;
	}
}

void test_worker_note(struct test_worker *c, const struct muster_outcome *out)
{
	c->verdicts += out->ticket != 0;
	if (!out->fresh)
		return;
	c->versions++;
	c->wrong += c->result_into != NULL && out->result != c->result_into;
	if (c->owner == MUSTER_WORKERS_OWN)
		check_mean(c, out);
}

int test_worker_start(const struct test_worker *c, struct muster *m, struct muster_outcome *out)
{
	float *own = calloc(TEST_JOB_ELEMS, sizeof(*own));
	int rc = muster_start(m, c->owner == MUSTER_SERVERS_OWN ? own : NULL, out);

	free(own);
	return rc;
}

int test_worker_wait(struct test_worker *c, struct muster *m, struct muster_outcome *out)
{
	int rc;

	do {
		rc = muster_wait(m, out);
		if (rc >= 0)
			test_worker_note(c, out);
	} while (rc == 1 && !out->finished);
	return rc < 0 ? rc : 0;
}

void test_worker_live(struct test_worker *c, int (*live)(struct test_worker *c, struct muster *m))
{
	struct muster_options opt = test_worker_options(c);
	struct muster *m = NULL;

	c->rc = muster_open(&opt, &m);
	if (c->rc == 0)
		c->rc = live(c, m);
	if (c->rc != 0)
		(void)snprintf(c->reason, sizeof(c->reason), "%s", muster_error(m));
	muster_close(m);
}

void test_job_live(struct test_job *t, struct test_worker *c, void *(*main)(void *test_worker))
{
	pthread_t thread[TEST_JOB_WORKERS];

	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++) {
		c[r].test_job = t;
		c[r].rank = r;
		pthread_create(&thread[r], NULL, main, &c[r]);
	}
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		pthread_join(thread[r], NULL);
}
