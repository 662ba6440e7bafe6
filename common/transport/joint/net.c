/* SPDX-License-Identifier: MIT */
/* The net of several networks: its parts, and how one thread waits for all of them. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/joint/joint.h"

/* A part may have something to do by the clock, such as to look whether its peers are alive. */
#define NAP_NS (100 * MST_MS)

/* ---- opening and closing ---- */

static void net_close(struct mst_net *n)
{
	struct mst_joint_net *net = (struct mst_joint_net *)n;

	if (net == NULL)
		return;
	/* The first part is closed last: the others send what it has published. */
	while (net->count > 0) {
		struct mst_net *part = net->part[--net->count];
		part->ops->net_close(part);
	}
	mst_domain_fini(&net->net.domain);
	free(net);
}

/* Opens the part of one network. It sends from what the first part has published. */
static int open_part(struct mst_joint_net *net, const struct mst_transport *of,
		     struct mst_reason *why)
{
	struct mst_net_cfg cfg = net->cfg;

	MST_ASSERT(of->arm != NULL && of->disarm != NULL && of->links != NULL && of->ready != NULL);
	cfg.published = net->count > 0 ? net->part[0]->published : NULL;
	int rc = of->net_open(&cfg, &net->part[net->count], why);
	net->count += rc == 0;
	return rc;
}

/* Opens all networks, or as many as open if they are optional. @why: of those that do not. Return:
 * 0, or the error of the last of them. */
static int open_parts(struct mst_joint_net *net, struct mst_reason *why)
{
	struct mst_reason one;
	int rc = 0;

	for (uint32_t i = 0; i < net->cfg.networks->count; i++) {
		const struct mst_transport *of = net->cfg.networks->item[i];
		int error = open_part(net, of, &one);
		if (error == 0)
			continue;
		rc = error;
		mst_reason_add(why, "%s%s: %s", why->text[0] != '\0' ? "; " : "", of->scheme,
			       mst_reason_or_errno(&one, error));
		if (!net->optional)
			break;
	}
	return rc;
}

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	struct mst_joint_net *net = calloc(1, sizeof(*net));

	mst_reason_clear(why);
	if (net == NULL)
		return -ENOMEM;
	net->net.ops = &mst_joint;
	net->cfg = *cfg;
	net->optional = cfg->networks->optional;
	int rc = open_parts(net, why);
	if (net->count == 0 || (rc != 0 && !net->optional)) {
		net_close(&net->net);
		return rc;
	}
	if (rc != 0)
		mst_warn("workers cannot come over %s", why->text);
	mst_reason_clear(why);
	net->cfg.fabric = NULL; /* the caller's, as the list is */
	net->cfg.networks = NULL;
	net->net.published = net->part[0]->published;
	net->net.published_bytes = net->part[0]->published_bytes;
	*out = &net->net;
	return 0;
}

/* ---- links ---- */

static int dial(struct mst_net *n, const struct mst_dial *dial, struct mst_link **out,
		struct mst_reason *why)
{
	struct mst_joint_net *net = (struct mst_joint_net *)n;
	uint64_t deadline_ns = mst_deadline_ns(dial->timeout_ns);
	struct mst_reason one;
	int rc = -EINVAL;

	mst_reason_clear(why);
	for (uint32_t i = 0; i < net->count && rc != 0; i++) {
		struct mst_net *part = net->part[i];
		struct mst_dial how = *dial;
		char address[MST_ADDRESS_LEN];
		if (!mst_transport_address(part->ops, dial->address, address))
			continue;
		how.address = address;
		how.timeout_ns = mst_left_ns(deadline_ns);
		rc = part->ops->dial(part, &how, out, &one);
		if (rc != 0)
			mst_reason_add(why, "%s%s: %s", why->text[0] != '\0' ? "; " : "",
				       part->ops->scheme, mst_reason_or_errno(&one, rc));
	}
	if (rc == 0)
		mst_reason_clear(why);
	else if (why->text[0] == '\0')
		mst_reason_set(why, "\"%.200s\" is over no network that this end has",
			       dial->address);
	return rc;
}

static struct mst_net *part_of(const struct mst_joint_net *net, const struct mst_link *link)
{
	for (uint32_t i = 0; i < net->count; i++)
		if (net->part[i]->ops == link->ops)
			return net->part[i];
	return NULL;
}

static int attach(struct mst_net *n, struct mst_link *link, struct mst_reason *why)
{
	struct mst_net *part = part_of((struct mst_joint_net *)n, link);

	if (part == NULL)
		return -EINVAL;
	return part->ops->attach(part, link, why);
}

