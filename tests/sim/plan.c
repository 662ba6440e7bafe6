/* SPDX-License-Identifier: MIT */
/* Plans draw from a source of chance of their own: what a world does with its own does not change
 * them, nor does a fault that is left out. */
#include "tests/sim/plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/rand.h"
#include "common/wire/lane.h"
#include "common/wire/part.h"
#include "server/core/rule.h"
#include "server/data/shard.h"
#include "tests/policies.h"

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

/* Workers of these worlds contribute one batch at a time, and are not asked for less. */
static bool is_plain(const struct policy_row *row)
{
	return row->rule.trigger == MST_TRIGGER_NONE && !policy_is_paced(row);
}

static void draw_policy(struct mst_rand *r, struct sim_plan *p)
{
	const struct policy_row *all[POLICY_ROWS], *row;
	uint64_t count = 0;

	for (size_t i = 0; i < POLICY_ROWS; i++) {
		if (policy_rows[i].rule.quorum >= 0 && is_plain(&policy_rows[i]) &&
		    (p->owner != MUSTER_WORKERS_OWN || policy_waits(&policy_rows[i])))
			all[count++] = &policy_rows[i];
	}
	row = all[below(r, count)];
	if (row->number[0] == POLICY_PLAIN)
		(void)snprintf(p->policy, sizeof(p->policy), "%s", row->name);
	else
		(void)snprintf(p->policy, sizeof(p->policy), "%.*s:%u",
			       (int)strcspn(row->name, ":"), row->name,
			       row->number[0] == POLICY_QUORUM ? (unsigned)between(r, 1, p->workers)
							       : 1);
}

/* Milliseconds about as long as a worker computes, or much shorter. */
static void write_number(struct mst_rand *r, const struct sim_plan *p, enum policy_number number,
			 char *out, size_t len)
{
	if (number == POLICY_GRACE || number == POLICY_DEADLINE)
		(void)snprintf(out, len, "%.3f",
			       (double)between(r, 50, chance(r, 0.5) ? 500 : 5000) / 1000);
	else if (number == POLICY_QUORUM)
		(void)snprintf(out, len, "%u", (unsigned)between(r, 1, p->workers));
	else if (number == POLICY_ALPHA)
		(void)snprintf(out, len, "%g", chance(r, 0.5) ? 0.5 : 0.125);
	else
		(void)snprintf(out, len, "%u", (unsigned)between(r, 1, 3));
}

static void write_policy(struct mst_rand *r, const struct sim_plan *p, const struct policy_row *row,
			 char *out, size_t len)
{
	char text[2][24] = { "", "" };

	for (int i = 0; i < 2 && row->number[i] != POLICY_PLAIN; i++)
		write_number(r, p, row->number[i], text[i], sizeof(text[i]));
	(void)snprintf(out, len, "%.*s%s%s%s%s", (int)strcspn(row->name, ":"), row->name,
		       text[0][0] != '\0' ? ":" : "", text[0], text[1][0] != '\0' ? "," : "",
		       text[1]);
}

/* Whom a trigger asks for less than a batch, or who steps by itself. From a source of its own: all
 * other worlds are what they would be without. */
static void draw_mode(struct sim_plan *p)
{
	const struct policy_row *all[POLICY_ROWS];
	uint64_t count = 0;
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6d6f6465));
	if (!chance(&r, 0.35))
		return;
	for (size_t i = 0; i < POLICY_ROWS; i++) {
		const struct policy_row *row = &policy_rows[i];
		if (!is_plain(row) && (p->owner != MUSTER_WORKERS_OWN || policy_fits_workers(row)))
			all[count++] = row;
	}
	const struct policy_row *row = all[below(&r, count)];
	write_policy(&r, p, row, p->policy, sizeof(p->policy));
	p->deltas = row->rule.deltas;
}

/* When late workers start again: auto in most worlds, as a job does. */
static void draw_late_start(struct sim_plan *p)
{
	static const enum mst_late_start all[] = { MST_LATE_START_AUTO, MST_LATE_START_AUTO,
						   MST_LATE_START_NOW, MST_LATE_START_COMMIT,
						   MST_LATE_START_COMMIT };
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6c617465));
	p->rule.late_start = all[below(&r, sizeof(all) / sizeof(all[0]))];
}

