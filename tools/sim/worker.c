/* SPDX-License-Identifier: MIT */
#include "tools/sim/worker.h"

#include <errno.h>
#include <math.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/delay/delay.h"
#include "tools/sim/paced.h"

/* ---- batch ---- */

/* The time of the first @count micro-batches. The quotient is exact, and does not overflow. */
static uint64_t time_of(const struct mst_sim_batch *b, uint32_t count)
{
	return b->length_ns / b->micro * count + b->length_ns % b->micro * count / b->micro;
}

/* Micro-batches that are finished: the double may be one too many or too few. */
static uint32_t finished(const struct mst_sim_batch *b, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - b->begin_ns;

	if (elapsed_ns >= b->length_ns)
		return b->micro;
	uint32_t count = (uint32_t)((double)elapsed_ns / (double)b->length_ns * b->micro);
	while (count > 0 && time_of(b, count) > elapsed_ns)
		count--;
	while (count < b->micro && time_of(b, count + 1) <= elapsed_ns)
		count++;
	return count;
}

void mst_sim_batch_begin(struct mst_sim_batch *b, uint64_t length_ns, uint64_t now_ns)
{
	if (!b->open) {
		b->open = true;
		b->taken = 0;
		b->length_ns = length_ns;
	}
	b->begin_ns = now_ns - time_of(b, b->taken);
}

uint64_t mst_sim_batch_end_ns(const struct mst_sim_batch *b)
{
	return b->length_ns < MST_NEVER / 2 - b->begin_ns ? b->begin_ns + b->length_ns : MST_NEVER;
}

uint64_t mst_sim_batch_next_ns(const struct mst_sim_batch *b)
{
	struct mst_sim_batch next = *b;

	next.length_ns = time_of(b, b->taken + 1);
	return mst_sim_batch_end_ns(&next);
}

uint64_t mst_sim_batch_bound_ns(const struct mst_sim_batch *b, uint64_t now_ns)
{
	uint32_t count = finished(b, now_ns);

	if (count == b->micro || b->begin_ns + time_of(b, count) == now_ns)
		return now_ns;
	return b->begin_ns + time_of(b, count + 1);
}

uint64_t mst_sim_batch_spent_ns(const struct mst_sim_batch *b, uint64_t now_ns)
{
	return b->open ? now_ns - b->begin_ns - time_of(b, b->taken) : 0;
}

uint32_t mst_sim_batch_take(struct mst_sim_batch *b, uint64_t now_ns, uint64_t *spent_ns)
{
	uint32_t count = finished(b, now_ns), added = count - b->taken;

	*spent_ns += time_of(b, count) - time_of(b, b->taken);
	b->taken = count;
	b->open = count < b->micro;
	return added;
}

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

/* A process that stands still hears, and does, everything when it goes on. */
static uint64_t awake(const struct mst_sim_worker *w, uint64_t now_ns)
{
	return now_ns > w->awake_ns ? now_ns : w->awake_ns;
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
	w->awake_ns = 0;
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
	w->wanted = w->spent = w->deferred = false;
	w->parts = 0;
	w->batch.open = false;
	mst_sim_paced_reset(w);
	send(w, MST_EV_START, act)->offers = true;
}

/* ---- asks and pushes ---- */

static struct mst_lane_ask next_ask(struct mst_sim_worker *w)
{
	w->state = MST_SIM_WAITING;
	return (struct mst_lane_ask){ .number = ++w->asks, .have = w->version };
}

/* An ask goes the way of its worker's pushes, and is read after them. */
void mst_sim_worker_ask(struct mst_sim_worker *w, struct mst_sim_act *act)
{
	struct mst_lane_ask ask = next_ask(w);

	w->deferred = w->spent;
	if (w->deferred)
		return;
	struct mst_ledger_event *ev = send(w, MST_EV_ASK, act);
	ev->ask = ask;
	ev->given_up = w->given_up;
}

void mst_sim_worker_push(struct mst_sim_worker *w, uint32_t flags, struct mst_sim_act *act)
{
	struct mst_ledger_event *ev = send(w, MST_EV_FULL, act);

	MST_ASSERT(!w->spent);
	ev->full.header = (struct mst_lane_header){
		.seq = ++w->seq,
		.epoch = w->epoch,
		.tag = w->tag,
		.weight = (double)w->micro * w->samples / w->batch.micro,
		.flags = flags,
	};
	if (flags & MST_HEADER_ASK)
		ev->full.header.ask = next_ask(w);
	act->pushed_ns = w->spent_ns;
	w->spent = true;
	w->micro = w->spent_ns = 0;
}

void mst_sim_worker_granted(struct mst_sim_worker *w, uint64_t epoch, struct mst_sim_act *act)
{
	*act = (struct mst_sim_act){ .sends = false };
	w->epoch = epoch;
	w->spent = false;
	if (!w->deferred)
		return;
	w->deferred = false;
	struct mst_ledger_event *ev = send(w, MST_EV_ASK, act);
	act->arrives = true;
	ev->ask = (struct mst_lane_ask){ .number = w->asks, .have = w->version };
	ev->given_up = w->given_up;
}

