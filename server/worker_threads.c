/* SPDX-License-Identifier: MIT */
#include "server/worker_threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/clock.h"

struct worker_thread {
	struct mst_worker_threads *worker_threads;
	uint32_t shard;
	pthread_t id;
};

struct mst_worker_threads {
	struct mst_server *server;
	atomic_bool stop;
	uint32_t count; /* threads that run */
	struct worker_thread thread[MST_SHARDS_MAX];
};

static bool is_over(const struct mst_worker_threads *c)
{
	/* Relaxed: the flag orders nothing; the thread that sets it joins all others. */
	return atomic_load_explicit(&c->stop, memory_order_relaxed);
}

static void *run_loop(void *arg)
{
	struct mst_worker_threads *c = ((struct worker_thread *)arg)->worker_threads;

	while (!is_over(c)) {
		uint64_t now_ns = mst_now_ns();
		if (!mst_server_step(c->server, now_ns))
			mst_server_wait(c->server, now_ns);
	}
	return NULL;
}

static void *run_shard(void *arg)
{
	struct worker_thread *t = arg;

	while (!is_over(t->worker_threads)) {
		if (!mst_server_shard_step(t->worker_threads->server, t->shard))
			mst_server_shard_wait(t->worker_threads->server, t->shard);
	}
	return NULL;
}

static int start(struct mst_worker_threads *c, const struct mst_cpus *cpus)
{
	struct worker_thread *t = &c->thread[c->count];
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return -rc;
	if (cpus->count > 0) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(cpus->cpu[c->count % cpus->count], &set);
		rc = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	t->worker_threads = c;
	t->shard = c->count;
	if (rc == 0)
		rc = pthread_create(&t->id, &attr, t->shard == 0 ? run_loop : run_shard, t);
	pthread_attr_destroy(&attr);
	c->count += rc == 0;
	return -rc;
}

int mst_worker_threads_start(struct mst_server *server, const struct mst_cpus *cpus,
			     struct mst_worker_threads **out)
{
	struct mst_worker_threads *c = calloc(1, sizeof(*c));
	sigset_t all, before;
	int rc = 0;

	if (c == NULL)
		return -ENOMEM;
	c->server = server;
	sigfillset(&all); /* the control thread handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (uint32_t i = 0; i < mst_server_shards(server) && rc == 0; i++)
		rc = start(c, cpus);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		mst_worker_threads_stop(c);
		return rc;
	}
	*out = c;
	return 0;
}

void mst_worker_threads_stop(struct mst_worker_threads *c)
{
	if (c == NULL)
		return;
	atomic_store_explicit(&c->stop, true, memory_order_relaxed);
	mst_server_wake(c->server);
	for (uint32_t i = 1; i < c->count; i++)
		mst_server_shard_stop(c->server, i);
	for (uint32_t i = 0; i < c->count; i++)
		pthread_join(c->thread[i].id, NULL);
	free(c);
}
