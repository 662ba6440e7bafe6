/* SPDX-License-Identifier: MIT */
/*
 * What one thread polls: its attached links, and how it sleeps and is woken. Without I/O threads it
 * is this thread that receives and sends, whenever it polls or waits; with some it looks at rings.
 * Nothing here allocates or locks after the opening, but for links that come and go.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/host/limits.h"
#include "common/transport/tcp/tcp.h"

/* A net's thread that has slept for so long is at rest. */
#define AWAKE_NS MST_MS

/* ---- opening and closing ---- */

static void net_close(struct mst_net *n)
{
	struct mst_tcp_net *net = (struct mst_tcp_net *)n;

	if (net == NULL)
		return;
	MST_ASSERT(net->link_count == 0);
	while (net->io_count > 0) /* the threads first: they ring the first one's notify_fd */
		mst_tcp_io_close(&net->io[--net->io_count]);
	free(net->io);
	mst_domain_fini(&net->net.domain);
	mst_tcp_memory_free(&net->published);
	free(net);
}

static int check_fabric(const struct mst_fabric *fabric, struct mst_reason *why)
{
	if (fabric->io_threads > MST_FABRIC_IO_THREADS_MAX)
		return mst_reason_fail(why, -EINVAL, "%u I/O threads: at most %u can be",
				       fabric->io_threads, MST_FABRIC_IO_THREADS_MAX);
	if (fabric->link_timeout_ns >= MST_LINK_TIMEOUT_MIN_NS)
		return 0;
	return mst_reason_fail(why, -EINVAL,
			       "a host cannot count as dead after %llu ms without an "
			       "acknowledgement: the kernel sends a lost packet again after 200 "
			       "ms and 600 ms; at least %llu",
			       (unsigned long long)(fabric->link_timeout_ns / MST_MS),
			       (unsigned long long)(MST_LINK_TIMEOUT_MIN_NS / MST_MS));
}

static int check_channels(const struct mst_tcp_net *net, struct mst_reason *why)
{
	if (!net->fabric.encrypted || net->cfg.channels.ops != NULL)
		return 0;
	return mst_reason_fail(why, -EACCES,
			       "data are encrypted by TLS (--data-tls), and this process has no "
			       "certificates: give it --tls-ca, --tls-cert and --tls-key, or "
			       "MUSTER_TLS_CA, MUSTER_TLS_CERT and MUSTER_TLS_KEY");
}

static int open_ios(struct mst_tcp_net *net, struct mst_reason *why)
{
	uint32_t count = 1 + net->fabric.io_threads;
	int rc = 0;

	net->io = calloc(count, sizeof(*net->io));
	if (net->io == NULL)
		return -ENOMEM;
	for (; net->io_count < count && rc == 0; net->io_count++)
		rc = mst_tcp_io_open(&net->io[net->io_count], net, net->io_count == 0, why);
	return rc;
}

/* Memory of its own, or of the net that published it first. */
static int publish(struct mst_tcp_net *net, struct mst_reason *why)
{
	int rc = 0;

	if (net->cfg.published_bytes == 0)
		return 0;
	if (net->cfg.published == NULL)
		rc = mst_tcp_memory_new(net->cfg.published_bytes, false, &net->published, why);
	if (rc != 0)
		return rc;
	net->net.published = net->cfg.published != NULL ? net->cfg.published : net->published.base;
	net->versions = (struct mst_region){ .base = net->net.published,
					     .bytes = mst_tcp_round(net->cfg.published_bytes) };
	net->net.published_bytes = net->cfg.published_bytes;
	return 0;
}

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	static const struct mst_fabric usual = MST_FABRIC_DEFAULT;
	struct mst_tcp_net *net;

	mst_reason_clear(why);
	if (cfg->published_bytes > MST_TCP_BYTES_MAX)
		return -EINVAL;
	net = calloc(1, sizeof(*net) + cfg->links_max * sizeof(net->links[0]));
	if (net == NULL)
		return -ENOMEM;
	net->net.ops = &mst_tcp;
	net->cfg = *cfg;
	net->cfg.spin_pauses = 0; /* each look asks the kernel, which takes as long as a yield */
	net->fabric = cfg->fabric != NULL ? *cfg->fabric : usual;
	net->cfg.fabric = &net->fabric;
	int rc = check_fabric(&net->fabric, why);
	if (rc == 0)
		rc = check_channels(net, why);
	if (rc == 0)
		rc = publish(net, why);
	if (rc == 0)
		rc = open_ios(net, why);
	if (rc != 0) {
		net_close(&net->net);
		return rc;
	}
	*out = &net->net;
	return 0;
}

