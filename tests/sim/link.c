/* SPDX-License-Identifier: MIT */
/* Both ends of a link: how they begin, what they tell, and how they end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/reason.h"
#include "common/transport/pages.h"
#include "tests/sim/net_state.h"

/* ---- beginning ---- */

static void begin_end(struct sim_end *e, const struct sim_session_cfg *cfg, struct sim_session *s)
{
	e->link.ops = cfg->ops;
	e->link.lanes = cfg->lanes;
	e->session = s;
	e->connector = e == &s->connector;
	e->owner = e->connector ? cfg->connector : cfg->acceptor;
	e->in = e->connector ? &s->down : &s->up;
	e->out = e->connector ? &s->up : &s->down;
	e->room = e->connector ? sim_manner.room : cfg->lanes.down_credits + 4;
}

static void furnish(struct sim_end *e, size_t outbound_max)
{
	e->link.inbound = e->in->inbound;
	e->link.outbound_bytes = e->out->bytes;
	if (e->session->near) {
		e->link.outbound = e->link.remote_mapping = e->out->inbound;
		return;
	}
	if (outbound_max > 0 && outbound_max < e->link.outbound_bytes)
		e->link.outbound_bytes = outbound_max;
	e->link.outbound = sim_alloc(e->link.outbound_bytes + 8);
}

struct sim_session *sim_session_new(const struct sim_session_cfg *cfg)
{
	struct sim_session *s = sim_alloc(sizeof(*s));
	struct sim_nets *nets = sim_nets();

	s->number = ++nets->numbers;
	s->near = cfg->ops->maps;
	begin_end(&s->connector, cfg, s);
	begin_end(&s->acceptor, cfg, s);
	sim_lane_init(&s->up, &s->connector, &s->acceptor);
	sim_lane_init(&s->down, &s->acceptor, &s->connector);
	furnish(&s->connector, 0);
	furnish(&s->acceptor, cfg->home->cfg.outbound_max);
	if (s->near) {
		s->connector.link.shared = cfg->home->net.published;
		s->connector.link.shared_bytes = cfg->home->net.published_bytes;
	}
	*nets->sessions_end = s;
	nets->sessions_end = &s->next;
	sim_say("link %u: %s is linked with %s", s->number, cfg->connector->name,
		cfg->acceptor->name);
	if (sim_nets_watch()->linked != NULL)
		sim_nets_watch()->linked(&s->connector.link, &s->acceptor.link);
	if (cfg->connector->dead) /* nobody has noticed yet */
		sim_end_die(&s->connector);
	return s;
}

/* ---- views ---- */

int sim_end_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes, void *at)
{
	struct sim_end *e = (struct sim_end *)link;
	const void *base[] = { [MST_VIEW_OUTBOUND] = link->outbound,
			       [MST_VIEW_INBOUND] = link->inbound,
			       [MST_VIEW_SHARED] = link->shared };
	const size_t has[] = { [MST_VIEW_OUTBOUND] = link->outbound_bytes,
			       [MST_VIEW_INBOUND] = e->in->bytes,
			       [MST_VIEW_SHARED] = link->shared_bytes };
	int rc = mst_pages_view(base[what], has[what], offset, bytes, at);

	if (rc != 0 || what != MST_VIEW_OUTBOUND || !e->session->near)
		return rc;
	struct sim_mapping_view *v = sim_alloc(sizeof(*v));
	*v = (struct sim_mapping_view){ offset, bytes, at, e->views };
	e->views = v;
	return 0;
}

/* ---- the end ---- */

static void forget_arrivals(struct sim_end *e)
{
	e->in->arrived = 0;
}

void sim_end_lose(struct sim_end *e, int error, const char *why)
{
	MST_ASSERT(e->error == 0 && error < 0);
	sim_say("link %u is lost at %s: %s", e->session->number, e->owner->name, why);
	e->error = error;
	mst_reason_set(&e->link.why, "%s", why);
	sim_lane_sever(e->out, false);
	if (e->state == SIM_END_LIVE) {
		e->state = SIM_END_ENDING;
		sim_net_ring(e->net);
	}
}

void sim_end_hang_up(struct sim_end *e)
{
	if (e->hung)
		return;
	e->hung = true;
	/* An end that has given the path up may find nobody to tell. */
	if (e->deaf && sim_chance(0.5))
		return;
	if (e->error == 0)
		sim_lane_sever(e->out, true);
	sim_lane_hang_up(e->out);
}

