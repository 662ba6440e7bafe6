/* SPDX-License-Identifier: MIT */
/*
 * Accepts a link: what the acceptor does until it is made. A caller has asked for its link when the
 * connection requests of all its rails are here, known by one token; what it says is checked here,
 * whether it may come in is for the owner to say. Until then nothing is made for it, and it is told
 * nothing.
 *
 * A caller that was shown belongs to the thread that answers it, until that has stored CALLER_NONE;
 * all others belong to the listener's own thread. Events of all connections come to the listener's
 * thread: the context of a connection says whether it is a caller's (the listener) or a link's (the
 * rail).
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/origins.h"
#include "common/transport/verbs/callers.h"
#include "common/transport/verbs/verbs.h"

#define BACKLOG 1024
#define CALLERS_MAX 64u
#define RAILS_LATE_NS (5 * MST_SECOND) /* between a caller's first request and its last */

static_assert(MST_RAILS_MAX <= MST_ORIGINS_MAX, "a request names the addresses of all rails");

enum verbs_caller_state {
	CALLER_NONE,
	CALLER_COMING, /* not all of its rails are here */
	CALLER_HERE,   /* complete, not shown yet */
	CALLER_SHOWN,  /* to be answered */
};

struct verbs_caller {
	_Atomic enum verbs_caller_state state;
	uint32_t here; /* rails */
	uint64_t since_ns;
	struct mst_origin from;           /* of the first that came */
	struct mst_verbs_request request; /* the first that came */
	struct {
		struct rdma_cm_id *id;
		struct mst_origin from;
		struct mst_verbs_far far;
	} rail[MST_RAILS_MAX];
};

struct verbs_listener {
	struct mst_link_listener listener;
	struct mst_verbs_net *net;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listen_id[MST_RAILS_MAX];
	bool removed; /* a device of this listener's */
	struct verbs_caller caller[CALLERS_MAX];
};

/* ---- opening and closing ---- */

static int listen_at(struct verbs_listener *listener, uint32_t i, union mst_endpoint *at,
		     struct mst_reason *why)
{
	char text[MST_ENDPOINT_TEXT_LEN];
	struct mst_verbs_device *device;
	struct rdma_cm_id *id;

	mst_endpoint_host_text(&at->any, text);
	if (rdma_create_id(listener->channel, &listener->listen_id[i], listener, RDMA_PS_TCP) != 0)
		return mst_reason_fail(why, -errno, "cannot make a listener: %s", strerror(errno));
	id = listener->listen_id[i];
	if (rdma_bind_addr(id, &at->any) != 0)
		return mst_reason_fail(
			why, -errno,
			errno == EADDRNOTAVAIL
				? "this host has no address %s: muster doctor lists those "
				  "of its RDMA devices"
				: "address %s is on no RDMA device of this host: muster "
				  "doctor lists those that are",
			text);
	if (id->verbs == NULL)
		return mst_reason_fail(
			why, -ENODEV,
			"address %s does not belong to exactly one RDMA device; choose one with "
			"--device",
			text);
	if (rdma_listen(id, BACKLOG) != 0)
		return mst_reason_fail(why, -errno, "cannot listen at %s: %s", text,
				       strerror(errno));
	if (at->any.sa_family == AF_INET)
		at->v4.sin_port = rdma_get_src_port(id);
	else
		at->v6.sin6_port = rdma_get_src_port(id);
	int rc = mst_verbs_port_check(id->verbs, id->port_num, text, why);
	return rc != 0 ? rc
		       : mst_verbs_device_of(listener->net, ibv_get_device_name(id->verbs->device),
					     &device, why);
}

/* Is there room for all links that may be attached? */
static int check_devices(const struct verbs_listener *listener, uint32_t rails,
			 struct mst_reason *why)
{
	const struct mst_verbs_net *net = listener->net;
	int rc = 0;

	for (uint32_t i = 0; i < net->device_count && rc == 0; i++) {
		const struct mst_verbs_device *d = &net->device[i];
		const char *name = ibv_get_device_name(d->context->device);
		struct mst_verbs_need need = { .links = net->cfg.links_max,
					       .rails = rails,
					       .lanes = net->cfg.lanes };
		for (uint32_t k = 0; k < rails; k++)
			need.here += strcmp(ibv_get_device_name(
						    listener->listen_id[k]->verbs->device),
					    name) == 0;
		rc = mst_verbs_limits_check(name, &d->limits, &need, why);
	}
	return rc;
}