/* ---- links ---- */

static struct mst_tcp_io *least_busy(struct mst_tcp_net *net)
{
	struct mst_tcp_io *best = &net->io[net->io_count > 1 ? 1 : 0];

	for (uint32_t i = 2; i < net->io_count; i++)
		if (net->io[i].link_count < best->link_count)
			best = &net->io[i];
	return best;
}

int mst_tcp_attach(struct mst_net *n, struct mst_link *link, struct mst_reason *why)
{
	struct mst_tcp_net *net = (struct mst_tcp_net *)n;
	struct mst_tcp_link *l = (struct mst_tcp_link *)link;

	MST_ASSERT(l->queue.state == MST_QUEUE_IDLE && l->conn.fd >= 0);
	mst_reason_clear(why);
	if (net->link_count == net->cfg.links_max)
		return -ENOSPC;
	l->net = net;
	l->io = least_busy(net);
	int rc = mst_tcp_io_add(l->io, l);
	if (rc != 0) {
		(void)mst_limit_refused("epoll_ctl", rc, why);
		return rc;
	}
	mst_tcp_socket_hasten(l->conn.fd, net->fabric.link_timeout_ns);
	l->index = net->link_count;
	net->links[net->link_count++] = l;
	l->queue.state = MST_QUEUE_LIVE;
	return 0;
}

static void net_detach(struct mst_link *link)
{
	struct mst_tcp_link *l = (struct mst_tcp_link *)link;
	struct mst_tcp_net *net = l->net;

	MST_ASSERT(l->queue.state != MST_QUEUE_IDLE && net->links[l->index] == l);
	mst_tcp_io_remove(l->io, l);
	l->io = NULL;
	if (l->queue.state == MST_QUEUE_LIVE)
		mst_tcp_link_linger(l);
	mst_tcp_cut(&l->conn);
	net->links[l->index] = net->links[--net->link_count];
	net->links[l->index]->index = l->index;
	l->queue.state = MST_QUEUE_IDLE;
	l->net = NULL;
}

/* The threads of the parent are not here, and the locks may be held by one. */
static void net_disown(struct mst_net *n)
{
	struct mst_tcp_net *net = (struct mst_tcp_net *)n;

	for (uint32_t i = 0; i < net->link_count; i++) {
		struct mst_tcp_link *l = net->links[i];
		mst_tcp_hang_up(&l->conn);
		l->io = NULL;
		l->net = NULL;
		l->queue.state = MST_QUEUE_IDLE;
	}
	net->link_count = 0;
	for (uint32_t i = 0; i < net->io_count; i++)
		mst_tcp_io_disown(&net->io[i]);
	mst_domain_disown(&net->net.domain);
}

/* ---- looking ---- */

/* The io that this thread may step: the net's own, or the only thread's. Where there are several
 * threads it is one of theirs, and mst_tcp_io_step() leaves it alone. */
static struct mst_tcp_io *last_io(struct mst_tcp_net *net)
{
	return &net->io[net->io_count - 1];
}

/* Receives and sends, where this thread may. */
static void step_own(struct mst_tcp_net *net)
{
	/* Release: pairs with the acquire in mst_tcp_io_step(). What the owner has read of inbound
	 * regions it has read before a peer, who learned of it in some way, writes there again. */
	atomic_fetch_add_explicit(&net->polls, 1, memory_order_release);
	net->more = mst_tcp_io_step(last_io(net));
}

static bool any_has_work(const struct mst_tcp_net *net)
{
	for (uint32_t i = 0; i < net->link_count; i++)
		if (mst_queue_has_events(&net->links[i]->queue))
			return true;
	return false;
}

static int net_poll(struct mst_net *n, struct mst_net_event *ev, int max)
{
	struct mst_tcp_net *net = (struct mst_tcp_net *)n;
	uint32_t at = net->first;
	int got = 0;

	step_own(net);
	/* The next poll begins where this one ends, so that no link starves another of @max. */
	for (uint32_t i = 0; i < net->link_count && got < max; i++, at++) {
		if (at >= net->link_count)
			at = 0;
		got += mst_tcp_link_poll(net->links[at], ev + got, max - got);
	}
	net->first = at;
	if (net->more)
		mst_tcp_io_pass_on(last_io(net));
	/* Armed: what was taken in and is not told yet has to make the descriptor readable. */
	if (atomic_load_explicit(&net->asleep, memory_order_relaxed) &&
	    (net->more || any_has_work(net)))
		mst_tcp_io_notify(&net->io[0]);
	return got;
}

