/* SPDX-License-Identifier: MIT */
/*
 * Dials a link: what the connector does until it is made. All rails go through the steps side by
 * side: address, route, answer; then the pairs are brought up, and the acceptor is told where this
 * end's inbound region is.
 *
 * A path that is dead does not answer at all. So each step waits for no longer than what it asks is
 * asked again by the layers below, whatever time the whole has: after that silence is the answer.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/transport/verbs/verbs.h"

#define FAREWELL_MS 50
#define LOOK_MS 50 /* between two looks whether the link is wanted */

/* The kernel asks three times, once a second, who has an address, and may do so twice; for a route
 * it asks nobody else. */
#define RESOLVE_NS (8 * MST_SECOND)
/* A connection request is sent again after 6.4 s: 4.3 s that the acceptor may think and twice the
 * 1.1 s that the way may take, as the kernel's connection manager has it. Three are out by then. */
#define ANSWER_NS (16 * MST_SECOND)

struct attempt {
	struct mst_verbs_net *net;
	const struct mst_dial *dial;
	struct mst_endpoints far, own; /* own: count 0 where any will do */
	struct mst_verbs_link *link;
	struct mst_reason *why; /* the caller's */
	uint64_t deadline_ns;
	uint64_t step_ns, step_end_ns; /* the step at hand: since when, until when at the latest */
};

static uint64_t later(uint64_t now_ns, uint64_t by_ns)
{
	return by_ns < MST_NEVER - now_ns ? now_ns + by_ns : MST_NEVER;
}

static void step_begin(struct attempt *a, uint64_t at_most_ns)
{
	a->step_ns = mst_now_ns();
	a->step_end_ns = later(a->step_ns, at_most_ns);
	if (a->step_end_ns > a->deadline_ns)
		a->step_end_ns = a->deadline_ns;
}

/* The time that is left for this step. */
static int left_ms(const struct attempt *a)
{
	uint64_t now = mst_now_ns();
	uint64_t left = a->step_end_ns > now ? (a->step_end_ns - now + MST_MS - 1) / MST_MS : 0;

	return left < 60000 ? (int)left : 60000;
}

/* @r has heard nothing until the step was over, or the time for all of them. Which of the two it is
 * does not depend on when this thread got a processor. */
static int give_up(const struct attempt *a, const struct mst_verbs_rail *r)
{
	int error = a->step_end_ns < a->deadline_ns ? -EHOSTUNREACH : -ETIMEDOUT;

	return mst_verbs_reason_silent(r, error, mst_now_ns() - a->step_ns, a->why);
}

static int check_wanted(const struct attempt *a)
{
	if (a->dial->unwanted == NULL || !a->dial->unwanted(a->dial->ctx))
		return 0;
	return mst_reason_fail(a->why, -ECANCELED, "the link to %s is not wanted any more",
			       a->link->rail[0].peer);
}

/* Until every rail has come as far as @state. */
static int await(const struct attempt *a, enum mst_verbs_cm_state state)
{
	for (;;) {
		const struct mst_verbs_rail *behind = NULL;
		mst_verbs_cm_step(a->net);
		for (uint32_t i = 0; i < a->link->rail_count; i++) {
			const struct mst_verbs_rail *r = &a->link->rail[i];
			if (r->cm == MST_VERBS_CM_FAILED)
				return mst_reason_fail(a->why, a->link->error, "%s",
						       a->link->link.why.text);
			if (r->cm == MST_VERBS_CM_GONE && r->answer_bytes == 0)
				return mst_reason_fail(a->why, -EPIPE,
						       "%s has ended the connection", r->peer);
			if (r->silent)
				return give_up(a, r);
			if (r->cm < state)
				behind = r;
		}
		if (behind == NULL)
			return 0;
		int rc = check_wanted(a), ms = left_ms(a);
		if (rc != 0)
			return rc;
		if (ms == 0)
			return give_up(a, behind);
		struct pollfd pfd = { .fd = a->net->cm->fd, .events = POLLIN };
		(void)poll(&pfd, 1, ms < LOOK_MS ? ms : LOOK_MS);
	}
}

/* ---- the steps ---- */

/* @own: what the rail was to be bound to, or NULL. */
static int unreached(const struct attempt *a, const struct mst_verbs_rail *r,
		     const struct sockaddr *own, int error)
{
	char text[MST_ENDPOINT_TEXT_LEN] = "";

	if (own != NULL)
		mst_endpoint_host_text(own, text);
	return mst_reason_fail(
		a->why, -error,
		"no RDMA device of this host reaches %s%s%s (%s); muster doctor shows "
		"devices and addresses",
		r->peer, own != NULL ? " from its address " : "", text, strerror(error));
}

