/* SPDX-License-Identifier: MIT */
/*
 * What one thread polls: its attached links, and how it sleeps and is woken.
 *
 * poll() looks at each link's completion queues in turn, which costs no system call, and at the
 * connection manager now and then. wait() looks again and again, then arms the queues
 * that are not armed yet, looks once more, and sleeps in epoll. Nothing here allocates or locks
 * after the opening.
 *
 * A completion queue for each link and rail, not one for the thread: none can be filled by another
 * link's peer, and when a link is freed no completion of it is left anywhere.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/reason.h"
#include "common/host/descriptors.h"
#include "common/transport/nap.h"
#include "common/transport/spin.h"
#include "common/transport/verbs/library.h"
#include "common/transport/verbs/verbs.h"

#define LISTEN_EVERY_POLLS 64u
#define LISTEN_EVERY_NS (10 * MST_MS)
#define LISTEN_EVENTS 16
/* A link that ends sees off what it has posted, as long as the peer answers this fast. */
#define LINGER_NS (2 * MST_MS)

/* ---- opening and closing ---- */

int mst_verbs_watch(const struct mst_verbs_net *net, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(net->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void net_close(struct mst_net *n)
{
	struct mst_verbs_net *net = (struct mst_verbs_net *)n;

	if (net == NULL)
		return;
	MST_ASSERT(net->link_count == 0);
	if (net->inherited) {
		mst_domain_fini(&net->net.domain);
		free(net);
		return;
	}
	mst_domain_fini(&net->net.domain);
	mst_verbs_unpin(&net->versions);
	for (uint32_t i = 0; i < net->device_count; i++)
		mst_verbs_device_close(&net->device[i]);
	if (net->cm != NULL)
		rdma_destroy_event_channel(net->cm);
	close_fd(net->notify_fd);
	close_fd(net->epoll);
	mst_verbs_memory_free(&net->published);
	free(net);
}

static int open_wait_fds(struct mst_verbs_net *net, struct mst_reason *why)
{
	net->epoll = mst_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
	net->notify_fd = mst_descriptor_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (net->epoll < 0 || net->notify_fd < 0)
		return mst_reason_fail(why, -errno, "cannot make a descriptor to wait on: %s",
				       strerror(errno));
	int rc = mst_verbs_cm_open(&net->cm, why);
	if (rc != 0)
		return rc;
	rc = mst_verbs_watch(net, net->cm->fd);
	if (rc == 0)
		rc = mst_verbs_watch(net, net->notify_fd);
	if (rc != 0)
		return mst_reason_fail(why, rc, "cannot watch the RDMA connection manager: %s",
				       strerror(-rc));
	return 0;
}

/* Memory of its own, or of the net that published it first. */
static int publish(struct mst_verbs_net *net, struct mst_reason *why)
{
	size_t bytes = mst_verbs_round(net->cfg.published_bytes);
	int rc = 0;

	if (net->cfg.published_bytes == 0)
		return 0;
	if (net->cfg.published == NULL)
		rc = mst_verbs_memory_new(bytes, net->fabric.huge_pages, &net->published, why);
	if (rc != 0)
		return rc;
	net->net.published = net->cfg.published != NULL ? net->cfg.published : net->published.base;
	net->net.published_bytes = net->cfg.published_bytes;
	net->versions = (struct mst_region){ .base = net->net.published, .bytes = bytes };
	return 0;
}

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	static const struct mst_fabric usual = MST_FABRIC_DEFAULT;
	struct mst_verbs_net *net;

	mst_reason_clear(why);
	if (cfg->published_bytes > MST_VERBS_BYTES_MAX)
		return -EINVAL;
	int rc = mst_verbs_library();
	if (rc != 0)
		return mst_reason_fail(why, rc, "%s", mst_verbs_library_why());
	/* Children may be forked while memory is registered: what is muster's own they need not
	 * have, and the kernel need not copy for them. */
	(void)ibv_fork_init();
	net = calloc(1, sizeof(*net) + cfg->links_max * sizeof(net->links[0]));
	if (net == NULL)
		return -ENOMEM;
	net->net.ops = &mst_verbs;
	net->cfg = *cfg;
	net->fabric = cfg->fabric != NULL ? *cfg->fabric : usual;
	net->cfg.fabric = &net->fabric;
	net->epoll = net->notify_fd = -1;
	net->net.domain.ops = &mst_verbs_domain;
	net->net.domain.ctx = net;
	rc = open_wait_fds(net, why);
	if (rc == 0)
		rc = publish(net, why);
	if (rc < 0) {
		net_close(&net->net);
		return rc;
	}
	*out = &net->net;
	return 0;
}

/* ---- links ---- */

static int to_own_channel(struct mst_verbs_net *net, struct mst_verbs_link *l,
			  struct mst_reason *why)
{
	for (uint32_t i = 0; i < l->rail_count; i++)
		if (l->rail[i].id->channel != net->cm &&
		    rdma_migrate_id(l->rail[i].id, net->cm) != 0)
			return mst_reason_fail(why, -errno,
					       "cannot take over the connection of %s: %s",
					       l->rail[i].peer, strerror(errno));
	return 0;
}

int mst_verbs_attach(struct mst_net *n, struct mst_link *link, struct mst_reason *why)
{
	struct mst_verbs_net *net = (struct mst_verbs_net *)n;
	struct mst_verbs_link *l = (struct mst_verbs_link *)link;

	MST_ASSERT(l->queue.state == MST_QUEUE_IDLE && l->home == net);
	mst_reason_clear(why);
	if (net->link_count == net->cfg.links_max)
		return -ENOSPC;
	int rc = to_own_channel(net, l, why);
	if (rc < 0)
		return rc;
	l->net = net;
	l->index = net->link_count;
	net->links[net->link_count++] = l;
	l->queue.state = MST_QUEUE_LIVE;
	/* Acquire: pairs with the listener's store; what it wrote about the reason is visible. */
	if (atomic_load_explicit(&l->gone, memory_order_acquire))
		mst_verbs_link_end(l, -EPIPE);
	/* Events that come along from the listener's channel do not wake this one: a hang-up among
	 * them would wait until something else happens. */
	mst_verbs_cm_step(net);
	return 0;
}

static void linger(struct mst_verbs_link *l)
{
	uint64_t end = mst_now_ns() + LINGER_NS;

	mst_queue_flush(&l->queue);
	if (l->queue.state != MST_QUEUE_LIVE || mst_queue_is_idle(&l->queue))
		return;
	mst_queue_mark(&l->queue);
	do {
		mst_verbs_link_gather(l);
		mst_queue_flush(&l->queue);
	} while (l->queue.state == MST_QUEUE_LIVE && !mst_queue_is_idle(&l->queue) &&
		 mst_now_ns() < end);
}

static void net_detach(struct mst_link *link)
{
	struct mst_verbs_link *l = (struct mst_verbs_link *)link;
	struct mst_verbs_net *net = l->net;

	MST_ASSERT(l->queue.state != MST_QUEUE_IDLE && net->links[l->index] == l);
	if (l->queue.state == MST_QUEUE_LIVE)
		linger(l);
	for (uint32_t i = 0; i < l->rail_count; i++) {
		mst_verbs_rail_error(&l->rail[i]);
		(void)rdma_disconnect(l->rail[i].id);
		mst_verbs_rail_revoke(&l->rail[i]);
	}
	net->links[l->index] = net->links[--net->link_count];
	net->links[l->index]->index = l->index;
	l->queue.state = MST_QUEUE_IDLE;
	l->net = NULL;
}

/* What libibverbs and librdmacm would do to close, they do to the parent's objects in the kernel.
 * The descriptors alone are the child's; the pages that devices reach are not in it. */
static void net_disown(struct mst_net *n)
{
	struct mst_verbs_net *net = (struct mst_verbs_net *)n;

	for (uint32_t i = 0; i < net->link_count; i++) {
		net->links[i]->queue.state = MST_QUEUE_IDLE;
		net->links[i]->net = NULL;
	}
	for (uint32_t i = 0; i < net->device_count; i++) {
		close_fd(net->device[i].channel->fd);
		close_fd(net->device[i].context->async_fd);
		close_fd(net->device[i].context->cmd_fd);
	}
	close_fd(net->cm->fd);
	close_fd(net->notify_fd);
	close_fd(net->epoll);
	mst_domain_disown(&net->net.domain);
	net->link_count = 0;
	net->inherited = true;
}

void mst_verbs_net_lose(struct mst_verbs_net *net, struct mst_verbs_device *d)
{
	const char *name = ibv_get_device_name(d->context->device);

	if (!d->gone)
		mst_error("RDMA device %s was removed", name);
	d->gone = true;
	for (uint32_t i = 0; i < net->link_count; i++) {
		struct mst_verbs_link *l = net->links[i];
		for (uint32_t k = 0; k < l->rail_count && l->queue.state == MST_QUEUE_LIVE; k++) {
			if (l->rail[k].device != d)
				continue;
			mst_verbs_reason_removed(&l->rail[k]);
			mst_verbs_link_end(l, -EPIPE);
		}
	}
}

/* ---- listening ---- */

/* A peer that writes to the pair this end sends with breaks it, and no completion tells. */
static void hear_pair(const struct mst_verbs_net *net, const struct ibv_async_event *event)
{
	if (event->event_type != IBV_EVENT_QP_FATAL && event->event_type != IBV_EVENT_QP_REQ_ERR &&
	    event->event_type != IBV_EVENT_QP_ACCESS_ERR)
		return;
	struct mst_verbs_rail *r = event->element.qp->qp_context;
	struct mst_verbs_link *l = r->link;
	if (l->net != net || l->queue.state != MST_QUEUE_LIVE)
		return; /* not attached: not this thread's */
	if (l->link.why.text[0] == '\0')
		mst_reason_set(
			&l->link.why,
			"the queue pair to %s over %s broke (%s): the peer is broken, or hostile",
			r->peer, mst_verbs_rail_device(r), ibv_event_type_str(event->event_type));
	mst_verbs_link_end(l, -EPROTO);
}

static void hear_device(struct mst_verbs_net *net, struct mst_verbs_device *d)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(d->context, &event) == 0) {
		enum ibv_event_type type = event.event_type;
		hear_pair(net, &event);
		ibv_ack_async_event(&event);
		if (type == IBV_EVENT_DEVICE_FATAL)
			mst_verbs_net_lose(net, d);
		else if (type == IBV_EVENT_PORT_ERR)
			mst_warn("a port of RDMA device %s is down",
				 ibv_get_device_name(d->context->device));
	}
}

