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
#include "common/host/descriptors.h"

#define STACK_MIN ((size_t)1 << 20)

struct mst_heartbeat {
	struct mst_control *control; /* the thread's, once it runs */
	struct mst_heartbeat_next next;
	pthread_t thread;
	int notify_fd; /* an eventfd, which ends its sleep */
	_Atomic bool stop;
};

static bool is_closed(struct mst_control *control, uint64_t due_ns)
{
	return due_ns == MST_NEVER && mst_control_over(control);
}

static bool is_to_stop(const struct mst_heartbeat *h)
{
	/* Acquire: pairs with the release in mst_heartbeat_free(). */
	return atomic_load_explicit(&h->stop, memory_order_acquire);
}

/* Until the connection has ended, or the thread is to. */
static void beat(struct mst_heartbeat *h)
{
	uint64_t rung;

	while (!is_to_stop(h)) {
		uint64_t due_ns = mst_control_step(h->control, mst_now_ns());
		if (is_closed(h->control, due_ns))
			break;
		mst_control_sleep(h->control, h->notify_fd, due_ns);
		(void)!read(h->notify_fd, &rung, sizeof(rung));
	}
}

static void *run(void *arg)
{
	struct mst_heartbeat *h = arg;

	while (h->control != NULL && !is_to_stop(h)) {
		beat(h);
		if (!is_to_stop(h))
			h->control = h->next.seek(h->next.ctx, h->control);
	}
	return NULL;
}

/* What threads get by default is what `ulimit -s` was when the program was started. */
static int enlarge_stack(pthread_attr_t *attr)
{
	size_t bytes;
	int rc = pthread_attr_getstacksize(attr, &bytes);

	return rc != 0 || bytes >= STACK_MIN ? rc : pthread_attr_setstacksize(attr, STACK_MIN);
}

/* All signals are blocked here: a handler of the program must not run on a thread that the program
 * does not know. */
static int start_thread(struct mst_heartbeat *h)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return -rc;
	rc = enlarge_stack(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (rc == 0)
		rc = pthread_create(&h->thread, &attr, run, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

int mst_heartbeat_new(struct mst_control *control, const struct mst_heartbeat_next *next,
		      struct mst_heartbeat **out)
{
	struct mst_heartbeat *h = calloc(1, sizeof(*h));
	int rc;

	if (h == NULL)
		return -ENOMEM;
	h->control = control;
	h->next = *next;
	h->notify_fd = mst_descriptor_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
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
