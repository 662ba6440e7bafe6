/* SPDX-License-Identifier: MIT */
/* Plans draw from a source of chance of their own: what a world does with its own does not change
 * them, nor does a fault that is left out. */
#include "tests/sim/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/rand.h"
#include "common/wire/lane.h"
#include "common/wire/part.h"
#include "server/core/rule.h"
#include "server/shard.h"

static const char *const names[] = {
	[SIM_FAULT_KILL] = "kill",       [SIM_FAULT_POWER_OFF] = "power-off",
	[SIM_FAULT_FREEZE] = "freeze",   [SIM_FAULT_STALL] = "stall",
	[SIM_FAULT_CUT] = "cut",         [SIM_FAULT_RESET] = "reset",
	[SIM_FAULT_DELAY] = "delay",     [SIM_FAULT_REJOIN] = "rejoin",
	[SIM_FAULT_DAWDLE] = "dawdle",   [SIM_FAULT_LEAVE] = "leave",
	[SIM_FAULT_FINISH] = "finish",   [SIM_FAULT_SCRIBBLE] = "scribble",
	[SIM_FAULT_RUBBISH] = "rubbish", [SIM_FAULT_STOP] = "stop",
	[SIM_FAULT_BREAK] = "break",
};

static const char *const moment_names[] = {
	[0] = "",
	[MST_IMM_HEADER] = "header",
	[MST_IMM_ABANDON] = "abandon",
	[MST_IMM_ASK] = "ask",
	[MST_IMM_SESSION] = "session",
	[MST_IMM_GRANT] = "grant",
	[MST_IMM_VERDICT] = "verdict",
	[MST_IMM_ANSWER] = "answer",
	[SIM_MOMENT_COMMIT] = "commit",
};

const char *sim_fault_name(enum sim_fault_kind kind)
{
	return names[kind];
}

static uint64_t below(struct mst_rand *r, uint64_t bound)
{
	return mst_rand_below(r, bound);
}

static uint64_t between(struct mst_rand *r, uint64_t low, uint64_t high)
{
	return low + below(r, high - low + 1);
}

static bool chance(struct mst_rand *r, double probability)
{
	return mst_rand_unit(r) < probability;
}

/* ---- the job ---- */

static void draw_policy(struct mst_rand *r, struct sim_plan *p)
{
	static const char *const any[] = { "bsp", "backup:N", "ksync:N", "kasync:N" };
	static const char *const servers[] = { "kbatchsync:N", "kbatchasync:N", "softsync:N",
					       "async",        "bounded:1",     "ssp:1" };
	bool workers_own = p->owner == MUSTER_WORKERS_OWN;
	uint64_t pick = below(r, workers_own ? 4 : 10);
	const char *name = pick < 4 ? any[pick] : servers[pick - 4];
	size_t length = strcspn(name, "N");

	(void)snprintf(p->policy, sizeof(p->policy), "%.*s", (int)length, name);
	if (name[length] == 'N')
		(void)snprintf(p->policy + length, sizeof(p->policy) - length, "%u",
			       (unsigned)between(r, 1, p->workers));
}

static void draw_optimizer(struct mst_rand *r, struct sim_plan *p)
{
	p->add = p->owner == MUSTER_SERVERS_OWN && chance(r, 0.3);
	p->lr = 0.125 * (double)between(r, 1, 5);
	p->momentum = chance(r, 0.5) ? 0 : 0.75;
	p->lr_linear = chance(r, 0.5);
	if (p->add)
		(void)snprintf(p->optimizer, sizeof(p->optimizer), "add");
	else
		(void)snprintf(p->optimizer, sizeof(p->optimizer), "sgd:lr=%g,momentum=%g", p->lr,
			       p->momentum);
}

