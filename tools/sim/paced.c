/* SPDX-License-Identifier: MIT */
#include "tools/sim/paced.h"

void mst_sim_paced_reset(struct mst_sim_worker *w)
{
	w->stage = MST_SIM_STEP;
	w->steps = w->accrued = w->unfetched = 0;
	w->micro = w->spent_ns = 0;
}

/* ---- local steps, and elastic averaging ---- */

/* Elastic averaging does not wait for what its push comes to. */
static void meet(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	bool keeps = w->orders.pace.alpha > 0;

	w->stage = MST_SIM_STEP;
	w->steps = w->accrued = 0;
	w->tag = w->version;
	mst_sim_worker_push(w, MST_HEADER_FULL | (keeps ? 0 : MST_HEADER_ASK), act);
	if (keeps)
		mst_sim_worker_compute(w, now_ns);
}

static void step_locally(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	if (w->steps < w->orders.pace.local_steps) {
		mst_sim_worker_compute(w, now_ns);
	} else if (w->orders.pace.alpha > 0) {
		w->stage = MST_SIM_MEET;
		mst_sim_worker_ask(w, act);
	} else {
		meet(w, now_ns, act);
	}
}

/* ---- Downpour ---- */

/* Without a slot the gradient cannot be added up; the answer to the ask comes after the push that
 * has the slot was judged. */
static void accrue(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	w->stage = w->spent ? MST_SIM_ACCRUE : MST_SIM_STEP;
	if (w->spent) {
		mst_sim_worker_ask(w, act);
		return;
	}
	if (w->accrued++ == 0)
		w->tag = w->version;
	bool fetches = w->unfetched >= w->orders.pace.fetch_every;
	bool pushes = w->accrued >= w->orders.pace.push_every;
	if (fetches)
		w->unfetched = 0;
	if (pushes) {
		w->accrued = 0;
		mst_sim_worker_push(w, MST_HEADER_FULL | (fetches ? MST_HEADER_ASK : 0), act);
	}
	if (!fetches)
		mst_sim_worker_compute(w, now_ns);
	else if (!pushes)
		mst_sim_worker_ask(w, act);
}

/* ---- the whole ---- */

void mst_sim_paced_step(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	w->steps++;
	w->unfetched++;
	if (w->orders.pace.push_every > 0)
		accrue(w, now_ns, act);
	else
		step_locally(w, now_ns, act);
}

/* The rule has no pace any more. Gradients that have been added up are pushed; differences of
 * parameters, which this rule cannot count, are given up. */
static void leave(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	bool accrued = w->accrued > 0 || w->stage == MST_SIM_ACCRUE;

	if (accrued) {
		w->tag = w->accrued > 0 ? w->tag : w->version;
		mst_sim_worker_push(w, MST_HEADER_FULL | MST_HEADER_ASK, act);
	} else if (w->spent_ns > 0) {
		act->gave_up = true;
		act->given_up_ns = w->spent_ns;
	}
	mst_sim_paced_reset(w);
	if (!accrued)
		mst_sim_worker_compute(w, now_ns);
}

void mst_sim_paced_answered(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	if (!mst_sim_paced_is(w))
		leave(w, now_ns, act);
	else if (w->stage == MST_SIM_MEET)
		meet(w, now_ns, act);
	else if (w->stage == MST_SIM_ACCRUE)
		accrue(w, now_ns, act);
	else
		mst_sim_worker_compute(w, now_ns);
}
