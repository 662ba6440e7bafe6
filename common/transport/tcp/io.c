/* SPDX-License-Identifier: MIT */
/*
 * The io: it receives and sends. A step takes in what the kernel says of the connections, and gives
 * each link its turn. Sockets are watched edge by edge: what a link is ready for is remembered with
 * it.
 *
 * The net's own io is stepped by the net's thread, and needs no lock. A thread's holds `work`
 * during a step, and sleeps without it: so whoever has it knows that no link is touched meanwhile.
 *
 * A shared io is stepped by the net's thread, too, if `work` is free. While that thread polls or
 * waits the io's stands by. It looks now and then whether that is still so, and takes over if not;
 * after a long wait it parks, and the net's thread unparks it when the wait is over. The net's
 * thread calls it for what takes long to send.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/host/descriptors.h"
#include "common/host/limits.h"
#include "common/transport/tcp/tcp.h"

#define EVENTS 64
/* How long the thread of a shared io stands by before it looks again who does the work. */
#define STANDBY_MIN_NS MST_MS
#define STANDBY_MAX_NS (4 * MST_MS)
/* So much of a shared io's the net's thread sends itself, before it goes on. */
#define AT_ONCE_BYTES ((size_t)256 << 10)

/* ---- steps ---- */

static void hear(struct mst_tcp_link *l, uint32_t events)
{
	l->readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	l->writable |= (events & EPOLLOUT) != 0;
	l->hung_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
}

static void listen_to_all(const struct mst_tcp_io *io)
{
	struct epoll_event ev[EVENTS];
	int n;

	do {
		n = epoll_wait(io->epoll, ev, EVENTS, 0);
		for (int i = 0; i < n; i++)
			if (ev[i].data.ptr != NULL)
				hear(ev[i].data.ptr, ev[i].events);
	} while (n == EVENTS);
}

static void look(struct mst_tcp_io *io)
{
	uint64_t now_ns = mst_now_ns();

	if (now_ns - io->looked_ns < mst_tcp_look_ns(io->net->fabric.link_timeout_ns))
		return;
	io->looked_ns = now_ns;
	for (uint32_t i = 0; i < io->link_count; i++)
		mst_tcp_link_look(io->links[i], now_ns);
}

/* Somebody waits for the links. Relaxed: whoever sees it late only makes that one wait longer. */
static bool is_wanted(struct mst_tcp_io *io)
{
	return atomic_load_explicit(&io->wanted, memory_order_relaxed) > 0;
}

/* The next step begins with the link at which this one ends, so that each has its turn. */
static bool step(struct mst_tcp_io *io)
{
	bool more = false;

	/* Acquire: pairs with the release in call(). */
	(void)atomic_exchange_explicit(&io->called, false, memory_order_acquire);
	/* Acquire: pairs with the release in step_own() of net.c. */
	(void)atomic_load_explicit(&io->net->polls, memory_order_acquire);
	listen_to_all(io);
	look(io);
	for (uint32_t i = 0; i < io->link_count; i++) {
		struct mst_tcp_link *l = io->links[io->first++ % io->link_count];
		more |= mst_tcp_link_step(l);
		io->news |= l->io_news;
		l->io_news = false;
		if (is_wanted(io) && i + 1 < io->link_count)
			return true;
	}
	return more;
}

bool mst_tcp_io_step(struct mst_tcp_io *io)
{
	if (io->own)
		return step(io);
	if (!io->shared)
		return false;
	io->net->io_busy = pthread_mutex_trylock(&io->work) != 0;
	if (io->net->io_busy)
		return false;
	bool more = step(io);
	io->news = false; /* it is this thread's */
	pthread_mutex_unlock(&io->work);
	return more;
}

void mst_tcp_io_clear_notice(const struct mst_tcp_io *io)
{
	listen_to_all(io);
}

/* ---- a thread's ---- */

static void lock_next(struct mst_tcp_io *io)
{
	pthread_mutex_lock(&io->turn);
	pthread_mutex_lock(&io->work);
	pthread_mutex_unlock(&io->turn);
}

/* The net's thread: a step of the io's ends after the link that it is at. */
static void lock_soon(struct mst_tcp_io *io)
{
	if (io->own)
		return;
	atomic_fetch_add_explicit(&io->wanted, 1, memory_order_relaxed);
	lock_next(io);
	atomic_fetch_sub_explicit(&io->wanted, 1, memory_order_relaxed);
}

static void unlock(struct mst_tcp_io *io)
{
	if (!io->own)
		pthread_mutex_unlock(&io->work);
}

