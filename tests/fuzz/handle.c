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

static const struct mst_stream_ops ops = { .send = take_all,
					   .receive = hear,
					   .buffered = mst_stream_unbuffered,
					   .why = mst_stream_no_why,
					   .close = close_none,
					   .stream_fd = no_fd };

static void wake(void *ctx)
{
	(void)ctx;
}

static void add_part(struct muster *m, const struct handle_part *part)
{
	struct mst_part *p = &m->links.part[m->links.count];
	struct mst_welcome_server *s = &m->session.welcome.server[m->links.count];
	struct mst_reason unused;

	*p = (struct mst_part){ .link = &part->link->link,
				.layout = *part->layout,
				.number = m->links.count,
				.first = part->first,
				.count = part->count };
	mst_part_place(p, m->links.rank);
	p->link->user = p;
	s->first = part->first;
	s->count = part->count;
	m->session.welcome.server_count = ++m->links.count;
	pipe_transport.attach(m->links.net, p->link, &unused);
}

void handle_init(struct handle *h, const struct handle_figures *f, const struct handle_part *parts,
		 uint32_t count)
{
	struct mst_control_cfg control = {
		.ops = &ops, .stream = (struct mst_stream *)h, .server = "pipe", .wake = wake
	};
	struct muster *m = &h->m;
	struct mst_welcome *w = &m->session.welcome;

	memset(h, 0, sizeof(*h));
	pipe_net_init(&h->net, 0);
	mst_handle_init(m);
	m->session.stream = &ops;
	m->links.transport = &pipe_transport;
	m->links.net = &h->net.net;
	m->links.rank = w->rank = f->rank;
	w->workers = w->record_ranks = f->workers;
	w->elems = f->elems;
	w->slots = f->slots;
	w->buffers = f->buffers;
	w->owner = (uint32_t)f->owner;
	w->patience_ns = w->lease_ns = MST_SECOND;
	m->cause.waited = true; /* nobody would say anything meanwhile */
	m->session.job = (struct muster_job){ .size = sizeof(m->session.job),
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
	m->links.first = f->rank % count;
	MST_ASSERT(mst_control_new(&control, &m->session.control) == 0);
	MST_ASSERT(mst_handle_begin(m) == 0);
	m->wait_ns = 0; /* nor would a wait bring anything */
}

void handle_fini(struct handle *h)
{
	struct mst_links *l = &h->m.links;

	mst_control_free(h->m.session.control);
	for (uint32_t k = 0; k < l->count; k++)
		if (((struct pipe_link *)l->part[k].link)->net != NULL)
			pipe_transport.detach(l->part[k].link);
	mst_contiguous_unmap(&h->m.contiguous);
	pipe_net_fini(&h->net);
	mst_worker_fini(&h->m.worker);
}
