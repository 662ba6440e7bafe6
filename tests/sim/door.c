/* SPDX-License-Identifier: MIT */
/* Where connectors knock. A call travels to the door, its answer back, and the path may be dead. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/transport/why.h"
#include "tests/sim/net_state.h"

#define UNWANTED_EVERY_NS (50 * MST_MS) /* the dialler is asked */

struct sim_door {
	struct mst_door door;
	struct sim_net *net;
	struct sim_process *process;
	bool closed;
	struct sim_door *next;
};

enum call_state {
	CALL_TRAVELS,  /* to the door */
	CALL_WAITS,    /* there, to be seen */
	CALL_SEEN,     /* shown by knock(), to be answered */
	CALL_ANSWERED, /* the answer travels back */
	CALL_OVER,
};

struct sim_call {
	enum call_state state;
	struct sim_process *process;
	struct sim_door *door; /* NULL: there is none of this address */
	uint8_t token[MST_TOKEN_LEN];
	struct mst_lanes lanes;
	uint64_t since_ns, busy_ns;
	bool given_up;  /* the dialler does not wait any more, */
	bool known;     /* and the door knows it */
	bool answered;  /* the dialler knows, too: */
	int rc;         /* of dial() */
	uint64_t order; /* of arrival */
	struct sim_session *session;
	struct sim_bell bell;
	struct sim_call *next;
};

static uint64_t latency(void)
{
	return sim_manner.latency_ns + sim_below(sim_manner.jitter_ns + 1);
}

static bool is_near(const struct sim_call *c)
{
	return c->door != NULL && c->door->door.ops->maps;
}

/* ---- answers ---- */

/* When does the path move again? 0: it does. */
static uint64_t stands_until(const struct sim_call *c)
{
	if (is_near(c))
		return 0;
	return sim_path_free_at(c->process, c->door != NULL ? c->door->process : NULL);
}

static void finish(struct sim_call *c)
{
	c->state = CALL_OVER;
	c->answered = true;
	if (c->given_up && c->session != NULL && !c->session->connector.freed)
		sim_end_free(&c->session->connector.link);
	sim_ring(&c->bell);
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
	c->state = CALL_ANSWERED;
	c->rc = rc;
	sim_after(latency(), answer_arrives, c, 0);
}

/* ---- doors ---- */

static int open_door(const struct mst_transport *ops, struct mst_net *net, struct mst_door **out)
{
	struct sim_nets *nets = sim_nets();
	struct sim_door *d = sim_alloc(sizeof(*d));

	mst_why_clear();
	d->door.ops = ops;
	d->net = (struct sim_net *)net;
	d->process = d->net->process;
	d->closed = d->process->dead;
	(void)snprintf(d->door.address, sizeof(d->door.address), "%s:%s:%u", ops->scheme,
		       d->process->name, ++nets->numbers);
	*nets->doors_end = d;
	nets->doors_end = &d->next;
	*out = &d->door;
	return 0;
}

static int open_near(struct mst_net *net, struct mst_door **out)
{
	return open_door(&sim_near, net, out);
}

static int open_far(struct mst_net *net, struct mst_door **out)
{
	return open_door(&sim_far, net, out);
}

static void refuse_all(const struct sim_door *door)
{
	for (struct sim_call *c = sim_nets()->calls; c != NULL; c = c->next)
		if (c->door == door && (c->state == CALL_WAITS || c->state == CALL_SEEN))
			reply(c, -ECONNREFUSED);
}

static void door_close(struct mst_door *door)
{
	struct sim_door *d = (struct sim_door *)door;

	if (d == NULL || d->closed)
		return;
	d->closed = true;
	refuse_all(d);
}

static int door_fd(const struct mst_door *door)
{
	(void)door;
	return -1;
}

static int door_knock(struct mst_door *door, struct mst_knock *out)
{
	const struct sim_door *d = (const struct sim_door *)door;
	struct sim_call *first = NULL;

	mst_why_clear();
	if (d->process->dead)
		return -EAGAIN;
	for (struct sim_call *c = sim_nets()->calls; c != NULL; c = c->next)
		if (c->door == d && c->state == CALL_WAITS && !c->known &&
		    (first == NULL || c->order < first->order))
			first = c;
	if (first == NULL)
		return -EAGAIN;
	first->state = CALL_SEEN;
	*out = (struct mst_knock){ .lanes = first->lanes, .caller = first };
	memcpy(out->token, first->token, sizeof(out->token));
	return 0;
}