static void refuse(struct rdma_cm_id *id, int error)
{
	struct mst_verbs_answer no = { .magic = MST_VERBS_MAGIC,
				       .version = MST_VERBS_VERSION,
				       .error = error };

	(void)rdma_reject(id, &no, sizeof(no));
	rdma_destroy_id(id);
}

static enum verbs_caller_state state_of(struct verbs_caller *c)
{
	/* Acquire: pairs with the release in enter(). */
	return atomic_load_explicit(&c->state, memory_order_acquire);
}

static void enter(struct verbs_caller *c, enum verbs_caller_state state)
{
	/* Release: with CALLER_NONE the place is the listener's own thread's again. */
	atomic_store_explicit(&c->state, state, memory_order_release);
}

static void forget(struct verbs_caller *c, int error)
{
	for (uint32_t i = 0; i < MST_RAILS_MAX; i++) {
		if (c->rail[i].id != NULL)
			refuse(c->rail[i].id, error);
		c->rail[i].id = NULL;
	}
	c->here = 0;
	enter(c, CALLER_NONE);
}

static void listener_close(struct mst_link_listener *d)
{
	struct verbs_listener *listener = (struct verbs_listener *)d;

	if (listener == NULL)
		return;
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		forget(&listener->caller[i], -ECONNREFUSED);
	for (uint32_t i = 0; i < MST_RAILS_MAX; i++)
		if (listener->listen_id[i] != NULL)
			rdma_destroy_id(listener->listen_id[i]);
	if (listener->channel != NULL)
		rdma_destroy_event_channel(listener->channel);
	free(listener);
}

static int listener_open(struct mst_net *n, struct mst_link_listener **out, struct mst_reason *why)
{
	struct mst_endpoints at;
	struct verbs_listener *listener;

	mst_reason_clear(why);
	listener = calloc(1, sizeof(*listener));
	if (listener == NULL)
		return -ENOMEM;
	listener->listener.ops = &mst_verbs;
	listener->net = (struct mst_verbs_net *)n;
	int rc = mst_verbs_cm_open(&listener->channel, why);
	if (rc == 0)
		rc = mst_verbs_address_own(&listener->net->fabric, NULL, &at, why);
	for (uint32_t i = 0; rc == 0 && i < at.count; i++)
		rc = listen_at(listener, i, &at.at[i], why);
	if (rc == 0)
		rc = check_devices(listener, at.count, why);
	if (rc == 0)
		rc = mst_endpoints_print(&at, mst_verbs.prefix, listener->listener.address,
					 sizeof(listener->listener.address));
	if (rc != 0) {
		listener_close(&listener->listener);
		return rc;
	}
	*out = &listener->listener;
	return 0;
}

static int listener_fd(const struct mst_link_listener *d)
{
	return ((const struct verbs_listener *)d)->channel->fd;
}

/* ---- callers ---- */

static void list_coming(struct verbs_listener *listener,
			struct mst_verbs_coming coming[CALLERS_MAX])
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct verbs_caller *c = &listener->caller[i];
		coming[i].here = state_of(c) == CALLER_COMING;
		coming[i].since_ns = c->since_ns;
		coming[i].from = c->from;
		memcpy(coming[i].token, c->request.token, sizeof(c->request.token));
	}
}

static struct verbs_caller *free_place(struct verbs_listener *listener)
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		if (state_of(&listener->caller[i]) == CALLER_NONE)
			return &listener->caller[i];
	return NULL;
}

/* The one this request is a further rail of; else a free entry, if need be that of a caller whose
 * further rails have not come; NULL: no room. */
static struct verbs_caller *caller_for(struct verbs_listener *listener,
				       const struct mst_verbs_request *q)
{
	struct mst_verbs_coming coming[CALLERS_MAX];

	list_coming(listener, coming);
	int place = mst_verbs_callers_find(coming, CALLERS_MAX, q->token);
	if (place >= 0)
		return &listener->caller[place];
	struct verbs_caller *c = free_place(listener);
	if (c != NULL)
		return c;
	place = mst_verbs_callers_yield(coming, CALLERS_MAX);
	if (place < 0)
		return NULL;
	forget(&listener->caller[place], -EBUSY);
	return &listener->caller[place];
}