static void give_up(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	act->gave_up = true;
	act->given_up_ns = w->spent_ns + mst_sim_batch_spent_ns(&w->batch, now_ns);
	w->given_up++;
	w->batch.open = false;
	mst_sim_paced_reset(w);
	mst_sim_worker_ask(w, act);
}

/* ---- hints ---- */

/* When the worker looks whether to give up; MST_NEVER: not before the batch is complete. */
static uint64_t next_look(const struct mst_sim_worker *w, uint64_t now_ns)
{
	const struct mst_sim_batch *b = &w->batch;

	if (w->checks == MST_SIM_AT_ONCE)
		return now_ns;
	if (w->checks == 0 || b->length_ns == 0)
		return MST_NEVER;
	double part = (double)b->length_ns / w->checks;
	double look = ceil((double)(now_ns - b->begin_ns) / part);
	look = look < 1 ? 1 : look;
	return look < w->checks ? b->begin_ns + (uint64_t)(look * part) : MST_NEVER;
}

static bool is_asked(const struct mst_sim_worker *w)
{
	return w->wanted && w->version == w->hint;
}

/* Has a worker that computes find out that it computes in vain, or that it is asked for what it has
 * finished. */
static void heed(struct mst_sim_worker *w, uint64_t now_ns)
{
	if (w->state != MST_SIM_COMPUTING)
		return;
	w->wake_ns = is_asked(w)          ? mst_sim_batch_bound_ns(&w->batch, now_ns)
		     : w->orders.by_micro ? mst_sim_batch_next_ns(&w->batch)
					  : mst_sim_batch_end_ns(&w->batch);
	if (w->version >= w->hint)
		return;
	uint64_t look_ns = next_look(w, now_ns);
	if (look_ns == MST_NEVER)
		return;
	w->state = MST_SIM_GIVING_UP;
	w->wake_ns = look_ns < now_ns ? now_ns : look_ns;
}

/* ---- batches ---- */

void mst_sim_worker_compute(struct mst_sim_worker *w, uint64_t now_ns)
{
	w->state = MST_SIM_COMPUTING;
	mst_sim_batch_begin(&w->batch, w->batch.open ? 0 : mst_delay_next(w->delay), now_ns);
	heed(w, now_ns);
}

/* Pushes what is finished; if that ends the batch, the contribution is full. */
static void hand_in(struct mst_sim_worker *w, struct mst_sim_act *act)
{
	uint32_t goes_on = w->orders.by_micro ? MST_HEADER_PART : 0;
	uint32_t ends = w->batch.open || w->orders.until_asked ? goes_on : MST_HEADER_FULL;

	w->tag = w->version;
	mst_sim_worker_push(w, MST_HEADER_ASK | (w->micro > 0 ? ends : MST_HEADER_PASS), act);
}

/* The worker has come to an end of a micro-batch at which it does something else. */
static void come_to_bound(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act)
{
	w->micro += mst_sim_batch_take(&w->batch, now_ns, &w->spent_ns);
	if (is_asked(w) || w->orders.by_micro)
		hand_in(w, act);
	else if (w->batch.open || w->orders.until_asked)
		mst_sim_worker_compute(w, now_ns);
	else if (mst_sim_paced_is(w))
		mst_sim_paced_step(w, now_ns, act);
	else
		hand_in(w, act);
}

static void answered(struct mst_sim_worker *w, const struct mst_decision *order, uint64_t now_ns,
		     struct mst_sim_act *act)
{
	if (w->state != MST_SIM_WAITING || order->answer.number != w->asks ||
	    ++w->parts < w->servers)
		return;
	w->parts = 0;
	w->answers++;
	w->version = order->answer.version;
	w->orders = w->next;
	mst_sim_paced_answered(w, now_ns, act);
}

/* ---- what happens to a worker ---- */

void mst_sim_worker_told(struct mst_sim_worker *w, const struct mst_decision *order,
			 uint64_t now_ns, struct mst_sim_act *act)
{
	now_ns = awake(w, now_ns);
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
		answered(w, order, now_ns, act);
	} else if (order->kind == MST_DO_ADVISE) {
		w->hint = order->advice.version;
		w->wanted = order->advice.hand_in;
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
		come_to_bound(w, now_ns, act);
	else if (w->state == MST_SIM_GIVING_UP)
		give_up(w, now_ns, act);
}

void mst_sim_worker_nap(struct mst_sim_worker *w, uint64_t length_ns, uint64_t now_ns)
{
	uint64_t from_ns = awake(w, now_ns);

	w->awake_ns = later(from_ns, length_ns);
	if (w->wake_ns != MST_NEVER)
		w->wake_ns = later(w->wake_ns, length_ns);
	if (mst_sim_worker_computes(w))
		w->batch.begin_ns += length_ns;
}

uint64_t mst_sim_worker_stop(struct mst_sim_worker *w, uint64_t now_ns)
{
	now_ns = awake(w, now_ns);
	uint64_t spent_ns = w->spent_ns + (mst_sim_worker_computes(w)
						   ? mst_sim_batch_spent_ns(&w->batch, now_ns)
						   : 0);

	w->state = MST_SIM_GONE;
	w->wake_ns = MST_NEVER;
	return spent_ns;
}
