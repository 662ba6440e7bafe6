/* SPDX-License-Identifier: MIT */
/*
 * A worker that writes anything into its lane, and raises any immediate, beside one that keeps to
 * the protocol: the server goes on, and the honest worker takes no harm. It is never put out, gets
 * one verdict for each ticket, in order, versions that only grow, and sets with figures that can
 * be.
 *
 * An input is a policy, then a list of turns: a byte for what happens, then what that takes.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/core/policy/rule.h"
#include "server/data/server.h"
#include "tests/fuzz/handle.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/session.h"
#include "tests/unit/common/optim/optim_case.h"

enum { HOSTILE, HONEST, WORKERS };

#define SLOTS 2u
#define ELEMS 64u
#define HISTORY 4u
#define SESSIONS_MAX 8u
#define STEPS_MAX 4000

static const char *const policies[] = { "bsp",        "backup:1",     "ksync:1", "async",
					"kasync:2",   "kbatchsync:2", "ssp:1",   "bounded:1",
					"softsync:1", "kbatchasync:3" };

struct lanes_world {
	struct mst_server_cfg cfg;
	struct mst_server *server;
	struct fuzz_session session[SESSIONS_MAX];
	struct fuzz_session *now[WORKERS];
	struct pipe_net nowhere; /* the hostile worker's: it listens to nothing */
	uint64_t headers;        /* of the hostile worker's session */
	uint64_t now_ns;
	bool finished;

	struct handle honest;
	struct muster_outcome out;
	uint64_t given, version;
	bool started;
};

/* ---- the control side ---- */

static void request(struct lanes_world *w, const struct mst_request *r)
{
	MST_ASSERT(mst_server_request(w->server, r));
}

static void tell(struct lanes_world *w, enum mst_ledger_event_kind kind, unsigned rank)
{
	struct mst_request r = { .kind = MST_REQ_EVENT, .event = { .kind = kind } };

	if (w->now[rank] == NULL)
		return;
	r.event.who = w->now[rank]->session.who;
	r.event.offers = kind == MST_EV_START;
	if (kind == MST_EV_LOST)
		r.event.error = -EPIPE;
	request(w, &r);
}

static void join(struct lanes_world *w, int32_t rank)
{
	struct mst_request r = { .kind = MST_REQ_EVENT, .event = { .kind = MST_EV_JOIN } };

	r.event.join.rank = rank;
	request(w, &r);
}

static struct mst_lanes lanes(const struct lanes_world *w)
{
	const struct mst_lane_layout *l = &w->cfg.aggregator.layout;

	return (struct mst_lanes){ l->up_bytes, l->down_bytes, l->up_credits, l->down_credits };
}

static void begin_honestly(struct lanes_world *w)
{
	struct handle_figures f = { .rank = HONEST,
				    .workers = WORKERS,
				    .slots = SLOTS,
				    .buffers = w->cfg.aggregator.buffers,
				    .elems = ELEMS,
				    .owner = w->cfg.aggregator.owner };

	handle_init(&w->honest, &f,
		    &(struct handle_part){ .link = &w->now[HONEST]->connector,
					   .layout = &w->cfg.aggregator.layout,
					   .count = ELEMS },
		    1);
}

static void admitted(struct lanes_world *w, struct mst_identity who)
{
	struct mst_request r = { .kind = MST_REQ_LINKED };
	struct pipe_net *net = (struct pipe_net *)mst_server_net(w->server);
	struct mst_lanes both = lanes(w);
	struct fuzz_session *g = w->session;
	struct mst_reason unused;

	while (g->in_use)
		g++;
	MST_ASSERT(g < w->session + SESSIONS_MAX);
	*g = (struct fuzz_session){ .session = { .who = who }, .in_use = true };
	pipe_link_init(&g->acceptor, &g->connector, &both, net);
	g->session.link = &g->acceptor.link;
	w->now[who.rank] = g;
	if (who.rank == HOSTILE)
		pipe_transport.attach(&w->nowhere.net, &g->connector.link, &unused);
	w->headers = who.rank == HOSTILE ? 0 : w->headers;
	r.session = &g->session;
	request(w, &r);
	if (who.rank == HOSTILE)
		tell(w, MST_EV_START, who.rank);
	else
		begin_honestly(w);
}

static void session_free(struct lanes_world *w, struct fuzz_session *g)
{
	if (w->now[g->session.who.rank] == g)
		w->now[g->session.who.rank] = NULL;
	if (g->connector.net == &w->nowhere)
		pipe_transport.detach(&g->connector.link);
	if (g->acceptor.peer != NULL)
		g->acceptor.peer->peer = NULL;
	pipe_link_fini(&g->acceptor, &g->connector);
	g->in_use = false;
}

