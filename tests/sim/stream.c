/* SPDX-License-Identifier: MIT */
/*
 * Connections as TCP makes them. Each is two pipes; what goes along a pipe (bytes, their end, a
 * reset) arrives in order, bytes in pieces of any size. The kernel at either end outlives a killed
 * process: it sends what is in the pipe, and then closes it. It does not outlive the power.
 */
#include "tests/sim/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

#define BACKLOG 128u
#define CONNECT_MAX_NS (130 * MST_SECOND) /* the kernel's own patience */
#define FIRST_PORT 20000u
#define FIRST_PORT_OF_CALLERS 40000u

struct sim_stream_manner sim_stream_manner = SIM_STREAM_MANNER;

struct pipe {
	struct mst_stream *from, *to;
	uint8_t *ring;
	size_t room;
	uint64_t written, arrived, read; /* bytes, counted from the beginning */
	uint64_t due_ns;
	bool moving;
	bool ends, ended;   /* nothing follows; and the reader can know it */
	bool broken, broke; /* a reset follows; has come */
	bool starved;       /* the writer found no room */
};

struct mst_stream {
	struct sim_process *owner;
	struct pipe *in, *out;
	struct connection *connection;
	bool closed; /* by its owner, or for it */
	bool reset;  /* the reader has not been told yet */
	bool dumb;   /* nothing can be sent any more */
	char name[32];
};

struct connection {
	struct mst_stream caller, callee;
	struct pipe there, back;
	struct mst_listener *listener;
	struct sim_wakeup wakeup; /* of the caller, while it connects */
	bool arrived, answered, accepted;
	bool cut;
	int error;
	struct connection *next;
};

struct mst_listener {
	struct sim_process *owner;
	uint32_t port;
	bool closed, hidden;
	struct mst_listener *next;
};

struct stall {
	const struct sim_process *process;
	uint64_t until_ns;
	struct stall *next;
};

static struct {
	uint64_t world;
	uint32_t port, caller_port;
	struct connection *connections, **end;
	struct mst_listener *listeners;
	struct stall *stalls;
} streams;

/* ---- the way between two processes ---- */

static void die(struct sim_process *p);

static void look_at_world(void)
{
	if (streams.world == sim_world())
		return;
	memset(&streams, 0, sizeof(streams));
	streams.world = sim_world();
	streams.port = FIRST_PORT;
	streams.caller_port = FIRST_PORT_OF_CALLERS;
	streams.end = &streams.connections;
	sim_at_death(die);
}

static bool is_off(const struct sim_process *p)
{
	return p->dead && p->death == SIM_POWER_OFF;
}

static struct stall *stall_of(const struct sim_process *p)
{
	struct stall *s = streams.stalls;

	while (s != NULL && s->process != p)
		s = s->next;
	return s;
}

static uint64_t stands_until(const struct sim_process *p)
{
	const struct stall *s = stall_of(p);

	return s != NULL && s->until_ns > sim_now() ? s->until_ns : 0;
}

/* When does anything move here? 0: now; MST_NEVER: never again. */
static uint64_t free_at(const struct connection *c)
{
	const struct sim_process *callee = c->listener->owner, *caller = c->caller.owner;
	uint64_t a = stands_until(caller), b = stands_until(callee);

	if (c->cut || is_off(caller) || is_off(callee))
		return MST_NEVER;
	return a > b ? a : b;
}

static uint64_t latency(void)
{
	return sim_stream_manner.latency_ns + sim_below(sim_stream_manner.jitter_ns + 1);
}

/* ---- pipes ---- */

static void move(void *ctx, uint64_t unused);

static bool has_more(const struct pipe *p)
{
	return p->arrived < p->written || (p->ends && !p->ended) || (p->broken && !p->broke);
}

static void go(struct pipe *p)
{
	uint64_t due_ns = sim_now() + latency();

	if (p->moving || !has_more(p))
		return;
	p->moving = true;
	p->due_ns = due_ns > p->due_ns ? due_ns : p->due_ns;
	sim_after(p->due_ns - sim_now(), move, p, 0);
}

static void break_at(struct mst_stream *s)
{
	s->dumb = true;
	s->reset = !s->closed;
	sim_ring(&s->owner->control);
}

/* A kernel that has no use for what comes says so. */
static void answer_with_reset(struct pipe *p)
{
	p->read = p->arrived;
	p->to->out->broken = true;
	go(p->to->out);
}