static void draw_optimizer(struct mst_rand *r, struct sim_plan *p)
{
	p->add = p->owner == MUSTER_SERVERS_OWN && chance(r, 0.3);
	p->lr = 0.125 * (double)between(r, 1, 5);
	p->momentum = chance(r, 0.5) ? 0 : 0.75;
	p->add |= p->deltas;
	p->rule.linear = chance(r, 0.5);
	p->rule.weigh = chance(r, 0.5) ? MST_WEIGH_SAMPLES : MST_WEIGH_ONE;
	if (p->add)
		(void)snprintf(p->optimizer, sizeof(p->optimizer), "add");
	else
		(void)snprintf(p->optimizer, sizeof(p->optimizer), "sgd:lr=%g,momentum=%g", p->lr,
			       p->momentum);
}

/* A reduce phase: each version takes a round between the servers more. From a source of its own:
 * all else is what it would be without. */
static void draw_clip(struct sim_plan *p)
{
	size_t used = strlen(p->optimizer);
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x636c6970));
	if (p->owner != MUSTER_SERVERS_OWN || p->add || !chance(&r, 0.4))
		return;
	p->clip = (double)(UINT64_C(1) << below(&r, 7)); /* means are longer, and shorter */
	(void)snprintf(p->optimizer + used, sizeof(p->optimizer) - used, ",clip=%g", p->clip);
}

/* Few, and in one world of 25 many. Of those what is drawn comes from a source of its own: all
 * other worlds are what they would be without. */
static uint32_t draw_workers(struct mst_rand *r, uint64_t seed)
{
	uint32_t few = (uint32_t)between(r, 1, 6);
	struct mst_rand many;

	mst_rand_seed(&many, seed ^ UINT64_C(0x63726f7764));
	return chance(&many, 0.04) ? (uint32_t)between(&many, 7, SIM_WORKERS_MAX) : few;
}

static void draw_job(struct mst_rand *r, struct sim_plan *p)
{
	char why[256];

	p->workers = draw_workers(r, p->seed);
	p->owner = chance(r, 0.4) ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN;
	p->type = chance(r, 0.85) ? MUSTER_F32 : MUSTER_BF16;
	p->result_type = MUSTER_F32;
	draw_policy(r, p);
	draw_mode(p);
	draw_optimizer(r, p);
	draw_late_start(p);
	draw_clip(p);
	sim_plan_look(p);
	int rc = mst_rule_parse(p->policy, &p->rule, why, sizeof(why));
	MST_ASSERT(rc == 0);
	sim_plan_adapt(p);
	if (!p->deltas)
		p->rule.divide = !p->add;
	p->guarded = chance(r, 0.5);
	p->nan_chance = p->guarded && chance(r, 0.1) ? 0.05 : 0;
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

/* Who keeps what it has and then waits: its ask goes to the leader alone, and its header to all.
 * Drawn from a source of its own: the rest of the world is what it would be without. */
static void draw_keepers(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6b656570));
	if (chance(&r, 0.6))
		return;
	double wait_chance = chance(&r, 0.5) ? 1 : 0.6;
	for (uint32_t rank = 0; rank < p->workers; rank++) {
		p->manners[rank].keep_chance = chance(&r, 0.7) ? 1 : 0.5;
		p->manners[rank].wait_chance = wait_chance;
	}
}

/* Whether tensors have scales. Drawn from a source of its own, likewise. */
static void draw_tensors(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x7461626c65));
	if (p->add || p->owner == MUSTER_WORKERS_OWN || chance(&r, 0.8))
		return;
	uint64_t most = chance(&r, 0.5) ? 10 : 1500;
	p->tensors = (uint32_t)between(&r, 1, p->elems < most ? p->elems : most);
}

struct muster_tensor sim_plan_tensor(const struct sim_plan *p, uint32_t number)
{
	static const float scale[] = { 0.5f, 1, 0, 2 };
	uint64_t first = p->elems * number / p->tensors;
	uint64_t end = p->elems * (number + 1) / p->tensors;