static void draw_job(struct mst_rand *r, struct sim_plan *p)
{
	char why[256];

	p->workers = (uint32_t)between(r, 1, 6);
	p->owner = chance(r, 0.4) ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN;
	p->type = chance(r, 0.85) ? MUSTER_F32 : MUSTER_BF16;
	p->result_type = MUSTER_F32;
	draw_policy(r, p);
	draw_optimizer(r, p);
	int rc = mst_rule_parse(p->policy, &p->rule, why, sizeof(why));
	MST_ASSERT(rc == 0);
	p->rule.divide = !p->add;
	p->elems = between(r, 1, chance(r, 0.5) ? 900 : 5000);
	p->shards = 1;
	if (chance(r, 0.2)) {
		p->shards = (uint32_t)between(r, 2, 3);
		p->elems += p->shards * MST_SHARD_ELEMS_MIN;
	}
	p->group = (uint32_t)between(r, 1, 4);
	p->buffers = (uint32_t)between(r, 3, 5);
	p->history = (uint32_t)between(r, 2, 16);
	p->slots = chance(r, 0.7) ? 0 : (uint32_t)between(r, 2, 3);
	p->commits = between(r, 3, 25);
	p->lease_ns = between(r, 100, 1000) * MST_MS;
	p->patience_ns = between(r, 500, 3000) * MST_MS;
	p->join_ns = between(r, 2000, 8000) * MST_MS;
	p->slow_network = chance(r, 0.3);
	p->slow_server = chance(r, 0.25);
	p->preemption = chance(r, 0.5) ? 0.02 : 0.3;
}

static void draw_manners(struct mst_rand *r, struct sim_plan *p)
{
	bool straggles = chance(r, 0.3), eager = chance(r, 0.3);

	for (uint32_t rank = 0; rank < p->workers; rank++) {
		struct sim_manners *m = &p->manners[rank];
		m->arrives_ns = between(r, 0, chance(r, 0.2) ? 1000 * MST_MS : 5 * MST_MS);
		m->compute_min_ns = eager ? 1000 : between(r, 10, 300) * 1000;
		m->compute_max_ns = m->compute_min_ns + between(r, 0, 2000) * 1000;
		if (straggles && rank == 0)
			m->compute_max_ns += between(r, 1, p->patience_ns / MST_MS / 4) * MST_MS;
		m->pieces = (uint32_t)between(r, 1, 6);
		m->range_chance = chance(r, 0.5) ? 0 : mst_rand_unit(r);
		m->abandon_chance = chance(r, 0.6) ? 0 : 0.1;
		m->keep_chance = chance(r, 0.7) ? 0 : 0.4;
		m->pull_chance = chance(r, 0.7) ? 0 : 0.15;
		m->sum_chance = chance(r, 0.7) ? 0 : 0.5;
	}
}

/* ---- the faults ---- */

static struct sim_trigger draw_trigger(struct mst_rand *r, const struct sim_plan *p)
{
	struct sim_trigger t = { .server = SIM_ALL };

	if (chance(r, 0.3)) { /* before the job is born, or at any time of it */
		uint64_t most = chance(r, 0.3) ? 8 * MST_MS : p->commits * 3 * MST_MS;
		t.after_ns = between(r, 0, most);
		return t;
	}
	t.moment = (uint32_t)between(r, MST_IMM_HEADER, MST_IMM_ANSWER);
	t.nth = (uint32_t)between(r, 1, p->commits);
	t.after_ns = chance(r, 0.5) ? 0 : between(r, 0, 100000);
	return t;
}

static uint64_t draw_span(struct mst_rand *r, const struct sim_plan *p)
{
	switch (below(r, 3)) {
	case 0: /* hardly to be noticed */
		return between(r, 100, 20000) * 1000;
	case 1: /* about a lease, half of which is a gap */
		return between(r, p->lease_ns / 4, p->lease_ns * 2);
	default: /* about as long as others are patient */
		return between(r, p->lease_ns, p->patience_ns + 2 * p->lease_ns);
	}
}

static void add_fault(struct sim_plan *p, const struct sim_fault *f)
{
	if (p->fault_count < SIM_FAULTS_MAX)
		p->fault[p->fault_count++] = *f;
}

static enum sim_fault_kind draw_kind(struct mst_rand *r, bool of_server)
{
	static const enum sim_fault_kind of_servers[] = { SIM_FAULT_FREEZE, SIM_FAULT_FREEZE,
							  SIM_FAULT_FREEZE, SIM_FAULT_KILL,
							  SIM_FAULT_DELAY,  SIM_FAULT_STALL,
							  SIM_FAULT_STOP };

	if (of_server)
		return of_servers[below(r, sizeof(of_servers) / sizeof(of_servers[0]))];
	return (enum sim_fault_kind)below(r, SIM_FAULT_STOP);
}