static void detach(struct mst_link *link)
{
	link->ops->detach(link);
}

static void link_free(struct mst_link *link)
{
	if (link != NULL)
		link->ops->link_free(link);
}

static void disown(struct mst_net *n)
{
	struct mst_joint_net *net = (struct mst_joint_net *)n;

	for (uint32_t i = 0; i < net->count; i++)
		if (net->part[i]->ops->disown != NULL)
			net->part[i]->ops->disown(net->part[i]);
	mst_domain_disown(&net->net.domain);
}

static int put(struct mst_link *link, const struct mst_put *what)
{
	return link->ops->put(link, what);
}

static int view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes, void *at)
{
	return link->ops->view(link, what, offset, bytes, at);
}

/* ---- looking ---- */

static uint32_t parts_with_links(const struct mst_joint_net *net)
{
	uint32_t busy = 0;

	for (uint32_t i = 0; i < net->count; i++)
		busy |= (uint32_t)(net->part[i]->ops->links(net->part[i]) > 0) << i;
	return busy;
}

static int net_poll(struct mst_net *n, struct mst_net_event *ev, int max)
{
	struct mst_joint_net *net = (struct mst_joint_net *)n;
	uint32_t at = net->first;
	int got = 0;

	/* The next poll begins where this one ends, so that no part starves another of @max. */
	for (uint32_t i = 0; i < net->count && got < max; i++) {
		struct mst_net *part = net->part[at];
		if (part->ops->links(part) > 0)
			got += part->ops->poll(part, ev + got, max - got);
		at = at + 1 < net->count ? at + 1 : 0;
	}
	net->first = at;
	return got;
}

static bool any_ready(void *n)
{
	struct mst_joint_net *net = n;
	uint32_t busy = parts_with_links(net);
	/* Relaxed: wait() takes the flag with acquire before it returns. */
	bool any = atomic_load_explicit(&net->woken, memory_order_relaxed);

	for (uint32_t i = 0; i < net->count; i++)
		if ((busy >> i & 1) != 0)
			any |= net->part[i]->ops->ready(net->part[i]);
	return any;
}

/* ---- waiting ---- */

/* Sleeps once, until a descriptor of a part is readable. 0; -EINTR. */
static int nap(const struct pollfd *pfd, nfds_t count, uint64_t deadline_ns)
{
	struct pollfd fd[MST_NETWORKS_MAX];
	uint64_t left_ns = mst_left_ns(deadline_ns);

	memcpy(fd, pfd, count * sizeof(fd[0]));
	if (left_ns > NAP_NS)
		left_ns = NAP_NS;
	int ready = poll(fd, count, (int)((left_ns + MST_MS - 1) / MST_MS));
	return ready < 0 && errno == EINTR ? -EINTR : 0;
}

static int sleep_until(struct mst_joint_net *net, uint32_t busy, uint64_t deadline_ns)
{
	int rc = 0;

	while (rc == 0) {
		struct pollfd pfd[MST_NETWORKS_MAX];
		nfds_t count = 0;
		for (uint32_t i = 0; i < net->count; i++) {
			struct mst_net *part = net->part[i];
			if ((busy >> i & 1) != 0)
				pfd[count++] = (struct pollfd){ .fd = part->ops->arm(part),
								.events = POLLIN };
		}
		/* Pairs with the fence in net_wake(): arm() has taken the flags of the parts, so
		 * who woke them before that is found by the net's own, and who wakes them later
		 * rings. */
		atomic_thread_fence(memory_order_seq_cst);
		if (any_ready(net) || mst_left_ns(deadline_ns) == 0)
			break;
		rc = nap(pfd, count, deadline_ns);
	}
	return rc;
}

/* The parts take the flags by which they were woken before, and go on with what waits in their
 * queues. The net's own flag stays until the wait ends. */
static void settle(struct mst_joint_net *net, uint32_t busy)
{
	for (uint32_t i = 0; i < net->count; i++)
		if ((busy >> i & 1) != 0)
			(void)net->part[i]->ops->wait(net->part[i], 0);
}

/* The thread is awake again: peers that put meanwhile have nobody to wake. */
static void disarm(struct mst_joint_net *net, uint32_t busy)
{
	for (uint32_t i = 0; i < net->count; i++)
		if ((busy >> i & 1) != 0)
			net->part[i]->ops->disarm(net->part[i]);
}

