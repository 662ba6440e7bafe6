/* SPDX-License-Identifier: MIT */
#include "tools/sim/worker.h"

#include <errno.h>
#include <math.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/delay/delay.h"

/* After this time a process asks again, whose rank the ledger has not given up yet. */
#define RETRY_NS (100 * MST_MS)

static struct mst_ledger_event *send(const struct mst_sim_worker *w,
				     enum mst_ledger_event_kind kind, struct mst_sim_act *act)
{
	act->sends = true;
	act->event = (struct mst_ledger_event){ .kind = kind, .who = w->who };
	return &act->event;
}

static uint64_t later(uint64_t now_ns, uint64_t ns)
{
	return ns < MST_NEVER / 2 - now_ns ? now_ns + ns : MST_NEVER;
}

/* ---- a session begins ---- */

static void ask_to_join(struct mst_sim_worker *w, struct mst_sim_act *act)
{
	struct mst_ledger_event *ev = send(w, MST_EV_JOIN, act);

	ev->join.cookie = w->who.rank;
	ev->join.rank = (int32_t)w->who.rank;
}

void mst_sim_worker_join(struct mst_sim_worker *w, struct mst_sim_act *act)
{
	*act = (struct mst_sim_act){ .sends = false };
	MST_ASSERT(w->state == MST_SIM_GONE);
	w->state = MST_SIM_JOINING;
	w->who.incarnation = 0;
	w->wake_ns = MST_NEVER;
	ask_to_join(w, act);
}

/* The start is the first ask. */
static void admitted(struct mst_sim_worker *w, const struct mst_decision *order,
		     struct mst_sim_act *act)
{
	w->state = MST_SIM_WAITING;
	w->who = order->who;
	w->seq = w->given_up = 0;
	w->epoch = w->asks = 1;
	w->version = MST_VERSION_NONE;
	w->hint = 0;
	w->parts = 0;
	send(w, MST_EV_START, act)->offers = true;
}

/* ---- gradients ---- */

/* When the worker looks at the hint next; MST_NEVER: not before the gradient is complete. */
static uint64_t next_look(const struct mst_sim_worker *w, uint64_t now_ns)
{
	if (w->checks == MST_SIM_AT_ONCE)
		return now_ns;
	if (w->checks == 0 || w->length_ns == 0)
		return MST_NEVER;
	double part = (double)w->length_ns / w->checks;
	double look = ceil((double)(now_ns - w->begin_ns) / part);
	look = look < 1 ? 1 : look;
	return look < w->checks ? w->begin_ns + (uint64_t)(look * part) : MST_NEVER;
}

/* Has a worker that computes in vain find that out. */
static void heed(struct mst_sim_worker *w, uint64_t now_ns)
{
	if (w->state != MST_SIM_COMPUTING || w->version >= w->hint)
		return;
	uint64_t look_ns = next_look(w, now_ns);
	if (look_ns == MST_NEVER)
		return;
	w->state = MST_SIM_GIVING_UP;
	w->wake_ns = look_ns < now_ns ? now_ns : look_ns;
}

static void answered(struct mst_sim_worker *w, const struct mst_decision *order, uint64_t now_ns)
{
	if (w->state != MST_SIM_WAITING || order->answer.number != w->asks ||
	    ++w->parts < w->servers)
		return;
	w->state = MST_SIM_COMPUTING;
	w->parts = 0;
	w->version = order->answer.version;
	w->begin_ns = now_ns;
	w->length_ns = mst_delay_next(w->delay);
	w->wake_ns = later(now_ns, w->length_ns);
	heed(w, now_ns);
}

static struct mst_lane_ask next_ask(struct mst_sim_worker *w)
{
	w->state = MST_SIM_WAITING;
	return (struct mst_lane_ask){ .number = ++w->asks, .have = w->version };
}

static void push(struct mst_sim_worker *w, struct mst_sim_act *act)
{
	struct mst_ledger_event *ev = send(w, MST_EV_FULL, act);

	ev->full.header = (struct mst_lane_header){
		.seq = ++w->seq,
		.epoch = w->epoch,
		.tag = w->version,
		.weight = 1,
		.ask = next_ask(w),
		.flags = MST_HEADER_FULL | MST_HEADER_ASK,
	};
}

static void give_up(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	struct mst_ledger_event *ev = send(w, MST_EV_ASK, act);

	act->gave_up = true;
	act->given_up_ns = now_ns - w->begin_ns;
	ev->ask = next_ask(w);
	ev->given_up = ++w->given_up;
}

/* ---- what happens to a worker ---- */

void mst_sim_worker_told(struct mst_sim_worker *w, const struct mst_decision *order,
			 uint64_t now_ns, struct mst_sim_act *act)
{
	*act = (struct mst_sim_act){ .sends = false };
	if (w->state == MST_SIM_JOINING) {
		if (order->kind == MST_DO_ADMIT)
			admitted(w, order, act);
		else if (order->kind == MST_DO_REFUSE && order->join.error == -EEXIST)
			w->wake_ns = later(now_ns, RETRY_NS);
		return;
	}
	if (w->state == MST_SIM_GONE || order->who.incarnation != w->who.incarnation)
		return;
	if (order->kind == MST_DO_RELEASE) {
		answered(w, order, now_ns);
	} else if (order->kind == MST_DO_ADVISE) {
		w->hint = order->advice.version;
		heed(w, now_ns);
	} else if (order->kind == MST_DO_SEND_STATE) {
		send(w, MST_EV_STATE, act);
	}
}

void mst_sim_worker_wake(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	*act = (struct mst_sim_act){ .sends = false };
	w->wake_ns = MST_NEVER;
	if (w->state == MST_SIM_JOINING)
		ask_to_join(w, act);
	else if (w->state == MST_SIM_COMPUTING)
		push(w, act);
	else if (w->state == MST_SIM_GIVING_UP)
		give_up(w, now_ns, act);
}

uint64_t mst_sim_worker_stop(struct mst_sim_worker *w, uint64_t now_ns)
{
	uint64_t spent_ns = mst_sim_worker_computes(w) ? now_ns - w->begin_ns : 0;

	w->state = MST_SIM_GONE;
	w->wake_ns = MST_NEVER;
	return spent_ns;
}
