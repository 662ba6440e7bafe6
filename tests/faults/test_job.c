/* SPDX-License-Identifier: MIT */
/*
 * A small job in one process, a server and two workers, whose calls of the system fail in turn.
 *
 * A fault of the server's ends in a clear error, or is survived: workers that come again finish the
 * job. A fault of one worker's harms that worker only: the other goes through the job as if nothing
 * had been. Nothing is left, and the next job is none the worse. A server that cannot begin, and
 * a worker that cannot go on, say what has failed.
 *
 *   test_faults_job [shm | tcp | tls [MOST]]
 *
 * MOST calls of a kind are tried: what fails later leaves by the same code.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/channel.h"
#include "muster/muster.h"
#include "server/control/plane.h"
#include "tests/faults/scenario.h"
#include "tests/transport/tls/place.h"
#include "tests/ut.h"

enum { SERVER = 1, WORKER = 2 };

#define WORKERS 2u
#define ELEMS 1000u
#define COMMITS "6"
#define TRIES 4u
#define WAIT_MS 40000u /* of a worker, for everything */
#define PATIENCE_NS (100 * MST_SECOND)

struct faulty_job {
	struct mst_server_options options;
	struct mst_options parsed;
	struct mst_plane *plane;
	struct mst_server *server;
	char address[64];
	pthread_t control, data;
	atomic_bool stop_data, over;
	atomic_bool left; /* all workers have, for ever */
	int result;       /* of mst_plane_over() */
};

struct faulty_worker {
	struct faulty_job *job;
	uint32_t rank;
	unsigned side, tries, versions;
	int rc;         /* of the last try */
	bool mute;      /* a failure came without a sentence */
	char said[200]; /* of the last failure */
};

/* ---- the server ---- */

static void *data_main(void *arg)
{
	struct faulty_job *j = arg;

	while (!atomic_load(&j->stop_data)) {
		uint64_t now_ns = mst_now_ns();
		if (!mst_server_step(j->server, now_ns))
			mst_server_wait(j->server, now_ns);
	}
	return NULL;
}

/* A thread that cannot be started is a matter of the program's, not of the server's. */
static void start_data(struct faulty_job *j)
{
	unsigned side = faulty_enter(FAULTY_NOBODY);

	j->server = mst_plane_server(j->plane);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&j->data, NULL, data_main, j), 0);
	faulty_enter(side);
}

static void *control_main(void *arg)
{
	struct faulty_job *j = arg;
	uint64_t stop_ns = mst_now_ns() + PATIENCE_NS - MST_SECOND;

	faulty_enter(SERVER);
	while ((j->result = mst_plane_over(j->plane)) == 0) {
		mst_plane_step(j->plane, mst_now_ns());
		if (j->server == NULL && mst_plane_server(j->plane) != NULL)
			start_data(j);
		if (mst_now_ns() > stop_ns)
			mst_plane_stop(j->plane, "it takes too long", false, mst_now_ns());
		mst_plane_wait(j->plane, 20 * MST_MS);
	}
	atomic_store(&j->over, true);
	/* A worker that is about to come again is answered. */
	while (!atomic_load(&j->left)) {
		mst_plane_step(j->plane, mst_now_ns());
		mst_plane_wait(j->plane, 5 * MST_MS);
	}
	return NULL;
}

/* A process that is not struck may stand still for ten seconds, as on a slow host, and take no
 * harm. */
static const char *const settings[][2] = {
	{ "listen", "127.0.0.1:0" }, { "workers", "2" },          { "commits", COMMITS },
	{ "lease", "30s" },          { "patience", "12s" },       { "join-timeout", "20s" },
	{ "spin-yields", "50" },     { "optimizer", "sgd:lr=1" },
};

static unsigned most = 40;
static const struct mst_transport *network = &mst_shm;
/* Where the certificates are, if there are any. */
static struct tls_place home;
static struct mst_credentials *credentials;

static int set_tls(struct faulty_job *j)
{
	static const char *const names[][2] = { { "tls-ca", "ca.pem" },
						{ "tls-cert", "server.pem" },
						{ "tls-key", "server.key" } };
	int rc = mst_options_set(&j->parsed, "data-tls", "on");

	for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(names[0]); i++)
		rc = mst_options_set(&j->parsed, names[i][0], tls_place_path(&home, names[i][1]));
	return rc;
}

