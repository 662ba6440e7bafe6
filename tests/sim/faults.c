/* SPDX-License-Identifier: MIT */
/* What befalls the actors. A new kind of fault: a case in happen(), a name in plan.[ch]. */
#include <string.h>

#include "tests/sim/actors.h"
#include "tests/sim/net.h"
#include "tests/sim/operator.h"
#include "tests/sim/servers.h"
#include "tests/sim/stream.h"

#define SCRIBBLE_NS_MAX 300000u
/* The share of ranks cut off from a leader that are told so by their kernels. */
#define TOLD_SHARE 0.8

static struct sim_plan *the_plan;
/* Moments of a kind so far: by rank, and of all; by server, and at all. */
static uint32_t moments[SIM_WORKERS_MAX + 1][SIM_SERVERS_MAX + 1][SIM_MOMENTS];

/* ---- workers that break the rules ---- */

/* The part of the vector whose server it is unfair to; NULL: it has no link there now. */
static struct mst_part *victim(const struct sim_worker *w)
{
	if (w->rogue_at == SIM_ALL)
		return &w->m->links.part[w->m->links.count > 1 ? sim_below(w->m->links.count) : 0];
	for (uint32_t k = 0; k < w->m->links.count; k++) {
		struct mst_link *link = w->m->links.part[k].link;
		const struct mst_link *peer = link != NULL ? sim_link_peer(link) : NULL;
		if (peer != NULL && servers_number(sim_link_owner(peer)) == w->rogue_at)
			return &w->m->links.part[k];
	}
	return NULL;
}

/* Into slots that are granted, full, being read, or gone. */
static void scribble(void *ctx, uint64_t arg)
{
	struct sim_worker *w = ctx;
	uint64_t rubbish[64];

	if (!w->scribbles || w->m == NULL || w->process->dead)
		return;
	const struct mst_part *part = victim(w);
	for (size_t i = 0; i < 64; i++)
		rubbish[i] = sim_below(UINT64_MAX);
	size_t bytes = 8 * sim_between(1, 64);
	if (part != NULL && part->link->lanes.up_bytes >= bytes)
		sim_scribble(part->link, sim_below(part->link->lanes.up_bytes - bytes + 1) / 8 * 8,
			     rubbish, bytes);
	sim_after(sim_below(SCRIBBLE_NS_MAX), scribble, w, arg);
}

void faults_rubbish(struct sim_worker *w)
{
	const struct mst_part *part = victim(w);
	struct mst_lane_header header;

	if (part == NULL)
		return;
	uint32_t slot = (uint32_t)sim_below(part->layout.slots);
	for (size_t i = 0; i < sizeof(header); i++)
		((unsigned char *)&header)[i] = (unsigned char)sim_below(256);
	if (sim_chance(0.5)) { /* sound but for what it says */
		header = (struct mst_lane_header){ .seq = w->m->worker.headers + sim_below(3),
						   .epoch = w->m->worker.slot[slot].epoch,
						   .tag = sim_below(30),
						   .weight = 1,
						   .slot = (uint16_t)slot,
						   .unheard = (uint16_t)sim_below(4),
						   .flags = (uint32_t)sim_below(64),
						   .size = MST_HEADER_SIZE };
	}
	uint32_t kind = (uint32_t)sim_between(0, 8);
	part->link->ops->put(part->link,
			     &(struct mst_put){ .offset = part->layout.up_header[slot],
						.src = &header,
						.bytes = sizeof(header),
						.notify = true,
						.imm = mst_imm((enum mst_imm_kind)kind, slot,
							       w->m->worker.slot[slot].epoch) });
}

static void turn_rogue(struct sim_worker *w, bool scribbles, int at)
{
	if (w->m == NULL)
		return;
	obs_turns_rogue(&w->seen);
	w->rogue_at = at;
	w->talks_rubbish |= !scribbles;
	if (scribbles && !w->scribbles) {
		w->scribbles = true;
		sim_after(0, scribble, w, 0);
	}
}

/* ---- what happens ---- */

/* A process that shares its host with others does not lose power alone: they would, too. */
static enum sim_death power_off_of(const struct sim_process *p)
{
	return sim_shares_host(p) ? SIM_KILLED : SIM_POWER_OFF;
}

static void heal(void *ctx, uint64_t arg)
{
	(void)ctx;
	(void)arg;
	obs_disturbed();
}

/* What is lost of a connection meanwhile is lost for good. */
static void stand_apart(struct sim_process *leader, uint64_t span_ns)
{
	for (uint32_t rank = 0; rank < the_plan->workers; rank++) {
		struct sim_process *p = actors_worker(rank)->process;
		if (the_plan->generations.keeps >> rank & 1)
			continue;
		sim_streams_cut_between(p, leader, sim_chance(TOLD_SHARE));
		sim_path_stall_between(leader, p, span_ns);
	}
	sim_streams_hide(leader);
	obs_disturbed();
	sim_after(span_ns, heal, NULL, 0);
	actors_begin_beside(leader);
}

