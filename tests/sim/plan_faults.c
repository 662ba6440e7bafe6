/* SPDX-License-Identifier: MIT */
/* How many servers a world has, and what goes wrong in it. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "common/wire/part.h"
#include "tests/sim/plan_draw.h"

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

void sim_plan_add_fault(struct sim_plan *p, const struct sim_fault *f)
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
	sim_plan_add_fault(p, &f);
	/* A worker that is lost often comes again, at the worst moment: while the first session is
	 * still known, or is only just forgotten. */
	if (!of_server && f.kind <= SIM_FAULT_RESET && chance(r, 0.6)) {
		f.kind = SIM_FAULT_REJOIN;
		f.when.after_ns += chance(r, 0.5) ? between(r, 0, 2 * MST_MS)
						  : between(r, 0, 2 * p->lease_ns);
		sim_plan_add_fault(p, &f);
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

/* Draws a fault of a follower, or of the leader. */
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
	sim_plan_add_fault(p, &f);
}

/* Draws a fault of a worker at one server: between what it says to that one and to the next. */
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
	sim_plan_add_fault(p, &f);
	if (chance(r, 0.4)) {
		f.kind = SIM_FAULT_REJOIN;
		f.when.after_ns += between(r, 0, 2 * p->lease_ns);
		sim_plan_add_fault(p, &f);
	}
}

/* A worker is lost and comes again while a follower has not heard of its end: what servers decide
 * goes another way than what they say of who comes. */
static void draw_return(struct mst_rand *r, struct sim_plan *p)
{
	uint32_t follower = (uint32_t)between(r, 1, p->servers - 1);
	struct sim_fault f = { .kind = chance(r, 0.5) ? SIM_FAULT_BREAK : SIM_FAULT_STALL,
			       .target = sim_target_of_server(follower),
			       .with = 0,
			       .span_ns = draw_gap(r, p) };

	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .server = 0,
				       .nth = (uint32_t)between(r, 1, p->commits) };
	sim_plan_add_fault(p, &f);
	f.kind = chance(r, 0.5) ? SIM_FAULT_RESET : SIM_FAULT_KILL;
	f.target = (int)below(r, p->workers);
	f.with = SIM_ALL;
	f.when.after_ns = between(r, 0, 1000000);
	sim_plan_add_fault(p, &f);
	f.kind = SIM_FAULT_REJOIN;
	f.when.after_ns += between(r, 0, 20 * MST_MS);
	sim_plan_add_fault(p, &f);
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
		draw_return(r, p);
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
	if (!sim_plan_reduces(p) || !chance(&r, 0.5))
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
		sim_plan_add_fault(p, &f);
	}
}

/* A follower loses power while every worker computes for long: nobody sends anything that the
 * follower would have to take, and its silence alone tells the leader. Drawn from a source of its
 * own. */
static void draw_quiet_loss(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x7175696574));
	if (p->network != SIM_FAR || p->workers > 6 || !chance(&r, 0.05))
		return;
	struct sim_fault f = { .kind = SIM_FAULT_DAWDLE, .with = SIM_ALL };
	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .server = 0,
				       .nth = (uint32_t)between(&r, 1, p->commits) };
	f.span_ns = 4 * p->lease_ns + 4000 * MST_MS;
	p->fault_count = 0;
	for (uint32_t rank = 0; rank < p->workers; rank++) {
		f.target = (int)rank;
		sim_plan_add_fault(p, &f);
	}
	f.kind = SIM_FAULT_POWER_OFF;
	f.target = sim_target_of_server((uint32_t)between(&r, 1, p->servers - 1));
	f.when.after_ns = between(&r, 20, 200) * MST_MS;
	f.span_ns = 0;
	sim_plan_add_fault(p, &f);
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
	sim_plan_add_fault(p, &f);
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
	sim_plan_add_fault(p, &f);
}

void sim_plan_draw_faults(struct mst_rand *r, struct sim_plan *p)
{
	/* One world of five has no fault: what goes wrong there cannot come from one. */
	bool whole = chance(r, 0.2);
	for (uint64_t count = whole ? 0 : between(r, 1, 5); count > 0; count--)
		draw_fault(r, p);
	draw_servers(r, p);
	if (!whole && p->servers > 1) {
		draw_faults_of_several(r, p);
		draw_faults_of_reduce(p);
		draw_quiet_loss(p);
		draw_standstill(p);
	}
	draw_blocked_log(p);
}
