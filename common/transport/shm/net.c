/* SPDX-License-Identifier: MIT */
/*
 * What one thread polls: its attached links, and how it sleeps and is woken.
 *
 * poll() looks at the rings, millions of times a second when it spins, and makes no system call but
 * for a look at the sockets every few milliseconds, so that a peer's death is noticed under load
 * too. wait() sleeps in epoll. Nothing here allocates or locks after the opening.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/host/descriptors.h"
#include "common/host/limits.h"
#include "common/transport/nap.h"
#include "common/transport/shm/shm.h"
#include "common/transport/spin.h"

#define LISTEN_EVERY_POLLS 64u
#define LISTEN_EVERY_NS (10 * MST_MS)
#define LISTEN_EVENTS 16

struct mst_shm_flags *mst_shm_flags(const struct mst_shm_memory *m, size_t published_bytes)
{
	return (void *)(m->base + mst_shm_round(published_bytes));
}

/* Watches @fd; @link hears of it, or nobody (NULL), where being woken is all. */
static int watch(const struct mst_shm_net *net, int fd, uint32_t events, struct mst_shm_link *link)
{
	struct epoll_event ev = { .events = events, .data.ptr = link };

	return epoll_ctl(net->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int refused(const char *call, int error, struct mst_reason *why)
{
	(void)mst_limit_refused(call, error, why);
	return error;
}

/* The epoll descriptor, and the notify descriptor that wake() rings. */
static int open_wait_fds(struct mst_shm_net *net, struct mst_reason *why)
{
	net->epoll = mst_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
	if (net->epoll < 0)
		return refused("epoll_create1", -errno, why);
	net->notify_fd = mst_descriptor_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (net->notify_fd < 0)
		return refused("eventfd", -errno, why);
	return watch(net, net->notify_fd, EPOLLIN | EPOLLET, NULL);
}

static void net_close(struct mst_net *n)
{
	struct mst_shm_net *net = (struct mst_shm_net *)n;

	if (net == NULL)
		return;
	MST_ASSERT(net->link_count == 0);
	mst_shm_close(&net->notify_fd);
	mst_shm_close(&net->epoll);
	mst_shm_memory_drop(net->memory);
	mst_domain_fini(&net->net.domain);
	free(net);
}

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	static const struct mst_fabric otherwise = MST_FABRIC_DEFAULT;
	struct mst_shm_net *net;
	int rc;

	mst_reason_clear(why);
	if (cfg->published_bytes > MST_SHM_BYTES_MAX)
		return -EINVAL;
	net = calloc(1, sizeof(*net) + cfg->links_max * sizeof(net->links[0]));
	if (net == NULL)
		return -ENOMEM;
	net->net.ops = &mst_shm;
	net->cfg = *cfg;
	net->cfg.fabric = NULL; /* the caller's */
	net->huge_pages = (cfg->fabric != NULL ? cfg->fabric : &otherwise)->huge_pages;
	net->group = (cfg->fabric != NULL ? cfg->fabric : &otherwise)->group;
	net->epoll = net->notify_fd = -1;
	rc = mst_shm_memory_new(mst_shm_round(cfg->published_bytes) + MST_SHM_PAGE,
				MST_SHM_READABLE, net->huge_pages, &net->memory, why);
	if (rc == 0)
		rc = open_wait_fds(net, why);
	if (rc < 0) {
		net_close(&net->net);
		return rc;
	}
	net->flags = mst_shm_flags(net->memory, cfg->published_bytes);
	net->net.published = cfg->published_bytes > 0 ? net->memory->base : NULL;
	net->net.published_bytes = cfg->published_bytes;
	*out = &net->net;
	return 0;
}

int mst_shm_attach(struct mst_net *n, struct mst_link *link, struct mst_reason *why)
{
	struct mst_shm_net *net = (struct mst_shm_net *)n;
	struct mst_shm_link *l = (struct mst_shm_link *)link;
	int rc;

	MST_ASSERT(l->state == MST_SHM_IDLE && l->socket >= 0);
	mst_reason_clear(why);
	if (net->link_count == net->cfg.links_max)
		return -ENOSPC;
	rc = watch(net, l->socket, EPOLLIN | EPOLLRDHUP, l);
	if (rc < 0)
		return rc;
	rc = watch(net, l->wait_fd, EPOLLIN | EPOLLET, NULL);
	if (rc < 0) {
		epoll_ctl(net->epoll, EPOLL_CTL_DEL, l->socket, NULL);
		return rc;
	}
	l->net = net;
	l->index = net->link_count;
	net->links[net->link_count++] = l;
	l->state = MST_SHM_LIVE;
	return 0;
}

void mst_shm_net_ignore(struct mst_shm_net *net, const struct mst_shm_link *l)
{
	epoll_ctl(net->epoll, EPOLL_CTL_DEL, l->socket, NULL);
	epoll_ctl(net->epoll, EPOLL_CTL_DEL, l->wait_fd, NULL);
}

static void net_detach(struct mst_link *link)
{
	struct mst_shm_link *l = (struct mst_shm_link *)link;
	struct mst_shm_net *net = l->net;

	MST_ASSERT(l->state != MST_SHM_IDLE && net->links[l->index] == l);
	if (l->state == MST_SHM_LIVE)
		mst_shm_net_ignore(net, l);
	mst_shm_link_hang_up(l); /* from here on the peer may see it lost */
	net->links[l->index] = net->links[--net->link_count];
	net->links[l->index]->index = l->index;
	l->state = MST_SHM_IDLE;
	l->net = NULL;
}

/* No epoll_ctl() here: the parent has the same epoll instance. */
static void net_disown(struct mst_net *n)
{
	struct mst_shm_net *net = (struct mst_shm_net *)n;

	for (uint32_t i = 0; i < net->link_count; i++) {
		mst_shm_link_disown(net->links[i]);
		net->links[i]->state = MST_SHM_IDLE;
		net->links[i]->net = NULL;
	}
	net->link_count = 0;
	mst_domain_disown(&net->net.domain);
	mst_shm_close(&net->notify_fd);
	mst_shm_close(&net->epoll);
}

/* Nothing is said over the socket of a link, so whatever makes it readable ends the link. It is not
 * read: descriptors may have come with what is there, and dropping those can sleep. */
static void hear_socket(struct mst_shm_link *l, uint32_t events)
{
	mst_shm_link_end(l, events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) ? -EPIPE : -EPROTO);
}