static void move(void *ctx, uint64_t unused)
{
	struct pipe *p = ctx;
	uint64_t until_ns = free_at(p->to->connection);

	(void)unused;
	p->moving = until_ns > 0;
	if (until_ns > 0) {
		if (until_ns < MST_NEVER)
			sim_after(until_ns - sim_now(), move, p, 0);
		return;
	}
	if (p->broken && p->arrived == p->written) { /* what was sent before has come before */
		sim_say("%s is reset by %s", p->to->owner->name, p->from->owner->name);
		if (!p->broke)
			break_at(p->to);
		p->broke = true;
		return;
	}
	uint64_t before = p->arrived;
	if (p->arrived < p->written)
		p->arrived += sim_between(1, p->written - p->arrived);
	if (p->ends && p->arrived == p->written)
		p->ended = true;
	sim_say("%s has %" PRIu64 " bytes of %s%s", p->to->owner->name, p->arrived - before,
		p->from->owner->name, p->ended ? ", which has closed" : "");
	if (p->to->closed && p->arrived > p->read)
		answer_with_reset(p);
	sim_ring(&p->to->owner->control);
	go(p);
}

static void pipe_init(struct pipe *p, struct mst_stream *from, struct mst_stream *to)
{
	p->from = from;
	p->to = to;
	p->room = sim_stream_manner.room;
	p->ring = sim_alloc(p->room);
}

static ssize_t stream_send(struct mst_stream *s, const void *data, size_t len)
{
	struct pipe *p = s->out;
	size_t room = p->room - (size_t)(p->written - p->read);

	if (s->owner->dead)
		return (ssize_t)len; /* it is a ghost, and nobody hears it */
	if (s->dumb)
		return -EPIPE;
	p->starved = room < len;
	if (room == 0 && len > 0)
		return -EAGAIN;
	size_t taken = len < room ? len : room;
	if (taken > 1 && sim_chance(0.1))
		taken = sim_between(1, taken);
	p->starved |= taken < len;
	for (size_t i = 0; i < taken; i++)
		p->ring[(p->written + i) % p->room] = ((const uint8_t *)data)[i];
	p->written += taken;
	go(p);
	return (ssize_t)taken;
}

static void has_room(void *ctx, uint64_t unused)
{
	struct pipe *p = ctx;

	(void)unused;
	sim_ring(&p->from->owner->control);
}

static ssize_t stream_receive(struct mst_stream *s, void *data, size_t len)
{
	struct pipe *p = s->in;
	uint64_t left = p->arrived - p->read;

	if (s->owner->dead)
		return 0;
	if (left > 0) {
		size_t taken = len < left ? len : (size_t)left;
		for (size_t i = 0; i < taken; i++)
			((uint8_t *)data)[i] = p->ring[(p->read + i) % p->room];
		p->read += taken;
		if (p->starved)
			sim_after(latency(), has_room, p, 0);
		p->starved = false;
		return (ssize_t)taken;
	}
	if (s->reset) {
		s->reset = false;
		return -ECONNRESET;
	}
	return p->ended || p->broke ? 0 : -EAGAIN;
}

/* As the kernel does for a process that closes, or is killed. */
static void close_end(struct mst_stream *s)
{
	if (s->closed)
		return;
	s->closed = true;
	s->dumb = true;
	if (s->in->arrived > s->in->read)
		answer_with_reset(s->in);
	s->out->ends = true;
	go(s->out);
}

static void stream_close(struct mst_stream *s)
{
	if (s != NULL && !s->owner->dead)
		close_end(s);
}

/* ---- listening ---- */

/* HOST:PORT, or [HOST]:PORT. Return: the port, or -EINVAL. */
static int parse(const char *address, char *host, size_t host_len)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon != NULL ? (size_t)(colon - address) : 0;
	size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
	bool bracketed = address[0] == '[' && len >= 3 && address[len - 1] == ']';

	if (len == 0 || len >= host_len || digits == 0 || digits > 5 || colon[1 + digits] != '\0')
		return -EINVAL;
	if (!bracketed && (memchr(address, ':', len) != NULL || address[0] == '['))
		return -EINVAL;
	long port = strtol(colon + 1, NULL, 10);
	memcpy(host, address, len);
	host[len] = '\0';
	return port <= 65535 ? (int)port : -EINVAL;
}

static struct mst_listener *find(uint32_t port)
{
	struct mst_listener *l = streams.listeners;

	while (l != NULL && (l->port != port || l->closed || l->hidden))
		l = l->next;
	return l;
}

static int stream_listen(const char *address, struct mst_credentials *own,
			 struct mst_listener **out, char *bound, size_t bound_len)
{
	char host[256];
	int port = parse(address, host, sizeof(host));