/* Does the request contradict those of its caller that came before? */
static bool contradicts(struct verbs_caller *c, const struct mst_verbs_request *q)
{
	return state_of(c) == CALLER_COMING &&
	       (c->request.rails != q->rails || c->rail[q->rail].id != NULL);
}

/* 0, or what to refuse it with. */
static int check(const struct rdma_conn_param *conn, const struct mst_verbs_request *q)
{
	struct mst_lanes lanes = { q->up_bytes, q->down_bytes, q->up_credits, q->down_credits };

	if (conn->private_data_len < sizeof(*q) || q->magic != MST_VERBS_MAGIC ||
	    q->version != MST_VERBS_VERSION)
		return -EPROTONOSUPPORT;
	if (q->rails == 0 || q->rails > MST_RAILS_MAX || q->rail >= q->rails)
		return -EPROTO;
	return mst_verbs_lanes_check(&lanes);
}

/* Logs that a caller is of another release, so that an operator who misses the worker finds why. */
static void tell_version(const struct rdma_cm_event *event, const struct mst_verbs_request *q)
{
	char peer[MST_ENDPOINT_TEXT_LEN];

	if (q->magic != MST_VERBS_MAGIC || q->version == MST_VERBS_VERSION)
		return;
	mst_warn("%s speaks version %u of muster's verbs transport, this end %u; use the same "
		 "version of muster on both sides",
		 mst_endpoint_host_text(rdma_get_peer_addr(event->id), peer), q->version,
		 MST_VERBS_VERSION);
}

static void come_in(struct verbs_listener *listener, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct mst_verbs_request q = { 0 };
	struct mst_origin from;

	(void)mst_origin_of(rdma_get_peer_addr(event->id), &from);
	if (conn->private_data != NULL)
		memcpy(&q, conn->private_data,
		       conn->private_data_len < sizeof(q) ? conn->private_data_len : sizeof(q));
	int rc = check(conn, &q);
	if (rc == 0 && !mst_link_expected(&listener->listener, q.token, &from))
		rc = -EACCES;
	struct verbs_caller *c = rc == 0 ? caller_for(listener, &q) : NULL;
	if (rc == 0 && c == NULL)
		rc = -EBUSY;
	if (rc == 0 && contradicts(c, &q))
		rc = -EPROTO;
	if (rc != 0) {
		tell_version(event, &q);
		refuse(event->id, rc);
		return;
	}
	if (state_of(c) == CALLER_NONE) {
		enter(c, CALLER_COMING);
		c->since_ns = mst_now_ns();
		c->request = q;
		c->from = from;
	}
	c->rail[q.rail].id = event->id;
	c->rail[q.rail].from = from;
	c->rail[q.rail].far = (struct mst_verbs_far){ .qpn = q.down_qpn,
						      .psn = q.down_psn,
						      .mtu = q.mtu };
	if (++c->here == q.rails)
		enter(c, CALLER_HERE);
}

/* An event of a link that has been let in, and is not attached yet. */
static void link_event(struct mst_verbs_rail *r, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_ESTABLISHED ||
	    event->event == RDMA_CM_EVENT_ADDR_CHANGE ||
	    event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return;
	mst_verbs_reason_gone(r, event);
	/* Release: pairs with the acquire in mst_verbs_attach(). */
	atomic_store_explicit(&r->link->gone, true, memory_order_release);
}

static bool is_listener(const struct verbs_listener *listener, const struct rdma_cm_id *id)
{
	for (uint32_t i = 0; i < MST_RAILS_MAX; i++)
		if (listener->listen_id[i] == id)
			return true;
	return false;
}

static void hear(struct verbs_listener *listener, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		come_in(listener, event);
	else if (is_listener(listener, event->id))
		listener->removed |= event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
	/* The owner is told nothing of a caller before it accepts it, which fails if it is gone. */
}

/* The rail of a link that this event is of; NULL: it is of a listener or a caller, which have the
 * listener as their context. */