static void befall_process(const struct sim_fault *f, struct sim_process *p)
{
	struct sim_process *peer = f->with != SIM_ALL ? servers_process((uint32_t)f->with) : NULL;

	switch (f->kind) {
	case SIM_FAULT_KILL:
		sim_kill(p, SIM_KILLED);
		break;
	case SIM_FAULT_POWER_OFF:
		sim_kill(p, power_off_of(p));
		break;
	case SIM_FAULT_FREEZE:
		sim_freeze(p, f->span_ns);
		break;
	case SIM_FAULT_STALL:
		if (the_plan->network != SIM_NEAR)
			sim_path_stall_between(p, peer, f->span_ns);
		break;
	case SIM_FAULT_BREAK:
		sim_links_break(p, peer);
		break;
	case SIM_FAULT_DEAF:
		servers_deafen((uint32_t)servers_number(p), f->span_ns);
		break;
	case SIM_FAULT_HANG:
		servers_hang((uint32_t)servers_number(p), f->span_ns);
		break;
	case SIM_FAULT_LOG:
		servers_block_log((uint32_t)servers_number(p), f->span_ns);
		break;
	case SIM_FAULT_STOP:
		servers_stop((uint32_t)servers_number(p));
		break;
	case SIM_FAULT_APART:
		stand_apart(p, f->span_ns);
		break;
	case SIM_FAULT_CUT:
		sim_streams_cut(p);
		break;
	case SIM_FAULT_RESET:
		sim_streams_reset(p);
		break;
	case SIM_FAULT_DELAY:
		sim_streams_stall(p, f->span_ns);
		break;
	default:
		break;
	}
}

static void befall_worker(const struct sim_fault *f, struct sim_worker *w)
{
	switch (f->kind) {
	case SIM_FAULT_FREEZE:
		w->frozen_ns += f->span_ns;
		befall_process(f, w->process);
		obs_disturbed();
		sim_after(f->span_ns, heal, NULL, 0);
		break;
	case SIM_FAULT_KILL:
	case SIM_FAULT_POWER_OFF:
		obs_dies(&w->seen);
		befall_process(f, w->process);
		break;
	case SIM_FAULT_DAWDLE:
		w->dawdle_ns = f->span_ns;
		break;
	case SIM_FAULT_LEAVE:
		w->leaves = true;
		break;
	case SIM_FAULT_FINISH:
		w->finishes = true;
		break;
	case SIM_FAULT_SCRIBBLE:
	case SIM_FAULT_RUBBISH:
		turn_rogue(w, f->kind == SIM_FAULT_SCRIBBLE, f->with);
		break;
	default:
		befall_process(f, w->process);
	}
}

static void suspend(uint64_t span_ns)
{
	for (uint32_t k = 0; k < the_plan->servers; k++)
		sim_freeze(servers_process(k), span_ns);
	for (uint32_t rank = 0; rank < the_plan->workers; rank++) {
		for (struct sim_worker *w = actors_worker(rank); w != NULL; w = w->next) {
			w->frozen_ns += span_ns;
			sim_freeze(w->process, span_ns);
		}
	}
}

/* A rank that has had the last version leaves, and would be waited for at a start. */
static bool may_happen(const struct sim_fault *f, const struct sim_process *p)
{
	if (f->kind == SIM_FAULT_REJOIN)
		return p->dead;
	return sim_fault_is_change(f->kind) ||
	       (obs_all_have_begun() && obs_commits() < the_plan->commits);
}

static void happen(void *ctx, uint64_t arg)
{
	const struct sim_fault *f = ctx;
	bool of_server = sim_target_is_server(f->target);
	struct sim_process *p = of_server ? servers_process(sim_server_of_target(f->target))
					  : actors_worker((uint32_t)f->target)->process;

	(void)arg;
	if (the_plan->generations.wanted && !may_happen(f, p))
		return;
	sim_say("FAULT: %s of %s", sim_fault_name(f->kind), p->name);
	if (sim_fault_is_change(f->kind)) {
		operator_asks(f);
		return;
	}
	if (of_server && sim_fault_is_felt(f->kind))
		obs_server_hit(f, p->fibers > 0);
	if (f->kind == SIM_FAULT_REJOIN)
		actors_enter((uint32_t)f->target, true);
	else if (f->kind == SIM_FAULT_SUSPEND)
		suspend(f->span_ns);
	else if (of_server)
		befall_process(f, p);
	else
		befall_worker(f, actors_worker((uint32_t)f->target));
}

/* ---- when ---- */

void faults_begin(struct sim_plan *plan)
{
	the_plan = plan;
	memset(moments, 0, sizeof(moments));
	for (uint32_t i = 0; i < plan->fault_count; i++) {
		if (plan->fault[i].when.moment == 0 && !plan->fault[i].left_out)
			sim_after(plan->fault[i].when.after_ns, happen, &plan->fault[i], 0);
	}
}

static bool is_due(const struct sim_fault *f, int rank, uint32_t server, uint32_t moment)
{
	bool all = sim_target_is_server(f->target);
	uint32_t row = all ? SIM_WORKERS_MAX : (uint32_t)f->target;
	uint32_t column = f->when.server == SIM_ALL ? SIM_SERVERS_MAX : (uint32_t)f->when.server;

	return !f->left_out && f->when.moment == moment &&
	       (all || f->target == rank || rank == SIM_NOBODY) &&
	       (f->when.server == SIM_ALL || column == server) &&
	       moments[row][column][moment] == f->when.nth;
}

static void count_moment(uint32_t row, uint32_t server, uint32_t moment)
{
	moments[row][server][moment]++;
	moments[row][SIM_SERVERS_MAX][moment]++;
}

/* The fiber that runs has not gone on yet when the fault happens. */
void faults_moment(int rank, uint32_t server, uint32_t moment)
{
	if (moment >= SIM_MOMENTS)
		return;
	for (uint32_t row = 0; row < SIM_WORKERS_MAX; row++) {
		if (rank == SIM_NOBODY || row == (uint32_t)rank)
			count_moment(row, server, moment);
	}
	count_moment(SIM_WORKERS_MAX, server, moment);
	for (uint32_t i = 0; i < the_plan->fault_count; i++) {
		struct sim_fault *f = &the_plan->fault[i];
		if (!is_due(f, rank, server, moment))
			continue;
		sim_after(f->when.after_ns, happen, f, 0);
		if (f->when.after_ns == 0)
			sim_interrupt();
	}
}