	MST_ASSERT(own == NULL);
	look_at_world();
	if (port < 0)
		return port;
	if (port == 0)
		port = (int)streams.port++;
	if (find((uint32_t)port) != NULL)
		return -EADDRINUSE;
	struct mst_listener *l = sim_alloc(sizeof(*l));
	l->owner = sim_self();
	MST_ASSERT(l->owner != NULL);
	l->port = (uint32_t)port;
	l->closed = l->owner->dead;
	l->next = streams.listeners;
	streams.listeners = l;
	(void)snprintf(bound, bound_len, "%s:%d", host, port);
	*out = l;
	return 0;
}

static int stream_accept(struct mst_listener *l, struct mst_stream **out, char *peer,
			 size_t peer_len)
{
	struct connection *c = streams.connections;

	if (l->owner->dead)
		return -EAGAIN;
	while (c != NULL && (c->listener != l || !c->arrived || c->accepted || c->callee.closed))
		c = c->next;
	if (c == NULL)
		return -EAGAIN;
	c->accepted = true;
	(void)snprintf(peer, peer_len, "%s", c->caller.name);
	*out = &c->callee;
	return 0;
}

static void turn_away(const struct mst_listener *l)
{
	for (struct connection *c = streams.connections; c != NULL; c = c->next) {
		if (c->listener != l || !c->arrived || c->accepted)
			continue;
		c->callee.closed = true;
		c->back.broken = true;
		go(&c->back);
	}
}

static void stream_unlisten(struct mst_listener *l)
{
	if (l == NULL || l->closed)
		return;
	l->closed = true;
	turn_away(l);
}

/* ---- connecting ---- */

static uint32_t queue_of(const struct mst_listener *l)
{
	uint32_t count = 0;

	for (const struct connection *c = streams.connections; c != NULL; c = c->next)
		count += c->listener == l && c->arrived && !c->accepted;
	return count;
}

static void is_answered(void *ctx, uint64_t unused)
{
	struct connection *c = ctx;
	uint64_t until_ns = free_at(c);

	(void)unused;
	if (until_ns > 0 && until_ns < MST_NEVER)
		sim_after(until_ns - sim_now(), is_answered, c, 0);
	if (until_ns > 0)
		return;
	c->answered = true;
	sim_ring(&c->wakeup);
}

/* The kernel lets the caller in, whether or not anybody accepts. */
static void request(void *ctx, uint64_t unused)
{
	struct connection *c = ctx;
	uint64_t until_ns = free_at(c);

	(void)unused;
	if (until_ns == 0 && !c->listener->closed && queue_of(c->listener) >= BACKLOG)
		until_ns = sim_now() + MST_SECOND;
	if (until_ns > 0 && until_ns < MST_NEVER)
		sim_after(until_ns - sim_now(), request, c, 0);
	if (until_ns > 0)
		return;
	c->arrived = !c->listener->closed;
	c->error = c->arrived ? 0 : -ECONNREFUSED;
	if (c->arrived)
		sim_ring(&c->listener->owner->control);
	sim_after(latency(), is_answered, c, 0);
}

static struct connection *connection_new(struct mst_listener *l)
{
	struct connection *c = sim_alloc(sizeof(*c));

	pipe_init(&c->there, &c->caller, &c->callee);
	pipe_init(&c->back, &c->callee, &c->caller);
	c->caller = (struct mst_stream){
		.owner = sim_self(), .in = &c->back, .out = &c->there, .connection = c
	};
	c->callee = (struct mst_stream){
		.owner = l->owner, .in = &c->there, .out = &c->back, .connection = c
	};
	(void)snprintf(c->caller.name, sizeof(c->caller.name), "127.0.0.1:%u",
		       streams.caller_port++);
	c->listener = l;
	*streams.end = c;
	streams.end = &c->next;
	return c;
}

static struct mst_listener *find_silent(uint32_t port)
{
	struct mst_listener *l = streams.listeners;

	while (l != NULL && (l->port != port || !is_off(l->owner)))
		l = l->next;
	return l;
}

/* 0: there was an answer. */
static int await(struct connection *c, uint64_t timeout_ns)
{
	uint64_t begin_ns = sim_now();

	if (timeout_ns > CONNECT_MAX_NS)
		timeout_ns = CONNECT_MAX_NS;
	while (!c->answered) {
		uint64_t past_ns = sim_now() - begin_ns;
		if (c->caller.owner->dead)
			return -ECONNREFUSED;
		if (past_ns >= timeout_ns)
			return -ETIMEDOUT;
		(void)sim_wait(&c->wakeup, timeout_ns - past_ns);
	}
	return c->error;
}

static int stream_connect(const char *address, uint64_t timeout_ns, struct mst_proof *proof,
			  struct mst_stream **out)
{
	struct sim_process *self = sim_self();
	char host[256];
	int port = parse(address, host, sizeof(host));