	return (struct muster_tensor){ NULL, first, end - first, scale[number % 4], 1 };
}

/* Who sends from registered memory. Drawn from a source of its own, likewise. */
static void draw_lenders(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6c656e64));
	bool some = chance(&r, 0.4);
	for (uint32_t rank = 0; rank < p->workers; rank++)
		p->manners[rank].registers = some && chance(&r, 0.7);
}

/* Whose results go to memory of its own. Drawn from a source of its own, likewise. */
static void draw_owners_of_results(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x696e746f));
	bool some = chance(&r, 0.4);
	for (uint32_t rank = 0; rank < p->workers; rank++)
		p->manners[rank].into = some && chance(&r, 0.7);
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
	static const enum sim_fault_kind of_servers[] = {
		SIM_FAULT_FREEZE, SIM_FAULT_FREEZE, SIM_FAULT_FREEZE, SIM_FAULT_DEAF,
		SIM_FAULT_DEAF,   SIM_FAULT_DEAF,   SIM_FAULT_KILL,   SIM_FAULT_DELAY,
		SIM_FAULT_STALL,  SIM_FAULT_STOP,   SIM_FAULT_HANG,   SIM_FAULT_HANG
	};

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
	bool of_leader = t.moment == MST_IMM_VERDICT || t.moment == MST_IMM_ASK;
	t.server = of_leader ? 0 : (int)server;
	return t;
}

/* Mostly so short that nobody may notice. */
static uint64_t draw_gap(struct mst_rand *r, const struct sim_plan *p)
{
	uint64_t least = p->lease_ns < p->patience_ns ? p->lease_ns : p->patience_ns;

	return chance(r, 0.65) ? between(r, 100 * 1000, least / 6) : draw_span(r, p);
}

/* Of a follower, or of the leader. */
static void draw_fault_of_server(struct mst_rand *r, struct sim_plan *p)
{
	static const enum sim_fault_kind kinds[] = {
		SIM_FAULT_FREEZE, SIM_FAULT_FREEZE, SIM_FAULT_FREEZE, SIM_FAULT_BREAK,
		SIM_FAULT_BREAK,  SIM_FAULT_BREAK,  SIM_FAULT_STALL,  SIM_FAULT_STALL,
		SIM_FAULT_STALL,  SIM_FAULT_DELAY,  SIM_FAULT_KILL,   SIM_FAULT_POWER_OFF,
		SIM_FAULT_CUT,    SIM_FAULT_RESET,  SIM_FAULT_STOP,   SIM_FAULT_DEAF,
		SIM_FAULT_DEAF,   SIM_FAULT_HANG,
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

/* A worker is lost and comes again while a follower has not heard of its end: what servers decide
 * goes another way than what they say of who comes. */
static void draw_comeback(struct mst_rand *r, struct sim_plan *p)
{
	uint32_t follower = (uint32_t)between(r, 1, p->servers - 1);
	struct sim_fault f = { .kind = chance(r, 0.5) ? SIM_FAULT_BREAK : SIM_FAULT_STALL,
			       .target = sim_target_of_server(follower),
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

/* What servers do to each other shows best where workers do as they should. */
static void draw_faults_of_several(struct mst_rand *r, struct sim_plan *p)
{
	if (chance(r, 0.6))
		p->fault_count = 0;
	for (uint64_t count = between(r, 0, 2); count > 0; count--)
		draw_fault_at_server(r, p);
	for (uint64_t count = between(r, 0, 3); count > 0; count--)
		draw_fault_of_server(r, p);
	if (chance(r, 0.15))
		draw_comeback(r, p);
}

/* Between a commit and the word of the leader that ends its reduce phase: links between servers are
 * lost with a report or that word on them, or a server is. From a source of its own. */
static void draw_faults_of_reduce(struct sim_plan *p)
{
	static const enum sim_fault_kind kinds[] = { SIM_FAULT_BREAK, SIM_FAULT_BREAK,
						     SIM_FAULT_BREAK, SIM_FAULT_STALL,
						     SIM_FAULT_KILL,  SIM_FAULT_POWER_OFF };
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x726564756365));
	if (p->clip == 0 || !chance(&r, 0.5))
		return;
	for (uint64_t count = between(&r, 1, 2); count > 0; count--) {
		uint32_t follower = (uint32_t)between(&r, 1, p->servers - 1);
		bool of_leader = chance(&r, 0.3);
		struct sim_fault f = { .kind = kinds[below(&r, sizeof(kinds) / sizeof(kinds[0]))],
				       .target = sim_target_of_server(of_leader ? 0 : follower),
				       .with = of_leader ? (int)follower : 0,
				       .span_ns = draw_gap(&r, p) };
		if (f.kind != SIM_FAULT_BREAK && f.kind != SIM_FAULT_STALL)
			f.with = SIM_ALL;
		f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
					       .server = chance(&r, 0.5) ? 0 : (int)follower,
					       .nth = (uint32_t)between(&r, 1, p->commits),
					       .after_ns = between(&r, 0, 500 * 1000) };
		add_fault(p, &f);
	}
}

/* A follower loses power while every worker computes for long: nobody sends anything that the
 * follower would have to take, and its silence alone tells the leader. Drawn from a source of its
 * own. */
static void draw_quiet_loss(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x7175696574));
	if (!p->far || p->workers > 6 || !chance(&r, 0.05))
		return;
	struct sim_fault f = { .kind = SIM_FAULT_DAWDLE, .with = SIM_ALL };
	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .server = 0,
				       .nth = (uint32_t)between(&r, 1, p->commits) };
	f.span_ns = 4 * p->lease_ns + 4000 * MST_MS;
	p->fault_count = 0;
	for (uint32_t rank = 0; rank < p->workers; rank++) {
		f.target = (int)rank;
		add_fault(p, &f);
	}
	f.kind = SIM_FAULT_POWER_OFF;
	f.target = sim_target_of_server((uint32_t)between(&r, 1, p->servers - 1));
	f.when.after_ns = between(&r, 20, 200) * MST_MS;
	f.span_ns = 0;
	add_fault(p, &f);
}

