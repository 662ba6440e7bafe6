/* SPDX-License-Identifier: MIT */
/*
 * The link between two servers of a job, and an end of it that writes any entry, raises any
 * immediate, and is lost and dialled anew at any time; beside it workers that come, send and go.
 * The other end is a whole server, the leader or a follower: it goes on, or says that its peer is
 * of no more use, once; it never stumbles.
 *
 * An input is a role and a policy, then a list of turns: a byte for what happens, then what that
 * takes.
 */
#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/cluster/follower.h"
#include "server/cluster/leader.h"
#include "server/cluster/peer.h"
#include "server/core/policy/rule.h"
#include "server/data/server.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/session.h"
#include "tests/unit/common/optim/optim_case.h"

#define WORKERS 3u
#define SLOTS 2u
#define ELEMS 64u
#define HISTORY 3u
#define SESSIONS_MAX 12u
#define STEPS_MAX 4000
#define LEASE_NS MST_SECOND

static const char *const policies[] = { "bsp",      "backup:2",     "ksync:2", "async",
					"kasync:2", "kbatchsync:4", "ssp:1",   "kbatchasync:3" };

/* One link of the line, and the one that is used after it. */
struct server_link {
	struct pipe_link acceptor, connector;
	bool made;
};

struct server_link_world {
	struct mst_server_cfg cfg;
	struct mst_server *server;
	bool follower; /* the server is one, its peer the leader; else the reverse */
	struct fuzz_session session[SESSIONS_MAX];
	struct fuzz_session *now[WORKERS];
	struct mst_lane_header last[WORKERS]; /* headers: both servers have the same of a worker */
	uint64_t seq[WORKERS];
	uint32_t incarnation[WORKERS]; /* at a follower: the newest */
	struct server_link line[2];
	unsigned lines;
	struct pipe_link *server_end, *own_end; /* NULL: no link */
	uint64_t said, heard;                   /* entries */
	uint32_t window;
	uint64_t now_ns;
	bool gone, over;
};

/* ---- the control side ---- */

static void request(struct server_link_world *w, const struct mst_request *r)
{
	while (!mst_server_request(w->server, r)) /* the ring is emptied by steps */
		(void)mst_server_step(w->server, w->now_ns);
}

static void tell(struct server_link_world *w, enum mst_ledger_event_kind kind, uint32_t rank)
{
	struct mst_request r = { .kind = MST_REQ_EVENT, .event = { .kind = kind } };

	if (w->follower || w->now[rank] == NULL)
		return;
	r.event.who = w->now[rank]->session.who;
	r.event.offers = kind == MST_EV_START;
	if (kind == MST_EV_LOST)
		r.event.error = -EPIPE;
	request(w, &r);
}

static void link_worker(struct server_link_world *w, struct mst_identity who)
{
	struct mst_request r = { .kind = MST_REQ_LINKED };
	struct pipe_net *net = (struct pipe_net *)mst_server_net(w->server);
	const struct mst_lane_layout *l = &w->cfg.aggregator.layout;
	struct mst_lanes lanes = { l->up_bytes, l->down_bytes, l->up_credits, l->down_credits };
	struct fuzz_session *g = w->session;

	while (g < w->session + SESSIONS_MAX && g->in_use)
		g++;
	if (g == w->session + SESSIONS_MAX)
		return;
	*g = (struct fuzz_session){ .session = { .who = who }, .in_use = true };
	pipe_link_init(&g->acceptor, &g->connector, &lanes, net);
	g->session.link = &g->acceptor.link;
	w->now[who.rank] = g;
	w->seq[who.rank] = 0;
	r.session = &g->session;
	request(w, &r);
	tell(w, MST_EV_START, who.rank);
}

static void join(struct server_link_world *w, uint32_t rank)
{
	struct mst_request r = { .kind = MST_REQ_EVENT, .event = { .kind = MST_EV_JOIN } };

	r.event.join.rank = (int32_t)rank;
	if (w->follower)
		link_worker(w, (struct mst_identity){ rank, ++w->incarnation[rank] });
	else
		request(w, &r);
}