static void hear_completions(struct mst_verbs_device *d)
{
	struct ibv_cq *cq;
	void *rail;

	while (ibv_get_cq_event(d->channel, &cq, &rail) == 0) {
		/* Before the acknowledgement, which is what the thread that frees the link waits
		 * for. */
		((struct mst_verbs_rail *)rail)->armed = false;
		ibv_ack_cq_events(cq, 1);
	}
}

/* Sleeps until a device, the connection manager or the notify descriptor speaks. 0, or -EINTR. */
static int listen_to_all(struct mst_verbs_net *net, int timeout_ms)
{
	struct epoll_event ev[LISTEN_EVENTS];
	uint64_t rung;
	int n = mst_nap(net->epoll, ev, LISTEN_EVENTS, timeout_ms);

	net->listened_ns = mst_now_ns();
	if (n <= 0)
		return n;
	ssize_t got = read(net->notify_fd, &rung, sizeof(rung));
	(void)got;
	for (uint32_t i = 0; i < net->device_count; i++) {
		hear_completions(&net->device[i]);
		hear_device(net, &net->device[i]);
	}
	mst_verbs_cm_step(net);
	return 0;
}

static void net_wake(struct mst_net *n);

/* Return: has it listened? */
static bool listen_now_and_then(struct mst_verbs_net *net)
{
	if (++net->polls % LISTEN_EVERY_POLLS != 0 ||
	    mst_now_ns() - net->listened_ns < LISTEN_EVERY_NS)
		return false;
	listen_to_all(net, 0);
	return true;
}