static int wait_for_all(struct mst_joint_net *net, uint32_t busy, uint64_t timeout_ns)
{
	uint64_t deadline_ns = mst_deadline_ns(timeout_ns);
	uint64_t look_ns = mst_deadline_ns(mst_spin_look_ns(&net->cfg));

	settle(net, busy);
	if (mst_spin(&net->spin, &net->cfg, deadline_ns, any_ready, net))
		return 0;
	int rc = sleep_until(net, busy, deadline_ns < look_ns ? deadline_ns : look_ns);
	disarm(net, busy);
	return rc;
}

/* Has somebody woken the parts that had links before, while these changed? */
static bool follow_links(struct mst_joint_net *net, uint32_t busy)
{
	if (busy == atomic_load_explicit(&net->busy, memory_order_relaxed))
		return false;
	atomic_store_explicit(&net->busy, busy, memory_order_relaxed);
	/* Pairs with the fence in net_wake(): either that call sees these parts, or this one sees
	 * that it has been woken. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&net->woken, memory_order_relaxed);
}

static int net_wait(struct mst_net *n, uint64_t timeout_ns)
{
	struct mst_joint_net *net = (struct mst_joint_net *)n;
	uint32_t busy = parts_with_links(net);
	uint32_t part = busy != 0 ? (uint32_t)__builtin_ctz(busy) : 0;
	int rc = 0;

	if (follow_links(net, busy))
		timeout_ns = 0;
	if ((busy & (busy - 1)) == 0)
		rc = net->part[part]->ops->wait(net->part[part], timeout_ns);
	else
		rc = wait_for_all(net, busy, timeout_ns);
	/* Acquire: pairs with the store in net_wake(); what its caller did is visible. */
	atomic_exchange_explicit(&net->woken, false, memory_order_acquire);
	return rc;
}

static void net_wake(struct mst_net *n)
{
	struct mst_joint_net *net = (struct mst_joint_net *)n;

	/* Release: pairs with the acquire in net_wait(). */
	atomic_store_explicit(&net->woken, true, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	uint32_t busy = atomic_load_explicit(&net->busy, memory_order_relaxed);
	if (busy == 0)
		busy = 1; /* without links the first part waits */
	for (; busy != 0; busy &= busy - 1) {
		struct mst_net *part = net->part[__builtin_ctz(busy)];
		part->ops->wake(part);
	}
}

/* ---- what it takes ---- */

static void add(struct mst_claim *sum, const struct mst_claim *part)
{
	sum->descriptors += part->descriptors;
	sum->threads += part->threads;
	sum->queue_pairs += part->queue_pairs;
	sum->bytes += part->bytes;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void take_larger(struct mst_claim *most, const struct mst_claim *part)
{
	most->descriptors = (uint32_t)larger(most->descriptors, part->descriptors);
	most->threads = (uint32_t)larger(most->threads, part->threads);
	most->queue_pairs = (uint32_t)larger(most->queue_pairs, part->queue_pairs);
	most->bytes = larger(most->bytes, part->bytes);
}

/* A link is over one network, and each may take the one that takes most. */
static void claim(const struct mst_net_cfg *cfg, const struct mst_lanes *lanes, bool accepts,
		  struct mst_claim *out)
{
	*out = (struct mst_claim){ .descriptors = lanes == NULL && accepts };
	for (uint32_t i = 0; i < cfg->networks->count; i++) {
		const struct mst_transport *of = cfg->networks->item[i];
		struct mst_claim part = { 0 };
		if (of->claim != NULL)
			of->claim(cfg, lanes, accepts, &part);
		if (lanes == NULL)
			add(out, &part);
		else
			take_larger(out, &part);
	}
}

static uint32_t links(const struct mst_net *n)
{
	const struct mst_joint_net *net = (const struct mst_joint_net *)n;
	uint32_t all = 0;

	for (uint32_t i = 0; i < net->count; i++)
		all += net->part[i]->ops->links(net->part[i]);
	return all;
}

static bool ready(struct mst_net *n)
{
	return any_ready(n);
}

const struct mst_transport mst_joint = {
	.scheme = "joint",
	.prefix = "",
	.medium = "several networks",
	.maps = true,
	.listener = &mst_joint_listener,
	.net_open = net_open,
	.net_close = net_close,
	.dial = dial,
	.attach = attach,
	.detach = detach,
	.link_free = link_free,
	.disown = disown,
	.put = put,
	.poll = net_poll,
	.wait = net_wait,
	.wake = net_wake,
	.links = links,
	.ready = ready,
	.view = view,
	.claim = claim,
};
