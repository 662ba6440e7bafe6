/* SPDX-License-Identifier: MIT */
/*
 * The acceptor's beginning of a link. A caller has knocked when the connection requests of all its
 * rails are here, known by one token; what it says is checked here, whether it may come in is for
 * the owner to say. Until then nothing is made for it, and it is told nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/verbs/verbs.h"
#include "common/transport/why.h"

#define BACKLOG 1024
#define CALLERS_MAX 64u
#define RAILS_LATE_NS (5 * MST_SECOND) /* between a caller's first request and its last */

enum caller_state {
	CALLER_NONE,
	CALLER_COMING, /* not all of its rails are here */
	CALLER_HERE,   /* complete, not shown yet */
	CALLER_SHOWN,  /* to be answered */
};

struct caller {
	enum caller_state state;
	uint32_t here; /* rails */
	uint64_t since_ns;
	struct mst_verbs_request request; /* the first that came */
	struct {
		struct rdma_cm_id *id;
		struct mst_verbs_far far;
	} rail[MST_VERBS_RAILS_MAX];
};

struct verbs_door {
	struct mst_door door;
	struct mst_verbs_net *net;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener[MST_VERBS_RAILS_MAX];
	bool removed; /* a device of this door's */
	struct caller caller[CALLERS_MAX];
};

/* ---- opening and closing ---- */

static int listen_at(struct verbs_door *door, uint32_t i, union mst_verbs_address *at)
{
	char text[INET6_ADDRSTRLEN + 16];
	struct mst_verbs_device *device;
	struct rdma_cm_id *id;

	mst_verbs_address_text(&at->any, false, text, sizeof(text));
	if (rdma_create_id(door->channel, &door->listener[i], door, RDMA_PS_TCP) != 0)
		return mst_fail(-errno, "cannot make a door: %s", strerror(errno));
	id = door->listener[i];
	if (rdma_bind_addr(id, &at->any) != 0)
		return mst_fail(-errno,
				errno == EADDRNOTAVAIL
					? "this host has no address %s: muster doctor lists those "
					  "of its RDMA devices"
					: "address %s is on no RDMA device of this host: muster "
					  "doctor lists those that are",
				text);
	if (id->verbs == NULL)
		return mst_fail(-ENODEV, "address %s stands for no one RDMA device; name one",
				text);
	if (rdma_listen(id, BACKLOG) != 0)
		return mst_fail(-errno, "cannot listen at %s: %s", text, strerror(errno));
	if (at->any.sa_family == AF_INET)
		at->v4.sin_port = rdma_get_src_port(id);
	else
		at->v6.sin6_port = rdma_get_src_port(id);
	int rc = mst_verbs_port_check(id->verbs, id->port_num, text);
	return rc != 0 ? rc
		       : mst_verbs_device_of(door->net, ibv_get_device_name(id->verbs->device),
					     &device);
}

