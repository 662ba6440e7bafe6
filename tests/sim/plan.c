/* SPDX-License-Identifier: MIT */
/* Plans draw from a source of chance of their own: what a world does with its own does not change
 * them, nor does a fault that is left out. */
#include "tests/sim/plan_draw.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "server/core/policy/rule.h"
#include "server/data/shard.h"
#include "tests/policies.h"

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

/* As much as elastic averaging of all workers may have without diverging. */
static double draw_alpha(struct mst_rand *r, const struct sim_plan *p, const struct policy_row *row)
{
	double alpha = chance(r, 0.5) ? 0.5 : 0.125;

	while (row->rule.quorum == 0 && alpha * (1 + p->workers) > 2)
		alpha /= 2;
	return alpha;
}

/* Milliseconds about as long as a worker computes, or much shorter. */
static void write_number(struct mst_rand *r, const struct sim_plan *p, const struct policy_row *row,
			 int at, char out[24])
{
	enum policy_number number = row->number[at];
	size_t len = 24;

	if (number == POLICY_GRACE || number == POLICY_DEADLINE)
		(void)snprintf(out, len, "%.3f",
			       (double)between(r, 50, chance(r, 0.5) ? 500 : 5000) / 1000);
	else if (number == POLICY_QUORUM)
		(void)snprintf(out, len, "%u", (unsigned)between(r, 1, p->workers));
	else if (number == POLICY_ALPHA)
		(void)snprintf(out, len, "%g", draw_alpha(r, p, row));
	else
		(void)snprintf(out, len, "%u", (unsigned)between(r, 1, 3));
}

static void write_policy(struct mst_rand *r, const struct sim_plan *p, const struct policy_row *row,
			 char *out, size_t len)
{
	char text[2][24] = { "", "" };

	for (int i = 0; i < 2 && row->number[i] != POLICY_PLAIN; i++)
		write_number(r, p, row, i, text[i]);
	(void)snprintf(out, len, "%.*s%s%s%s%s", (int)strcspn(row->name, ":"), row->name,
		       text[0][0] != '\0' ? ":" : "", text[0], text[1][0] != '\0' ? "," : "",
		       text[1]);
}

/* Workers that a trigger asks for less than a batch, or that step by themselves. From a source of
 * its own: all other worlds are what they would be without. */
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
		if (!is_plain(row) && !row->rule.by_micro &&
		    (p->owner != MUSTER_WORKERS_OWN || policy_fits_workers(row)))
			all[count++] = row;
	}
	const struct policy_row *row = all[below(&r, count)];
	write_policy(&r, p, row, p->policy, sizeof(p->policy));
	p->deltas = row->rule.deltas;
}

/* Micro-batches that are contributions, of an age that every history has room for. From a source of
 * its own, likewise. */
static void draw_micro(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6d6963726f));
	if (!chance(&r, 0.08))
		return;
	double grace_ms = chance(&r, 0.4) ? 0 : (double)between(&r, 50, 5000) / 1000;
	(void)snprintf(p->policy, sizeof(p->policy), "nonblocking:%.3f,%u", grace_ms,
		       (unsigned)between(&r, 1, 2));
	p->deltas = false;
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

/* A rate by the samples. From a source of its own, as the start of late workers. */
static void draw_batch(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6261746368));
	if (p->add || !chance(&r, 0.2))
		return;
	p->rule.linear = false;
	p->rule.batch = (double)between(&r, 1, 64);
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

/* Another reduce phase, whose norms are of tensors. From a source of its own, likewise. */
static void draw_lars(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6c617273));
	if (p->owner != MUSTER_SERVERS_OWN || p->add || p->clip != 0 || !chance(&r, 0.3))
		return;
	p->lars = true;
	(void)snprintf(p->optimizer, sizeof(p->optimizer),
		       "lars:lr=%g,momentum=%g,decay=%g,trust=%g,epsilon=%g", p->lr, p->momentum,
		       SIM_LARS_DECAY, SIM_LARS_TRUST, SIM_LARS_EPSILON);
}

/* A third, whose norms are of a direction that is computed twice. Likewise. */
static void draw_lamb(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6c616d62));
	if (p->owner != MUSTER_SERVERS_OWN || p->add || p->clip != 0 || p->lars || !chance(&r, 0.2))
		return;
	p->lamb = true;
	(void)snprintf(p->optimizer, sizeof(p->optimizer),
		       "lamb:lr=%g,beta1=%g,beta2=%g,epsilon=%g,decay=%g", p->lr, SIM_LAMB_BETA1,
		       SIM_LAMB_BETA2, SIM_LAMB_EPSILON, SIM_LAMB_DECAY);
}

/* Few workers, and in one world of 25 many. What is drawn for those comes from a source of its own:
 * all other worlds are what they would be without. */
static uint32_t draw_workers(struct mst_rand *r, uint64_t seed)
{
	uint32_t few = (uint32_t)between(r, 1, 6);
	struct mst_rand many;

	mst_rand_seed(&many, seed ^ UINT64_C(0x63726f7764));
	return chance(&many, 0.04) ? (uint32_t)between(&many, 7, SIM_WORKERS_MAX) : few;
}