static void sleep_until_called(struct mst_tcp_io *io)
{
	struct pollfd pfd = { .fd = io->epoll, .events = POLLIN };
	uint64_t look_ns = mst_tcp_look_ns(io->net->fabric.link_timeout_ns);

	atomic_store_explicit(&io->asleep, true, memory_order_relaxed);
	/* Pairs with the fence in call(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&io->called, memory_order_relaxed) &&
	    !atomic_load_explicit(&io->stop, memory_order_relaxed))
		(void)poll(&pfd, 1, (int)((look_ns + MST_MS - 1) / MST_MS));
	atomic_store_explicit(&io->asleep, false, memory_order_relaxed);
}

/* Does the net's thread do the work? It has polled since the last look, or waits for what comes. */
static bool net_is_stepping(struct mst_tcp_io *io)
{
	if (!io->shared || atomic_load_explicit(&io->called, memory_order_relaxed))
		return false;
	/* Pairs with the fence in sleep_until() of net.c: if that thread found this one in a step,
	 * it is seen to be asleep. */
	atomic_thread_fence(memory_order_seq_cst);
	uint64_t polls = atomic_load_explicit(&io->net->polls, memory_order_relaxed);
	bool polled = polls != io->polls;
	io->polls = polls;
	io->may_park = !polled && io->standby_ns == STANDBY_MAX_NS;
	if (atomic_load_explicit(&io->net->waits, memory_order_relaxed))
		return true;
	if (atomic_load_explicit(&io->net->asleep, memory_order_relaxed))
		return false;
	return polled && mst_now_ns() >= io->keep_until_ns;
}

/* Sleeps until the io is called, or for standby_ns, which grows while the net's thread does the
 * work: for so long that thread may have stopped polling before this one notices. If that thread
 * has slept for so long, this one parks until it is unparked. */
static void stand_by(struct mst_tcp_io *io)
{
	struct pollfd pfd = { .fd = io->notify_fd, .events = POLLIN };
	int most_ms = (int)(io->standby_ns / MST_MS);
	uint64_t count;

	atomic_store_explicit(&io->asleep, true, memory_order_relaxed);
	atomic_store_explicit(&io->on_standby, true, memory_order_relaxed);
	atomic_store_explicit(&io->parked, io->may_park, memory_order_relaxed);
	/* Pairs with those in call() and mst_tcp_io_unpark(): either the net's thread sees that
	 * this one is parked, or this one that it does not wait any more. */
	atomic_thread_fence(memory_order_seq_cst);
	if (io->may_park && atomic_load_explicit(&io->net->waits, memory_order_relaxed))
		most_ms = -1;
	if (!atomic_load_explicit(&io->called, memory_order_relaxed) &&
	    !atomic_load_explicit(&io->stop, memory_order_relaxed) && poll(&pfd, 1, most_ms) > 0)
		(void)!read(io->notify_fd, &count, sizeof(count));
	atomic_store_explicit(&io->parked, false, memory_order_relaxed);
	atomic_store_explicit(&io->on_standby, false, memory_order_relaxed);
	atomic_store_explicit(&io->asleep, false, memory_order_relaxed);
	if (io->standby_ns < STANDBY_MAX_NS)
		io->standby_ns *= 2;
}

/* Return: there is more to do at once. */
static bool step_as_thread(struct mst_tcp_io *io)
{
	/* Relaxed: only that it was called is of interest. */
	bool called = atomic_load_explicit(&io->called, memory_order_relaxed);

	lock_next(io);
	bool more = step(io), news = io->news;
	io->news = false;
	unlock(io);
	if (news)
		mst_tcp_net_notify(io->net);
	io->standby_ns = STANDBY_MIN_NS;
	if (called || more)
		io->keep_until_ns = mst_now_ns() + STANDBY_MIN_NS;
	return more;
}

static void *work(void *arg)
{
	struct mst_tcp_io *io = arg;
	bool more = false;

	/* Relaxed: it is joined after that. */
	while (!atomic_load_explicit(&io->stop, memory_order_relaxed)) {
		if (!more && net_is_stepping(io)) {
			stand_by(io);
			continue;
		}
		more = step_as_thread(io);
		if (!more && !net_is_stepping(io))
			sleep_until_called(io);
	}
	return NULL;
}

static int start(struct mst_tcp_io *io, struct mst_reason *why)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&io->thread, NULL, work, io);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return mst_reason_fail(why, -rc,
				       "cannot start a thread that receives and sends: %s",
				       strerror(rc));
	io->started = true;
	return 0;
}

/* ---- beginning and end ---- */

static int open_descriptors(struct mst_tcp_io *io, struct mst_reason *why)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	const char *call = "epoll_create1";

	io->epoll = mst_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
	if (io->epoll >= 0) {
		call = "eventfd";
		io->notify_fd = mst_descriptor_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	}
	if (io->notify_fd >= 0) {
		call = "epoll_ctl";
		if (epoll_ctl(io->epoll, EPOLL_CTL_ADD, io->notify_fd, &ev) == 0)
			return 0;
	}
	int error = -errno;
	(void)mst_limit_refused(call, error, why);
	return error;
}

