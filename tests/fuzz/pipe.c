/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "common/transport/pages.h"

struct mst_link *pipe_answers;

static void queue(struct pipe_link *to, const struct mst_net_event *ev)
{
	struct pipe_net *n = to->net;

	if (n == NULL || n->count == PIPE_EVENTS)
		return;
	n->event[(n->head + n->count++) % PIPE_EVENTS] = *ev;
}

void pipe_arrive(struct pipe_link *to, uint32_t imm)
{
	queue(to, &(struct mst_net_event){ .kind = MST_ARRIVED, .link = &to->link, .imm = imm });
}

void pipe_lose(struct pipe_link *to)
{
	queue(to, &(struct mst_net_event){ .kind = MST_LOST, .link = &to->link, .error = -EPIPE });
}

/* Whole pages, and one at least; shared, so that there can be views of them. */
static void *memory_new(size_t bytes)
{
	void *at = mmap(NULL, bytes + MST_PAGES_SMALL, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MST_ASSERT(at != MAP_FAILED);
	return at;
}

static void memory_free(void *at, size_t bytes)
{
	munmap(at, bytes + MST_PAGES_SMALL);
}

void pipe_net_init(struct pipe_net *n, size_t published_bytes)
{
	*n = (struct pipe_net){ .net = { .ops = &pipe_transport } };
	n->net.published = memory_new(published_bytes);
	n->net.published_bytes = published_bytes;
}

void pipe_net_fini(struct pipe_net *n)
{
	memory_free(n->net.published, n->net.published_bytes);
}

static void end_init(struct pipe_link *l, struct pipe_link *peer, const struct mst_lanes *lanes,
		     size_t bytes)
{
	*l = (struct pipe_link){ .link = { .ops = &pipe_transport, .lanes = *lanes },
				 .peer = peer };
	l->link.inbound = memory_new(bytes);
}

void pipe_link_init(struct pipe_link *acceptor, struct pipe_link *connector,
		    const struct mst_lanes *lanes, const struct pipe_net *server)
{
	end_init(acceptor, connector, lanes, lanes->up_bytes);
	end_init(connector, acceptor, lanes, lanes->down_bytes);
	acceptor->link.remote_mapping = acceptor->link.outbound = connector->link.inbound;
	acceptor->link.outbound_bytes = lanes->down_bytes;
	connector->link.remote_mapping = connector->link.outbound = acceptor->link.inbound;
	connector->link.outbound_bytes = lanes->up_bytes;
	connector->link.shared = server->net.published;
	connector->link.shared_bytes = server->net.published_bytes;
}

void pipe_link_fini(struct pipe_link *acceptor, struct pipe_link *connector)
{
	memory_free(acceptor->link.inbound, acceptor->link.lanes.up_bytes);
	memory_free(connector->link.inbound, connector->link.lanes.down_bytes);
}

/* ---- the table ---- */

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	struct pipe_net *n = malloc(sizeof(*n));

	MST_ASSERT(n != NULL);
	mst_reason_clear(why);
	pipe_net_init(n, cfg->published_bytes);
	*out = &n->net;
	return 0;
}

static void net_close(struct mst_net *net)
{
	struct pipe_net *n = (struct pipe_net *)net;

	if (n == NULL)
		return;
	pipe_net_fini(n);
	free(n);
}

static int attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why)
{
	mst_reason_clear(why);
	((struct pipe_link *)link)->net = (struct pipe_net *)net;
	return 0;
}

static int dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out,
		struct mst_reason *why)
{
	(void)how;
	mst_reason_clear(why);
	if (pipe_answers == NULL)
		return -ECONNREFUSED;
	*out = pipe_answers;
	pipe_answers = NULL;
	return attach(net, *out, why);
}

/* What is queued of the link is taken back: nothing of it may come any more. */
static void detach(struct mst_link *link)
{
	struct pipe_link *l = (struct pipe_link *)link;
	struct pipe_net *n = l->net;
	unsigned count = n->count, kept = 0;

	for (unsigned i = 0; i < count; i++) {
		struct mst_net_event ev = n->event[(n->head + i) % PIPE_EVENTS];
		if (ev.link != link)
			n->event[(n->head + kept++) % PIPE_EVENTS] = ev;
	}
	n->count = kept;
	l->net = NULL;
	if (l->peer == NULL)
		return;
	pipe_lose(l->peer);
	l->peer->peer = NULL;
	l->peer = NULL;
}

static void link_free(struct mst_link *link)
{
	(void)link; /* the test's */
}

static int put(struct mst_link *link, const struct mst_put *put)
{
	const struct pipe_link *l = (const struct pipe_link *)link;
	char *to = (char *)link->remote_mapping + put->offset;

	MST_ASSERT(put->offset <= link->outbound_bytes &&
		   put->bytes <= link->outbound_bytes - put->offset);
	if (l->peer == NULL)
		return -EPIPE;
	if (put->bytes > 0 && to != put->src)
		memcpy(to, put->src, put->bytes);
	if (put->notify)
		pipe_arrive(l->peer, put->imm);
	return 1;
}

static int poll(struct mst_net *net, struct mst_net_event *ev, int max)
{
	struct pipe_net *n = (struct pipe_net *)net;
	int got = 0;

	while (got < max && n->count > 0) {
		ev[got++] = n->event[n->head];
		n->head = (n->head + 1) % PIPE_EVENTS;
		n->count--;
	}
	return got;
}

/* Nobody else is there to wait for: whatever the time was, it is over. */
static int wait(struct mst_net *net, uint64_t timeout_ns)
{
	(void)timeout_ns;
	return ((struct pipe_net *)net)->count > 0 ? 0 : -ETIMEDOUT;
}

static void wake(struct mst_net *net)
{
	(void)net;
}

static int view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes, void *at)
{
	switch (what) {
	case MST_VIEW_OUTBOUND:
		return mst_pages_view(link->outbound, link->outbound_bytes, offset, bytes, at);
	case MST_VIEW_INBOUND: /* a connector's */
		return mst_pages_view(link->inbound, link->lanes.down_bytes, offset, bytes, at);
	case MST_VIEW_SHARED:
		return mst_pages_view(link->shared, link->shared_bytes, offset, bytes, at);
	}
	return -EINVAL;
}

const struct mst_transport pipe_transport = {
	.scheme = "pipe",
	.maps = true,
	.listener = &(const struct mst_link_listener_ops){ 0 }, /* nobody asks for a link */
	.net_open = net_open,
	.net_close = net_close,
	.dial = dial,
	.attach = attach,
	.detach = detach,
	.link_free = link_free,
	.put = put,
	.poll = poll,
	.wait = wait,
	.wake = wake,
	.view = view,
};
