/* SPDX-License-Identifier: MIT */
#include "tests/transport/far.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/transport/pages.h"
#include "tests/transport/far_export.h"

#define SCHEME "far:"
#define PAGE ((size_t)4096)
#define EVENTS_MAX 64
#define DELIVERED_MAX 256u /* and not yet reported */

struct far_manner far_manner = FAR_MANNER;
_Atomic uint64_t far_spoiled, far_refused;
_Thread_local bool far_delivers;

/* A put on its way. */
struct far_entry {
	size_t offset, bytes, done;
	const uint8_t *src;
	bool notify, signal;
	bool watched; /* read where it lies: the writer must leave it alone */
	struct mst_region *lent;
	uint64_t sum; /* of its bytes when it was put */
	uint32_t imm;
	uint64_t cookie, sent_ns;
};

struct far_net {
	struct mst_net net;
	struct mst_net *inner;
	size_t outbound_max;
	uint32_t link_count, links_max;
	struct far_link **link;
};

struct far_listener {
	struct mst_link_listener listener;
	struct mst_link_listener *inner;
	struct far_net *net;
};

struct far_link {
	struct mst_link link;
	struct mst_link *inner;
	struct far_net *net; /* attached to it */
	size_t peer_bytes;
	struct far_export *export; /* NULL: the connector exports nothing */
	struct mst_region *lent;   /* the connector's, for that */
	bool lost, told_lost;
	struct far_entry *entry; /* a ring, oldest first: delivered ones, then those on their way */
	uint32_t size, head, count, delivered;
	uint32_t room; /* on their way, at most */
};

/* Shared, so that there can be views of it. */
static void *memory_new(size_t bytes)
{
	void *memory = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);

	return memory != MAP_FAILED ? memory : NULL;
}

static void memory_free(void *memory, size_t bytes)
{
	if (memory != NULL)
		munmap(memory, bytes + PAGE);
}

/* ---- net ---- */

static void net_close(struct mst_net *n)
{
	struct far_net *net = (struct far_net *)n;

	if (net == NULL)
		return;
	MST_ASSERT(net->link_count == 0);
	mst_shm.net_close(net->inner);
	mst_domain_fini(&net->net.domain);
	memory_free(net->net.published, net->net.published_bytes);
	free(net->link);
	free(net);
}

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	struct far_net *net = calloc(1, sizeof(*net));
	struct mst_net_cfg inner = *cfg;
	int rc = -ENOMEM;

	mst_reason_clear(why);
	if (net == NULL)
		return -ENOMEM;
	net->net.ops = &far;
	net->outbound_max = cfg->outbound_max;
	net->links_max = cfg->links_max;
	net->link = calloc(cfg->links_max + 1, sizeof(struct far_link *));
	inner.published_bytes = 0;
	if (cfg->published_bytes > 0)
		net->net.published = memory_new(cfg->published_bytes);
	net->net.published_bytes = cfg->published_bytes;
	if (net->link != NULL && (net->net.published != NULL || cfg->published_bytes == 0))
		rc = mst_shm.net_open(&inner, &net->inner, why);
	if (rc != 0) {
		net_close(&net->net);
		return rc;
	}
	*out = &net->net;
	return 0;
}

/* ---- links ---- */

static struct far_entry *entry_at(const struct far_link *l, uint32_t index)
{
	return &l->entry[(l->head + index) % l->size];
}

static void link_free(struct mst_link *link)
{
	struct far_link *l = (struct far_link *)link;

	if (l == NULL)
		return;
	MST_ASSERT(l->net == NULL);
	mst_shm.link_free(l->inner);
	if (l->export != NULL)
		far_export_end(l->export);
	if (l->lent != NULL)
		mst_region_take_back(l->lent);
	for (uint32_t i = 0; l->entry != NULL && i < l->count; i++)
		if (entry_at(l, i)->lent != NULL)
			mst_region_take_back(entry_at(l, i)->lent);
	memory_free(l->link.outbound, l->link.outbound_bytes);
	free(l->entry);
	free(l);
}

