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
};

static const char *const imm_names[] = {
	[0] = "",
	[MST_IMM_HEADER] = "header",
	[MST_IMM_ABANDON] = "abandon",
	[MST_IMM_ASK] = "ask",
	[MST_IMM_SESSION] = "session",
	[MST_IMM_GRANT] = "grant",
	[MST_IMM_VERDICT] = "verdict",
	[MST_IMM_ANSWER] = "answer",
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
	struct sim_trigger t = { 0 };

	if (chance(r, 0.3)) { /* before the job is born, or at any time of it */
		uint64_t most = chance(r, 0.3) ? 8 * MST_MS : p->commits * 3 * MST_MS;
		t.after_ns = between(r, 0, most);
		return t;
	}
	t.imm_kind = (uint32_t)between(r, MST_IMM_HEADER, MST_IMM_ANSWER);
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
	for (uint64_t count = chance(&r, 0.2) ? 0 : between(&r, 1, 5); count > 0; count--)
		draw_fault(&r, p);
}

bool sim_plan_hits(const struct sim_plan *p, int target)
{
	for (uint32_t i = 0; i < p->fault_count; i++) {
		if (!p->fault[i].left_out && p->fault[i].target == target)
			return true;
	}
	return false;
}

/* ---- printing ---- */

static double ms(uint64_t ns)
{
	return (double)ns / (double)MST_MS;
}

static void print_fault(const struct sim_fault *f, uint32_t index, FILE *out)
{
	fprintf(out, "  fault %" PRIu32 ": %s of ", index, names[f->kind]);
	if (f->target == SIM_SERVER)
		fprintf(out, "the server");
	else
		fprintf(out, "rank %d", f->target);
	if (f->when.imm_kind == 0)
		fprintf(out, " at %.3f ms", ms(f->when.after_ns));
	else
		fprintf(out, " %.3f ms after its %s number %" PRIu32, ms(f->when.after_ns),
			imm_names[f->when.imm_kind], f->when.nth);
	if (f->kind == SIM_FAULT_FREEZE || f->kind == SIM_FAULT_STALL ||
	    f->kind == SIM_FAULT_DELAY || f->kind == SIM_FAULT_DAWDLE)
		fprintf(out, ", for %.3f ms", ms(f->span_ns));
	fprintf(out, "%s\n", f->left_out ? " (left out)" : "");
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
	for (uint32_t i = 0; i < p->fault_count; i++)
		print_fault(&p->fault[i], i, out);
}
