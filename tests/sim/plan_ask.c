/* SPDX-License-Identifier: MIT */
/* What others want to know of a plan: who is hit by what, and whether anybody may lose by it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "server/core/ledger/outliers.h"
#include "tests/sim/plan.h"

/* Where the servers make plain steps, and a fixed number of backups, or none. From a source of its
 * own. */
static void back_up(struct sim_plan *p)
{
	bool fixed = strcmp(p->policy, "bsp") == 0 || strncmp(p->policy, "backup:", 7) == 0;
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x646277));
	if (!fixed || p->owner != MUSTER_SERVERS_OWN || p->add || sim_plan_trusts(p) ||
	    p->clip != 0 || p->momentum != 0 || mst_rand_unit(&r) < 0.1)
		return;
	p->adaptive = p->backs_up = true;
	p->rule.quorum = 0; /* at first */
	(void)snprintf(p->policy, sizeof(p->policy), "%s",
		       mst_rand_unit(&r) < 0.5 ? "dbw" : "dbw:1");
}

/* Bsp at first, and async when enough samples are done: few, or not before the job ends. */
static void switch_over(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x737769746368));
	if (strcmp(p->policy, "bsp") != 0 || p->owner != MUSTER_SERVERS_OWN ||
	    mst_rand_unit(&r) < 0.4)
		return;
	p->adaptive = true;
	p->switches_at = (double)(10 + mst_rand_below(&r, 10 * 500 * p->workers));
	(void)snprintf(p->policy, sizeof(p->policy), "syncswitch:%.7f",
		       p->switches_at / SIM_SAMPLES);
}

/* From a source of its own: all other worlds are what they would be without. Intervals are short,
 * for these jobs are. */
void sim_plan_adapt(struct sim_plan *p)
{
	static const char *const forms[] = { "ksync", "kasync", "kbatchsync", "kbatchasync" };
	size_t len = strcspn(p->policy, ":");
	struct mst_rand r;

	switch_over(p);
	back_up(p);
	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6164617074));
	if (mst_rand_unit(&r) < 0.4)
		return;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strlen(forms[i]) != len || memcmp(forms[i], p->policy, len) != 0)
			continue;
		p->adaptive = true;
		(void)snprintf(p->policy, sizeof(p->policy), "adasync:%s,%" PRId32 ",%u,paper",
			       forms[i], p->rule.quorum, 1 + (unsigned)(mst_rand_unit(&r) * 8));
		return;
	}
}

bool sim_plan_hits(const struct sim_plan *p, int target)
{
	for (uint32_t i = 0; i < p->fault_count; i++) {
		const struct sim_fault *f = &p->fault[i];
		if (!f->left_out && f->target == target && sim_fault_is_felt(f->kind))
			return true;
	}
	return false;
}

bool sim_plan_is_calm(const struct sim_plan *p)
{
	for (uint32_t i = 0; i < p->fault_count; i++) {
		if (sim_fault_is_felt(p->fault[i].kind))
			return false;
	}
	return true;
}

bool sim_plan_changes(const struct sim_plan *p)
{
	for (uint32_t i = 0; i < p->fault_count; i++) {
		if (sim_fault_is_change(p->fault[i].kind))
			return true;
	}
	return false;
}

bool sim_plan_has(const struct sim_plan *p, const char *fault)
{
	if (strcmp(fault, "saves") == 0)
		return p->saves.wanted;
	if (strcmp(fault, "generations") == 0)
		return p->generations.wanted;
	if (strcmp(fault, "apart") == 0)
		return p->generations.apart;
	if (strcmp(fault, "ranks") == 0)
		return p->generations.ranks;
	for (uint32_t i = 0; i < p->fault_count; i++) {
		const struct sim_fault *f = &p->fault[i];
		const char *who = "follower";
		char own[32];
		if (!sim_target_is_server(f->target))
			who = "rank";
		else if (f->target == SIM_SERVER)
			who = "leader";
		(void)snprintf(own, sizeof(own), "%s@%s", sim_fault_name(f->kind), who);
		if (!f->left_out && strcmp(own, fault) == 0)
			return true;
	}
	return false;
}