/* In one world of ten, from a source of its own: the rest of the world is what it would be without.
 * Mostly for longer than a lease. */
static void draw_blocked_log(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x626c6f636b));
	if (!chance(&r, 0.1))
		return;
	uint32_t server = (uint32_t)below(&r, p->servers);
	struct sim_fault f = { .kind = SIM_FAULT_LOG,
			       .target = sim_target_of_server(server),
			       .with = SIM_ALL,
			       .when = draw_trigger_at(&r, p, server),
			       .span_ns = between(&r, p->lease_ns / 4, 6 * p->lease_ns) };
	add_fault(p, &f);
}

/* A server stands still for longer than a lease, and less than that of servers; or all processes do
 * at once, for as long as they like; not amid goodbyes, which have their time. Nothing else happens
 * there, and nothing may come of it. */
static void draw_standstill(struct sim_plan *p)
{
	static const enum sim_fault_kind kinds[] = { SIM_FAULT_FREEZE, SIM_FAULT_FREEZE,
						     SIM_FAULT_FREEZE, SIM_FAULT_DEAF,
						     SIM_FAULT_HANG,   SIM_FAULT_SUSPEND };
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x7374696c6c));
	if (!chance(&r, 0.1) || p->commits < 2)
		return;
	struct sim_fault f = { .kind = kinds[below(&r, sizeof(kinds) / sizeof(kinds[0]))],
			       .target = sim_target_of_server((uint32_t)below(&r, p->servers)),
			       .with = SIM_ALL };
	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .server = 0,
				       .nth = (uint32_t)between(&r, 1, p->commits - 1) };
	f.span_ns = between(&r, p->lease_ns * 11 / 10, p->lease_ns * 24 / 10);
	if (f.kind == SIM_FAULT_SUSPEND) {
		f.target = SIM_SERVER;
		f.span_ns = between(&r, 4, 8) * p->lease_ns;
	}
	p->fault_count = 0;
	if (p->patience_ns < p->lease_ns * 3 / 2)
		p->patience_ns = p->lease_ns * 3 / 2;
	if (p->join_ns < 5 * p->lease_ns)
		p->join_ns = 5 * p->lease_ns;
	add_fault(p, &f);
}

/* ---- what an operator asks for ---- */