static void draw_job(struct mst_rand *r, struct sim_plan *p)
{
	struct mst_reason why;

	p->workers = draw_workers(r, p->seed);
	p->owner = chance(r, 0.4) ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN;
	p->type = chance(r, 0.85) ? MUSTER_F32 : MUSTER_BF16;
	p->result_type = MUSTER_F32;
	draw_policy(r, p);
	draw_mode(p);
	draw_micro(p);
	draw_optimizer(r, p);
	draw_batch(p);
	draw_late_start(p);
	draw_clip(p);
	draw_lars(p);
	draw_lamb(p);
	sim_plan_look(p);
	int rc = mst_rule_parse(p->policy, &p->rule, &why);
	MST_ASSERT(rc == 0);
	sim_plan_adapt(p);
	if (!p->deltas)
		p->rule.divide = !p->add;
	sim_plan_draw_distance(p);
	sim_plan_draw_average(p);
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

/* Workers that keep what they have and then wait: the ask goes to the leader alone, the header to
 * all. Drawn from a source of its own: the rest of the world is what it would be without. */
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
	if (p->add || p->owner == MUSTER_WORKERS_OWN || chance(&r, sim_plan_trusts(p) ? 0.3 : 0.8))
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

/* Workers that send from registered memory. Drawn from a source of its own, likewise. */
static void draw_lenders(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6c656e64));
	bool some = chance(&r, 0.4);
	for (uint32_t rank = 0; rank < p->workers; rank++)
		p->manners[rank].registers = some && chance(&r, 0.7);
}

/* Workers whose results go to memory of their own. Drawn from a source of its own, likewise. */
static void draw_owners_of_results(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x696e746f));
	bool some = chance(&r, 0.4);
	for (uint32_t rank = 0; rank < p->workers; rank++)
		p->manners[rank].into = some && chance(&r, 0.7);
}

/* ---- what an operator asks for ---- */

/* May the job change to this policy? What a rank may contribute twice to needs a second slot, and
 * no more contributions than one rank alone has slots for: others may be lost. */
static bool may_follow(const struct sim_plan *p, const struct policy_row *row)
{
	uint32_t slots = p->slots != 0 ? p->slots : mst_rule_slots(&p->rule);

	return row->rule.deltas == p->deltas && row->rule.quorum >= 0 &&
	       sim_plan_allows(p, &row->rule) && (!row->rule.by_micro || p->rule.by_micro) &&
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
	if (row->rule.by_micro)
		(void)snprintf(f.policy, sizeof(f.policy), "nonblocking:1,2");
	else if (mst_rule_slots(&row->rule) > 1)
		(void)snprintf(f.policy, sizeof(f.policy), "%.*s:2", (int)strcspn(row->name, ":"),
			       row->name);
	else
		write_policy(r, p, row, f.policy, sizeof(f.policy));
	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .server = 0,
				       .nth = (uint32_t)between(r, 1, p->commits),
				       .after_ns = chance(r, 0.5) ? 0 : between(r, 0, MST_MS) };
	sim_plan_add_fault(p, &f);
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
	sim_plan_add_fault(p, &f);
	f.kind = SIM_FAULT_RETURN;
	f.when.after_ns += between(r, 0, chance(r, 0.7) ? 10 * MST_MS : p->patience_ns / 2);
	sim_plan_add_fault(p, &f);
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

/* What a job does whose workers wait for another server in place of one that is lost. From a source
 * of its own. */
static void draw_marks(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6d61726b73));
	p->marks = p->owner == MUSTER_WORKERS_OWN && chance(&r, 0.5);
}

/* Workers that ask for the average of the weights. From a source of its own. */
static void draw_evaluators(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6576616c));
	if (p->average == 0)
		return;
	for (uint32_t rank = 0; rank < p->workers; rank++)
		p->manners[rank].average_chance = chance(&r, 0.5) ? 0.2 : 0;
}

/* Workers that call muster_train(). If such a worker steps by itself, nobody could know what it
 * contributes, or what takes it so long when its host is suspended. From a source of its own. */
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

bool sim_plan_make(uint64_t seed, const char *network, struct sim_plan *p)
{
	struct mst_rand r;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	mst_rand_seed(&r, ~seed);
	if (!sim_plan_draw_network(&r, network, p))
		return false;
	draw_job(&r, p);
	draw_manners(&r, p);
	draw_keepers(p);
	draw_tensors(p);
	draw_lenders(p);
	draw_owners_of_results(p);
	sim_plan_draw_faults(&r, p);
	draw_changes(p);
	draw_trainers(p);
	draw_evaluators(p);
	draw_marks(p);
	sim_plan_draw_saves(p);
	sim_plan_draw_generations(p);
	sim_plan_draw_changes_that_last(p);
	sim_plan_draw_lost_ranks(p);
	sim_plan_draw_hosts(p);
	return true;
}