static int door_answer(struct mst_door *door, const struct mst_knock *knock, struct mst_link **out)
{
	const struct sim_door *d = (const struct sim_door *)door;
	struct sim_call *c = knock->caller;

	mst_why_clear();
	if (d->process->dead)
		return out != NULL ? -EPIPE : 0;
	MST_ASSERT(c->state == CALL_SEEN && c->door == d);
	if (out == NULL) {
		reply(c, -EACCES);
		return 0;
	}
	if (c->known) {
		c->state = CALL_OVER;
		return -EPIPE;
	}
	c->session = sim_session_new(&(struct sim_session_cfg){ .ops = d->door.ops,
								.lanes = c->lanes,
								.connector = c->process,
								.acceptor = d->process,
								.home = d->net });
	reply(c, 0);
	*out = &c->session->acceptor.link;
	return 0;
}

/* ---- callers ---- */

static bool is_silent(const struct sim_call *c)
{
	return !is_near(c) && c->door != NULL && c->door->process->dead &&
	       c->door->process->death == SIM_POWER_OFF;
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
	if (c->door == NULL || c->door->closed || c->door->process->dead) {
		reply(c, -ECONNREFUSED);
		return;
	}
	c->state = CALL_WAITS;
	c->order = ++sim_nets()->arrivals;
	sim_ring(&c->door->process->control);
}

static void given_up_is_known(void *ctx, uint64_t unused)
{
	struct sim_call *c = ctx;

	(void)unused;
	c->known = true;
}

void sim_doors_die(struct sim_process *p)
{
	bool silent = p->death == SIM_POWER_OFF;

	for (struct sim_door *d = sim_nets()->doors; d != NULL; d = d->next) {
		if (d->process != p || d->closed)
			continue;
		d->closed = true;
		if (!silent || d->door.ops->maps)
			refuse_all(d);
	}
	for (struct sim_call *c = sim_nets()->calls; c != NULL; c = c->next) {
		if (c->process != p || c->state == CALL_OVER)
			continue;
		c->given_up = true;
		if (!silent || is_near(c))
			sim_after(latency(), given_up_is_known, c, 0);
		sim_ring(&c->bell);
	}
}

/* ---- dialling ---- */

static int check(const struct sim_net *net, const struct mst_dial *dial)
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
	return net->process->dead ? -ECONNREFUSED : 0;
}

static struct sim_door *find_door(const char *address)
{
	struct sim_door *d = sim_nets()->doors;

	while (d != NULL && strcmp(d->door.address, address) != 0)
		d = d->next;
	return d;
}

static struct sim_call *call_new(const struct sim_net *net, const struct mst_dial *dial)
{
	struct sim_nets *nets = sim_nets();
	struct sim_call *c = sim_alloc(sizeof(*c));

	c->process = net->process;
	c->door = find_door(dial->address);
	c->lanes = dial->lanes;
	c->since_ns = sim_now();
	c->busy_ns = dial->busy_ns < MST_SECOND * 3600 ? dial->busy_ns : MST_SECOND * 3600;
	memcpy(c->token, dial->token, sizeof(c->token));
	*nets->calls_end = c;
	nets->calls_end = &c->next;
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
		(void)sim_wait(&c->bell, left_ns);
	}
	return 0;
}

int sim_door_dial(struct mst_net *n, const struct mst_dial *dial, struct mst_link **out)
{
	struct sim_net *net = (struct sim_net *)n;
	int rc;

	mst_why_clear();
	rc = check(net, dial);
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
	rc = sim_net_attach(n, &c->session->connector.link);
	if (rc == 0)
		*out = &c->session->connector.link;
	else
		sim_end_free(&c->session->connector.link);
	return rc;
}

const struct mst_door_ops sim_near_door = {
	.open = open_near,
	.close = door_close,
	.fd = door_fd,
	.knock = door_knock,
	.answer = door_answer,
};

const struct mst_door_ops sim_far_door = {
	.open = open_far,
	.close = door_close,
	.fd = door_fd,
	.knock = door_knock,
	.answer = door_answer,
};
