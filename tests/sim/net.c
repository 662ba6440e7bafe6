/* SPDX-License-Identifier: MIT */
/* What one fiber polls, and how it sleeps; what there is of this world. */
#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "tests/sim/net_state.h"

#define SLEEP_MAX_NS MST_SECOND /* then look again */
#define IDLE_POLLS 64u          /* a side that never sleeps returns credits after so many */
#define FIRST_FD (1 << 24)      /* no kernel gives descriptors of this size */

struct sim_manner sim_manner = SIM_MANNER;

struct sim_path {
	const struct sim_process *process, *peer; /* NULL: all of its peers */
	uint64_t stands_until;
	struct sim_path *next;
};

/* ---- what there is of this world ---- */

static struct sim_nets nets;
static const struct sim_net_watch nobody, *watcher = &nobody;

void sim_net_watch(const struct sim_net_watch *watch)
{
	watcher = watch != NULL ? watch : &nobody;
}

const struct sim_net_watch *sim_nets_watch(void)
{
	return watcher;
}

static void die(struct sim_process *p)
{
	sim_listeners_die(p);
	for (struct sim_session *s = sim_nets()->sessions; s != NULL; s = s->next) {
		if (s->connector.owner == p)
			sim_end_die(&s->connector);
		if (s->acceptor.owner == p)
			sim_end_die(&s->acceptor);
	}
}

struct sim_nets *sim_nets(void)
{
	if (nets.world == sim_world())
		return &nets;
	nets = (struct sim_nets){ .world = sim_world() };
	nets.sessions_end = &nets.sessions;
	nets.listeners_end = &nets.listeners;
	nets.calls_end = &nets.calls;
	nets.last_fd = FIRST_FD;
	sim_at_death(die);
	return &nets;
}

/* ---- paths ---- */

static bool is_on(const struct sim_path *path, const struct sim_process *p,
		  const struct sim_process *q)
{
	if (path->peer == NULL)
		return path->process == p || path->process == q;
	return (path->process == p && path->peer == q) || (path->process == q && path->peer == p);
}

uint64_t sim_path_free_at(const struct sim_process *p, const struct sim_process *q)
{
	uint64_t until = 0;

	for (const struct sim_path *path = sim_nets()->paths; path != NULL; path = path->next) {
		if (is_on(path, p, q) && path->stands_until > until)
			until = path->stands_until;
	}
	return until > sim_now() ? until : 0;
}

void sim_path_stall_between(struct sim_process *p, struct sim_process *q, uint64_t span_ns)
{
	struct sim_path *path = sim_alloc(sizeof(*path));

	*path = (struct sim_path){ p, q, sim_now() + span_ns, sim_nets()->paths };
	sim_nets()->paths = path;
	sim_say("the path between %s and %s stands still for %.3f s", p->name,
		q != NULL ? q->name : "everybody", (double)span_ns / (double)MST_SECOND);
}

void sim_path_stall(struct sim_process *p, uint64_t span_ns)
{
	sim_path_stall_between(p, NULL, span_ns);
}

static void break_end(struct sim_end *e)
{
	bool whole = e->state == SIM_END_IDLE || e->state == SIM_END_LIVE;

	if (whole && e->error == 0 && !e->freed)
		sim_end_lose(e, -EPIPE, "the link broke");
}

void sim_links_break(struct sim_process *p, struct sim_process *q)
{
	sim_say("the links between %s and %s break", p->name, q != NULL ? q->name : "everybody");
	for (struct sim_session *s = sim_nets()->sessions; s != NULL; s = s->next) {
		const struct sim_process *a = s->connector.owner, *b = s->acceptor.owner;
		if ((a != p || (q != NULL && b != q)) && (b != p || (q != NULL && a != q)))
			continue;
		break_end(&s->connector);
		break_end(&s->acceptor);
	}
}

/* ---- nets ---- */

