/* SPDX-License-Identifier: MIT */
/* What befalls the cast. A new kind of fault: a case in happen(), a name in plan.[ch]. */
#include <string.h>

#include "tests/sim/cast.h"
#include "tests/sim/net.h"
#include "tests/sim/stream.h"

#define IMM_KINDS 8u
#define SCRIBBLE_NS_MAX 300000u

static struct sim_plan *the_plan;
/* Moments of a kind so far: by rank, and of all. */
static uint32_t moments[SIM_WORKERS_MAX + 1][IMM_KINDS];

/* ---- workers that break the rules ---- */

/* Into slots that are granted, full, being read, or gone. */
static void scribble(void *ctx, uint64_t arg)
{
	struct worker *w = ctx;
	uint64_t rubbish[64];

	if (!w->scribbles || w->m == NULL || w->process->dead)
		return;
	for (size_t i = 0; i < 64; i++)
		rubbish[i] = sim_below(UINT64_MAX);
	size_t bytes = 8 * sim_between(1, 64);
	const struct mst_lanes *lanes = &w->m->part[0].link->lanes;
	if (lanes->up_bytes >= bytes)
		sim_scribble(w->m->part[0].link, sim_below(lanes->up_bytes - bytes + 1) / 8 * 8,
			     rubbish, bytes);
	sim_after(sim_below(SCRIBBLE_NS_MAX), scribble, w, arg);
}

void faults_rubbish(struct worker *w)
{
	const struct mst_lane_layout *l = &w->m->part[0].layout;
	uint32_t slot = (uint32_t)sim_below(l->slots);
	struct mst_lane_header header;

	for (size_t i = 0; i < sizeof(header); i++)
		((unsigned char *)&header)[i] = (unsigned char)sim_below(256);
	if (sim_chance(0.5)) { /* sound but for what it says */
		header = (struct mst_lane_header){ .seq = w->m->worker.headers + sim_below(3),
						   .epoch = w->m->worker.slot[slot].epoch,
						   .tag = sim_below(30),
						   .weight = 1,
						   .slot = slot,
						   .flags = (uint32_t)sim_below(32) };
	}
	uint32_t kind = (uint32_t)sim_between(0, 8);
	w->m->part[0].link->ops->put(
		w->m->part[0].link,
		&(struct mst_put){ .offset = l->up_header[slot],
				   .src = &header,
				   .bytes = sizeof(header),
				   .notify = true,
				   .imm = mst_imm((enum mst_imm_kind)kind, slot,
						  w->m->worker.slot[slot].epoch) });
}

static void turn_rogue(struct worker *w, bool scribbles)
{
	if (w->m == NULL)
		return;
	obs_turns_rogue(&w->seen);
	w->talks_rubbish |= !scribbles;
	if (scribbles && !w->scribbles) {
		w->scribbles = true;
		sim_after(0, scribble, w, 0);
	}
}

/* ---- what happens ---- */

static void befall_process(const struct sim_fault *f, struct sim_process *p)
{
	switch (f->kind) {
	case SIM_FAULT_KILL:
		sim_kill(p, SIM_KILLED);
		break;
	case SIM_FAULT_POWER_OFF:
		sim_kill(p, the_plan->far ? SIM_POWER_OFF : SIM_KILLED);
		break;
	case SIM_FAULT_FREEZE:
		sim_freeze(p, f->span_ns);
		break;
	case SIM_FAULT_STALL:
		if (the_plan->far)
			sim_path_stall(p, f->span_ns);
		break;
	case SIM_FAULT_STOP:
		cast_stop_server();
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

static void befall_worker(const struct sim_fault *f, struct worker *w)
{
	switch (f->kind) {
	case SIM_FAULT_FREEZE:
		w->frozen_ns += f->span_ns;
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
		turn_rogue(w, f->kind == SIM_FAULT_SCRIBBLE);
		break;
	default:
		befall_process(f, w->process);
	}
}

static void happen(void *ctx, uint64_t arg)
{
	const struct sim_fault *f = ctx;

	(void)arg;
	sim_say("FAULT: %s of %s", sim_fault_name(f->kind),
		f->target == SIM_SERVER ? "the server"
					: cast_worker((uint32_t)f->target)->process->name);
	if (f->kind == SIM_FAULT_REJOIN)
		cast_enter((uint32_t)f->target, true);
	else if (f->target == SIM_SERVER)
		befall_process(f, cast_server());
	else
		befall_worker(f, cast_worker((uint32_t)f->target));
}

/* ---- when ---- */

void faults_begin(struct sim_plan *plan)
{
	the_plan = plan;
	memset(moments, 0, sizeof(moments));
	for (uint32_t i = 0; i < plan->fault_count; i++) {
		if (plan->fault[i].when.imm_kind == 0 && !plan->fault[i].left_out)
			sim_after(plan->fault[i].when.after_ns, happen, &plan->fault[i], 0);
	}
}

static bool is_due(const struct sim_fault *f, uint32_t rank, uint32_t imm_kind)
{
	uint32_t row = f->target == SIM_SERVER ? SIM_WORKERS_MAX : rank;

	return !f->left_out && f->when.imm_kind == imm_kind &&
	       (f->target == SIM_SERVER || f->target == (int)rank) &&
	       moments[row][imm_kind] == f->when.nth;
}

void faults_moment(uint32_t rank, uint32_t imm_kind)
{
	if (imm_kind >= IMM_KINDS || rank >= SIM_WORKERS_MAX)
		return;
	moments[rank][imm_kind]++;
	moments[SIM_WORKERS_MAX][imm_kind]++;
	for (uint32_t i = 0; i < the_plan->fault_count; i++) {
		if (is_due(&the_plan->fault[i], rank, imm_kind))
			sim_after(the_plan->fault[i].when.after_ns, happen, &the_plan->fault[i], 0);
	}
}
