/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/handle.h"

#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"

static ssize_t take_all(struct mst_stream *s, const void *data, size_t len)
{
	(void)s, (void)data;
	return (ssize_t)len;
}

static ssize_t hear(struct mst_stream *s, void *data, size_t len)
{
	struct handle *h = (struct handle *)s;

	if (len > h->heard_bytes)
		len = h->heard_bytes;
	if (len == 0)
		return -EAGAIN;
	memcpy(data, h->heard, len);
	h->heard += len;
	h->heard_bytes -= len;
	return (ssize_t)len;
}

static void close_none(struct mst_stream *s)
{
	(void)s;
}

static int no_fd(const struct mst_stream *s)
{
	(void)s;
	return -1;
}

static const struct mst_stream_ops ops = {
	.send = take_all, .receive = hear, .close = close_none, .stream_fd = no_fd
};

static void wake(void *ctx)
{
	(void)ctx;
}

void handle_init(struct handle *h, const struct handle_figures *f,
		 const struct mst_lane_layout *layout, struct pipe_link *link)
{
	struct mst_control_cfg control = {
		.ops = &ops, .stream = (struct mst_stream *)h, .server = "pipe", .wake = wake
	};
	struct mst_worker_cfg worker = { .elems = f->elems,
					 .slots = f->slots,
					 .workers = f->workers,
					 .buffers = f->buffers,
					 .servers = 1,
					 .in_order = f->owner == MUSTER_WORKERS_OWN };
	struct muster *m = &h->m;

	memset(h, 0, sizeof(*h));
	pipe_net_init(&h->net, 0);
	h->link = link;
	m->stream = &ops;
	m->transport = &pipe_transport;
	m->net = &h->net.net;
	m->part[0] = (struct mst_client_part){ .link = &link->link, .layout = *layout };
	m->part[0].count = f->elems;
	m->part_count = 1;
	m->welcome.server_count = 1;
	m->welcome.rank = f->rank;
	m->welcome.patience_ns = m->welcome.lease_ns = MST_SECOND;
	m->learned_why = true; /* nobody would say anything meanwhile */
	m->job = (struct muster_job){ .size = sizeof(m->job),
				      .name = "default",
				      .policy = "",
				      .rank = f->rank,
				      .incarnation = 1,
				      .workers = f->workers,
				      .slots = f->slots,
				      .elems = f->elems,
				      .owner = f->owner };
	pipe_transport.attach(m->net, &link->link);
	MST_ASSERT(mst_control_new(&control, &m->control) == 0);
	MST_ASSERT(mst_worker_init(&m->worker, &worker) == 0);
	mst_client_publish(m);
}

void handle_fini(struct handle *h)
{
	mst_control_free(h->m.control);
	if (h->link->net != NULL)
		pipe_transport.detach(&h->link->link);
	pipe_net_fini(&h->net);
	mst_worker_fini(&h->m.worker);
}