static void draw_fault(struct mst_rand *r, struct sim_plan *p)
{
	bool of_server = chance(r, 0.12);
	enum sim_fault_kind kind = draw_kind(r, of_server);
	struct sim_fault f = { .kind = kind,
			       .target = of_server ? SIM_SERVER : (int)below(r, p->workers),
			       .with = SIM_ALL,
			       .when = draw_trigger(r, p),
			       .span_ns = draw_span(r, p) };

	if (kind == SIM_FAULT_DAWDLE && chance(r, 0.7))
		f.span_ns = p->patience_ns + p->lease_ns;
	add_fault(p, &f);
	/* Whoever is lost often comes again, at the worst moment: while the first is still known,
	 * or is only just forgotten. */
	if (!of_server && f.kind <= SIM_FAULT_RESET && chance(r, 0.6)) {
		f.kind = SIM_FAULT_REJOIN;
		f.when.after_ns += chance(r, 0.5) ? between(r, 0, 2 * MST_MS)
						  : between(r, 0, 2 * p->lease_ns);
		add_fault(p, &f);
	}
}

/* ---- several servers ---- */

/* A spread leaves each at least one unit of the vector. */
static void draw_servers(struct mst_rand *r, struct sim_plan *p)
{
	uint32_t weights = 0;

	p->servers = chance(r, 0.5) ? 1 : (uint32_t)between(r, 2, SIM_SERVERS_MAX);
	for (uint32_t k = 0; k < p->servers; k++) {
		p->weight[k] = 1;
		p->server_comes_ns[k] = between(r, 0, chance(r, 0.2) ? 1000 * MST_MS : 5 * MST_MS);
	}
	p->server_comes_ns[0] = 0;
	if (p->servers > 1 && chance(r, 0.4))
		p->weight[below(r, p->servers)] = 2;
	for (uint32_t k = 0; k < p->servers; k++)
		weights += p->weight[k];
	if (p->servers == 1)
		return;
	p->elems += weights * (uint64_t)MST_PART_ELEMS_MIN;
	if (!p->slow_network && chance(r, 0.2)) /* shorter than control threads like to sleep */
		p->lease_ns = between(r, 50, 100) * MST_MS;
}

static struct sim_trigger draw_trigger_at(struct mst_rand *r, const struct sim_plan *p,
					  uint32_t server)
{
	struct sim_trigger t = draw_trigger(r, p);

	if (t.moment != 0 && chance(r, 0.2))
		t.moment = SIM_MOMENT_COMMIT;
	bool of_lead = t.moment == MST_IMM_VERDICT || t.moment == MST_IMM_ASK;
	t.server = of_lead ? 0 : (int)server;
	return t;
}

/* Mostly so short that nobody may notice. */
static uint64_t draw_gap(struct mst_rand *r, const struct sim_plan *p)
{
	uint64_t least = p->lease_ns < p->patience_ns ? p->lease_ns : p->patience_ns;

	return chance(r, 0.65) ? between(r, 100 * 1000, least / 6) : draw_span(r, p);
}

/* Of a member, or of the lead. */
static void draw_fault_of_server(struct mst_rand *r, struct sim_plan *p)
{
	static const enum sim_fault_kind kinds[] = {
		SIM_FAULT_FREEZE, SIM_FAULT_FREEZE, SIM_FAULT_FREEZE, SIM_FAULT_BREAK,
		SIM_FAULT_BREAK,  SIM_FAULT_BREAK,  SIM_FAULT_STALL,  SIM_FAULT_STALL,
		SIM_FAULT_STALL,  SIM_FAULT_DELAY,  SIM_FAULT_KILL,   SIM_FAULT_POWER_OFF,
		SIM_FAULT_CUT,    SIM_FAULT_RESET,  SIM_FAULT_STOP,
	};
	uint32_t server = (uint32_t)(chance(r, 0.25) ? 0 : between(r, 1, p->servers - 1));
	struct sim_fault f = { .kind = kinds[below(r, sizeof(kinds) / sizeof(kinds[0]))],
			       .target = sim_target_of_server(server),
			       .with = SIM_ALL,
			       .when = draw_trigger_at(r, p, server),
			       .span_ns = draw_gap(r, p) };

	if (f.kind == SIM_FAULT_BREAK || (f.kind == SIM_FAULT_STALL && chance(r, 0.6)))
		f.with = server == 0 ? (int)between(r, 1, p->servers - 1) : 0;
	add_fault(p, &f);
}