static void take_notice(struct lanes_world *w, const struct mst_notice *n)
{
	switch (n->kind) {
	case MST_NOTE_ADMITTED:
		admitted(w, n->who);
		break;
	case MST_NOTE_SEND_STATE:
		memset(mst_server_start_buffer(w->server), 0, ELEMS * sizeof(float));
		tell(w, MST_EV_STATE, n->who.rank);
		break;
	case MST_NOTE_EVICTED:
		MST_ASSERT(n->who.rank == HOSTILE || w->finished);
		break;
	case MST_NOTE_FINISHED:
		w->finished = true;
		break;
	case MST_NOTE_OVER:
		/* The honest worker's link is its handle's, to the end. */
		if (n->session->who.rank == HOSTILE)
			session_free(w, (struct fuzz_session *)n->session);
		break;
	default:
		break;
	}
}

static void run(struct lanes_world *w)
{
	struct mst_notice n;
	bool any = true;

	for (int steps = 0; any; steps++) {
		MST_ASSERT(steps < STEPS_MAX);
		any = mst_server_step(w->server, ++w->now_ns);
		while (mst_server_notice(w->server, &n)) {
			take_notice(w, &n);
			any = true;
		}
	}
	w->nowhere.count = 0;
}

static void notify(void *ctx)
{
	(void)ctx; /* run() looks anyway */
}

/* ---- the honest worker ---- */

static void look_at(struct lanes_world *w)
{
	const struct muster_outcome *out = &w->out;

	MST_ASSERT(out->set_len <= WORKERS && out->version >= w->version);
	MST_ASSERT(isfinite(out->weight) && out->weight >= 0);
	for (uint32_t i = 0; i < out->set_len; i++)
		MST_ASSERT(out->set[i].rank < WORKERS && out->set[i].weight > 0);
	w->version = out->version;
	if (out->ticket == 0)
		return;
	MST_ASSERT(out->ticket == w->given + 1);
	w->given = out->ticket;
}

static void work_honestly(struct lanes_world *w)
{
	struct muster_contribution c = {
		.size = sizeof(c), .weight = 32, .loss = 0.5, .has_loss = true, .full = true
	};
	struct muster *m = &w->honest.m;
	float state[ELEMS] = { 0 };

	bool says_so = m->worker.phase == MST_WORKER_JOINED;
	int rc = w->started ? muster_wait(m, &w->out) : muster_start(m, state, &w->out);
	if (says_so)
		tell(w, MST_EV_START, HONEST); /* the control connection takes it, and forgets */
	MST_ASSERT(rc >= 0 || rc == -ETIMEDOUT || w->finished);
	if (rc >= 0) {
		w->started = true;
		look_at(w);
	}
	if (!w->started || w->finished || muster_gradient(m) == NULL)
		return;
	rc = muster_push(m, &c, NULL);
	MST_ASSERT(rc == 0 || rc == -EAGAIN);
}

/* ---- the hostile one ---- */

static char *up(const struct fuzz_session *g, size_t offset)
{
	return (char *)g->acceptor.link.inbound + offset;
}

static void send_header(struct lanes_world *w, struct fuzz_input *in)
{
	struct fuzz_session *g = w->now[HOSTILE];
	uint8_t what = fuzz_next(in);
	uint32_t slot = what % SLOTS;
	struct mst_lane_header h = {
		.seq = ++w->headers,
		.epoch = g->session.slot[slot].epoch,
		.tag = w->version,
		.weight = 1,
		.slot = (uint16_t)slot,
		.flags = MST_HEADER_FULL | (what / 8 % 4 == 0 ? MST_HEADER_ASK : 0),
		.size = MST_HEADER_SIZE,
	};

	h.ask = (struct mst_lane_ask){ 1 + what / 32, w->version };
	if (what / 2 % 4 != 0)
		fuzz_overwrite(in, &h, sizeof(h));
	memcpy(up(g, w->cfg.aggregator.layout.up_header[slot]), &h, sizeof(h));
	pipe_arrive(&g->acceptor, mst_imm(MST_IMM_HEADER, slot, g->session.slot[slot].epoch));
}

static void send_ask(struct lanes_world *w, struct fuzz_input *in)
{
	struct fuzz_session *g = w->now[HOSTILE];
	struct mst_lane_lone_ask ask = { .ask = { 1 + fuzz_next(in) % 8, w->version } };

	fuzz_overwrite(in, &ask, sizeof(ask));
	memcpy(up(g, w->cfg.aggregator.layout.up_ask), &ask, sizeof(ask));
	pipe_arrive(&g->acceptor, mst_imm(MST_IMM_ASK, 0, 0));
}

