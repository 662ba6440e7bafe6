/* SPDX-License-Identifier: MIT */
/* Whether processes of ranks are lost, beside servers, in a job that outlives its servers: from a
 * source of chance of its own. Others take their place after a while, or nobody does. At most as
 * many are lost as leave a majority; or nearly all, and then all come back, for a start without a
 * majority needs every rank. Some freeze instead, and come when the others have gone on. */
#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "server/core/policy/majority.h"
#include "tests/sim/plan_draw.h"

#define LOST_MAX 4u

/* A job that is still under way when a rank comes back: so many versions, of so long each. */
#define LONG_COMMITS 15u
#define LONG_NS (50 * MST_MS)

static bool wanted;

void sim_plan_lose_ranks(void)
{
	wanted = true;
}

/* With a server, soon after it, while the next start is under way, or at any commit. */
static struct sim_trigger draw_moment(struct mst_rand *r, const struct sim_plan *p)
{
	uint64_t most_ns = chance(r, 0.7) ? MST_MS : 3 * MST_SECOND;
	struct sim_trigger t = p->fault[below(r, p->fault_count)].when;

	if (t.moment != SIM_MOMENT_COMMIT || chance(r, 0.2)) {
		t = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT, .server = SIM_ALL };
		t.nth = (uint32_t)between(r, 1, p->commits);
	}
	if (chance(r, 0.7))
		t.after_ns += between(r, 0, most_ns);
	return t;
}

static void draw_lost(struct mst_rand *r, struct sim_plan *p, uint32_t rank, bool comes_back)
{
	struct sim_fault f = { .kind = chance(r, 0.7) ? SIM_FAULT_KILL : SIM_FAULT_POWER_OFF,
			       .target = (int)rank,
			       .with = SIM_ALL,
			       .when = draw_moment(r, p) };

	if (chance(r, 0.4)) {
		f.kind = SIM_FAULT_FREEZE;
		f.span_ns = between(r, 1, chance(r, 0.5) ? 400 : 4000) * MST_MS;
		sim_plan_add_fault(p, &f);
		return;
	}
	sim_plan_add_fault(p, &f);
	f.kind = SIM_FAULT_REJOIN;
	f.when.after_ns += between(r, MST_MS, chance(r, 0.5) ? 100 * MST_MS : 3 * MST_SECOND);
	if (comes_back)
		sim_plan_add_fault(p, &f);
}

static void slow_down(struct sim_plan *p)
{
	p->commits = p->commits < LONG_COMMITS ? LONG_COMMITS : p->commits;
	for (uint32_t rank = 0; rank < p->workers; rank++) {
		p->manners[rank].compute_min_ns += LONG_NS;
		p->manners[rank].compute_max_ns += LONG_NS;
	}
}

/* Some ranks have a version that the others do not get any more: these stand still for a moment
 * while the version is made, and the leader dies. Then those ranks freeze for long. So the others
 * make that version anew, and what those have is void. */
static void draw_lone_version(struct mst_rand *r, struct sim_plan *p, uint32_t first,
			      uint32_t count)
{
	struct sim_fault f = { .kind = SIM_FAULT_KILL, .target = SIM_SERVER, .with = SIM_ALL };
	uint32_t version = (uint32_t)between(r, 2, 5);

	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT, .nth = version };
	f.when.after_ns = between(r, 200, 5000) * 1000;
	sim_plan_add_fault(p, &f);
	f.kind = SIM_FAULT_FREEZE;
	for (uint32_t i = 0; i < p->workers; i++) {
		bool alone = i < count;
		f.target = (int)((first + i) % p->workers);
		f.when.after_ns = between(r, 0, 300) * 1000;
		f.span_ns = between(r, 6, 40) * MST_MS;
		if (alone) {
			f.when.after_ns += between(r, 500, 5000) * 1000;
			f.span_ns = p->generations.return_ns + between(r, 100, 500) * MST_MS;
		}
		sim_plan_add_fault(p, &f);
	}
}

/* The leader is cut off from most ranks, and keeps some for a while. Another leader begins at its
 * address, sooner or later than the first has seen that it has too few. Then the cut heals. */
static void draw_two_leaders(struct mst_rand *r, struct sim_plan *p, uint32_t first)
{
	struct sim_fault f = { .kind = SIM_FAULT_APART, .target = SIM_SERVER, .with = SIM_ALL };
	uint32_t most = p->workers - mst_majority(p->workers);
	uint32_t count = chance(r, 0.8) ? most : (uint32_t)between(r, 0, most);

	p->fault_count = 0;
	p->generations.apart = true;
	p->generations.beside_ns = between(r, 0, chance(r, 0.5) ? 100 : 2000) * MST_MS;
	p->generations.return_ns = between(r, 50, 500) * MST_MS;
	for (uint32_t i = 0; i < count; i++)
		p->generations.keeps |= UINT64_C(1) << (first + i) % p->workers;
	slow_down(p);
	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .nth = (uint32_t)between(r, 1, p->commits / 2) };
	f.when.after_ns = between(r, 0, chance(r, 0.5) ? 1000 : 50000) * 1000;
	f.span_ns = between(r, 100, 5000) * MST_MS;
	sim_plan_add_fault(p, &f);
	if (chance(r, 0.3)) { /* it stands still at that, and wakes when others have gone on */
		f.kind = SIM_FAULT_FREEZE;
		f.span_ns = between(r, 50, 2000) * MST_MS;
		sim_plan_add_fault(p, &f);
	}
	if (chance(r, 0.5)) { /* and a server is lost later */
		f.kind = SIM_FAULT_KILL;
		f.when.nth += (uint32_t)between(r, 1, 4);
		f.span_ns = 0;
		sim_plan_add_fault(p, &f);
	}
}

void sim_plan_draw_lost_ranks(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x72616e6b73));
	if (!wanted || !p->generations.wanted || p->workers < 3)
		return;
	uint32_t most = p->workers - mst_majority(p->workers), first, count;
	bool all_come = chance(&r, 0.3);

	if (all_come)
		most = p->workers - 1;
	count = (uint32_t)between(&r, 1, most < LOST_MAX ? most : LOST_MAX);
	first = (uint32_t)below(&r, p->workers);
	p->generations.ranks = true;
	p->generations.return_ns = between(&r, 50, chance(&r, 0.5) ? 300 : 3000) * MST_MS;
	p->join_ns += 20 * MST_SECOND; /* for the last that comes */
	if (p->network == SIM_FAR && p->servers == 1 && chance(&r, 0.9)) {
		draw_two_leaders(&r, p, first);
		return;
	}
	if (!all_come && p->workers < SIM_FAULTS_MAX && chance(&r, 0.5)) {
		p->fault_count = 0;
		p->generations.return_ns = between(&r, 50, 200) * MST_MS;
		slow_down(p);
		draw_lone_version(&r, p, first, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		draw_lost(&r, p, (first + i) % p->workers, all_come || chance(&r, 0.6));
}