static int net_poll(struct mst_net *n, struct mst_net_event *ev, int max)
{
	struct mst_verbs_net *net = (struct mst_verbs_net *)n;
	uint32_t at = net->first;
	int got = 0;

	/* Armed: what was taken from epoll has to make it readable all the same. */
	if (listen_now_and_then(net) && atomic_load_explicit(&net->asleep, memory_order_relaxed))
		net_wake(n);
	/* The next poll begins where this one ends, so that no link starves another of @max. */
	for (uint32_t i = 0; i < net->link_count && got < max; i++, at++) {
		if (at >= net->link_count)
			at = 0;
		got += mst_verbs_link_poll(net->links[at], ev + got, max - got);
	}
	net->first = at;
	return got;
}

static bool has_work(void *n)
{
	struct mst_verbs_net *net = n;
	/* Relaxed: wait() takes the flag with acquire before it returns. */
	bool any = atomic_load_explicit(&net->woken, memory_order_relaxed);

	(void)listen_now_and_then(net);
	for (uint32_t i = 0; i < net->link_count && !any; i++) {
		mst_verbs_link_gather(net->links[i]);
		mst_queue_flush(&net->links[i]->queue); /* there may be room by now */
		any = mst_queue_has_events(&net->links[i]->queue);
	}
	return any;
}

/* ---- waiting ---- */

/* Whole milliseconds until then, rounded up. */
static int sleep_ms(uint64_t deadline_ns)
{
	uint64_t now = mst_now_ns();

	return deadline_ns > now ? (int)((deadline_ns - now + MST_MS - 1) / MST_MS) : 0;
}

/* What is posted goes out, what was polled is told, every queue rings at its next completion. */
static void prepare_for_sleep(struct mst_verbs_net *net)
{
	for (uint32_t i = 0; i < net->link_count; i++) {
		struct mst_verbs_link *l = net->links[i];
		mst_queue_flush(&l->queue);
		mst_queue_return(&l->queue);
		for (uint32_t k = 0; k < l->rail_count; k++) {
			if (l->rail[k].armed)
				continue;
			l->rail[k].armed = true;
			(void)ibv_req_notify_cq(l->rail[k].cq, 0);
		}
	}
}

