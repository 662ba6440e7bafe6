/* SPDX-License-Identifier: MIT */
/* Where connectors ask for links. A call travels to the listener, its answer back, and the path may
 * be dead. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "tests/sim/net_state.h"

#define UNWANTED_EVERY_NS (50 * MST_MS) /* the dialler is asked */

struct sim_listener {
	struct mst_link_listener listener;
	struct sim_net *net;
	struct sim_process *process;
	bool closed;
	struct sim_listener *next;
};

enum call_state {
	CALL_TRAVELS,  /* to the listener */
	CALL_WAITS,    /* there, to be seen */
	CALL_SEEN,     /* shown by next_request(), to be answered */
	CALL_ANSWERED, /* the answer travels back */
	CALL_OVER,
};

struct sim_call {
	enum call_state state;
	struct sim_process *process;
	struct sim_listener *listener; /* NULL: there is none of this address */
	uint8_t token[MST_TOKEN_LEN];
	struct mst_lanes lanes;
	struct mst_export export;
	uint64_t since_ns, busy_ns;
	bool again;     /* a thief shows the token of a call that was let in; nobody waits */
	bool given_up;  /* the dialler does not wait any more, */
	bool known;     /* and the listener knows it */
	bool answered;  /* the dialler knows, too: */
	int rc;         /* of dial() */
	uint64_t order; /* of arrival */
	struct sim_session *session;
	struct sim_wakeup wakeup;
	struct sim_call *next;
};

static uint64_t latency(void)
{
	return sim_manner.latency_ns + sim_below(sim_manner.jitter_ns + 1);
}

static bool is_near(const struct sim_call *c)
{
	return c->listener != NULL && c->listener->listener.ops->maps;
}

/* ---- answers ---- */

/* When does the path move again? 0: it does. */
static uint64_t stands_until(const struct sim_call *c)
{
	if (is_near(c))
		return 0;
	return sim_path_free_at(c->process, c->listener != NULL ? c->listener->process : NULL);
}

static void finish(struct sim_call *c)
{
	c->state = CALL_OVER;
	c->answered = true;
	if (c->given_up && c->session != NULL && !c->session->connector.freed)
		sim_end_free(&c->session->connector.link);
	sim_ring(&c->wakeup);
}

static void answer_arrives(void *ctx, uint64_t unused)
{
	struct sim_call *c = ctx;
	uint64_t until_ns = stands_until(c);

	(void)unused;
	if (until_ns > 0)
		sim_after(until_ns - sim_now(), answer_arrives, c, 0);
	else if (c->state != CALL_OVER)
		finish(c);
}

static void reply(struct sim_call *c, int rc)
{
	if (c->again) {
		c->state = CALL_OVER;
		return;
	}
	c->state = CALL_ANSWERED;
	c->rc = rc;
	sim_after(latency(), answer_arrives, c, 0);
}

/* ---- listeners ---- */

struct mst_origin sim_origin(const struct sim_process *p)
{
	struct mst_origin origin = { { 0xfd } };

	memcpy(origin.address + 12, &p->id, sizeof(p->id));
	return origin;
}

static int open_listener(const struct mst_transport *ops, struct mst_net *net,
			 struct mst_link_listener **out, struct mst_reason *why)
{
	struct sim_nets *nets = sim_nets();
	struct sim_listener *d = sim_alloc(sizeof(*d));

	mst_reason_clear(why);
	d->listener.ops = ops;
	d->net = (struct sim_net *)net;
	d->process = d->net->process;
	d->closed = d->process->dead;
	(void)snprintf(d->listener.address, sizeof(d->listener.address), "%s:%s:%u", ops->scheme,
		       d->process->name, ++nets->numbers);
	*nets->listeners_end = d;
	nets->listeners_end = &d->next;
	*out = &d->listener;
	return 0;
}

static int open_near(struct mst_net *net, struct mst_link_listener **out, struct mst_reason *why)
{
	return open_listener(&sim_near, net, out, why);
}

static int open_far(struct mst_net *net, struct mst_link_listener **out, struct mst_reason *why)
{
	return open_listener(&sim_far, net, out, why);
}

static void refuse_all(const struct sim_listener *listener)
{
	for (struct sim_call *c = sim_nets()->calls; c != NULL; c = c->next)
		if (c->listener == listener && (c->state == CALL_WAITS || c->state == CALL_SEEN))
			reply(c, -ECONNREFUSED);
}

static void listener_close(struct mst_link_listener *listener)
{
	struct sim_listener *d = (struct sim_listener *)listener;

	if (d == NULL || d->closed)
		return;
	d->closed = true;
	refuse_all(d);
}

static int listener_fd(const struct mst_link_listener *listener)
{
	(void)listener;
	return -1;
}

static struct sim_call *first_that_waits(const struct sim_listener *d)
{
	struct sim_call *first = NULL;

