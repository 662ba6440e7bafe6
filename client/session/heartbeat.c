/* SPDX-License-Identifier: MIT */
#include "client/session/heartbeat.h"

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
	int notify_fd; /* an eventfd, which ends its sleep */
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
		mst_control_sleep(h->control, h->notify_fd, due_ns);
		(void)!read(h->notify_fd, &rung, sizeof(rung));
	}
	return NULL;
}

/* All signals are blocked here: a handler of the program must not run on a thread that the program
 * does not know. */
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
	h->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->notify_fd < 0) {
		rc = -errno;
		goto err_free;
	}
	rc = start_thread(h);
	if (rc != 0)
		goto err_close;
	*out = h;
	return 0;

err_close:
	close(h->notify_fd);
err_free:
	free(h);
	return rc;
}

void mst_heartbeat_ring(struct mst_heartbeat *h)
{
	uint64_t one = 1;

	(void)!write(h->notify_fd, &one, sizeof(one));
}

void mst_heartbeat_disown(struct mst_heartbeat *h)
{
	close(h->notify_fd);
	h->notify_fd = -1;
}

void mst_heartbeat_free(struct mst_heartbeat *h)
{
	if (h == NULL)
		return;
	if (h->notify_fd < 0) { /* the thread is not in this process */
		free(h);
		return;
	}
	/* Release: pairs with the acquire in run(). */
	atomic_store_explicit(&h->stop, true, memory_order_release);
	mst_heartbeat_ring(h);
	pthread_join(h->thread, NULL);
	close(h->notify_fd);
	free(h);
}