static void session_free(struct server_link_world *w, struct fuzz_session *g)
{
	if (w->now[g->session.who.rank] == g)
		w->now[g->session.who.rank] = NULL;
	pipe_link_fini(&g->acceptor, &g->connector);
	g->in_use = false;
}

static void take_notice(struct server_link_world *w, const struct mst_notice *n)
{
	switch (n->kind) {
	case MST_NOTE_ADMITTED:
		link_worker(w, n->who);
		break;
	case MST_NOTE_SEND_STATE:
		memset(mst_server_start_buffer(w->server), 0, ELEMS * sizeof(float));
		tell(w, MST_EV_STATE, n->who.rank);
		break;
	case MST_NOTE_FINISHED:
		MST_ASSERT(!w->over);
		w->over = true;
		break;
	case MST_NOTE_PEER_GONE:
		MST_ASSERT(!w->gone);
		w->gone = true;
		w->server_end = NULL;
		break;
	case MST_NOTE_PEER_LOST:
		w->server_end = NULL;
		break;
	case MST_NOTE_OVER:
		session_free(w, (struct fuzz_session *)n->session);
		break;
	default:
		break;
	}
}

static void run(struct server_link_world *w)
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
}

/* Two leases, in which the server looks all the while, or stands still itself; or a little time. */
static void pass(struct server_link_world *w, uint8_t what)
{
	for (uint32_t i = 0; what < 32 && i < 32; i++) {
		w->now_ns += LEASE_NS / 16;
		run(w);
	}
	if (what >= 32)
		w->now_ns += what < 64 ? 2 * LEASE_NS : LEASE_NS / 4;
}

static void notify(void *ctx)
{
	(void)ctx; /* run() looks anyway */
}

/* ---- the line ---- */

static void line_up(struct server_link_world *w)
{
	struct server_link *line = &w->line[++w->lines % 2];
	struct pipe_net *net = (struct pipe_net *)mst_server_net(w->server);
	struct mst_lanes lanes = mst_peer_lanes(w->window);
	struct mst_request r = { .kind = w->follower ? MST_REQ_DIAL : MST_REQ_PEER_LINKED };

	if (w->gone)
		return;
	if (line->made)
		pipe_link_fini(&line->acceptor, &line->connector);
	pipe_link_init(&line->acceptor, &line->connector, &lanes, net);
	line->made = true;
	w->server_end = w->follower ? &line->connector : &line->acceptor;
	w->own_end = w->follower ? &line->acceptor : &line->connector;
	pipe_answers = w->follower ? &w->server_end->link : NULL;
	if (!w->follower) {
		r.peer.server = 1;
		r.peer.link = &w->server_end->link;
	} else {
		memcpy(r.token, &w->lines, sizeof(w->lines));
	}
	request(w, &r);
	run(w);
	/* What the server says it has executed. */
	memcpy(&w->said, (char *)w->own_end->link.inbound + mst_peer_ack_at(w->window),
	       sizeof(w->said));
}

static void write_at(struct server_link_world *w, size_t offset, const void *from, size_t bytes)
{
	memcpy((char *)w->server_end->link.inbound + offset, from, bytes);
}

static void hear(struct server_link_world *w)
{
	struct mst_peer_entry entry;

	for (;; w->heard++) {
		memcpy(&entry,
		       (char *)w->own_end->link.inbound + mst_peer_at(w->heard + 1, w->window),
		       sizeof(entry));
		if (entry.number != w->heard + 1)
			return;
	}
}

static void send_ack(struct server_link_world *w, uint64_t ack)
{
	write_at(w, mst_peer_ack_at(w->window), &ack, sizeof(ack));
	pipe_arrive(w->server_end, MST_PEER_IMM_ACK);
}

static uint64_t epoch_of(const struct server_link_world *w, uint32_t rank, uint32_t slot)
{
	return w->now[rank] != NULL ? w->now[rank]->session.slot[slot].epoch : 1;
}