static bool has_work(void *n)
{
	struct mst_tcp_net *net = n;
	/* Relaxed: wait() takes the flag with acquire before it returns. */
	bool any = atomic_load_explicit(&net->woken, memory_order_relaxed);

	step_own(net);
	for (uint32_t i = 0; i < net->link_count; i++) {
		struct mst_tcp_link *l = net->links[i];
		if (l->queue.state == MST_QUEUE_LIVE) {
			mst_tcp_link_gather(l);
			mst_queue_flush(&l->queue); /* there may be room by now */
		}
		any |= mst_queue_has_events(&l->queue);
	}
	return any;
}

/* ---- waiting ---- */

/* A frame that only returns credits would wake the peer, and a put that is about to come brings
 * them along. So they are returned when it has not come. */
static void prepare_for_sleep(struct mst_tcp_net *net, bool at_rest)
{
	for (uint32_t i = 0; i < net->link_count; i++) {
		mst_queue_flush(&net->links[i]->queue);
		if (at_rest)
			mst_queue_return(&net->links[i]->queue);
	}
}

/* Sleeps until a descriptor is readable. What makes it so is taken by the next step. 0;
 * -EINTR. */
static int nap(struct mst_tcp_net *net, uint64_t deadline_ns)
{
	struct pollfd pfd[] = { { .fd = net->io[0].epoll, .events = POLLIN },
				{ .fd = last_io(net)->epoll, .events = POLLIN } };
	uint64_t left_ns = mst_left_ns(deadline_ns), most_ns = mst_spin_look_ns(&net->cfg);
	bool shared = last_io(net)->shared && !net->io_busy;

	/* Somebody has to look whether peers are alive. */
	if (net->io_count <= 2 && net->link_count > 0 &&
	    most_ns > mst_tcp_look_ns(net->fabric.link_timeout_ns))
		most_ns = mst_tcp_look_ns(net->fabric.link_timeout_ns);
	if (left_ns > most_ns)
		left_ns = most_ns;
	/* Relaxed: whoever sees it late has done work that this thread would have done. */
	atomic_store_explicit(&net->waits, shared, memory_order_relaxed);
	int ready = poll(pfd, shared ? 2 : 1, (int)((left_ns + MST_MS - 1) / MST_MS));
	atomic_store_explicit(&net->waits, false, memory_order_relaxed);
	return ready < 0 && errno == EINTR ? -EINTR : 0;
}

/* With threads nobody else reads the notify_fd: until then it would end each nap. */
static void clear_notice(const struct mst_tcp_net *net)
{
	if (net->io_count > 1)
		mst_tcp_io_clear_notice(&net->io[0]);
}

static int sleep_until(struct mst_tcp_net *net, uint64_t deadline_ns)
{
	bool at_rest = false;
	int rc = 0;

	while (rc == 0) {
		clear_notice(net);
		prepare_for_sleep(net, at_rest);
		/* Pairs with the fences in mst_tcp_net_notify() and mst_tcp_net_wake(): what came
		 * before them is found by this look, and who comes later rings. */
		atomic_thread_fence(memory_order_seq_cst);
		if (has_work(net) || mst_left_ns(deadline_ns) == 0)
			break;
		uint64_t rest_ns = mst_deadline_ns(AWAKE_NS);
		if (!net->more)
			rc = nap(net, at_rest || deadline_ns < rest_ns ? deadline_ns : rest_ns);
		at_rest = true;
	}
	return rc;
}

static void net_disarm(struct mst_net *n)
{
	/* Relaxed: who sees it late rings once for nothing. */
	atomic_store_explicit(&((struct mst_tcp_net *)n)->asleep, false, memory_order_relaxed);
}

static int net_wait(struct mst_net *n, uint64_t timeout_ns)
{
	struct mst_tcp_net *net = (struct mst_tcp_net *)n;
	uint64_t deadline_ns = mst_deadline_ns(timeout_ns);
	int rc = 0;

	net_disarm(n);
	for (uint32_t i = 0; i < net->link_count; i++)
		mst_queue_flush(&net->links[i]->queue);
	if (!mst_spin(&net->spin, &net->cfg, deadline_ns, has_work, net)) {
		uint64_t look_ns = mst_deadline_ns(mst_spin_look_ns(&net->cfg));
		atomic_store_explicit(&net->asleep, true, memory_order_relaxed);
		rc = sleep_until(net, deadline_ns < look_ns ? deadline_ns : look_ns);
		atomic_store_explicit(&net->asleep, false, memory_order_relaxed);
		mst_tcp_io_unpark(last_io(net));
	} else if (!any_has_work(net)) {
		prepare_for_sleep(net, true); /* there was no time left for it */
	}
	if (net->more)
		mst_tcp_io_pass_on(last_io(net));
	/* Acquire: pairs with the store in mst_tcp_net_wake(); what its caller did is visible. */
	atomic_exchange_explicit(&net->woken, false, memory_order_acquire);
	return rc;
}