/* What a ghost computes in its remote mapping must reach nobody, whichever way it goes there. */
static void cut_mapping(struct sim_end *e)
{
	uint8_t *own = sim_alloc(e->link.outbound_bytes + MST_PAGES_SMALL);

	memcpy(own, e->link.remote_mapping, e->link.outbound_bytes);
	e->link.remote_mapping = e->link.outbound = own;
	for (const struct sim_mapping_view *v = e->views; v != NULL; v = v->next)
		MST_ASSERT(mst_pages_view(own, e->link.outbound_bytes, v->offset, v->bytes,
					  v->at) == 0);
}

void sim_end_die(struct sim_end *e)
{
	bool silent = e->owner->death == SIM_POWER_OFF && !e->session->near;

	if (e->freed)
		return;
	if (e->session->near)
		cut_mapping(e);
	forget_arrivals(e);
	if (e->error == 0 && e->state != SIM_END_GONE)
		sim_end_lose(e, -EPIPE, "its process is dead");
	if (silent) {
		e->hung = true;
		e->deaf = true;
	}
	if (e->hung)
		return;
	e->hung = true;
	sim_lane_hang_up(e->out);
}

void sim_end_free(struct mst_link *link)
{
	struct sim_end *e = (struct sim_end *)link;

	if (e == NULL)
		return;
	MST_ASSERT(e->net == NULL && !e->freed);
	sim_end_hang_up(e);
	e->freed = true;
	e->state = SIM_END_GONE;
	memset(e->in->inbound, SIM_RUBBISH, e->in->bytes);
	if (e->in->export.region != NULL)
		mst_region_take_back(e->in->export.region);
	e->in->freed = true;
	sim_lane_take_back(e->out);
	if (!e->session->near)
		memset(e->link.outbound, SIM_RUBBISH, e->link.outbound_bytes);
	if (!e->connector && sim_nets_watch()->freed != NULL)
		sim_nets_watch()->freed(link);
}

/* ---- events ---- */

bool sim_end_has_work(const struct sim_end *e)
{
	return e->in->arrived > 0 || e->state == SIM_END_ENDING ||
	       (e->state == SIM_END_LIVE && e->out->sent.head != NULL);
}

static void take_arrival(struct sim_end *e, struct mst_net_event *ev)
{
	*ev = (struct mst_net_event){ .kind = MST_ARRIVED, .link = &e->link };
	ev->imm = sim_lane_take_arrival(e->in);
	sim_mix(ev->imm);
	sim_say("link %u: imm %08x arrives", e->session->number, ev->imm);
	if (sim_nets_watch()->arrived != NULL)
		sim_nets_watch()->arrived(&e->link, !e->connector, ev->imm);
}

static void take_sent(struct sim_end *e, struct mst_net_event *ev)
{
	*ev = (struct mst_net_event){ .kind = MST_SENT, .link = &e->link };
	ev->cookie = sim_lane_take_sent(e->out);
	sim_say("link %u: %" PRIu64 " is sent", e->session->number, ev->cookie);
}

static bool is_owing(const struct sim_lane *in)
{
	return in->polled != in->told && 2 * (in->polled - in->told) >= in->credits;
}

/* What was sent and what has arrived come in any order. */
int sim_end_poll(struct sim_end *e, struct mst_net_event *ev, int max)
{
	int n = 0;

	while (n < max) {
		bool sent = e->state == SIM_END_LIVE && e->out->sent.head != NULL;
		if (e->in->arrived > 0 && (!sent || sim_chance(0.5)))
			take_arrival(e, &ev[n++]);
		else if (sent)
			take_sent(e, &ev[n++]);
		else
			break;
	}
	if (e->state == SIM_END_ENDING && n < max) {
		e->state = SIM_END_LOST;
		ev[n++] = (struct mst_net_event){ .kind = MST_LOST,
						  .link = &e->link,
						  .error = e->error };
	}
	if (e->state == SIM_END_LIVE && is_owing(e->in))
		sim_lane_tell(e->in);
	return n;
}

/* ---- what a test sees of it ---- */

struct sim_process *sim_link_owner(const struct mst_link *link)
{
	return ((const struct sim_end *)link)->owner;
}

struct mst_link *sim_link_peer(const struct mst_link *link)
{
	const struct sim_end *e = (const struct sim_end *)link;
	struct sim_end *peer = e->out->to;

	return peer->freed ? NULL : &peer->link;
}

void sim_scribble(struct mst_link *link, size_t offset, const void *src, size_t bytes)
{
	struct sim_end *e = (struct sim_end *)link;

	MST_ASSERT(offset <= e->out->bytes && bytes <= e->out->bytes - offset);
	sim_say("link %u: %s scribbles over %zu+%zu", e->session->number, e->owner->name, offset,
		bytes);
	sim_lane_write(e->out, offset, src, bytes);
}