/* What ends a sleep need not be what poll() tells of: a send has completed, a connection is up. */
static int sleep_until(struct mst_verbs_net *net, uint64_t deadline_ns)
{
	int rc = 0;

	while (rc == 0) {
		prepare_for_sleep(net);
		/* Pairs with the fence in net_wake(). Completions that came before the arming are
		 * found by this look, later ones ring. */
		atomic_thread_fence(memory_order_seq_cst);
		int ms = sleep_ms(deadline_ns);
		bool enough = has_work(net) || ms == 0;
		rc = listen_to_all(net, enough ? 0 : ms);
		if (enough)
			break;
	}
	return rc;
}

static void net_disarm(struct mst_net *n)
{
	/* Relaxed: who sees it late rings once for nothing. */
	atomic_store_explicit(&((struct mst_verbs_net *)n)->asleep, false, memory_order_relaxed);
}

static int net_wait(struct mst_net *n, uint64_t timeout_ns)
{
	struct mst_verbs_net *net = (struct mst_verbs_net *)n;
	uint64_t now = mst_now_ns();
	uint64_t deadline_ns = timeout_ns < MST_NEVER - now ? now + timeout_ns : MST_NEVER;
	int rc = 0;

	net_disarm(n);
	for (uint32_t i = 0; i < net->link_count; i++)
		mst_queue_flush(&net->links[i]->queue);
	if (!mst_spin(&net->spin, &net->cfg, deadline_ns, has_work, net)) {
		now = mst_now_ns();
		if (deadline_ns - now > mst_spin_look_ns(&net->cfg))
			deadline_ns = now + mst_spin_look_ns(&net->cfg);
		atomic_store_explicit(&net->asleep, true, memory_order_relaxed);
		rc = sleep_until(net, deadline_ns);
		atomic_store_explicit(&net->asleep, false, memory_order_relaxed);
	}
	/* Acquire: pairs with the store in net_wake(); what its caller did before is visible. */
	atomic_exchange_explicit(&net->woken, false, memory_order_acquire);
	return rc;
}

static void net_wake(struct mst_net *n)
{
	struct mst_verbs_net *net = (struct mst_verbs_net *)n;
	static const uint64_t one = 1;
	int saved_errno = errno; /* a signal handler's victim may be about to read it */

	/* Release: pairs with the acquire in net_wait(). The fence pairs with the one there. */
	atomic_store_explicit(&net->woken, true, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&net->asleep, memory_order_relaxed)) {
		ssize_t written = write(net->notify_fd, &one, sizeof(one));
		(void)written; /* a full counter has woken it already */
	}
	errno = saved_errno;
}

static int net_arm(struct mst_net *n)
{
	struct mst_verbs_net *net = (struct mst_verbs_net *)n;

	(void)listen_to_all(net, 0);
	/* Acquire: pairs with the store in net_wake(). */
	atomic_exchange_explicit(&net->woken, false, memory_order_acquire);
	atomic_store_explicit(&net->asleep, true, memory_order_relaxed);
	prepare_for_sleep(net);
	/* Pairs with the fence in net_wake(). The caller's look, which comes next, finds the
	 * completions that came before the arming. */
	atomic_thread_fence(memory_order_seq_cst);
	return net->epoll;
}

static uint32_t net_links(const struct mst_net *n)
{
	return ((const struct mst_verbs_net *)n)->link_count;
}

static bool net_ready(struct mst_net *n)
{
	return has_work(n);
}

static int put(struct mst_link *link, const struct mst_put *what)
{
	struct mst_verbs_link *l = (struct mst_verbs_link *)link;

	MST_ASSERT(l->queue.state != MST_QUEUE_IDLE);
	return mst_queue_put(&l->queue, what);
}

const struct mst_transport mst_verbs = {
	.scheme = "verbs",
	.prefix = "verbs:",
	.medium = "RDMA",
	.pins = true,
	.listener = &mst_verbs_listener,
	.net_open = net_open,
	.net_close = net_close,
	.reaches = mst_verbs_reaches,
	.dial = mst_verbs_dial,
	.attach = mst_verbs_attach,
	.detach = net_detach,
	.link_free = mst_verbs_link_free,
	.disown = net_disown,
	.put = put,
	.poll = net_poll,
	.wait = net_wait,
	.wake = net_wake,
	.arm = net_arm,
	.disarm = net_disarm,
	.links = net_links,
	.ready = net_ready,
	.view = mst_verbs_link_view,
	.claim = mst_verbs_claim,
};