/* Of a worker, at one server: between what it says to that one and to the next. */
static void draw_fault_at_server(struct mst_rand *r, struct sim_plan *p)
{
	static const enum sim_fault_kind kinds[] = {
		SIM_FAULT_KILL,     SIM_FAULT_POWER_OFF, SIM_FAULT_FREEZE,  SIM_FAULT_STALL,
		SIM_FAULT_STALL,    SIM_FAULT_BREAK,     SIM_FAULT_BREAK,   SIM_FAULT_RESET,
		SIM_FAULT_SCRIBBLE, SIM_FAULT_RUBBISH,   SIM_FAULT_RUBBISH,
	};
	uint32_t server = (uint32_t)below(r, p->servers);
	struct sim_fault f = { .kind = kinds[below(r, sizeof(kinds) / sizeof(kinds[0]))],
			       .target = (int)below(r, p->workers),
			       .with = (int)server,
			       .when = draw_trigger_at(r, p, server),
			       .span_ns = draw_span(r, p) };

	if (f.when.moment != 0 && chance(r, 0.5))
		f.when.moment = MST_IMM_HEADER;
	add_fault(p, &f);
	if (chance(r, 0.4)) {
		f.kind = SIM_FAULT_REJOIN;
		f.when.after_ns += between(r, 0, 2 * p->lease_ns);
		add_fault(p, &f);
	}
}

/* A worker is lost and comes again while a member has not heard of its end: what servers decide
 * goes another way than what they say of who comes. */
static void draw_comeback(struct mst_rand *r, struct sim_plan *p)
{
	uint32_t member = (uint32_t)between(r, 1, p->servers - 1);
	struct sim_fault f = { .kind = chance(r, 0.5) ? SIM_FAULT_BREAK : SIM_FAULT_STALL,
			       .target = sim_target_of_server(member),
			       .with = 0,
			       .span_ns = draw_gap(r, p) };

	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .server = 0,
				       .nth = (uint32_t)between(r, 1, p->commits) };
	add_fault(p, &f);
	f.kind = chance(r, 0.5) ? SIM_FAULT_RESET : SIM_FAULT_KILL;
	f.target = (int)below(r, p->workers);
	f.with = SIM_ALL;
	f.when.after_ns = between(r, 0, 1000000);
	add_fault(p, &f);
	f.kind = SIM_FAULT_REJOIN;
	f.when.after_ns += between(r, 0, 20 * MST_MS);
	add_fault(p, &f);
}

void sim_plan_make(uint64_t seed, const char *transport, struct sim_plan *p)
{
	struct mst_rand r;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	mst_rand_seed(&r, ~seed);
	p->far = chance(&r, 0.5);
	if (transport != NULL)
		p->far = strcmp(transport, "far") == 0;
	draw_job(&r, p);
	draw_manners(&r, p);
	/* Of five worlds one is whole: what happens there without a fault is nobody's fault. */
	bool whole = chance(&r, 0.2);
	for (uint64_t count = whole ? 0 : between(&r, 1, 5); count > 0; count--)
		draw_fault(&r, p);
	draw_servers(&r, p);
	if (whole || p->servers == 1)
		return;
	/* What servers do to each other shows best where workers do as they should. */
	if (chance(&r, 0.6))
		p->fault_count = 0;
	for (uint64_t count = between(&r, 0, 2); count > 0; count--)
		draw_fault_at_server(&r, p);
	for (uint64_t count = between(&r, 0, 3); count > 0; count--)
		draw_fault_of_server(&r, p);
	if (chance(&r, 0.15))
		draw_comeback(&r, p);
}

bool sim_plan_hits(const struct sim_plan *p, int target)
{
	for (uint32_t i = 0; i < p->fault_count; i++) {
		if (!p->fault[i].left_out && p->fault[i].target == target)
			return true;
	}
	return false;
}

/* Of a link that is made anew: the member waits a little, asks, and dials. */
#define RELINK_NS (70 * MST_MS)

/* How long a fault keeps a server from others; MST_NEVER: for good. */
static uint64_t gap_of(const struct sim_fault *f)
{
	switch (f->kind) {
	case SIM_FAULT_FREEZE:
	case SIM_FAULT_STALL:
	case SIM_FAULT_DELAY:
		return f->span_ns;
	case SIM_FAULT_BREAK:
		return RELINK_NS;
	default:
		return MST_NEVER;
	}
}