static struct mst_verbs_rail *rail_of(const struct verbs_listener *listener,
				      const struct rdma_cm_event *event)
{
	/* Acquire: pairs with the release in make_rail(), which may run on another thread. */
	void *context = __atomic_load_n(&event->id->context, __ATOMIC_ACQUIRE);

	return context != listener ? context : NULL;
}

static bool has_room(struct verbs_listener *listener)
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		if (state_of(&listener->caller[i]) <= CALLER_COMING)
			return true;
	return false;
}

static struct verbs_caller *next_here(struct verbs_listener *listener)
{
	struct verbs_caller *oldest = NULL;

	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct verbs_caller *c = &listener->caller[i];
		if (state_of(c) == CALLER_HERE &&
		    (oldest == NULL || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	return oldest;
}

/* Handles one event, while there is room for another caller. Return: was there any? */
static bool step(struct verbs_listener *listener)
{
	struct rdma_cm_event *event, copy;
	uint8_t private_data[UINT8_MAX];

	if (!has_room(listener) || rdma_get_cm_event(listener->channel, &event) != 0)
		return false;
	struct mst_verbs_rail *rail = rail_of(listener, event);
	if (rail != NULL) {
		/* Its net takes the connection over, or it is destroyed, when this is acknowledged,
		 * and not before. */
		link_event(rail, event);
		rdma_ack_cm_event(event);
		return true;
	}
	/* An event must be acknowledged before its connection can be destroyed. */
	copy = *event;
	if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST && copy.param.conn.private_data != NULL) {
		memcpy(private_data, copy.param.conn.private_data,
		       copy.param.conn.private_data_len);
		copy.param.conn.private_data = private_data;
	}
	rdma_ack_cm_event(event);
	hear(listener, &copy);
	return true;
}

static void tidy(struct verbs_listener *listener)
{
	uint64_t now = mst_now_ns();

	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct verbs_caller *c = &listener->caller[i];
		if (state_of(c) == CALLER_COMING && now - c->since_ns > RAILS_LATE_NS)
			forget(c, -ETIMEDOUT);
	}
}

static int listener_next_request(struct mst_link_listener *d, struct mst_link_request *out,
				 struct mst_reason *why)
{
	struct verbs_listener *listener = (struct verbs_listener *)d;
	struct verbs_caller *c;
	uint32_t steps = 0;

	mst_reason_clear(why);
	tidy(listener);
	/* What is not read waits with the kernel, which has more room for callers. Rubbish that
	 * comes as fast as it is refused must not keep the caller of this here. */
	while ((c = next_here(listener)) == NULL)
		if (steps++ == CALLERS_MAX || !step(listener))
			return listener->removed
				       ? mst_reason_fail(why, -ENODEV,
							 "the RDMA device of %s was removed",
							 d->address)
				       : -EAGAIN;
	enter(c, CALLER_SHOWN);
	memcpy(out->token, c->request.token, sizeof(out->token));
	out->lanes = (struct mst_lanes){ c->request.up_bytes, c->request.down_bytes,
					 c->request.up_credits, c->request.down_credits };
	out->from.count = c->request.rails;
	for (uint32_t i = 0; i < c->request.rails; i++)
		out->from.at[i] = c->rail[i].from;
	out->caller = c;
	return 0;
}

/* ---- answers ---- */

static int make_rail(struct verbs_listener *listener, struct mst_verbs_rail *r,
		     struct mst_reason *why)
{
	const char *name = ibv_get_device_name(r->id->verbs->device);

	r->device = mst_verbs_device_known(listener->net, name);
	mst_endpoint_host_text(rdma_get_peer_addr(r->id), r->peer);
	mst_endpoint_host_text(rdma_get_local_addr(r->id), r->own);
	if (r->device == NULL)
		return mst_reason_fail(why, -ENODEV,
				       "%s called over RDMA device %s, where no listener is",
				       r->peer, name);
	/* Release: from now on the listener's thread hands events of the connection to this
	 * rail. */
	__atomic_store_n(&r->id->context, r, __ATOMIC_RELEASE);
	return mst_verbs_rail_make(r, why);
}