/* What an honest peer might say now, of @kind. */
static struct mst_peer_entry plausible(const struct server_link_world *w, uint32_t kind,
				       uint8_t what)
{
	uint32_t rank = what % WORKERS, slot = what / 4 % SLOTS;
	struct mst_peer_entry entry = {
		.kind = kind, .rank = rank, .slot = slot, .coefficient = 1
	};

	entry.incarnation = w->now[rank] != NULL ? w->now[rank]->session.who.incarnation : 1;
	entry.value = epoch_of(w, rank, slot) + (kind == MST_PEER_REGRANT);
	entry.code = kind == MST_PEER_LOST ? -EPIPE : what / 16 % 4;
	if (kind == MST_PEER_FULL) {
		entry.header = w->last[rank];
	} else if (kind == MST_PEER_RELEASE) {
		entry.answer.number = 1 + what / 8 % 8;
		entry.answer.where = what / 64;
		entry.answer.buffer = what % 3;
	} else if (kind == MST_PEER_COMMIT || kind == MST_PEER_START) {
		entry.commit.version = what / 4;
		entry.commit.buffer = what % 4;
		entry.commit.divisor = 1;
	}
	return entry;
}

static void send_entry(struct server_link_world *w, struct fuzz_input *in)
{
	uint8_t what = fuzz_next(in), more = fuzz_next(in);
	uint32_t first = w->follower ? MST_PEER_START : MST_PEER_LINKED;
	uint32_t kinds = w->follower ? MST_PEER_KINDS - MST_PEER_START : MST_PEER_START - 1;
	struct mst_peer_entry entry = plausible(w, first + what % kinds, more);

	hear(w);
	entry.number = ++w->said;
	entry.ack = w->heard;
	if (what / 16 == 0)
		fuzz_overwrite(in, &entry, sizeof(entry));
	write_at(w, mst_peer_at(w->said, w->window), &entry, sizeof(entry));
	pipe_arrive(w->server_end, mst_peer_imm(w->said));
}

static void use_line(struct server_link_world *w, struct fuzz_input *in)
{
	uint8_t what = fuzz_next(in);

	if (w->server_end == NULL) {
		line_up(w);
		return;
	}
	switch (what % 16) {
	case 0:
		w->server_end->peer = NULL;
		pipe_lose(w->server_end);
		break;
	case 1:
		line_up(w);
		break;
	case 2:
		fuzz_overwrite(in, w->server_end->link.inbound, 256);
		pipe_arrive(w->server_end, fuzz_word(in));
		break;
	case 3:
		send_ack(w, what / 16 == 0 ? fuzz_word(in) : w->heard);
		break;
	case 4:
	case 5:
		hear(w);
		send_ack(w, w->heard);
		break;
	default:
		send_entry(w, in);
	}
}

/* ---- workers ---- */

/* The next of its worker; or, again, the last, for the other server's sake. */
static void send_header(struct server_link_world *w, uint32_t rank, uint8_t what)
{
	struct fuzz_session *g = w->now[rank];
	uint32_t slot = what % SLOTS;
	uint64_t epoch = g->session.slot[slot].epoch;
	struct mst_lane_header *h = &w->last[rank];

	*h = (struct mst_lane_header){ .seq = ++w->seq[rank],
				       .epoch = epoch,
				       .weight = 1,
				       .slot = (uint16_t)slot,
				       .flags = MST_HEADER_FULL | (what & 4 ? MST_HEADER_ASK : 0),
				       .size = MST_HEADER_SIZE };
	h->ask = (struct mst_lane_ask){ 1 + what / 8 % 8, what / 64 };
	memcpy((char *)g->acceptor.link.inbound + w->cfg.aggregator.layout.up_header[slot], h,
	       sizeof(*h));
	pipe_arrive(&g->acceptor, mst_imm(MST_IMM_HEADER, slot, epoch));
}

static void use_worker(struct server_link_world *w, struct fuzz_input *in)
{
	uint8_t what = fuzz_next(in), rank = what / 8 % WORKERS, slot = what / 32 % SLOTS;

	if (w->now[rank] == NULL || what % 8 == 7) {
		join(w, rank);
		return;
	}
	struct fuzz_session *g = w->now[rank];
	switch (what % 8) {
	case 0:
		pipe_arrive(&g->acceptor,
			    mst_imm(MST_IMM_ABANDON, slot, g->session.slot[slot].epoch));
		break;
	case 1:
		pipe_lose(&g->acceptor);
		break;
	case 2:
		tell(w, MST_EV_LOST, rank);
		break;
	case 3:
		pass(w, what);
		break;
	default:
		send_header(w, rank, fuzz_next(in));
	}
}