/* May the job change to this policy? What a rank may contribute twice to needs a second slot, and
 * no more contributions than one rank alone has slots for: others may be lost. */
static bool may_follow(const struct sim_plan *p, const struct policy_row *row)
{
	uint32_t slots = p->slots != 0 ? p->slots : mst_rule_slots(&p->rule);

	return row->rule.deltas == p->deltas && row->rule.quorum >= 0 &&
	       (p->owner != MUSTER_WORKERS_OWN || policy_fits_workers(row)) &&
	       mst_rule_slots(&row->rule) <= slots;
}

static void draw_change_of_policy(struct mst_rand *r, struct sim_plan *p)
{
	const struct policy_row *all[POLICY_ROWS], *row;
	struct sim_fault f = { .kind = SIM_FAULT_POLICY, .target = SIM_SERVER, .with = SIM_ALL };
	uint64_t count = 0;

	for (size_t i = 0; i < POLICY_ROWS; i++) {
		if (may_follow(p, &policy_rows[i]))
			all[count++] = &policy_rows[i];
	}
	row = all[below(r, count)];
	if (mst_rule_slots(&row->rule) > 1)
		(void)snprintf(f.policy, sizeof(f.policy), "%.*s:2", (int)strcspn(row->name, ":"),
			       row->name);
	else
		write_policy(r, p, row, f.policy, sizeof(f.policy));
	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .server = 0,
				       .nth = (uint32_t)between(r, 1, p->commits),
				       .after_ns = chance(r, 0.5) ? 0 : between(r, 0, MST_MS) };
	add_fault(p, &f);
}

static void draw_rest(struct mst_rand *r, struct sim_plan *p)
{
	struct sim_fault f = { .kind = SIM_FAULT_REST,
			       .target = (int)below(r, p->workers),
			       .with = SIM_ALL };

	f.when = (struct sim_trigger){ .moment = MST_IMM_HEADER,
				       .server = SIM_ALL,
				       .nth = (uint32_t)between(r, 1, p->commits),
				       .after_ns = chance(r, 0.5) ? 0 : between(r, 0, MST_MS) };
	add_fault(p, &f);
	f.kind = SIM_FAULT_RETURN;
	f.when.after_ns += between(r, 0, chance(r, 0.7) ? 10 * MST_MS : p->patience_ns / 2);
	add_fault(p, &f);
}

/* From a source of its own. A server that stands still and nothing else is looked at alone. */
static void draw_changes(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6368616e6765));
	if (chance(&r, 0.3)) {
		for (uint64_t count = between(&r, 1, 4); count > 0; count--)
			draw_change_of_policy(&r, p);
	}
	if (p->workers > 1 && chance(&r, 0.15)) {
		for (uint64_t count = between(&r, 1, 2); count > 0; count--)
			draw_rest(&r, p);
	}
}

/* Who calls muster_train(). What workers contribute that step by themselves, nobody could know
 * then; nor what takes them so long when their host is suspended. From a source of its own. */
static void draw_trainers(struct sim_plan *p)
{
	bool steps = p->rule.pace.local_steps > 0 || p->rule.pace.push_every > 0;
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x747261696e));
	if (steps || sim_plan_changes(p) || sim_plan_has(p, "suspend@leader") || !chance(&r, 0.25))
		return;
	for (uint32_t rank = 0; rank < p->workers; rank++)
		p->manners[rank].trains = chance(&r, 0.7);
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
	draw_keepers(p);
	draw_tensors(p);
	draw_lenders(p);
	draw_owners_of_results(p);
	/* Of five worlds one is whole: what happens there without a fault is nobody's fault. */
	bool whole = chance(&r, 0.2);
	for (uint64_t count = whole ? 0 : between(&r, 1, 5); count > 0; count--)
		draw_fault(&r, p);
	draw_servers(&r, p);
	if (!whole && p->servers > 1) {
		draw_faults_of_several(&r, p);
		draw_faults_of_reduce(p);
		draw_quiet_loss(p);
		draw_standstill(p);
	}
	draw_blocked_log(p);
	draw_changes(p);
	draw_trainers(p);
	sim_plan_draw_saves(p);
}