/* Takes @inner over in any case. */
static int link_new(struct mst_link *inner, bool connector, size_t outbound_max,
		    struct far_link **out)
{
	const struct mst_lanes *lanes = &inner->lanes;
	struct far_link *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		mst_shm.link_free(inner);
		return -ENOMEM;
	}
	l->inner = inner;
	l->peer_bytes = connector ? lanes->up_bytes : lanes->down_bytes;
	l->room = connector ? far_manner.room : lanes->down_credits + 4;
	l->size = l->room + DELIVERED_MAX;
	l->link.ops = &far;
	l->link.lanes = *lanes;
	l->link.inbound = inner->inbound;
	l->link.outbound_bytes = l->peer_bytes;
	if (!connector && outbound_max > 0 && outbound_max < l->peer_bytes)
		l->link.outbound_bytes = outbound_max;
	l->link.outbound = memory_new(l->link.outbound_bytes);
	l->entry = calloc(l->size, sizeof(*l->entry));
	inner->user = l;
	if (l->link.outbound == NULL || l->entry == NULL) {
		link_free(&l->link);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

static void enter(struct far_net *net, struct far_link *l)
{
	MST_ASSERT(net->link_count < net->links_max);
	l->net = net;
	net->link[net->link_count++] = l;
}

static int attach(struct mst_net *n, struct mst_link *link, struct mst_reason *why)
{
	struct far_net *net = (struct far_net *)n;
	struct far_link *l = (struct far_link *)link;
	int rc = mst_shm.attach(net->inner, l->inner, why);

	if (rc == 0)
		enter(net, l);
	return rc;
}

/* What is on its way stays there for good. */
static void detach(struct mst_link *link)
{
	struct far_link *l = (struct far_link *)link;
	struct far_net *net = l->net;
	uint32_t i = 0;

	while (net->link[i] != l)
		i++;
	net->link[i] = net->link[--net->link_count];
	if (l->lent != NULL)
		far_export_revoke(l->export);
	mst_shm.detach(l->inner);
	l->net = NULL;
}

static int dial(struct mst_net *n, const struct mst_dial *how, struct mst_link **out,
		struct mst_reason *why)
{
	struct far_net *net = (struct far_net *)n;
	struct mst_dial inner_how = *how;
	struct far_export *export = NULL;
	struct mst_link *inner;
	struct far_link *l;

	mst_reason_clear(why);
	if (how->export.region != NULL &&
	    !mst_region_may_export(&how->export, how->lanes.down_bytes))
		return -EINVAL;
	if (strncmp(how->address, SCHEME, strlen(SCHEME)) != 0)
		return -EINVAL;
	if (how->export.region != NULL)
		export = far_export_new(how);
	inner_how.address = how->address + strlen(SCHEME);
	inner_how.export = (struct mst_export){ 0 };
	int rc = mst_shm.dial(net->inner, &inner_how, &inner, why);
	if (rc == 0)
		rc = link_new(inner, true, 0, &l);
	if (rc != 0) {
		if (export != NULL)
			far_export_end(export);
		return rc;
	}
	l->export = export;
	l->lent = how->export.region;
	if (l->lent != NULL)
		mst_region_lend(l->lent);
	enter(net, l);
	*out = &l->link;
	return 0;
}

static int view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes, void *at)
{
	struct far_link *l = (struct far_link *)link;

	if (what == MST_VIEW_INBOUND)
		return mst_shm.view(l->inner, what, offset, bytes, at);
	if (what == MST_VIEW_OUTBOUND)
		return mst_pages_view(link->outbound, link->outbound_bytes, offset, bytes, at);
	return -EINVAL;
}

/* ---- listeners ---- */

static int listener_open(struct mst_net *n, struct mst_link_listener **out, struct mst_reason *why)
{
	struct far_listener *d = calloc(1, sizeof(*d));

	mst_reason_clear(why);
	if (d == NULL)
		return -ENOMEM;
	d->net = (struct far_net *)n;
	d->listener.ops = &far;
	int rc = mst_shm.listener->open(d->net->inner, &d->inner, why);
	if (rc != 0) {
		free(d);
		return rc;
	}
	(void)snprintf(d->listener.address, sizeof(d->listener.address), SCHEME "%.200s",
		       d->inner->address);
	*out = &d->listener;
	return 0;
}

static void listener_close(struct mst_link_listener *listener)
{
	struct far_listener *d = (struct far_listener *)listener;

	if (d == NULL)
		return;
	mst_shm.listener->close(d->inner);
	free(d);
}

