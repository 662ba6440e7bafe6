/* SPDX-License-Identifier: MIT */
/*
 * The whole system in one process: control plane, data side and workers, each a thread. So the
 * sanitizers see every access of both sides to slots and results.
 */
#ifndef MST_TESTS_SYSTEM_TEST_JOB_H
#define MST_TESTS_SYSTEM_TEST_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/transport/transport.h"
#include "muster/muster.h"
#include "server/control/plane.h"
#include "server/recording_writer.h"
#include "server/worker_threads.h"

#define TEST_JOB_ELEMS 9000u /* enough for two shards, with a thread each */
#define TEST_JOB_WORKERS 4u

struct test_job {
	struct mst_server_options options;
	struct mst_options parsed;
	struct mst_plane *plane;
	pthread_t control;
	struct mst_worker_threads *worker_threads;
	struct mst_recording *recording; /* if the settings have one */
	struct mst_recording_writer *writer;
	struct mst_server *server;
	int over;
};

/* A server for TEST_JOB_WORKERS workers. @settings: pairs of name and value, then NULL. */
void test_job_open(struct test_job *t, const struct mst_transport *transport,
		   const char *const *settings);
/* Waits until the job is over, as `over` then says, and everybody gone. */
void test_job_close(struct test_job *t);

/* A worker: pushes what only depends on rank and tag, and keeps account of its tickets. */
struct test_worker {
	const struct test_job *test_job;
	uint32_t rank;
	enum muster_owner owner;
	void *result_into; /* NULL: results are read in place */
	uint64_t pushed, verdicts, wrong, versions;
	int rc;
	char reason[512]; /* of a failure */
};

/* What rank pushes as its element i, computed on version @tag. */
float test_worker_value(uint32_t rank, uint64_t tag, uint64_t i);
struct muster_options test_worker_options(const struct test_worker *c);
/* Takes an outcome's verdict and version to account; where workers own, its result must be the mean
 * over its set, all of whose members computed on the version before. */
void test_worker_note(struct test_worker *c, const struct muster_outcome *out);
/* Offers a start state where the servers own. */
int test_worker_start(const struct test_worker *c, struct muster *m, struct muster_outcome *out);
/* Takes all outcomes that are ready. 0, or what muster_wait() failed with. */
int test_worker_wait(struct test_worker *c, struct muster *m, struct muster_outcome *out);
/* A thread's life: opens, calls @live until the job is over, and closes. */
void test_worker_live(struct test_worker *c, int (*live)(struct test_worker *c, struct muster *m));

/* Runs such threads to their ends: every rank lives as @main says. The job is over then. */
void test_job_live(struct test_job *t, struct test_worker *c, void *(*main)(void *test_worker));

#endif