/* Is there room for all links that may be attached? */
static int check_devices(const struct verbs_door *door, uint32_t rails)
{
	const struct mst_verbs_net *net = door->net;
	int rc = 0;

	for (uint32_t i = 0; i < net->device_count && rc == 0; i++) {
		const struct mst_verbs_device *d = &net->device[i];
		const char *name = ibv_get_device_name(d->context->device);
		struct mst_verbs_need need = { .links = net->cfg.links_max,
					       .rails = rails,
					       .lanes = net->cfg.lanes };
		for (uint32_t k = 0; k < rails; k++)
			need.here += strcmp(ibv_get_device_name(door->listener[k]->verbs->device),
					    name) == 0;
		rc = mst_verbs_limits_check(name, &d->limits, &need);
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

static void forget(struct caller *c, int error)
{
	for (uint32_t i = 0; i < MST_VERBS_RAILS_MAX; i++)
		if (c->rail[i].id != NULL)
			refuse(c->rail[i].id, error);
	*c = (struct caller){ 0 };
}

static void door_close(struct mst_door *d)
{
	struct verbs_door *door = (struct verbs_door *)d;

	if (door == NULL)
		return;
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		forget(&door->caller[i], -ECONNREFUSED);
	for (uint32_t i = 0; i < MST_VERBS_RAILS_MAX; i++)
		if (door->listener[i] != NULL)
			rdma_destroy_id(door->listener[i]);
	if (door->channel != NULL)
		rdma_destroy_event_channel(door->channel);
	free(door);
}

static int door_open(struct mst_net *n, struct mst_door **out)
{
	struct mst_verbs_addresses at;
	struct verbs_door *door;

	mst_why_clear();
	door = calloc(1, sizeof(*door));
	if (door == NULL)
		return -ENOMEM;
	door->door.ops = &mst_verbs;
	door->net = (struct mst_verbs_net *)n;
	int rc = mst_verbs_cm_open(&door->channel);
	if (rc == 0)
		rc = mst_verbs_address_own(&door->net->fabric, NULL, &at);
	for (uint32_t i = 0; rc == 0 && i < at.count; i++)
		rc = listen_at(door, i, &at.at[i]);
	if (rc == 0)
		rc = check_devices(door, at.count);
	if (rc == 0)
		rc = mst_verbs_address_print(&at, door->door.address, sizeof(door->door.address));
	if (rc != 0) {
		door_close(&door->door);
		return rc;
	}
	*out = &door->door;
	return 0;
}

static int door_fd(const struct mst_door *d)
{
	return ((const struct verbs_door *)d)->channel->fd;
}

/* ---- callers ---- */

static struct caller *caller_of(struct verbs_door *door, const struct rdma_cm_id *id)
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		for (uint32_t k = 0; k < MST_VERBS_RAILS_MAX; k++)
			if (door->caller[i].rail[k].id == id)
				return &door->caller[i];
	return NULL;
}

/* The one this request is a further rail of; else a free entry, if need be that of whoever has let
 * its further rails wait the longest; NULL: no room. */
static struct caller *caller_for(struct verbs_door *door, const struct mst_verbs_request *q)
{
	struct caller *free_one = NULL, *oldest = NULL;

	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct caller *c = &door->caller[i];
		if (c->state == CALLER_NONE)
			free_one = c;
		else if (c->state == CALLER_COMING && c->request.rails == q->rails &&
			 memcmp(c->request.token, q->token, sizeof(q->token)) == 0)
			return c;
		if (c->state == CALLER_COMING && (oldest == NULL || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	if (free_one == NULL && oldest != NULL) {
		forget(oldest, -EBUSY);
		free_one = oldest;
	}
	return free_one;
}

/* 0, or what to refuse it with. */
static int check(const struct rdma_conn_param *conn, const struct mst_verbs_request *q)
{
	struct mst_lanes lanes = { q->up_bytes, q->down_bytes, q->up_credits, q->down_credits };

	if (conn->private_data_len < sizeof(*q) || q->magic != MST_VERBS_MAGIC ||
	    q->version != MST_VERBS_VERSION)
		return -EPROTONOSUPPORT;
	if (q->rails == 0 || q->rails > MST_VERBS_RAILS_MAX || q->rail >= q->rails)
		return -EPROTO;
	return mst_verbs_lanes_check(&lanes);
}

/* Whoever is of another release hears so, and so do those who wonder at the server where it is. */
static void tell_version(const struct rdma_cm_event *event, const struct mst_verbs_request *q)
{
	char peer[INET6_ADDRSTRLEN + 16];

	if (q->magic != MST_VERBS_MAGIC || q->version == MST_VERBS_VERSION)
		return;
	mst_warn("%s speaks version %u of muster's verbs transport, this end %u; use the same "
		 "version of muster on both sides",
		 mst_verbs_address_text(rdma_get_peer_addr(event->id), false, peer, sizeof(peer)),
		 q->version, MST_VERBS_VERSION);
}

static void come_in(struct verbs_door *door, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct mst_verbs_request q = { 0 };

	if (conn->private_data != NULL)
		memcpy(&q, conn->private_data,
		       conn->private_data_len < sizeof(q) ? conn->private_data_len : sizeof(q));
	int rc = check(conn, &q);
	struct caller *c = rc == 0 ? caller_for(door, &q) : NULL;
	if (rc == 0 && c == NULL)
		rc = -EBUSY;
	if (rc == 0 && c->rail[q.rail].id != NULL)
		rc = -EPROTO;
	if (rc != 0) {
		tell_version(event, &q);
		refuse(event->id, rc);
		return;
	}
	if (c->state == CALLER_NONE) {
		c->state = CALLER_COMING;
		c->since_ns = mst_now_ns();
		c->request = q;
	}
	c->rail[q.rail].id = event->id;
	c->rail[q.rail].far = (struct mst_verbs_far){ .qpn = q.down_qpn,
						      .psn = q.down_psn,
						      .mtu = q.mtu };
	if (++c->here == q.rails)
		c->state = CALLER_HERE;
}

/* Of a link that has been let in, and is not attached yet. */
static void link_event(struct mst_verbs_rail *r, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_ESTABLISHED ||
	    event->event == RDMA_CM_EVENT_ADDR_CHANGE ||
	    event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return;
	mst_verbs_sentence_gone(r, event);
	/* Release: pairs with the acquire in mst_verbs_attach(). */
	atomic_store_explicit(&r->link->gone, true, memory_order_release);
}

static bool is_listener(const struct verbs_door *door, const struct rdma_cm_id *id)
{
	for (uint32_t i = 0; i < MST_VERBS_RAILS_MAX; i++)
		if (door->listener[i] == id)
			return true;
	return false;
}

static void hear(struct verbs_door *door, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		come_in(door, event);
	else if (is_listener(door, event->id))
		door->removed |= event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
	/* Of a caller nothing is told before it is accepted, which fails if it is gone. */
}

static bool is_of_link(struct verbs_door *door, const struct rdma_cm_event *event)
{
	return event->event != RDMA_CM_EVENT_CONNECT_REQUEST && !is_listener(door, event->id) &&
	       caller_of(door, event->id) == NULL;
}

static bool has_room(const struct verbs_door *door)
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		if (door->caller[i].state <= CALLER_COMING)
			return true;
	return false;
}

static struct caller *next_here(struct verbs_door *door)
{
	struct caller *oldest = NULL;

	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct caller *c = &door->caller[i];
		if (c->state == CALLER_HERE && (oldest == NULL || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	return oldest;
}

/* One event, while another caller finds room. Return: was there any? */
static bool step(struct verbs_door *door)
{
	struct rdma_cm_event *event, copy;
	uint8_t private_data[UINT8_MAX];

	if (!has_room(door) || rdma_get_cm_event(door->channel, &event) != 0)
		return false;
	if (is_of_link(door, event)) {
		/* Its net takes the connection over when this is acknowledged, and not before. */
		link_event(event->id->context, event);
		rdma_ack_cm_event(event);
		return true;
	}
	/* It must be acknowledged before its connection can be destroyed. */
	copy = *event;
	if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST && copy.param.conn.private_data != NULL) {
		memcpy(private_data, copy.param.conn.private_data,
		       copy.param.conn.private_data_len);
		copy.param.conn.private_data = private_data;
	}
	rdma_ack_cm_event(event);
	hear(door, &copy);
	return true;
}

static void tidy(struct verbs_door *door)
{
	uint64_t now = mst_now_ns();

	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct caller *c = &door->caller[i];
		if (c->state == CALLER_COMING && now - c->since_ns > RAILS_LATE_NS)
			forget(c, -ETIMEDOUT);
	}
}

static int door_knock(struct mst_door *d, struct mst_knock *out)
{
	struct verbs_door *door = (struct verbs_door *)d;
	struct caller *c;
	uint32_t steps = 0;

	tidy(door);
	/* What is not read waits with the kernel, which has more room for callers. Rubbish that
	 * comes as fast as it is refused must not keep the caller of this here. */
	while ((c = next_here(door)) == NULL)
		if (steps++ == CALLERS_MAX || !step(door))
			return door->removed
				       ? mst_fail(-ENODEV, "the RDMA device of %s was removed",
						  d->address)
				       : -EAGAIN;
	mst_why_clear();
	c->state = CALLER_SHOWN;
	memcpy(out->token, c->request.token, sizeof(out->token));
	out->lanes = (struct mst_lanes){ c->request.up_bytes, c->request.down_bytes,
					 c->request.up_credits, c->request.down_credits };
	out->caller = c;
	return 0;
}

/* ---- answers ---- */

static int make_rail(struct verbs_door *door, struct mst_verbs_rail *r)
{
	const char *name = ibv_get_device_name(r->id->verbs->device);
	int rc = 0;

	r->device = mst_verbs_device_known(door->net, name);
	if (r->device == NULL)
		rc = mst_fail(-ENODEV, "%s called over RDMA device %s, where no door is", r->peer,
			      name);

	r->id->context = r;
	mst_verbs_address_text(rdma_get_peer_addr(r->id), false, r->peer, sizeof(r->peer));
	mst_verbs_address_text(rdma_get_local_addr(r->id), false, r->own, sizeof(r->own));
	return rc == 0 ? mst_verbs_rail_make(r) : rc;
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

static int accept_rail(struct mst_verbs_rail *r, uint8_t far_mtu)
{
	struct mst_verbs_answer yes = { .magic = MST_VERBS_MAGIC,
					.version = MST_VERBS_VERSION,
					.mtu = mst_verbs_rail_mtu(r),
					.down_qpn = r->out->qp_num,
					.down_psn = r->out_psn,
					.rkey = r->landing->rkey,
					.landing = (uintptr_t)r->link->landing.base };
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
	return mst_fail(-EPIPE, "%s has gone before it was let in", r->peer);
}

/* The link takes the connections over, so that freeing it ends them. */
static int let_in(struct verbs_door *door, struct caller *c, struct mst_verbs_link **out)
{
	const struct mst_verbs_request *q = &c->request;
	struct mst_lanes lanes = { q->up_bytes, q->down_bytes, q->up_credits, q->down_credits };
	struct mst_verbs_link *l;
	int rc = mst_verbs_link_new(door->net, false, &lanes, q->rails, &l);

	if (rc != 0)
		return rc;
	*out = l;
	for (uint32_t i = 0; i < q->rails; i++) {
		l->rail[i].id = c->rail[i].id;
		c->rail[i].id = NULL;
	}
	for (uint32_t i = 0; i < q->rails && rc == 0; i++)
		rc = make_rail(door, &l->rail[i]);
	if (rc == 0)
		rc = mst_verbs_out_new(l);
	for (uint32_t i = 0; i < q->rails && rc == 0; i++)
		rc = mst_verbs_rail_connect(&l->rail[i], &c->rail[i].far);
	for (uint32_t i = 0; i < q->rails && rc == 0; i++)
		rc = accept_rail(&l->rail[i], c->rail[i].far.mtu);
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

static int door_answer(struct mst_door *d, const struct mst_knock *knock, struct mst_link **out)
{
	struct verbs_door *door = (struct verbs_door *)d;
	struct caller *c = knock->caller;
	struct mst_verbs_link *l = NULL;

	mst_why_clear();
	if (out == NULL) {
		forget(c, -EACCES);
		return 0;
	}
	int rc = let_in(door, c, &l);
	if (rc != 0)
		put_out(l, rc);
	forget(c, rc);
	if (rc == 0)
		*out = &l->link;
	return rc;
}

const struct mst_door_ops mst_verbs_door = {
	.open = door_open,
	.close = door_close,
	.fd = door_fd,
	.knock = door_knock,
	.answer = door_answer,
};