int mst_tcp_io_open(struct mst_tcp_io *io, struct mst_tcp_net *net, bool own,
		    struct mst_reason *why)
{
	io->net = net;
	io->own = own;
	io->shared = !own && net->fabric.io_threads == 1;
	io->standby_ns = STANDBY_MIN_NS;
	io->epoll = io->notify_fd = -1;
	if (!own) {
		pthread_mutex_init(&io->turn, NULL);
		pthread_mutex_init(&io->work, NULL);
	}
	io->links = calloc(net->cfg.links_max > 0 ? net->cfg.links_max : 1, sizeof(*io->links));
	if (io->links == NULL)
		return -ENOMEM;
	int rc = open_descriptors(io, why);
	return rc != 0 || own ? rc : start(io, why);
}

static void close_descriptors(struct mst_tcp_io *io)
{
	if (io->epoll >= 0)
		close(io->epoll);
	if (io->notify_fd >= 0)
		close(io->notify_fd);
	io->epoll = io->notify_fd = -1;
}

void mst_tcp_io_close(struct mst_tcp_io *io)
{
	if (io->net == NULL)
		return;
	if (io->started) {
		/* Relaxed: the fence pairs with that in sleep_until_called(). */
		atomic_store_explicit(&io->stop, true, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		mst_tcp_io_notify(io);
		pthread_join(io->thread, NULL);
	}
	close_descriptors(io);
	free(io->links);
	if (io->own)
		return;
	pthread_mutex_destroy(&io->turn);
	pthread_mutex_destroy(&io->work);
}

/* Its thread is not in the child, and may have held a lock: from now on there are none. */
void mst_tcp_io_disown(struct mst_tcp_io *io)
{
	close_descriptors(io);
	io->link_count = 0;
	io->started = false;
	io->own = true;
	io->shared = false;
}

/* ---- links ---- */

int mst_tcp_io_add(struct mst_tcp_io *io, struct mst_tcp_link *l)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				  .data.ptr = l };
	int rc = 0;

	lock_soon(io);
	l->place = io->link_count;
	l->writable = l->readable = true;
	if (epoll_ctl(io->epoll, EPOLL_CTL_ADD, l->conn.fd, &ev) == 0)
		io->links[io->link_count++] = l;
	else
		rc = -errno;
	unlock(io);
	return rc;
}

/* An event that the kernel has for it is forgotten with it. */
void mst_tcp_io_remove(struct mst_tcp_io *io, struct mst_tcp_link *l)
{
	lock_soon(io);
	(void)epoll_ctl(io->epoll, EPOLL_CTL_DEL, l->conn.fd, NULL);
	io->links[l->place] = io->links[--io->link_count];
	io->links[l->place]->place = l->place;
	unlock(io);
}

void mst_tcp_io_notify(const struct mst_tcp_io *io)
{
	static const uint64_t one = 1;
	ssize_t written = write(io->notify_fd, &one, sizeof(one));

	(void)written; /* a full counter has rung already */
}

static void call(struct mst_tcp_io *io)
{
	/* Release: pairs with the acquire in step(). The fence pairs with those in
	 * sleep_until_called() and stand_by(). */
	atomic_store_explicit(&io->called, true, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&io->asleep, memory_order_relaxed))
		mst_tcp_io_notify(io);
}

/* Return: nothing is left that the kernel would take. */
static bool send_at_once(struct mst_tcp_io *io, struct mst_tcp_link *l)
{
	if (!io->shared || l->composed_bytes > AT_ONCE_BYTES ||
	    pthread_mutex_trylock(&io->work) != 0)
		return false;
	bool more = l->writable && mst_tcp_link_send(l);
	pthread_mutex_unlock(&io->work);
	return !more;
}

void mst_tcp_io_call(struct mst_tcp_io *io, struct mst_tcp_link *l)
{
	if (io == NULL || io->own)
		(void)mst_tcp_link_send(l);
	else if (!send_at_once(io, l))
		call(io);
	l->composed_bytes = 0;
}

void mst_tcp_io_catch_up(struct mst_tcp_io *io, struct mst_tcp_link *l)
{
	lock_soon(io);
	l->readable = true;
	(void)mst_tcp_link_step(l);
	unlock(io);
}

/* The edge that tells of it was the net's thread's: no other comes for what is there already. */
void mst_tcp_io_pass_on(struct mst_tcp_io *io)
{
	/* Relaxed: one that stands by looks again by itself, soon after this thread has gone. */
	if (io->shared && !atomic_load_explicit(&io->on_standby, memory_order_relaxed))
		call(io);
}

void mst_tcp_io_unpark(struct mst_tcp_io *io)
{
	if (!io->shared)
		return;
	/* Pairs with the fence in stand_by(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&io->parked, memory_order_relaxed))
		mst_tcp_io_notify(io);
}

void mst_tcp_io_leave(struct mst_tcp_io *io)
{
	if (io->shared)
		call(io);
}