/* ---- the whole ---- */

static void configure_ledger(struct server_link_world *w, uint8_t what)
{
	struct mst_rule rule = { .divide = true, .patience_ns = MST_NEVER / 4, .min_workers = 1 };
	struct mst_rule_context ctx = {
		.workers = WORKERS, .slots = SLOTS, .owner = what & 1, .force = true
	};
	struct mst_reason why;

	MST_ASSERT(mst_rule_parse(policies[what / 2 % (sizeof(policies) / sizeof(policies[0]))],
				  &rule, &why) == 0);
	if (mst_rule_check(&rule, &ctx, &why) != 0)
		MST_ASSERT(mst_rule_parse("bsp", &rule, &why) == 0);
	w->cfg.ledger = (struct mst_ledger_cfg){ .workers = WORKERS,
						 .shards = 2,
						 .slots = SLOTS,
						 .buffers = 4,
						 .history = ctx.owner ? HISTORY : 0,
						 .in_place = true,
						 .owner = ctx.owner,
						 .rule = rule,
						 .optimizer = optim_case_of(ctx.owner),
						 .commits_max = 6,
						 .lease_ns = LEASE_NS,
						 .join_until_ns = MST_NEVER };
	if (what & 32)
		w->cfg.ledger.optimizer.parameter[MST_SGD_CLIP] = 1; /* a reduce phase */
	w->cfg.server_lease_ns = LEASE_NS;
}

static void configure(struct server_link_world *w, struct fuzz_input *in)
{
	struct mst_lane_figures figures = { ELEMS, 4, 4, SLOTS, WORKERS, true };
	uint8_t what = fuzz_next(in);

	w->follower = what & 128;
	configure_ledger(w, what);
	w->cfg.aggregator = (struct mst_aggregator_cfg){
		.index = w->follower,
		.follower = w->follower,
		.shards = 1,
		.owner = w->cfg.ledger.owner,
		.elems = ELEMS,
		.chunk_elems = 1024,
		.group = what & 64 ? 1 : 2,
		.workers = WORKERS,
		.slots = SLOTS,
		.sessions_max = SESSIONS_MAX,
		.buffers = mst_ledger_buffers(&w->cfg.ledger),
		.entries_max = mst_ledger_entries(&w->cfg.ledger),
		.partials = 1,
		.optimizer = w->cfg.ledger.optimizer
	};
	mst_lane_layout(&figures, &w->cfg.aggregator.layout);
	w->cfg.peers = 1;
	w->cfg.decider = w->follower ? mst_follower_make : mst_leader_make;
	w->cfg.leader = "pipe:";
	w->cfg.transport = &pipe_transport;
	w->cfg.notify = notify;
	w->window = mst_peer_window(WORKERS, SLOTS);
}

static void begin(struct server_link_world *w, struct fuzz_input *in)
{
	struct mst_reason unused;

	memset(w, 0, sizeof(*w));
	configure(w, in);
	MST_ASSERT(mst_server_new(&w->cfg, &w->server, &unused) == 0);
	line_up(w);
	send_ack(w, 0);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		join(w, rank);
	run(w);
}

static void end(struct server_link_world *w)
{
	struct mst_notice n;

	mst_server_hang_up(w->server, -ENOTCONN);
	while (mst_server_notice(w->server, &n))
		take_notice(w, &n);
	for (struct fuzz_session *g = w->session; g < w->session + SESSIONS_MAX; g++)
		if (g->in_use)
			session_free(w, g);
	mst_server_free(w->server);
	for (int i = 0; i < 2; i++)
		if (w->line[i].made)
			pipe_link_fini(&w->line[i].acceptor, &w->line[i].connector);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, data + size };
	static struct server_link_world w;

	begin(&w, &in);
	while (in.at < in.end) {
		if (fuzz_next(&in) % 4 != 0)
			use_line(&w, &in);
		else
			use_worker(&w, &in);
		run(&w);
	}
	end(&w);
	return 0;
}