static int listener_fd(const struct mst_link_listener *listener)
{
	return mst_shm.listener->fd(((const struct far_listener *)listener)->inner);
}

static int listener_next_request(struct mst_link_listener *listener, struct mst_link_request *out,
				 struct mst_reason *why)
{
	return mst_shm.listener->next_request(((struct far_listener *)listener)->inner, out, why);
}

static int listener_answer(struct mst_link_listener *listener,
			   const struct mst_link_request *request, struct mst_link **out,
			   struct mst_reason *why)
{
	struct far_listener *d = (struct far_listener *)listener;
	struct mst_link *inner;
	struct far_link *l;

	if (out == NULL)
		return mst_shm.listener->answer(d->inner, request, NULL, why);
	struct far_export *export = far_export_find(d->listener.address, request->token);
	int rc = mst_shm.listener->answer(d->inner, request, &inner, why);
	if (rc == 0)
		rc = link_new(inner, false, d->net->outbound_max, &l);
	if (rc == 0) {
		l->export = export;
		*out = &l->link;
	} else if (export != NULL) {
		far_export_end(export);
	}
	return rc;
}

/* ---- puts ---- */

static uint64_t sum_of(const uint8_t *bytes, size_t count)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < count; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
	return sum;
}

static bool is_published(const struct far_net *net, const uint8_t *src, size_t bytes)
{
	const uint8_t *base = net->net.published;

	return base != NULL && src >= base && src + bytes <= base + net->net.published_bytes;
}

static int put(struct mst_link *link, const struct mst_put *put)
{
	struct far_link *l = (struct far_link *)link;
	uint8_t *there = (uint8_t *)link->outbound + put->offset;
	bool apart = put->region != NULL || is_published(l->net, put->src, put->bytes);

	if (put->offset > l->peer_bytes || put->bytes > l->peer_bytes - put->offset)
		return -EINVAL;
	if (put->region != NULL && !mst_region_has(put->region, put->src, put->bytes))
		return -EINVAL;
	if (!apart && put->bytes > 0 && put->offset + put->bytes > link->outbound_bytes)
		return -EINVAL;
	if (l->lost)
		return -EPIPE;
	if (l->count - l->delivered == l->room || l->count == l->size) {
		atomic_fetch_add(&far_refused, 1);
		return -EAGAIN;
	}
	bool in_place = put->bytes > 0 && (apart || put->src == there);
	if (!in_place && put->bytes > 0) {
		memcpy(there, put->src, put->bytes);
		link->copied += put->bytes;
	}
	*entry_at(l, l->count++) = (struct far_entry){
		.offset = put->offset,
		.bytes = put->bytes,
		.src = apart ? put->src : there,
		.notify = put->notify,
		.imm = put->imm,
		.signal = put->signal && in_place,
		.cookie = put->cookie,
		.watched = in_place,
		.sum = in_place ? sum_of(put->src, put->bytes) : 0,
		.lent = in_place ? put->region : NULL,
	};
	if (in_place && put->region != NULL)
		mst_region_lend(put->region);
	return in_place ? 0 : 1;
}

/* ---- delivery ---- */

static bool is_stuck(const struct far_link *l)
{
	return l->lost || l->delivered == l->count ||
	       (far_manner.stuck != NULL && far_manner.stuck(&l->link));
}

/* A piece of an entry, which lands in one place. False: it cannot go now. */
static bool deliver_piece(struct far_link *l, struct far_entry *e, size_t bytes)
{
	size_t offset = e->offset + e->done;
	bool apart = l->lent == NULL && l->export != NULL && bytes > 0 &&
		     far_export_has(l->export, offset, &bytes);
	bool last = e->done + bytes == e->bytes;

	if (apart) /* again, if what notifies of it has no room yet */
		far_export_write(l->export, offset, e->src + e->done, bytes);
	int rc = mst_shm.put(l->inner, &(struct mst_put){ .offset = offset,
							  .src = e->src + e->done,
							  .bytes = apart ? 0 : bytes,
							  .notify = last && e->notify,
							  .imm = e->imm });

	if (rc < 0)
		return false;
	e->done += bytes;
	e->sent_ns = mst_now_ns() + far_manner.linger_ns;
	l->delivered += last;
	return true;
}