/* Sleeps until somebody rings or a socket speaks. 0, or -EINTR. */
static int listen_to_all(struct mst_shm_net *net, int timeout_ms)
{
	struct epoll_event ev[LISTEN_EVENTS];
	int n = mst_nap(net->epoll, ev, LISTEN_EVENTS, timeout_ms);

	net->listened_ns = mst_now_ns();
	for (int i = 0; i < n; i++)
		if (ev[i].data.ptr != NULL)
			hear_socket(ev[i].data.ptr, ev[i].events);
	return n < 0 ? n : 0;
}

static void net_wake(struct mst_net *n);

static int net_poll(struct mst_net *n, struct mst_net_event *ev, int max)
{
	struct mst_shm_net *net = (struct mst_shm_net *)n;
	uint32_t at = net->first;
	int got = 0;

	if (++net->polls % LISTEN_EVERY_POLLS == 0 &&
	    mst_now_ns() - net->listened_ns >= LISTEN_EVERY_NS) {
		listen_to_all(net, 0);
		/* Armed: what was taken from epoll has to make it readable all the same. */
		if (atomic_load_explicit(&net->flags->asleep, memory_order_relaxed))
			net_wake(n);
	}
	/* The next poll begins where this one ends, so that no link starves another of @max. */
	for (uint32_t i = 0; i < net->link_count && got < max; i++, at++) {
		if (at >= net->link_count)
			at = 0;
		got += mst_shm_link_poll(net->links[at], ev + got, max - got);
	}
	net->first = at;
	return got;
}

static bool has_work(void *n)
{
	const struct mst_shm_net *net = n;
	/* Relaxed: wait() takes the flag with acquire before it returns. */
	bool any = atomic_load_explicit(&net->woken, memory_order_relaxed);

	for (uint32_t i = 0; i < net->link_count && !any; i++)
		any = mst_shm_link_has_work(net->links[i]);
	return any;
}

/* Whole milliseconds until then, rounded up. */
static int sleep_ms(const struct mst_shm_net *net, uint64_t deadline_ns)
{
	uint64_t now = mst_now_ns(), look_ns = mst_spin_look_ns(&net->cfg);
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

	return (int)(((left < look_ns ? left : look_ns) + MST_MS - 1) / MST_MS);
}

/* Tells acceptors of links dialled here by a word in each link, all others by the shared flags.
 * Relaxed: the fence in net_wait() orders what matters. */