/* Half a lease, so that one lost heartbeat more does not matter; a fourth of the others' patience,
 * another fourth of which workers may use up. */
bool sim_plan_servers_hold(const struct sim_plan *p)
{
	uint64_t most = p->lease_ns / 2 < p->patience_ns / 4 ? p->lease_ns / 2 : p->patience_ns / 4;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->fault_count; i++) {
		const struct sim_fault *f = &p->fault[i];
		if (f->left_out || !sim_target_is_server(f->target))
			continue;
		uint64_t gap = gap_of(f);
		sum += gap;
		if (p->servers == 1 || gap == MST_NEVER || sum > most)
			return false;
	}
	return true;
}

/* ---- printing ---- */

static double ms(uint64_t ns)
{
	return (double)ns / (double)MST_MS;
}

static void print_target(int target, FILE *out)
{
	if (target == SIM_SERVER)
		fprintf(out, "the server");
	else if (sim_target_is_server(target))
		fprintf(out, "member %" PRIu32, sim_server_of_target(target));
	else
		fprintf(out, "rank %d", target);
}

static void print_trigger(const struct sim_trigger *t, FILE *out)
{
	if (t->moment == 0) {
		fprintf(out, " at %.3f ms", ms(t->after_ns));
		return;
	}
	fprintf(out, " %.3f ms after its %s number %" PRIu32, ms(t->after_ns),
		moment_names[t->moment], t->nth);
	if (t->server > 0)
		fprintf(out, " at member %d", t->server);
	else if (t->server == 0)
		fprintf(out, " at the lead");
}

static bool has_span(enum sim_fault_kind kind)
{
	return kind == SIM_FAULT_FREEZE || kind == SIM_FAULT_STALL || kind == SIM_FAULT_DELAY ||
	       kind == SIM_FAULT_DAWDLE;
}

static void print_fault(const struct sim_fault *f, uint32_t index, FILE *out)
{
	fprintf(out, "  fault %" PRIu32 ": %s of ", index, names[f->kind]);
	print_target(f->target, out);
	if (f->with != SIM_ALL) {
		fprintf(out, " towards ");
		print_target(sim_target_of_server((uint32_t)f->with), out);
	}
	print_trigger(&f->when, out);
	if (has_span(f->kind))
		fprintf(out, ", for %.3f ms", ms(f->span_ns));
	fprintf(out, "%s\n", f->left_out ? " (left out)" : "");
}

static void print_servers(const struct sim_plan *p, FILE *out)
{
	if (p->servers == 1)
		return;
	fprintf(out, "  %" PRIu32 " servers, spread ", p->servers);
	for (uint32_t k = 0; k < p->servers; k++)
		fprintf(out, "%s%" PRIu32, k > 0 ? "," : "", p->weight[k]);
	for (uint32_t k = 1; k < p->servers; k++)
		fprintf(out, ", member %" PRIu32 " comes at %.3f ms", k, ms(p->server_comes_ns[k]));
	fprintf(out, "\n");
}

void sim_plan_print(const struct sim_plan *p, FILE *out)
{
	fprintf(out,
		"seed %" PRIu64 ": %" PRIu32 " workers, %s, %s own%s%s, %" PRIu64
		" elements of %s in %" PRIu32 " shards, %s, %" PRIu64 " commits\n"
		"  lease %.0f ms, patience %.0f ms, join %.0f ms, buffers %" PRIu32
		", history %" PRIu32 ", group %" PRIu32 "%s%s\n",
		p->seed, p->workers, p->policy,
		p->owner == MUSTER_WORKERS_OWN ? "workers" : "servers",
		p->owner == MUSTER_WORKERS_OWN ? "" : ", ",
		p->owner == MUSTER_WORKERS_OWN ? "" : p->optimizer, p->elems,
		p->type == MUSTER_F32 ? "f32" : "bf16", p->shards, p->far ? "far" : "near",
		p->commits, ms(p->lease_ns), ms(p->patience_ns), ms(p->join_ns), p->buffers,
		p->history, p->group, p->slow_network ? ", slow network" : "",
		p->slow_server ? ", slow server" : "");
	print_servers(p, out);
	for (uint32_t i = 0; i < p->fault_count; i++)
		print_fault(&p->fault[i], i, out);
}