int sim_plan_blocks_log_of(const struct sim_plan *p)
{
	for (uint32_t i = 0; i < p->fault_count; i++) {
		const struct sim_fault *f = &p->fault[i];
		if (!f->left_out && f->kind == SIM_FAULT_LOG)
			return (int)sim_server_of_target(f->target);
	}
	return -1;
}

/* The time to make a link anew: the follower waits a little, asks, and dials. */
#define RELINK_NS (70 * MST_MS)

/* How long a fault keeps a server from others; MST_NEVER: for good. */
static uint64_t gap_of(const struct sim_fault *f)
{
	switch (f->kind) {
	case SIM_FAULT_FREEZE:
	case SIM_FAULT_STALL:
	case SIM_FAULT_DELAY:
	case SIM_FAULT_DEAF:
	case SIM_FAULT_HANG:
		return f->span_ns;
	case SIM_FAULT_BREAK:
		return RELINK_NS;
	case SIM_FAULT_SUSPEND: /* nobody was silent, for nobody listened */
		return 0;
	default:
		return MST_NEVER;
	}
}

static bool stands_still(enum sim_fault_kind kind)
{
	return kind == SIM_FAULT_FREEZE || kind == SIM_FAULT_DEAF || kind == SIM_FAULT_HANG;
}

/* A server that stands still is waited for as long as its lease says, but for half a lease of
 * workers, in which a heartbeat more may be lost; and no time passes for workers after three
 * quarters of one. What else keeps it from others: half a lease. Of patience workers may use up a
 * fourth, what keeps servers apart another, both together with standstills three. */
bool sim_plan_servers_hold(const struct sim_plan *p)
{
	uint64_t half_ns = p->lease_ns / 2, noticed_ns = half_ns + p->lease_ns / 4;
	uint64_t all = 0, apart = 0, charged = 0;

	for (uint32_t i = 0; i < p->fault_count; i++) {
		const struct sim_fault *f = &p->fault[i];
		if (f->left_out || !sim_target_is_server(f->target) || !sim_fault_is_felt(f->kind))
			continue;
		uint64_t gap = gap_of(f);
		if (p->servers == 1 || gap == MST_NEVER)
			return false;
		bool still = stands_still(f->kind);
		all += gap;
		apart += still ? 0 : gap;
		charged += still && gap > noticed_ns ? noticed_ns : gap;
	}
	return apart <= half_ns && apart <= p->patience_ns / 4 && charged <= p->patience_ns / 2 &&
	       all <= sim_plan_server_lease_ns(p) - half_ns && all <= p->join_ns / 2;
}

/* A version of one gradient has one distance. */
static bool has_distance(const struct mst_rule *rule)
{
	return rule->window > 0 && rule->quorum == 1 && !rule->compensate && !rule->deltas &&
	       rule->pace.push_every == 0;
}

void sim_plan_draw_distance(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x64697374));
	if (!has_distance(&p->rule) || p->adaptive || p->owner != MUSTER_SERVERS_OWN || p->add ||
	    mst_rand_unit(&r) < 0.5)
		return;
	/* Versions lie nearer to each other, and farther apart. */
	p->distance = (double)(UINT64_C(1) << mst_rand_below(&r, 12)) / 4;
}

void sim_plan_draw_average(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x61766572));
	if (p->owner == MUSTER_SERVERS_OWN && mst_rand_unit(&r) < 0.25)
		p->average = mst_rand_unit(&r) < 0.5 ? 0.3 : 0.999;
}

/* Any number of contributions may take the place of the one in the table. */
bool sim_plan_allows(const struct sim_plan *p, const struct mst_rule *rule)
{
	return p->distance == 0 || rule->window == 0 ||
	       (has_distance(rule) && rule->release != MST_RELEASE_COMMIT);
}

/* From a source of its own: all other worlds are what they would be without. */
void sim_plan_look(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6e6f726d73));
	if (p->workers >= MST_OUTLIERS_MIN && mst_rand_below(&r, 10) < 3)
		p->norm_limit = mst_rand_below(&r, 2) == 0 ? 1.0 + (double)mst_rand_below(&r, 4) / 8
							   : 1e6;
	p->checks = mst_rand_below(&r, 10) < 3;
}
