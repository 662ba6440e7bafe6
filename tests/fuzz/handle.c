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

static void add_part(struct muster *m, const struct handle_part *part)
{
	struct mst_client_part *p = &m->part[m->part_count];
	struct mst_welcome_server *s = &m->welcome.server[m->part_count];

	*p = (struct mst_client_part){ .link = &part->link->link,
				       .layout = *part->layout,
				       .first = part->first,
				       .count = part->count };
	s->first = part->first;
	s->count = part->count;
	m->welcome.server_count = ++m->part_count;
	pipe_transport.attach(m->net, p->link);
}

void handle_init(struct handle *h, const struct handle_figures *f, const struct handle_part *parts,
		 uint32_t count)
{
	struct mst_control_cfg control = {
		.ops = &ops, .stream = (struct mst_stream *)h, .server = "pipe", .wake = wake
	};
	struct mst_worker_cfg worker = { .elems = f->elems,
					 .slots = f->slots,
					 .workers = f->workers,
					 .buffers = f->buffers,
					 .servers = count,
					 .in_order = f->owner == MUSTER_WORKERS_OWN };
	struct muster *m = &h->m;

	memset(h, 0, sizeof(*h));
	pipe_net_init(&h->net, 0);
	m->stream = &ops;
	m->transport = &pipe_transport;
	m->net = &h->net.net;
	m->welcome.rank = f->rank;
	m->welcome.elems = f->elems;
	m->welcome.slots = f->slots;
	m->welcome.buffers = f->buffers;
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
	for (uint32_t k = 0; k < count; k++)
		add_part(m, &parts[k]);
	MST_ASSERT(mst_client_join_parts(m) == 0);
	MST_ASSERT(mst_control_new(&control, &m->control) == 0);
	MST_ASSERT(mst_worker_init(&m->worker, &worker) == 0);
	mst_client_publish(m);
}

void handle_fini(struct handle *h)
{
	mst_control_free(h->m.control);
	for (uint32_t k = 0; k < h->m.part_count; k++)
		if (((struct pipe_link *)h->m.part[k].link)->net != NULL)
			pipe_transport.detach(h->m.part[k].link);
	mst_client_free_rooms(&h->m);
	pipe_net_fini(&h->net);
	mst_worker_fini(&h->m.worker);
}