	for (struct sim_call *c = sim_nets()->calls; c != NULL; c = c->next)
		if (c->listener == d && c->state == CALL_WAITS && !c->known &&
		    (first == NULL || c->order < first->order))
			first = c;
	return first;
}

static int listener_next_request(struct mst_link_listener *listener, struct mst_link_request *out,
				 struct mst_reason *why)
{
	const struct sim_listener *d = (const struct sim_listener *)listener;
	struct sim_call *first;
	struct mst_origin from;

	mst_reason_clear(why);
	if (d->process->dead)
		return -EAGAIN;
	while ((first = first_that_waits(d)) != NULL) {
		from = sim_origin(first->process);
		if (mst_link_expected(listener, first->token, &from))
			break;
		reply(first, -EACCES);
	}
	if (first == NULL)
		return -EAGAIN;
	first->state = CALL_SEEN;
	*out = (struct mst_link_request){ .lanes = first->lanes,
					  .from = { 1, { from } },
					  .caller = first };
	memcpy(out->token, first->token, sizeof(out->token));
	return 0;
}

static struct sim_call *call_add(const struct sim_call *like)
{
	struct sim_nets *nets = sim_nets();
	struct sim_call *c = sim_alloc(sizeof(*c));

	*c = *like;
	*nets->calls_end = c;
	nets->calls_end = &c->next;
	return c;
}

/* A stranger that has seen the token of a call that was let in shows it at once, from the same
 * address. Nobody has to be woken: the server asks for the next request. */
static void show_again(const struct sim_call *let_in)
{
	struct sim_call *c = call_add(&(struct sim_call){ .state = CALL_WAITS,
							  .process = let_in->process,
							  .listener = let_in->listener,
							  .lanes = let_in->lanes,
							  .order = ++sim_nets()->arrivals,
							  .again = true });

	memcpy(c->token, let_in->token, sizeof(c->token));
}

static int listener_answer(struct mst_link_listener *listener,
			   const struct mst_link_request *request, struct mst_link **out,
			   struct mst_reason *why)
{
	const struct sim_listener *d = (const struct sim_listener *)listener;
	struct sim_call *c = request->caller;

	mst_reason_clear(why);
	if (d->process->dead)
		return out != NULL ? -EPIPE : 0;
	MST_ASSERT(c->state == CALL_SEEN && c->listener == d);
	if (out == NULL) {
		reply(c, -EACCES);
		return 0;
	}
	if (c->again)
		sim_nets_watch()->let_in_again();
	if (c->known || c->again) {
		c->state = CALL_OVER;
		return -EPIPE;
	}
	c->session = sim_session_new(&(struct sim_session_cfg){ .ops = d->listener.ops,
								.lanes = c->lanes,
								.connector = c->process,
								.acceptor = d->process,
								.home = d->net });
	if (c->export.region != NULL)
		mst_region_lend(c->export.region);
	c->session->down.export = c->export;
	reply(c, 0);
	if (sim_nets_watch()->let_in_again != NULL)
		show_again(c);
	*out = &c->session->acceptor.link;
	return 0;
}

/* ---- callers ---- */

static bool is_silent(const struct sim_call *c)
{
	return !is_near(c) && c->listener != NULL && c->listener->process->dead &&
	       c->listener->process->death == SIM_POWER_OFF;
}

static void call_arrives(void *ctx, uint64_t unused)
{
	struct sim_call *c = ctx;

	(void)unused;
	if (c->state != CALL_TRAVELS)
		return;
	uint64_t until_ns = stands_until(c);
	if (until_ns > 0 || is_silent(c)) {
		uint64_t give_up_ns = c->since_ns + sim_manner.give_up_ns + c->busy_ns;
		if (until_ns == 0 || until_ns > give_up_ns)
			until_ns = give_up_ns;
		if (until_ns > sim_now()) {
			sim_after(until_ns - sim_now(), call_arrives, c, 0);
			return;
		}
		c->rc = -EHOSTUNREACH;
		finish(c);
		return;
	}
	if (c->listener == NULL || c->listener->closed || c->listener->process->dead) {
		reply(c, -ECONNREFUSED);
		return;
	}
	c->state = CALL_WAITS;
	c->order = ++sim_nets()->arrivals;
	sim_ring(&c->listener->process->control);
}

static void given_up_is_known(void *ctx, uint64_t unused)
{
	struct sim_call *c = ctx;

	(void)unused;
	c->known = true;
}

void sim_listeners_die(struct sim_process *p)
{
	bool silent = p->death == SIM_POWER_OFF;

	for (struct sim_listener *d = sim_nets()->listeners; d != NULL; d = d->next) {
		if (d->process != p || d->closed)
			continue;
		d->closed = true;
		if (!silent || d->listener.ops->maps)
			refuse_all(d);
	}
	for (struct sim_call *c = sim_nets()->calls; c != NULL; c = c->next) {
		if (c->process != p || c->state == CALL_OVER)
			continue;
		c->given_up = true;
		if (!silent || is_near(c))
			sim_after(latency(), given_up_is_known, c, 0);
		sim_ring(&c->wakeup);
	}
}

