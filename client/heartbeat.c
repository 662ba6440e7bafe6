/* SPDX-License-Identifier: MIT */
#include "client/heartbeat.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"

struct mst_heartbeat {
	struct mst_control *control;
	pthread_t thread;
	int bell; /* an eventfd, which ends its sleep */
	_Atomic bool stop;
};

static bool is_closed(struct mst_control *control, uint64_t due_ns)
{
	return due_ns == MST_NEVER && mst_control_over(control);
}

static void *run(void *arg)
{
	struct mst_heartbeat *h = arg;
	uint64_t rung;

	/* Acquire: pairs with the release in mst_heartbeat_free(). */
	while (!atomic_load_explicit(&h->stop, memory_order_acquire)) {
		uint64_t due_ns = mst_control_step(h->control, mst_now_ns());
		if (is_closed(h->control, due_ns))
			break;
		mst_control_sleep(h->control, h->bell, due_ns);
		(void)!read(h->bell, &rung, sizeof(rung));
	}
	return NULL;
}

/* Signals are the program's: none of its handlers may run on a thread that it does not know. */
static int start_thread(struct mst_heartbeat *h)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&h->thread, NULL, run, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int mst_heartbeat_new(struct mst_control *control, struct mst_heartbeat **out)
{
	struct mst_heartbeat *h = calloc(1, sizeof(*h));
	int rc;

	if (h == NULL)
		return -ENOMEM;
	h->control = control;
	h->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->bell < 0) {
		rc = -errno;
		goto err_free;
	}
	rc = start_thread(h);
	if (rc != 0)
		goto err_close;
	*out = h;
	return 0;

err_close:
	close(h->bell);
err_free:
	free(h);
	return rc;
}

void mst_heartbeat_ring(struct mst_heartbeat *h)
{
	uint64_t one = 1;

	(void)!write(h->bell, &one, sizeof(one));
}

void mst_heartbeat_free(struct mst_heartbeat *h)
{
	if (h == NULL)
		return;
	/* Release: pairs with the acquire in run(). */
	atomic_store_explicit(&h->stop, true, memory_order_release);
	mst_heartbeat_ring(h);
	pthread_join(h->thread, NULL);
	close(h->bell);
	free(h);
}