static int open_net(const struct mst_transport *ops, const struct mst_net_cfg *cfg,
		    struct mst_net **out, struct mst_reason *why)
{
	struct sim_nets *of = sim_nets();
	struct sim_net *net;

	mst_reason_clear(why);
	if (cfg->published_bytes > SIM_BYTES_MAX)
		return -EINVAL;
	MST_ASSERT(sim_self() != NULL);
	net = sim_alloc(sizeof(*net) + (size_t)cfg->links_max * sizeof(struct sim_end *));
	net->net.ops = ops;
	net->cfg = *cfg;
	net->process = sim_self();
	net->fd = ++of->last_fd;
	net->next = of->all;
	of->all = net;
	net->net.published = cfg->published;
	if (cfg->published_bytes > 0 && cfg->published == NULL)
		net->net.published = sim_alloc(cfg->published_bytes + 8);
	net->net.published_bytes = cfg->published_bytes;
	*out = &net->net;
	return 0;
}

static int open_near(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	return open_net(&sim_near, cfg, out, why);
}

static int open_far(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	return open_net(&sim_far, cfg, out, why);
}

/* What it published stays as it is: somebody who maps it may still look. */
static void net_close(struct mst_net *n)
{
	MST_ASSERT(n == NULL || ((struct sim_net *)n)->link_count == 0);
	if (n != NULL)
		mst_domain_fini(&n->domain);
}

int sim_net_attach(struct mst_net *n, struct mst_link *link, struct mst_reason *why)
{
	struct sim_net *net = (struct sim_net *)n;
	struct sim_end *e = (struct sim_end *)link;

	MST_ASSERT(e->state == SIM_END_IDLE && !e->freed);
	mst_reason_clear(why);
	if (net->link_count == net->cfg.links_max)
		return -ENOSPC;
	e->net = net;
	e->index = net->link_count;
	net->link[net->link_count++] = e;
	e->state = e->error == 0 ? SIM_END_LIVE : SIM_END_ENDING;
	return 0;
}

static void net_detach(struct mst_link *link)
{
	struct sim_end *e = (struct sim_end *)link;
	struct sim_net *net = e->net;

	MST_ASSERT(net != NULL && net->link[e->index] == e);
	if (!e->connector && e->state == SIM_END_LIVE && !e->owner->dead &&
	    watcher->detached != NULL)
		watcher->detached(link, e->last_imm);
	sim_end_hang_up(e);
	net->link[e->index] = net->link[--net->link_count];
	net->link[e->index]->index = e->index;
	e->net = NULL;
	e->state = SIM_END_GONE;
	e->in->arrived = 0;
	e->in->revoked = true;
	sim_lane_forget_sent(e->out);
}

static void flush(const struct sim_net *net)
{
	for (uint32_t i = 0; i < net->link_count; i++)
		sim_lane_flush(net->link[i]->out);
}

static void return_credits(const struct sim_net *net)
{
	for (uint32_t i = 0; i < net->link_count; i++)
		if (net->link[i]->state == SIM_END_LIVE)
			sim_lane_tell(net->link[i]->in);
}

static int net_poll(struct mst_net *n, struct mst_net_event *ev, int max)
{
	struct sim_net *net = (struct sim_net *)n;
	uint32_t at = net->first;
	int got = 0;

	flush(net);
	/* The next poll begins where this one ends, so that no link starves another of @max. */
	for (uint32_t i = 0; i < net->link_count && got < max; i++, at++) {
		if (at >= net->link_count)
			at = 0;
		got += sim_end_poll(net->link[at], ev + got, max - got);
	}
	net->first = at;
	net->idle_polls = got > 0 ? 0 : net->idle_polls + 1;
	if (net->idle_polls == IDLE_POLLS)
		return_credits(net);
	return got;
}

static bool has_work(const struct sim_net *net)
{
	bool any = net->woken;

	for (uint32_t i = 0; i < net->link_count && !any; i++)
		any = sim_end_has_work(net->link[i]);
	return any;
}

