/* SPDX-License-Identifier: MIT */
#include "client/session/wakeup.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/host/descriptors.h"

void mst_wakeup_init(struct mst_wakeup *w)
{
	*w = (struct mst_wakeup){ .epoll = -1, .notify_fd = -1, .watched = -1 };
}

static int notify_fd_of(const struct mst_wakeup *w)
{
	/* Acquire: pairs with the release in open_both(). */
	return atomic_load_explicit(&w->notify_fd, memory_order_acquire);
}

void mst_wakeup_disown(struct mst_wakeup *w)
{
	int notify_fd = notify_fd_of(w);

	if (w->epoll >= 0)
		close(w->epoll);
	if (notify_fd >= 0)
		close(notify_fd);
	mst_wakeup_init(w);
}

void mst_wakeup_fini(struct mst_wakeup *w)
{
	mst_wakeup_disown(w);
}

/* ---- the descriptor ---- */

static void notify(const struct mst_wakeup *w)
{
	uint64_t one = 1;
	int fd = notify_fd_of(w);

	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
}

static int watch_fd(const struct mst_wakeup *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

static struct mst_net *net_of(struct mst_wakeup *w)
{
	return atomic_load_explicit(&w->net, memory_order_relaxed);
}

/* While a net cannot be watched, the descriptor always says that a try may succeed. */
static bool is_blind(struct mst_wakeup *w)
{
	return net_of(w) != NULL && w->watched < 0;
}

static int watch_net(struct mst_wakeup *w)
{
	struct mst_net *net = net_of(w);

	if (w->epoll < 0 || net == NULL)
		return 0;
	int fd = w->type->arm != NULL ? w->type->arm(net) : -ENOTSUP;
	int rc = fd >= 0 ? watch_fd(w, fd) : fd;
	if (rc == 0)
		w->watched = fd;
	else
		notify(w);
	return rc;
}

static int open_both(struct mst_wakeup *w)
{
	int notify_fd = mst_descriptor_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), rc;

	if (notify_fd < 0)
		return -errno;
	w->epoll = mst_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
	rc = w->epoll >= 0 ? watch_fd(w, notify_fd) : -errno;
	if (rc != 0) {
		close(notify_fd);
		if (w->epoll >= 0)
			close(w->epoll);
		w->epoll = -1;
		return rc;
	}
	/* Release: pairs with the acquire in notify_fd_of(). */
	atomic_store_explicit(&w->notify_fd, notify_fd, memory_order_release);
	return 0;
}

int mst_wakeup_fd(struct mst_wakeup *w)
{
	if (w->epoll >= 0)
		return w->epoll;
	int rc = open_both(w);

	if (rc == 0)
		(void)watch_net(w);
	return rc == 0 ? w->epoll : rc;
}

void mst_wakeup_arm(struct mst_wakeup *w)
{
	uint64_t rung;

	if (w->epoll < 0 || is_blind(w))
		return;
	(void)!read(notify_fd_of(w), &rung, sizeof(rung));
	if (w->watched >= 0)
		(void)w->type->arm(net_of(w));
}

/* ---- nets ---- */

int mst_wakeup_watch(struct mst_wakeup *w, const struct mst_transport *type, struct mst_net *net)
{
	w->type = type;
	/* Release: pairs with the load in mst_wakeup_ring(). */
	atomic_store_explicit(&w->net, net, memory_order_release);
	return watch_net(w);
}

void mst_wakeup_let_go(struct mst_wakeup *w)
{
	struct epoll_event unused = { 0 };

	/* In one order with the two in mst_wakeup_ring(): whoever is not seen here finds no net. */
	atomic_store(&w->net, NULL);
	while (atomic_load(&w->ringing) > 0)
		sched_yield();
	if (w->watched >= 0)
		(void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->watched, &unused);
	w->watched = -1;
}

void mst_wakeup_ring(struct mst_wakeup *w)
{
	notify(w);
	atomic_fetch_add(&w->ringing, 1);
	struct mst_net *net = atomic_load(&w->net);
	if (net != NULL)
		w->type->wake(net);
	/* Release: pairs with the load in mst_wakeup_let_go(); the net is not used any more. */
	atomic_fetch_sub_explicit(&w->ringing, 1, memory_order_release);
}