	MST_ASSERT(proof == NULL || proof->own == NULL);
	look_at_world();
	if (port < 0)
		return port;
	if (self->dead)
		return -ECONNREFUSED;
	struct mst_listener *l = find((uint32_t)port);
	if (l == NULL)
		l = find_silent((uint32_t)port);
	if (l == NULL) {
		sim_sleep(2 * latency());
		return -ECONNREFUSED;
	}
	struct connection *c = connection_new(l);
	sim_after(latency(), request, c, 0);
	int rc = await(c, timeout_ns);
	if (rc == 0)
		*out = &c->caller;
	else
		close_end(&c->caller);
	return rc;
}

/* ---- deaths and faults ---- */

static void die(struct sim_process *p)
{
	look_at_world();
	for (struct mst_listener *l = streams.listeners; l != NULL; l = l->next) {
		if (l->owner != p || l->closed)
			continue;
		l->closed = true;
		if (p->death == SIM_KILLED)
			turn_away(l);
	}
	for (struct connection *c = streams.connections; c != NULL; c = c->next) {
		if (p->death == SIM_KILLED && c->caller.owner == p)
			close_end(&c->caller);
		if (p->death == SIM_KILLED && c->callee.owner == p && c->accepted)
			close_end(&c->callee);
		if (c->caller.owner == p)
			sim_ring(&c->wakeup);
	}
}

static bool is_of(const struct connection *c, const struct sim_process *p)
{
	return c->caller.owner == p || c->callee.owner == p;
}

void sim_streams_reset(struct sim_process *p)
{
	look_at_world();
	sim_say("the connections of %s are reset", p->name);
	for (struct connection *c = streams.connections; c != NULL; c = c->next) {
		if (!is_of(c, p) || !c->answered || c->cut)
			continue;
		c->there.broken = c->back.broken = true;
		go(&c->there);
		go(&c->back);
	}
}

void sim_streams_cut(struct sim_process *p)
{
	look_at_world();
	sim_say("the connections of %s are cut", p->name);
	for (struct connection *c = streams.connections; c != NULL; c = c->next)
		if (is_of(c, p) && c->answered)
			c->cut = true;
}

void sim_streams_cut_between(struct sim_process *caller, const struct sim_process *callee,
			     bool told)
{
	look_at_world();
	for (struct connection *c = streams.connections; c != NULL; c = c->next) {
		if (c->caller.owner != caller || c->callee.owner != callee || !c->answered)
			continue;
		c->cut = true;
		if (told)
			break_at(&c->caller);
	}
}

void sim_streams_hide(const struct sim_process *p)
{
	look_at_world();
	for (struct mst_listener *l = streams.listeners; l != NULL; l = l->next)
		l->hidden |= l->owner == p;
}

void sim_streams_stall(struct sim_process *p, uint64_t span_ns)
{
	look_at_world();
	struct stall *s = stall_of(p);

	if (s == NULL) {
		s = sim_alloc(sizeof(*s));
		*s = (struct stall){ .process = p, .next = streams.stalls };
		streams.stalls = s;
	}
	sim_say("the connections of %s stand still for %.3f s", p->name,
		(double)span_ns / (double)MST_SECOND);
	if (sim_now() + span_ns > s->until_ns)
		s->until_ns = sim_now() + span_ns;
}

/* ---- the table ---- */

static int stream_fd(const struct mst_stream *s)
{
	(void)s;
	return -1;
}

static int stream_listener_fd(const struct mst_listener *l)
{
	(void)l;
	return -1;
}

/* As by certificates: every process has the role that its name says. */
static void stream_principal(const struct mst_stream *s, struct mst_principal *out)
{
	static const struct {
		const char *process;
		uint32_t role;
	} rows[] = {
		{ "server", MST_ROLE_SERVER },     { "follower", MST_ROLE_SERVER },
		{ "worker", MST_ROLE_WORKER },     { "operator", MST_ROLE_OPERATOR },
		{ "observer", MST_ROLE_OBSERVER },
	};
	const struct connection *c = s->connection;
	const struct sim_process *peer = s == &c->caller ? c->callee.owner : c->caller.owner;

	*out = (struct mst_principal){ .proven = true };
	(void)snprintf(out->name, sizeof(out->name), "%s", peer->name);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strncmp(peer->name, rows[i].process, strlen(rows[i].process)) == 0)
			out->roles = rows[i].role;
	}
}

const struct mst_stream_ops sim_stream = {
	.listen = stream_listen,
	.accept = stream_accept,
	.unlisten = stream_unlisten,
	.connect = stream_connect,
	.send = stream_send,
	.receive = stream_receive,
	.close = stream_close,
	.principal = stream_principal,
	.buffered = mst_stream_unbuffered,
	.why = mst_stream_no_why,
	.stream_fd = stream_fd,
	.listener_fd = stream_listener_fd,
};