/* ---- dialling ---- */

static int check(const struct sim_net *net, const struct mst_dial *dial, struct mst_reason *why)
{
	size_t scheme = strlen(net->net.ops->scheme);
	const struct mst_lanes *l = &dial->lanes;

	if (net->link_count == net->cfg.links_max)
		return -ENOSPC;
	if (strncmp(dial->address, net->net.ops->scheme, scheme) != 0 ||
	    dial->address[scheme] != ':')
		return -EINVAL;
	if (l->up_bytes > SIM_BYTES_MAX || l->down_bytes > SIM_BYTES_MAX ||
	    l->up_credits > SIM_CREDITS_MAX || l->down_credits > SIM_CREDITS_MAX)
		return -EINVAL;
	if (dial->export.region != NULL && net->net.ops->maps)
		return mst_reason_fail(why, -ENOTSUP, "a peer of this world maps what it writes");
	if (dial->export.region != NULL && !mst_region_may_export(&dial->export, l->down_bytes))
		return mst_reason_fail(why, -EINVAL, "no such part of a region, or of a lane");
	return net->process->dead ? -ECONNREFUSED : 0;
}

static struct sim_listener *find_listener(const char *address)
{
	struct sim_listener *d = sim_nets()->listeners;

	while (d != NULL && strcmp(d->listener.address, address) != 0)
		d = d->next;
	return d;
}

/* No memory is shared between hosts. */
static bool is_beyond(const struct sim_net *net, const struct sim_listener *l)
{
	return net->net.ops->maps && l != NULL && l->process->host != net->process->host;
}

int sim_listener_reaches(const char *address, struct mst_reason *why)
{
	const struct sim_listener *l = find_listener(address);

	if (l == NULL || l->process->host == sim_self()->host)
		return 0;
	return mst_reason_fail(why, -ENOENT, "%s is on another host", l->process->name);
}

static struct sim_call *call_new(const struct sim_net *net, const struct mst_dial *dial)
{
	uint64_t hour_ns = MST_SECOND * 3600;
	struct sim_call *c = call_add(&(struct sim_call){
		.process = net->process,
		.listener = find_listener(dial->address),
		.lanes = dial->lanes,
		.export = dial->export,
		.since_ns = sim_now(),
		.busy_ns = dial->busy_ns < hour_ns ? dial->busy_ns : hour_ns,
	});

	memcpy(c->token, dial->token, sizeof(c->token));
	sim_after(latency(), call_arrives, c, 0);
	return c;
}

/* 0: it is answered. */
static int await(struct sim_call *c, const struct mst_dial *dial)
{
	while (!c->answered) {
		uint64_t past_ns = sim_now() - c->since_ns;
		if (c->process->dead)
			return -ECONNREFUSED;
		if (past_ns >= dial->timeout_ns)
			return -ETIMEDOUT;
		if (dial->unwanted != NULL && dial->unwanted(dial->ctx))
			return -ECANCELED;
		uint64_t left_ns = dial->timeout_ns - past_ns;
		if (dial->unwanted != NULL && left_ns > UNWANTED_EVERY_NS)
			left_ns = UNWANTED_EVERY_NS;
		(void)sim_wait(&c->wakeup, left_ns);
	}
	return 0;
}

int sim_listener_dial(struct mst_net *n, const struct mst_dial *dial, struct mst_link **out,
		      struct mst_reason *why)
{
	struct sim_net *net = (struct sim_net *)n;
	int rc;

	mst_reason_clear(why);
	rc = check(net, dial, why);
	if (rc == 0 && is_beyond(net, find_listener(dial->address)))
		rc = -ECONNREFUSED;
	if (rc < 0)
		return rc;
	struct sim_call *c = call_new(net, dial);
	rc = await(c, dial);
	if (rc < 0 && !c->given_up) {
		c->given_up = true;
		sim_after(latency(), given_up_is_known, c, 0);
	}
	if (rc == 0)
		rc = c->given_up ? -ECONNREFUSED : c->rc; /* it died as the answer came */
	if (rc < 0)
		return rc;
	rc = sim_net_attach(n, &c->session->connector.link, why);
	if (rc == 0)
		*out = &c->session->connector.link;
	else
		sim_end_free(&c->session->connector.link);
	return rc;
}

const struct mst_link_listener_ops sim_near_listener = {
	.open = open_near,
	.close = listener_close,
	.fd = listener_fd,
	.next_request = listener_next_request,
	.answer = listener_answer,
};

const struct mst_link_listener_ops sim_far_listener = {
	.open = open_far,
	.close = listener_close,
	.fd = listener_fd,
	.next_request = listener_next_request,
	.answer = listener_answer,
};