static void announce(struct mst_shm_net *net, uint32_t asleep)
{
	atomic_store_explicit(&net->flags->asleep, asleep, memory_order_relaxed);
	for (uint32_t i = 0; i < net->link_count; i++)
		if (net->links[i]->own_asleep != NULL)
			atomic_store_explicit(net->links[i]->own_asleep, asleep,
					      memory_order_relaxed);
}

static void net_disarm(struct mst_net *n)
{
	struct mst_shm_net *net = (struct mst_shm_net *)n;

	/* Relaxed: the flag is this thread's own. */
	if (atomic_load_explicit(&net->flags->asleep, memory_order_relaxed))
		announce(net, 0);
}

static int net_wait(struct mst_net *n, uint64_t timeout_ns)
{
	struct mst_shm_net *net = (struct mst_shm_net *)n;
	uint64_t now = mst_now_ns();
	uint64_t deadline_ns = timeout_ns < MST_NEVER - now ? now + timeout_ns : MST_NEVER;
	int rc = 0;

	net_disarm(n);
	if (!mst_spin(&net->spin, &net->cfg, deadline_ns, has_work, net)) {
		announce(net, 1);
		/* Pairs with the fences in ring_notify_fd() and net_wake(): a thread that puts or
		 * wakes after this last look sees the flag, and rings. */
		atomic_thread_fence(memory_order_seq_cst);
		rc = listen_to_all(net, has_work(net) ? 0 : sleep_ms(net, deadline_ns));
		announce(net, 0);
	}
	/* Acquire: pairs with the store in net_wake(); what its caller did before is visible. */
	atomic_exchange_explicit(&net->woken, false, memory_order_acquire);
	return rc;
}

static void net_wake(struct mst_net *n)
{
	struct mst_shm_net *net = (struct mst_shm_net *)n;
	static const uint64_t one = 1;
	int saved_errno = errno; /* a signal handler's victim may be about to read it */

	/* Release: pairs with the acquire in net_wait(). The fence pairs with the one there. */
	atomic_store_explicit(&net->woken, true, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&net->flags->asleep, memory_order_relaxed)) {
		ssize_t written = write(net->notify_fd, &one, sizeof(one));
		(void)written; /* a full counter has woken it already */
	}
	errno = saved_errno;
}

/* The links stay announced until they are disarmed: meanwhile each put of a peer rings. */
static int net_arm(struct mst_net *n)
{
	struct mst_shm_net *net = (struct mst_shm_net *)n;

	(void)listen_to_all(net, 0);
	/* Acquire: pairs with the store in net_wake(). */
	atomic_exchange_explicit(&net->woken, false, memory_order_acquire);
	announce(net, 1);
	/* Pairs with the fences in ring_notify_fd() and net_wake(), as in net_wait(): the look that
	 * the caller takes next sees what was put before, and a peer that puts later rings. */
	atomic_thread_fence(memory_order_seq_cst);
	return net->epoll;
}

static uint32_t net_links(const struct mst_net *n)
{
	return ((const struct mst_shm_net *)n)->link_count;
}

static bool net_ready(struct mst_net *n)
{
	return has_work(n);
}

/* Counts descriptors. A link needs its socket, and those by which its ends wait and notify; a net
 * needs its memory, epoll, and the one that wakes it. */
static void claim(const struct mst_net_cfg *cfg, const struct mst_lanes *lanes, bool accepts,
		  struct mst_claim *out)
{
	(void)cfg;
	*out = (struct mst_claim){ .descriptors = 3 };
	if (lanes == NULL && accepts) {
		out->descriptors += mst_shm_listener_descriptors();
		out->threads = 1; /* the closer's */
	}
}

const struct mst_transport mst_shm = {
	.scheme = "shm",
	.prefix = "/",
	.medium = "shared memory",
	.maps = true,
	.listener = &mst_shm_listener,
	.net_open = net_open,
	.net_close = net_close,
	.reaches = mst_shm_reaches,
	.dial = mst_shm_dial,
	.attach = mst_shm_attach,
	.detach = net_detach,
	.link_free = mst_shm_link_free,
	.disown = net_disown,
	.put = mst_shm_link_put,
	.poll = net_poll,
	.wait = net_wait,
	.wake = net_wake,
	.arm = net_arm,
	.disarm = net_disarm,
	.links = net_links,
	.ready = net_ready,
	.view = mst_shm_link_view,
	.claim = claim,
};