static int read_settings(struct faulty_job *j, struct mst_reason *why)
{
	int rc = mst_options_init(&j->parsed, mst_server_table, &j->options);

	for (size_t i = 0; rc == 0 && i < sizeof(settings) / sizeof(settings[0]); i++)
		rc = mst_options_set(&j->parsed, settings[i][0], settings[i][1]);
	if (rc == 0)
		rc = mst_options_set(&j->parsed, "transport", network->scheme);
	if (rc == 0 && credentials != NULL)
		rc = set_tls(j);
	mst_reason_set(why, "%s", j->parsed.why.text);
	return rc == 0 ? mst_server_options_check(&j->options, why) : rc;
}

/* The opening, of the server's side; its threads are as much. Return: does it serve? */
static bool job_open(struct faulty_job *j)
{
	struct mst_plane_cfg cfg = { .options = &j->options,
				     .stream = mst_stream_of(credentials),
				     .credentials = credentials,
				     .channels = mst_channels_of(credentials),
				     .networks = &(struct mst_networks){ 1, { network }, false } };
	struct mst_reason why = { "" };

	*j = (struct faulty_job){ 0 };
	faulty_enter(SERVER);
	int rc = read_settings(j, &why);
	if (rc == 0)
		rc = mst_plane_new(&cfg, &j->plane, &why);
	faulty_enter(FAULTY_NOBODY);
	if (rc != 0) {
		scenario_holds(rc < 0 && strlen(why.text) > 10,
			       "a server that cannot begin says why");
		/* A name that cannot be looked up counts as beyond loopback. */
		if (!network->maps && faulty_armed() != FAULTY_getaddrinfo)
			scenario_names(why.text);
		scenario_holds(j->plane == NULL, "what failed to open is not there");
		mst_options_free(&j->parsed);
		return false;
	}
	(void)snprintf(j->address, sizeof(j->address), "%s", mst_plane_address(j->plane));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&j->control, NULL, control_main, j), 0);
	return true;
}

static void job_close(struct faulty_job *j)
{
	atomic_store(&j->left, true);
	pthread_join(j->control, NULL);
	if (j->server != NULL) {
		atomic_store(&j->stop_data, true);
		mst_server_wake(j->server);
		pthread_join(j->data, NULL);
	}
	mst_plane_free(j->plane);
	mst_options_free(&j->parsed);
}

/* ---- a worker ---- */

static int step(struct faulty_worker *w, struct muster *m, struct muster_outcome *out)
{
	struct muster_contribution say = { .size = sizeof(say), .weight = 1 };
	float *g = muster_gradient(m);
	int rc = 1;

	if (g == NULL)
		return -ENOBUFS;
	for (uint32_t i = 0; i < ELEMS; i++)
		g[i] = (float)w->rank;
	if (muster_push(m, &say, NULL) != 0)
		return -EIO;
	while (rc == 1 && !out->finished) {
		rc = muster_wait(m, out);
		w->versions += rc >= 0 && out->fresh;
	}
	return rc < 0 ? rc : 0;
}

/* One try at being a worker. Return: 0: the job has ended in peace; or -errno. */
static int work(struct faulty_worker *w, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	float own[ELEMS] = { 0 };
	int rc = muster_start(m, own, &out);

	while (rc == 0 && !out.finished)
		rc = step(w, m, &out);
	return rc;
}

static void try_once(struct faulty_worker *w)
{
	struct muster_options opt = MUSTER_OPTIONS;
	struct muster *m = NULL;

	opt.server = w->job->address;
	opt.rank = (int32_t)w->rank;
	opt.elems = ELEMS;
	opt.join_ms = opt.wait_ms = WAIT_MS;
	if (credentials != NULL) {
		opt.tls_ca = tls_place_path(&home, "ca.pem");
		opt.tls_cert = tls_place_path(&home, "worker.pem");
		opt.tls_key = tls_place_path(&home, "worker.key");
	}
	w->rc = muster_open(&opt, &m);
	scenario_holds((w->rc == 0) == (m != NULL), "a failed opening gives no handle");
	if (w->rc == 0)
		w->rc = work(w, m);
	if (w->rc != 0) {
		w->mute |= strlen(muster_error(m)) < 10;
		(void)snprintf(w->said, sizeof(w->said), "%s", muster_error(m));
	}
	muster_close(m);
}