static void compare_mtu(const struct mst_verbs_rail *r, uint8_t far, uint8_t own)
{
	if (far != own && far >= IBV_MTU_256 && far <= IBV_MTU_4096)
		mst_warn(
			"the RDMA MTU of %s is %u, of %s here %u: the smaller one is used; set the "
			"interfaces of both hosts to the same MTU (ip link set DEV mtu N)",
			r->peer, 128u << far, ibv_get_device_name(r->device->context->device),
			128u << own);
}

static int accept_rail(struct mst_verbs_rail *r, uint8_t far_mtu, struct mst_reason *why)
{
	struct mst_verbs_answer yes = { .magic = MST_VERBS_MAGIC,
					.version = MST_VERBS_VERSION,
					.mtu = mst_verbs_rail_mtu(r),
					.down_qpn = r->out->qp_num,
					.down_psn = r->out_psn,
					.rkey = r->inbound->rkey,
					.inbound = (uintptr_t)r->link->inbound.base };
	struct rdma_conn_param conn = { .private_data = &yes,
					.private_data_len = sizeof(yes),
					.flow_control = 1,
					.rnr_retry_count = MST_VERBS_RNR_RETRIES,
					.qp_num = r->in->qp_num };

	compare_mtu(r, far_mtu, yes.mtu);
	if (rdma_accept(r->id, &conn) == 0) {
		r->cm = MST_VERBS_CM_ANSWERED;
		return 0;
	}
	return mst_reason_fail(why, -EPIPE, "%s has gone before it was let in", r->peer);
}

/* The link takes the connections over, so that freeing it ends them. */
static int let_in(struct verbs_listener *listener, struct verbs_caller *c,
		  struct mst_verbs_link **out, struct mst_reason *why)
{
	const struct mst_verbs_request *q = &c->request;
	struct mst_verbs_link_cfg cfg = {
		.lanes = { q->up_bytes, q->down_bytes, q->up_credits, q->down_credits },
		.rails = q->rails,
	};
	struct mst_verbs_link *l;
	int rc = mst_verbs_link_new(listener->net, &cfg, &l, why);

	if (rc != 0)
		return rc;
	*out = l;
	for (uint32_t i = 0; i < q->rails; i++) {
		l->rail[i].id = c->rail[i].id;
		c->rail[i].id = NULL;
	}
	for (uint32_t i = 0; i < q->rails && rc == 0; i++)
		rc = make_rail(listener, &l->rail[i], why);
	if (rc == 0)
		rc = mst_queue_init(&l->queue);
	for (uint32_t i = 0; i < q->rails && rc == 0; i++)
		rc = mst_verbs_rail_connect(&l->rail[i], &c->rail[i].far, why);
	for (uint32_t i = 0; i < q->rails && rc == 0; i++)
		rc = accept_rail(&l->rail[i], c->rail[i].far.mtu, why);
	return rc;
}

/* Tells it why before its connections are destroyed. One that was accepted is refused by its
 * destruction: refused before, it would keep the kernel sending its answer, and destroying it would
 * wait a minute for the end of that. */
static void put_out(struct mst_verbs_link *l, int error)
{
	struct mst_verbs_answer no = { .magic = MST_VERBS_MAGIC,
				       .version = MST_VERBS_VERSION,
				       .error = error };

	for (uint32_t i = 0; l != NULL && i < l->rail_count; i++)
		if (l->rail[i].cm != MST_VERBS_CM_ANSWERED)
			(void)rdma_reject(l->rail[i].id, &no, sizeof(no));
	if (l != NULL)
		mst_verbs_link_free(&l->link);
}

static int listener_answer(struct mst_link_listener *d, const struct mst_link_request *request,
			   struct mst_link **out, struct mst_reason *why)
{
	struct verbs_listener *listener = (struct verbs_listener *)d;
	struct verbs_caller *c = request->caller;
	struct mst_verbs_link *l = NULL;

	mst_reason_clear(why);
	if (out == NULL) {
		forget(c, -EACCES);
		return 0;
	}
	int rc = let_in(listener, c, &l, why);
	if (rc != 0)
		put_out(l, rc);
	forget(c, rc);
	if (rc == 0)
		*out = &l->link;
	return rc;
}

const struct mst_link_listener_ops mst_verbs_listener = {
	.open = listener_open,
	.close = listener_close,
	.fd = listener_fd,
	.next_request = listener_next_request,
	.answer = listener_answer,
};
