/* SPDX-License-Identifier: MIT */
#include "server/worker_threads.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

#define CACHE_LINE 64

/* Each in cache lines of its own, for its thread counts in it. */
struct worker_thread {
	alignas(CACHE_LINE) _Atomic uint64_t passes; /* through its loop */
	uint64_t seen;                               /* of them, by mst_worker_threads_moved() */
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

static void count_pass(struct worker_thread *t)
{
	uint64_t passes = atomic_load_explicit(&t->passes, memory_order_relaxed);

	/* Only this thread writes it. */
	atomic_store_explicit(&t->passes, passes + 1, memory_order_relaxed);
}

static bool is_over(const struct mst_worker_threads *c)
{
	/* Relaxed: the flag orders nothing; the thread that sets it joins all others. */
	return atomic_load_explicit(&c->stop, memory_order_relaxed);
}

static void *run_loop(void *arg)
{
	struct worker_thread *t = arg;
	struct mst_worker_threads *c = t->worker_threads;

	while (!is_over(c)) {
		count_pass(t);
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
		count_pass(t);
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
	struct mst_worker_threads *c = aligned_alloc(alignof(struct mst_worker_threads),
						     sizeof(*c));
	sigset_t all, before;
	int rc = 0;

	if (c == NULL)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
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

bool mst_worker_threads_moved(struct mst_worker_threads *c, char *stuck, size_t len)
{
	uint64_t passes[MST_SHARDS_MAX];

	if (c == NULL)
		return true;
	for (uint32_t i = 0; i < c->count; i++) {
		struct worker_thread *t = &c->thread[i];
		passes[i] = atomic_load_explicit(&t->passes, memory_order_relaxed);
		if (passes[i] != t->seen)
			continue;
		if (i == 0)
			(void)snprintf(stuck, len, "the data thread");
		else
			(void)snprintf(stuck, len, "the thread of shard %" PRIu32, i);
		return false;
	}
	for (uint32_t i = 0; i < c->count; i++)
		c->thread[i].seen = passes[i];
	return true;
}