/* Comes again after a failure, as whoever starts workers would have it do, until the job is
 * over. */
static void *worker_main(void *arg)
{
	struct faulty_worker *w = arg;

	faulty_enter(w->side);
	do {
		try_once(w);
		w->tries++;
	} while (w->rc != 0 && w->rc != -ESHUTDOWN && w->tries < TRIES &&
		 !atomic_load(&w->job->over));
	return NULL;
}

/* ---- a job ---- */

static struct faulty_job job;
static struct faulty_worker worker[WORKERS];

/* Return: did it begin? */
static bool run_job(unsigned side_of_rank0)
{
	pthread_t thread[WORKERS];

	if (!job_open(&job))
		return false;
	for (uint32_t r = 0; r < WORKERS; r++) {
		worker[r] = (struct faulty_worker){ .job = &job, .rank = r };
		worker[r].side = r == 0 ? side_of_rank0 : FAULTY_NOBODY;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[r], NULL, worker_main, &worker[r]), 0);
	}
	for (uint32_t r = 0; r < WORKERS; r++)
		pthread_join(thread[r], NULL);
	job_close(&job);
	for (uint32_t r = 0; r < WORKERS; r++)
		scenario_holds(!worker[r].mute, "a worker that fails is told why");
	return true;
}

static bool went_well(const struct faulty_worker *w)
{
	bool well = w->rc == 0 && w->tries == 1;

	if (!well)
		printf("\n\trank %u: rc %d, %u tries, %u versions: %s", w->rank, w->rc, w->tries,
		       w->versions, w->said);
	return well;
}

static void a_job_without(void)
{
	bool began = run_job(FAULTY_NOBODY);

	scenario_holds(began && job.result == 1, "the next job ends well");
	for (uint32_t r = 0; r < WORKERS; r++)
		scenario_holds(went_well(&worker[r]), "its workers take no harm");
}

static void a_job_with_a_fault_of_the_servers(void)
{
	if (!run_job(FAULTY_NOBODY))
		return;
	scenario_holds(job.result == 1, "the job ends well when its workers come again");
}

static void a_job_with_a_fault_of_rank_0(void)
{
	bool began = run_job(WORKER);

	scenario_holds(began && job.result == 1, "the job ends well");
	scenario_holds(went_well(&worker[1]), "rank 1 takes no harm");
	scenario_holds(worker[1].versions > 0, "rank 1 gets its versions");
}

static void server_faults(void)
{
	struct scenario s = { .name = "server",
			      .side = SERVER,
			      .most = most,
			      .patience_ns = PATIENCE_NS,
			      .run = a_job_with_a_fault_of_the_servers,
			      .after = a_job_without };

	CU_ASSERT(scenario_play(&s) >= 100);
}

static void worker_faults(void)
{
	struct scenario s = { .name = "worker",
			      .side = WORKER,
			      .most = most,
			      .patience_ns = PATIENCE_NS,
			      .run = a_job_with_a_fault_of_rank_0,
			      .after = a_job_without };

	CU_ASSERT(scenario_play(&s) >= 40);
}

static CU_TestInfo cases[] = {
	{ "a fault of a worker harms that worker only", worker_faults },
	{ "a fault of the server ends in a clear error, or is survived", server_faults },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "shm";

	if (argc > 2)
		most = (unsigned)strtoul(argv[2], NULL, 10);
	mst_log_open("test", MST_LOG_ERROR);
	if (strcmp(name, "shm") != 0)
		network = &mst_tcp;
	if (strcmp(name, "tls") == 0) {
		tls_place_make(&home, 0);
		credentials = tls_place_load(&home, "server");
	}
	int status = ut_main("jobs that meet faults", cases);
	mst_credentials_free(credentials);
	tls_place_remove(&home);
	return status;
}