void mst_tcp_net_notify(struct mst_tcp_net *net)
{
	/* Pairs with the fences in sleep_until() and net_arm(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&net->asleep, memory_order_relaxed))
		mst_tcp_io_notify(&net->io[0]);
}

void mst_tcp_net_wake(struct mst_net *n)
{
	struct mst_tcp_net *net = (struct mst_tcp_net *)n;
	int saved_errno = errno; /* a signal handler's victim may be about to read it */

	/* Release: pairs with the acquire in net_wait() and net_arm(). */
	atomic_store_explicit(&net->woken, true, memory_order_release);
	mst_tcp_net_notify(net);
	errno = saved_errno;
}

static int net_arm(struct mst_net *n)
{
	struct mst_tcp_net *net = (struct mst_tcp_net *)n;

	clear_notice(net);
	step_own(net);
	mst_tcp_io_leave(last_io(net));
	/* Acquire: pairs with the store in mst_tcp_net_wake(). */
	atomic_exchange_explicit(&net->woken, false, memory_order_acquire);
	atomic_store_explicit(&net->asleep, true, memory_order_relaxed);
	prepare_for_sleep(net, true);
	/* Pairs with the fence in mst_tcp_net_notify(). The caller's look, which comes next, finds
	 * what the io has told before. */
	atomic_thread_fence(memory_order_seq_cst);
	return net->io[0].epoll;
}

static uint32_t net_links(const struct mst_net *n)
{
	return ((const struct mst_tcp_net *)n)->link_count;
}

static bool net_ready(struct mst_net *n)
{
	return has_work(n);
}

static int put(struct mst_link *link, const struct mst_put *what)
{
	struct mst_tcp_link *l = (struct mst_tcp_link *)link;

	MST_ASSERT(l->queue.state != MST_QUEUE_IDLE);
	if (what->urgent)
		return mst_tcp_out_urge(l, what);
	if (l->queue.state == MST_QUEUE_LIVE && !l->io->own)
		mst_tcp_link_gather(l); /* what has been sent may be written over */
	int rc = mst_queue_put(&l->queue, what);
	if (rc != -EAGAIN || l->queue.state != MST_QUEUE_LIVE)
		return rc;
	/* Credits may be here, and nobody has received them. */
	mst_tcp_io_catch_up(l->io, l);
	mst_tcp_link_gather(l);
	return mst_queue_put(&l->queue, what);
}

/* A link has its connection; a net an epoll and an eventfd for itself and for each thread. */
static void claim(const struct mst_net_cfg *cfg, const struct mst_lanes *lanes, bool accepts,
		  struct mst_claim *out)
{
	static const struct mst_fabric usual = MST_FABRIC_DEFAULT;
	const struct mst_fabric *fabric = cfg->fabric != NULL ? cfg->fabric : &usual;
	uint32_t threads = fabric->io_threads;

	*out = (struct mst_claim){ .descriptors = 1 };
	if (lanes != NULL)
		return;
	out->threads = threads + (accepts && fabric->encrypted); /* one that shakes hands */
	out->descriptors = 2 * (1 + threads);
	if (accepts)
		out->descriptors += mst_tcp_listener_descriptors(fabric);
}

const struct mst_transport mst_tcp = {
	.scheme = "tcp",
	.prefix = "tcp:",
	.medium = "TCP",
	.encrypts = true,
	.listener = &mst_tcp_listener,
	.net_open = net_open,
	.net_close = net_close,
	.dial = mst_tcp_dial,
	.attach = mst_tcp_attach,
	.detach = net_detach,
	.link_free = mst_tcp_link_free,
	.disown = net_disown,
	.put = put,
	.poll = net_poll,
	.wait = net_wait,
	.wake = mst_tcp_net_wake,
	.arm = net_arm,
	.disarm = net_disarm,
	.links = net_links,
	.ready = net_ready,
	.view = mst_tcp_link_view,
	.claim = claim,
};