static int net_wait(struct mst_net *n, uint64_t timeout_ns)
{
	struct sim_net *net = (struct sim_net *)n;

	sim_preempt();
	flush(net);
	if (!has_work(net) && timeout_ns > 0) {
		return_credits(net);
		net->wakeup.rung = false; /* for what has been polled since */
		if (timeout_ns > SLEEP_MAX_NS)
			timeout_ns = SLEEP_MAX_NS;
		(void)sim_wait(&net->wakeup, (timeout_ns + MST_MS - 1) / MST_MS * MST_MS);
	}
	net->woken = false;
	return 0;
}

static void net_wake(struct mst_net *n)
{
	struct sim_net *net = (struct sim_net *)n;

	net->woken = true;
	sim_net_ring(net);
}

/* ---- a fiber that sleeps for several nets ---- */

void sim_net_ring(struct sim_net *net)
{
	sim_ring(&net->wakeup);
	if (net->poller != NULL)
		sim_ring(net->poller);
}

static int net_arm(struct mst_net *n)
{
	struct sim_net *net = (struct sim_net *)n;

	if (!has_work(net))
		return_credits(net);
	net->wakeup.rung = false;
	return net->fd;
}

static void net_disarm(struct mst_net *n)
{
	((struct sim_net *)n)->wakeup.rung = false;
}

static uint32_t net_links(const struct mst_net *n)
{
	return ((const struct sim_net *)n)->link_count;
}

static bool net_ready(struct mst_net *n)
{
	return has_work((const struct sim_net *)n);
}

static struct sim_net *find_net(int fd)
{
	struct sim_net *net = sim_nets()->all;

	while (net != NULL && net->fd != fd)
		net = net->next;
	return net;
}

bool sim_nets_has(int fd)
{
	return fd > FIRST_FD;
}

static int rung_of(const struct pollfd *fds, nfds_t count, struct sim_wakeup *poller)
{
	int rung = 0;

	for (nfds_t i = 0; i < count; i++) {
		struct sim_net *net = find_net(fds[i].fd);
		MST_ASSERT(net != NULL);
		rung += net->wakeup.rung;
		net->poller = poller;
	}
	return rung;
}

int sim_nets_poll(const struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct sim_wakeup poller = { 0 };

	sim_preempt();
	int rung = rung_of(fds, count, &poller);
	if (rung == 0)
		(void)sim_wait(&poller, (uint64_t)timeout_ms * MST_MS);
	return rung_of(fds, count, NULL);
}

const struct mst_transport sim_near = {
	.scheme = "sim_near",
	.prefix = "sim_near:",
	.medium = "memory of one world",
	.maps = true,
	.listener = &sim_near_listener,
	.net_open = open_near,
	.net_close = net_close,
	.reaches = sim_listener_reaches,
	.dial = sim_listener_dial,
	.attach = sim_net_attach,
	.detach = net_detach,
	.link_free = sim_end_free,
	.put = sim_lane_put_near,
	.poll = net_poll,
	.wait = net_wait,
	.wake = net_wake,
	.arm = net_arm,
	.disarm = net_disarm,
	.links = net_links,
	.ready = net_ready,
	.view = sim_end_view,
};

const struct mst_transport sim_far = {
	.scheme = "sim_far",
	.prefix = "sim_far:",
	.medium = "a network of one world",
	.pins = true,
	.listener = &sim_far_listener,
	.net_open = open_far,
	.net_close = net_close,
	.dial = sim_listener_dial,
	.attach = sim_net_attach,
	.detach = net_detach,
	.link_free = sim_end_free,
	.put = sim_lane_put_far,
	.poll = net_poll,
	.wait = net_wait,
	.wake = net_wake,
	.arm = net_arm,
	.disarm = net_disarm,
	.links = net_links,
	.ready = net_ready,
	.view = sim_end_view,
};