static void do_harm(struct lanes_world *w, struct fuzz_input *in)
{
	struct fuzz_session *g = w->now[HOSTILE];
	uint8_t what = fuzz_next(in), slot = what / 16 % SLOTS;

	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		send_header(w, in);
		break;
	case 3:
		send_ask(w, in);
		break;
	case 4:
		pipe_arrive(&g->acceptor,
			    mst_imm(MST_IMM_ABANDON, slot, g->session.slot[slot].epoch));
		break;
	case 5:
		fuzz_overwrite(in, g->acceptor.link.inbound,
			       w->cfg.aggregator.layout.up_gradient[0]);
		pipe_arrive(&g->acceptor, fuzz_word(in));
		break;
	case 6:
		fuzz_overwrite(in, up(g, w->cfg.aggregator.layout.up_gradient[slot]), 256);
		break;
	default:
		/* On the control connection, or on none. */
		tell(w,
		     what / 8 % 2    ? MST_EV_LOST
		     : what / 16 % 2 ? MST_EV_LEAVE
				     : MST_EV_START,
		     HOSTILE);
	}
}

/* ---- the whole ---- */

static void configure(struct lanes_world *w, struct fuzz_input *in)
{
	struct mst_lane_figures figures = { ELEMS, 4, 4, SLOTS, WORKERS, false };
	uint8_t what = fuzz_next(in);
	bool workers_own = what & 1;
	struct mst_rule rule = { .divide = true, .patience_ns = MST_NEVER / 4, .min_workers = 1 };
	struct mst_rule_context ctx = {
		.workers = WORKERS, .slots = SLOTS, .owner = workers_own, .force = true
	};
	struct mst_reason why;

	/* where the corpus has nothing, so that its inputs stay what they are */
	const char *policy =
		what / 2 == 127 ? "nonblocking:0,2"
				: policies[what / 2 % (sizeof(policies) / sizeof(policies[0]))];
	MST_ASSERT(mst_rule_parse(policy, &rule, &why) == 0);
	if (mst_rule_check(&rule, &ctx, &why) != 0)
		MST_ASSERT(mst_rule_parse("bsp", &rule, &why) == 0);
	w->cfg.ledger = (struct mst_ledger_cfg){ .workers = WORKERS,
						 .shards = 1,
						 .slots = SLOTS,
						 .buffers = 4,
						 .history = workers_own ? HISTORY : 0,
						 .in_place = true,
						 .owner = ctx.owner,
						 .rule = rule,
						 .optimizer = optim_case_of(ctx.owner),
						 .lease_ns = MST_NEVER / 4,
						 .join_until_ns = MST_NEVER };
	w->cfg.aggregator = (struct mst_aggregator_cfg){
		.shards = 1,
		.owner = ctx.owner,
		.elems = ELEMS,
		.chunk_elems = 1024,
		.group = 8,
		.workers = WORKERS,
		.slots = SLOTS,
		.sessions_max = SESSIONS_MAX,
		.buffers = mst_ledger_buffers(&w->cfg.ledger),
		.entries_max = mst_ledger_entries(&w->cfg.ledger),
		.partials = mst_rule_repeats(&rule) ? 1 : 0,
		.optimizer = w->cfg.ledger.optimizer
	};
	mst_lane_layout(&figures, &w->cfg.aggregator.layout);
	w->cfg.transport = &pipe_transport;
	w->cfg.notify = notify;
}

static void begin(struct lanes_world *w, struct fuzz_input *in)
{
	struct mst_reason unused;

	memset(w, 0, sizeof(*w));
	w->out = (struct muster_outcome)MUSTER_OUTCOME;
	configure(w, in);
	pipe_net_init(&w->nowhere, 0);
	MST_ASSERT(mst_server_new(&w->cfg, &w->server, &unused) == 0);
	join(w, HOSTILE);
	join(w, HONEST);
	run(w);
}

static void end(struct lanes_world *w)
{
	mst_server_hang_up(w->server, -ENOTCONN);
	handle_fini(&w->honest);
	for (struct fuzz_session *g = w->session; g < w->session + SESSIONS_MAX; g++)
		if (g->in_use)
			session_free(w, g);
	mst_server_free(w->server);
	pipe_net_fini(&w->nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, data + size };
	static struct lanes_world w;

	begin(&w, &in);
	while (in.at < in.end) {
		uint8_t what = fuzz_next(&in);
		if (what % 4 == 0)
			work_honestly(&w);
		else if (w.now[HOSTILE] != NULL)
			do_harm(&w, &in);
		else
			join(&w, HOSTILE);
		run(&w);
	}
	end(&w);
	return 0;
}