static int begin(const struct attempt *a, struct mst_verbs_rail *r)
{
	union mst_endpoint far = a->far.at[r->index];
	union mst_endpoint own = { 0 };
	bool bound = a->own.count > 0;
	uint8_t tos = a->net->fabric.traffic_class;

	if (bound)
		own = a->own.at[r->index % a->own.count];
	mst_endpoint_host_text(&far.any, r->peer);
	if (bound)
		mst_endpoint_host_text(&own.any, r->own);
	else
		mst_verbs_address_toward(&far.any, r->own);
	if (rdma_create_id(a->net->cm, &r->id, r, RDMA_PS_TCP) != 0)
		return mst_reason_fail(a->why, -errno, "cannot begin a connection: %s",
				       strerror(errno));
	if (tos != 0)
		(void)rdma_set_option(r->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
	if (rdma_resolve_addr(r->id, bound ? &own.any : NULL, &far.any, left_ms(a) + 1) == 0)
		return 0;
	return unreached(a, r, bound ? &own.any : NULL, errno);
}

static int find_route(const struct attempt *a, struct mst_verbs_rail *r)
{
	int rc = mst_verbs_device_of(a->net, ibv_get_device_name(r->id->verbs->device), &r->device,
				     a->why);

	mst_endpoint_host_text(rdma_get_local_addr(r->id), r->own);
	if (rc == 0)
		rc = mst_verbs_rail_make(r, a->why);
	if (rc != 0)
		return rc;
	if (rdma_resolve_route(r->id, (int)(RESOLVE_NS / MST_MS)) == 0)
		return 0;
	return mst_reason_fail(a->why, -errno, "there is no RDMA route to %s: %s", r->peer,
			       strerror(errno));
}

static int request(const struct attempt *a, struct mst_verbs_rail *r)
{
	const struct mst_lanes *lanes = &a->dial->lanes;
	struct mst_verbs_request q = { .magic = MST_VERBS_MAGIC,
				       .version = MST_VERBS_VERSION,
				       .rail = (uint8_t)r->index,
				       .rails = (uint8_t)a->link->rail_count,
				       .mtu = mst_verbs_rail_mtu(r),
				       .up_bytes = lanes->up_bytes,
				       .down_bytes = lanes->down_bytes,
				       .up_credits = lanes->up_credits,
				       .down_credits = lanes->down_credits,
				       .down_qpn = r->in->qp_num,
				       .down_psn = r->in_psn };
	struct mst_verbs_tries tries = mst_verbs_tries(a->net->fabric.link_timeout_ns);
	struct rdma_conn_param conn = { .private_data = &q,
					.private_data_len = sizeof(q),
					.flow_control = 1,
					.retry_count = tries.retries,
					.rnr_retry_count = MST_VERBS_RNR_RETRIES,
					.qp_num = r->out->qp_num };

	memcpy(q.token, a->dial->token, sizeof(q.token));
	if (rdma_connect(r->id, &conn) == 0)
		return 0;
	return mst_reason_fail(a->why, -errno, "cannot send a connection request to %s: %s",
			       r->peer, strerror(errno));
}

static int settle(const struct attempt *a, struct mst_verbs_rail *r)
{
	const struct mst_verbs_answer *answer = &r->answer;
	struct mst_verbs_far far = { .qpn = answer->down_qpn,
				     .psn = answer->down_psn,
				     .mtu = answer->mtu };

	if (r->answer_bytes != sizeof(*answer) || answer->magic != MST_VERBS_MAGIC)
		return mst_reason_fail(a->why, -EPROTO, "%s answered, but is no muster", r->peer);
	if (answer->version != MST_VERBS_VERSION)
		return mst_reason_fail(
			a->why, -EPROTONOSUPPORT,
			"%s speaks version %u of muster's verbs transport, this end %u; use "
			"the same version of muster on both sides",
			r->peer, answer->version, MST_VERBS_VERSION);
	int rc = mst_verbs_rail_connect(r, &far, a->why);
	if (rc != 0)
		return rc;
	if (rdma_establish(r->id) != 0)
		return mst_reason_fail(a->why, errno == EINVAL ? -EPIPE : -errno,
				       "cannot establish the connection to %s: %s", r->peer,
				       strerror(errno));
	r->remote = answer->inbound;
	r->rkey = answer->rkey;
	r->open = true;
	rc = mst_verbs_send_region_exchange(r);
	return rc == 0 ? 0
		       : mst_reason_fail(a->why, rc, "cannot write to %s: %s", r->peer,
					 strerror(-rc));
}

static bool is_gone(const struct mst_verbs_link *l)
{
	for (uint32_t i = 0; i < l->rail_count; i++)
		if (l->rail[i].cm >= MST_VERBS_CM_FAILED)
			return true;
	return false;
}

/* An acceptor that is gone says so, if a little later; one that lives on takes no writes. */
static int refused(const struct attempt *a)
{
	struct pollfd pfd = { .fd = a->net->cm->fd, .events = POLLIN };

	while (!is_gone(a->link) && poll(&pfd, 1, FAREWELL_MS) > 0)
		mst_verbs_cm_step(a->net);
	return is_gone(a->link)
		       ? -EPIPE
		       : mst_reason_fail(a->why, -EHOSTUNREACH, "%s", a->link->link.why.text);
}

/* Until the acceptor's devices have the region exchanges: it can put from now on. */
static int await_region_exchanges(const struct attempt *a)
{
	struct mst_verbs_link *l = a->link;

	while (!mst_queue_is_idle(&l->queue)) {
		mst_verbs_cm_step(a->net);
		if (is_gone(l))
			return -EPIPE;
		if (mst_verbs_link_take_completions(l) != 0)
			return refused(a);
		int rc = check_wanted(a);
		if (rc != 0)
			return rc;
		if (left_ms(a) == 0)
			return give_up(a, &l->rail[0]);
		sched_yield();
	}
	return 0;
}

static int ask(struct attempt *a)
{
	struct mst_verbs_link *l = a->link;
	int rc = 0;

	step_begin(a, RESOLVE_NS);
	for (uint32_t i = 0; i < l->rail_count && rc == 0; i++)
		rc = begin(a, &l->rail[i]);
	if (rc == 0)
		rc = await(a, MST_VERBS_CM_ADDRESS);
	for (uint32_t i = 0; i < l->rail_count && rc == 0; i++)
		rc = find_route(a, &l->rail[i]);
	if (rc == 0)
		rc = mst_queue_init(&l->queue);
	step_begin(a, RESOLVE_NS); /* memory was registered, which takes its time */
	if (rc == 0)
		rc = await(a, MST_VERBS_CM_ROUTE);
	step_begin(a, later(ANSWER_NS, a->dial->busy_ns));
	for (uint32_t i = 0; i < l->rail_count && rc == 0; i++)
		rc = request(a, &l->rail[i]);
	if (rc == 0)
		rc = await(a, MST_VERBS_CM_ANSWERED);
	return rc;
}

/* The acceptor has let this end in. If it is gone since, the link is, and is lost at once. */
static int enter(struct attempt *a)
{
	struct mst_verbs_link *l = a->link;
	int rc = 0;

	step_begin(a, MST_NEVER); /* the queue pairs have timers of their own */
	for (uint32_t i = 0; i < l->rail_count && rc == 0; i++)
		rc = settle(a, &l->rail[i]);
	if (rc == 0)
		rc = await_region_exchanges(a);
	l->queue.open = rc == 0;
	if (rc != -EPIPE)
		return rc;
	if (l->link.why.text[0] == '\0')
		mst_reason_set(&l->link.why, "%s has ended the connection at once",
			       l->rail[0].peer);
	mst_reason_clear(a->why);
	atomic_store_explicit(&l->gone, true, memory_order_relaxed);
	return 0;
}

static int find_ends(struct attempt *a)
{
	const struct mst_fabric *f = &a->net->fabric;
	int rc = mst_endpoints_parse(a->dial->address, &mst_verbs, &a->far, a->why);

	if (rc == 0 && (f->addresses != NULL || f->devices != NULL))
		rc = mst_verbs_address_own(f, &a->far.at[0].any, &a->own, a->why);
	return rc;
}

static int check_lanes(const struct attempt *a)
{
	const struct mst_lanes *lanes = &a->dial->lanes;

	if (mst_verbs_lanes_check(lanes) == 0)
		return 0;
	return mst_reason_fail(
		a->why, -EINVAL, "lanes of %zu and %zu bytes, with %u and %u credits, cannot be",
		lanes->up_bytes, lanes->down_bytes, lanes->up_credits, lanes->down_credits);
}

static int check_export(const struct attempt *a)
{
	const struct mst_dial *dial = a->dial;
	const struct mst_export *e = &dial->export;

	if (e->region == NULL || mst_region_may_export(e, dial->lanes.down_bytes))
		return 0;
	return mst_reason_fail(
		a->why, -EINVAL,
		"%zu bytes from %zu on of a region of %zu cannot stand for those from %zu "
		"on of a lane of %zu",
		e->bytes, e->offset, e->region->bytes, e->at, dial->lanes.down_bytes);
}

int mst_verbs_dial(struct mst_net *n, const struct mst_dial *dial, struct mst_link **out,
		   struct mst_reason *why)
{
	struct attempt a = { .net = (struct mst_verbs_net *)n, .dial = dial, .why = why };
	struct mst_verbs_link_cfg cfg = { .connector = true, .lanes = dial->lanes };

	mst_reason_clear(why);
	a.deadline_ns = later(mst_now_ns(), dial->timeout_ns);
	if (a.net->link_count == a.net->cfg.links_max) /* before anybody is asked */
		return -ENOSPC;
	int rc = find_ends(&a);
	if (rc == 0)
		rc = check_lanes(&a);
	if (rc == 0)
		rc = check_export(&a);
	cfg.rails = a.far.count;
	if (rc == 0)
		rc = mst_verbs_link_new(a.net, &cfg, &a.link, why);
	if (rc != 0)
		return rc;
	a.link->export = dial->export;
	if (dial->export.region != NULL)
		mst_region_lend(dial->export.region);
	rc = ask(&a);
	if (rc == 0)
		rc = enter(&a);
	if (rc == 0)
		rc = mst_verbs_attach(n, &a.link->link, why);
	if (rc != 0) {
		mst_verbs_link_free(&a.link->link);
		return rc;
	}
	*out = &a.link->link;
	return 0;
}