static void deliver(struct far_link *l)
{
	size_t left = far_manner.step_bytes;

	far_delivers = true;
	while (left > 0 && !is_stuck(l)) {
		struct far_entry *e = entry_at(l, l->delivered);
		size_t bytes = e->bytes - e->done < left ? e->bytes - e->done : left;
		if (!deliver_piece(l, e, bytes))
			break;
		left -= bytes;
	}
	far_delivers = false;
}

/* The oldest put, if it is to be reported, or just forgotten, by now. */
static bool take_sent(struct far_link *l, struct mst_net_event *ev)
{
	while (l->delivered > 0 && mst_now_ns() >= entry_at(l, 0)->sent_ns) {
		const struct far_entry *e = entry_at(l, 0);
		if (e->watched && sum_of(e->src, e->bytes) != e->sum)
			atomic_fetch_add(&far_spoiled, 1);
		*ev = (struct mst_net_event){ .kind = MST_SENT,
					      .link = &l->link,
					      .cookie = e->cookie };
		bool signal = e->signal;
		if (e->lent != NULL)
			mst_region_take_back(e->lent);
		l->head = (l->head + 1) % l->size;
		l->count--;
		l->delivered--;
		if (signal)
			return true;
	}
	return false;
}

static bool take_death(struct far_link *l, struct mst_net_event *ev)
{
	if (l->lost || far_manner.dead == NULL || !far_manner.dead(&l->link))
		return false;
	l->lost = l->told_lost = true;
	mst_reason_set(&l->link.why, "%s", FAR_DEATH);
	*ev = (struct mst_net_event){ .kind = MST_LOST, .link = &l->link, .error = -EPIPE };
	return true;
}

/* What the link underneath says. False: nothing that is still to be told. */
static bool translate(struct mst_net_event *ev)
{
	struct far_link *l = ev->link->user;

	ev->link = &l->link;
	if (l->told_lost)
		return false;
	if (ev->kind == MST_LOST)
		l->lost = l->told_lost = true;
	return true;
}

/* Arrivals first: a peer's answer to what has been delivered comes before it is reported sent. */
static int poll_net(struct mst_net *n, struct mst_net_event *ev, int max)
{
	struct far_net *net = (struct far_net *)n;
	struct mst_net_event inner[EVENTS_MAX];
	int got = mst_shm.poll(net->inner, inner, max < EVENTS_MAX ? max : EVENTS_MAX);
	int count = 0;

	for (int i = 0; i < got; i++) {
		ev[count] = inner[i];
		count += translate(&ev[count]);
	}
	for (uint32_t i = 0; i < net->link_count; i++) {
		struct far_link *l = net->link[i];
		deliver(l);
		while (count < max && !l->lost && take_sent(l, &ev[count]))
			count++;
		if (count < max && take_death(l, &ev[count]))
			count++;
	}
	return count;
}

/* Is there something to be delivered, or told? */
static bool has_work(const struct far_link *l)
{
	return !is_stuck(l) || (!l->lost && far_manner.dead != NULL && far_manner.dead(&l->link));
}

static int wait_net(struct mst_net *n, uint64_t timeout_ns)
{
	struct far_net *net = (struct far_net *)n;
	bool busy = false;

	for (uint32_t i = 0; i < net->link_count; i++) {
		if (has_work(net->link[i]))
			return 0;
		busy |= net->link[i]->count > 0 || far_manner.dead != NULL;
	}
	return mst_shm.wait(net->inner, busy && timeout_ns > MST_MS ? MST_MS : timeout_ns);
}

static void wake(struct mst_net *n)
{
	mst_shm.wake(((struct far_net *)n)->inner);
}

static const struct mst_link_listener_ops listener = {
	.open = listener_open,
	.close = listener_close,
	.fd = listener_fd,
	.next_request = listener_next_request,
	.answer = listener_answer,
};

const struct mst_transport far = {
	.scheme = "far",
	.prefix = "far:",
	.medium = "a network",
	.pins = true,
	.listener = &listener,
	.net_open = net_open,
	.net_close = net_close,
	.dial = dial,
	.attach = attach,
	.detach = detach,
	.link_free = link_free,
	.put = put,
	.poll = poll_net,
	.wait = wait_net,
	.wake = wake,
	.view = view,
};
