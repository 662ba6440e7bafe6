/* SPDX-License-Identifier: MIT */
#include "tools/sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/delay/delay.h"
#include "server/core/heap.h"
#include "tools/sim/learn/trainer.h"
#include "tools/sim/network.h"
#include "tools/sim/problem/problem.h"
#include "tools/sim/tickets.h"
#include "tools/sim/worker.h"

/* The simulated clock begins here: for some of what reads it, 0 is no time. */
#define BEGIN_NS MST_SECOND
/* Workers send heartbeats, and the server says that it has listened, so many times in a lease, as
 * libmuster and musterd do. */
#define BEATS_PER_LEASE 4u
#define HEARD_PER_LEASE 8u

/* What the heap wakes besides workers, whose index is their rank: these, after the last rank. */
enum { WAKE_CHANGE, WAKE_BEAT, WAKE_HEARD, WAKE_COUNT };

struct mst_sim_world {
	const struct mst_sim_cfg *cfg;
	struct mst_sim_figures *figures;
	/* One of the two decides. */
	struct mst_ledger *ledger;
	struct mst_sim_tickets *tickets;
	struct mst_sim_trainer *trainer; /* NULL: nothing is trained */
	struct mst_sim_network network;
	struct mst_sim_worker *worker;
	struct mst_heap wakes;
	uint32_t workers, change_next, change_of_rule_next;
	uint64_t now_ns;
	uint64_t deadline_ns; /* of the ledger */
	int failed;           /* the first error */
};

/* ---- birth and end ---- */

static int give_delays(struct mst_sim_world *w, struct mst_reason *why)
{
	struct mst_delay_options opt = { .spec = w->cfg->delay,
					 .spec_count = w->cfg->delay_count,
					 .seed = w->cfg->seed };
	struct mst_delay **delay = calloc(w->workers, sizeof(struct mst_delay *));

	if (delay == NULL)
		return -ENOMEM;
	int rc = mst_delay_new_each(&opt, w->workers, delay, why);
	for (uint32_t rank = 0; rc == 0 && rank < w->workers; rank++)
		w->worker[rank].delay = delay[rank];
	free(delay);
	return rc;
}

static int make_decider(struct mst_sim_world *w)
{
	if (w->cfg->tickets > 0)
		return mst_sim_tickets_new(&w->cfg->ledger, w->cfg->tickets, &w->tickets);
	return mst_ledger_new(&w->cfg->ledger, &w->ledger);
}

static int make_parts(struct mst_sim_world *w)
{
	uint32_t servers = w->cfg->ledger.shards;
	int rc = mst_sim_network_init(&w->network, &w->cfg->net, servers);

	if (rc == 0)
		rc = mst_heap_init(&w->wakes, w->workers + WAKE_COUNT);
	if (rc == 0)
		rc = make_decider(w);
	if (rc == 0 && w->cfg->problem != NULL)
		rc = mst_sim_trainer_new(w->cfg, &w->figures->curve, &w->trainer);
	w->worker = calloc(w->workers, sizeof(*w->worker));
	if (w->worker == NULL)
		return -ENOMEM;
	double samples = w->cfg->problem != NULL ? (double)w->cfg->problem->batch : 1;
	for (uint32_t rank = 0; rank < w->workers; rank++)
		w->worker[rank] = (struct mst_sim_worker){ .who = { .rank = rank },
							   .samples = samples,
							   .servers = servers,
							   .checks = w->cfg->checks,
							   .batch = { .micro = w->cfg->micro },
							   .wake_ns = MST_NEVER };
	return rc;
}

static void world_fini(struct mst_sim_world *w)
{
	for (uint32_t rank = 0; w->worker != NULL && rank < w->workers; rank++)
		mst_delay_free(w->worker[rank].delay);
	free(w->worker);
	mst_ledger_free(w->ledger);
	mst_sim_tickets_free(w->tickets);
	mst_sim_trainer_free(w->trainer);
	mst_heap_fini(&w->wakes);
	mst_sim_network_fini(&w->network);
}

/* ---- workers ---- */

static void check(struct mst_sim_world *w, int rc)
{
	if (rc < 0 && w->failed == 0)
		w->failed = rc;
}

static void wake_at(struct mst_sim_world *w, uint32_t index, uint64_t at_ns)
{
	if (at_ns == MST_NEVER)
		mst_heap_remove(&w->wakes, index);
	else
		mst_heap_set(&w->wakes, index, at_ns);
}

static void act(struct mst_sim_world *w, struct mst_sim_worker *of, struct mst_sim_act *act)
{
	if (w->trainer != NULL)
		check(w, mst_sim_trainer_acted(w->trainer, of, act));
	wake_at(w, of->who.rank, of->wake_ns);
	if (act->gave_up)
		mst_sim_figures_given_up(w->figures, of->who.rank, act->given_up_ns);
	if (!act->sends)
		return;
	const struct mst_lane_header *h = &act->event.full.header;
	if (act->event.kind == MST_EV_FULL && !(h->flags & MST_HEADER_PASS))
		mst_sim_figures_pushed(w->figures, of->who.rank, h->weight, act->pushed_ns);
	check(w, act->arrives ? mst_sim_network_post(&w->network, &act->event, w->now_ns)
			      : mst_sim_network_send(&w->network, &act->event, w->now_ns));
}

static void join(struct mst_sim_world *w, uint32_t rank)
{
	struct mst_sim_act does;

	mst_sim_worker_join(&w->worker[rank], &does);
	act(w, &w->worker[rank], &does);
}

/* Ends the process, or what it does. */
static void stop(struct mst_sim_world *w, uint32_t rank)
{
	bool computed = mst_sim_worker_computes(&w->worker[rank]);
	uint64_t spent_ns = mst_sim_worker_stop(&w->worker[rank], w->now_ns);

	wake_at(w, rank, MST_NEVER);
	if (computed || spent_ns > 0)
		mst_sim_figures_cut_off(w->figures, rank, spent_ns);
}

static void tell_worker(struct mst_sim_world *w, const struct mst_decision *order)
{
	bool answers_join = order->kind == MST_DO_REFUSE;
	uint32_t rank = answers_join ? (uint32_t)order->join.cookie : order->who.rank;
	struct mst_sim_worker *to = &w->worker[rank];
	struct mst_sim_act does;

	if (order->kind == MST_DO_EVICT) {
		if (to->who.incarnation == order->who.incarnation)
			stop(w, rank);
		return;
	}
	mst_sim_worker_told(to, order, w->now_ns, &does);
	act(w, to, &does);
}

/* ---- decisions ---- */

static struct mst_ledger_event event(enum mst_ledger_event_kind kind, struct mst_identity who)
{
	return (struct mst_ledger_event){ .kind = kind, .who = who };
}

static void post(struct mst_sim_world *w, const struct mst_ledger_event *ev)
{
	check(w, mst_sim_network_post(&w->network, ev, w->now_ns));
}

static void post_of_each_shard(struct mst_sim_world *w, enum mst_ledger_event_kind kind,
			       struct mst_identity who)
{
	struct mst_ledger_event ev = event(kind, who);

	for (ev.shard = 0; ev.shard < w->cfg->ledger.shards; ev.shard++)
		post(w, &ev);
}

static void change_rule(struct mst_sim_world *w, uint64_t version)
{
	const struct mst_sim_cfg *cfg = w->cfg;
	struct mst_ledger_event ev = event(MST_EV_POLICY, (struct mst_identity){ 0 });

	while (w->change_of_rule_next < cfg->change_of_rule_count &&
	       cfg->change_of_rule[w->change_of_rule_next].version == version) {
		ev.rule = cfg->change_of_rule[w->change_of_rule_next++].rule;
		post(w, &ev);
	}
}

static void begin(struct mst_sim_world *w)
{
	if (w->cfg->change_count > 0)
		wake_at(w, w->workers + WAKE_CHANGE, w->now_ns + w->cfg->change[0].at_ns);
	change_rule(w, 0);
}

/* A slot that is granted again needs no message of its own: mostly it is needed with the next push,
 * and that comes after the answer. */
static void grant(struct mst_sim_world *w, const struct mst_decision *d)
{
	struct mst_sim_worker *to = &w->worker[d->who.rank];
	struct mst_sim_act does;

	if (to->who.incarnation != d->who.incarnation)
		return;
	mst_sim_worker_granted(to, d->grant.epoch, &does);
	act(w, to, &does);
}

static const struct mst_record *record_of(const struct mst_sim_world *w, uint64_t version)
{
	return w->ledger != NULL ? mst_ledger_record_of(w->ledger, version) : NULL;
}

/* A worker has one ask out at most, so what goes with its answer can be left with it now. */
static void give_orders(struct mst_sim_world *w, const struct mst_decision *d)
{
	struct mst_sim_worker *to = &w->worker[d->who.rank];
	const struct mst_record *r = record_of(w, d->answer.version);

	if (to->who.incarnation == d->who.incarnation)
		to->next = r != NULL
				   ? (struct mst_sim_orders){ r->pace, r->until_asked, r->by_micro }
				   : (struct mst_sim_orders){ .until_asked = false };
}

/* One server reports the whole sum. */
static void report_sum(struct mst_sim_world *w, struct mst_ledger_event *ev,
		       const struct mst_exact_sum *sum)
{
	ev->reduced.squares = *sum;
	for (ev->reduced.shard = 0; ev->reduced.shard < w->cfg->ledger.shards;
	     ev->reduced.shard++) {
		post(w, ev);
		ev->reduced.squares = (struct mst_exact_sum){ { 0 } };
	}
}

/* What the shards of a server would report of a commit. */
static void report_step(struct mst_sim_world *w, uint64_t version, const struct mst_sim_step *step)
{
	struct mst_ledger_event ev = event(MST_EV_REDUCED, (struct mst_identity){ 0 });

	/* The sums of tensors are not told: the trainer has their norms. */
	bool trusts = mst_optimizer_trusts(&w->cfg->ledger.optimizer);
	uint32_t sums = !step->reduced ? 0 : trusts ? MST_EDGE_SUMS : 1;

	ev.reduced.version = version;
	for (; ev.reduced.sum < sums; ev.reduced.sum++)
		report_sum(w, &ev, &step->squares);
	if (step->compared)
		report_sum(w, &ev, &step->distance);
	if (step->finite)
		return;
	ev = event(MST_EV_SPOILT, (struct mst_identity){ 0 });
	ev.spoilt = (struct mst_spoilt){ .version = version, .kind = MST_SPOIL_STEP };
	post(w, &ev);
}

static bool is_there(const struct mst_sim_worker *of)
{
	return of->state != MST_SIM_GONE && of->state != MST_SIM_JOINING;
}

/* The first worker that is there reports the error that has been measured. It is measured without
 * samples that somebody learns from, or without noise. */
static void report_error(struct mst_sim_world *w, double error)
{
	uint32_t rank = 0;

	while (rank < w->workers && !is_there(&w->worker[rank]))
		rank++;
	if (rank == w->workers || !isfinite(error))
		return;
	struct mst_ledger_event ev = event(MST_EV_METRIC, w->worker[rank].who);
	(void)snprintf(ev.metric.name, sizeof(ev.metric.name), "%s", MST_SIM_METRIC);
	ev.metric.value = error;
	post(w, &ev);
}

static void train(struct mst_sim_world *w, const struct mst_decision *d)
{
	uint64_t version = d->commit.version;
	struct mst_sim_step step = { .finite = true };

	if (w->failed != 0)
		return;
	if (d->kind != MST_DO_COMMIT) {
		check(w, mst_sim_trainer_decided(w->trainer, d, w->now_ns));
		return;
	}
	check(w,
	      mst_sim_trainer_commit(w->trainer, version, record_of(w, version), w->now_ns, &step));
	report_step(w, version, &step);
	if (step.measured && mst_controller_metric(&w->cfg->ledger.controller) != NULL)
		report_error(w, step.error);
}

static void obey(struct mst_sim_world *w, const struct mst_decision *d)
{
	mst_sim_figures_decided(w->figures, d, w->now_ns);
	if (w->trainer != NULL)
		train(w, d);
	switch (d->kind) {
	case MST_DO_ADMIT:
		post_of_each_shard(w, MST_EV_LINKED, d->who);
		break;
	case MST_DO_START:
		begin(w);
		return;
	case MST_DO_REGRANT:
		grant(w, d);
		return;
	case MST_DO_COMMIT:
		change_rule(w, d->commit.version);
		return;
	case MST_DO_SETTLE:
		post_of_each_shard(w, MST_EV_SETTLED, (struct mst_identity){ 0 });
		return;
	case MST_DO_RELEASE:
		give_orders(w, d);
		break;
	case MST_DO_REFUSE:
	case MST_DO_SEND_STATE:
	case MST_DO_ADVISE:
	case MST_DO_EVICT:
		break;
	default:
		return;
	}
	check(w, mst_sim_network_tell(&w->network, d, w->now_ns));
}

static void obey_all(struct mst_sim_world *w)
{
	struct mst_decision d;

	while (w->ledger != NULL ? mst_ledger_next(w->ledger, &d)
				 : mst_sim_tickets_next(w->tickets, &d))
		obey(w, &d);
	if (w->ledger != NULL)
		w->deadline_ns = mst_ledger_deadline(w->ledger);
}

static void handle(struct mst_sim_world *w, const struct mst_ledger_event *ev)
{
	w->figures->calls++;
	if (w->ledger != NULL)
		mst_ledger_handle(w->ledger, ev, w->now_ns);
	else
		mst_sim_tickets_handle(w->tickets, ev);
	obey_all(w);
}

/* ---- what happens when ---- */

static void change(struct mst_sim_world *w)
{
	const struct mst_sim_cfg *cfg = w->cfg;
	const struct mst_sim_change *c = &cfg->change[w->change_next++];
	struct mst_ledger_event ev = event(MST_EV_LOST, w->worker[c->rank].who);

	if (c->kind == MST_SIM_JOIN) {
		join(w, c->rank);
	} else if (c->kind == MST_SIM_NAP) {
		mst_sim_worker_nap(&w->worker[c->rank], c->length_ns, w->now_ns);
		wake_at(w, c->rank, w->worker[c->rank].wake_ns);
	} else {
		stop(w, c->rank);
		ev.error = -ENOTCONN;
		if (c->kind == MST_SIM_KILL)
			check(w, mst_sim_network_send(&w->network, &ev, w->now_ns));
	}
	uint64_t next_ns = w->change_next < cfg->change_count
				   ? w->figures->started_ns + cfg->change[w->change_next].at_ns
				   : MST_NEVER;
	wake_at(w, w->workers + WAKE_CHANGE, next_ns);
}

static void beat(struct mst_sim_world *w)
{
	for (uint32_t rank = 0; rank < w->workers; rank++) {
		const struct mst_sim_worker *of = &w->worker[rank];
		if (!is_there(of) || of->awake_ns > w->now_ns)
			continue;
		struct mst_ledger_event ev = event(MST_EV_HEARTBEAT, w->worker[rank].who);
		handle(w, &ev);
	}
	wake_at(w, w->workers + WAKE_BEAT, w->now_ns + w->cfg->ledger.lease_ns / BEATS_PER_LEASE);
}

static void hear(struct mst_sim_world *w)
{
	struct mst_ledger_event ev = event(MST_EV_HEARD, (struct mst_identity){ 0 });

	ev.heard_ns = w->now_ns;
	handle(w, &ev);
	wake_at(w, w->workers + WAKE_HEARD, w->now_ns + w->cfg->ledger.lease_ns / HEARD_PER_LEASE);
}

static void wake_first(struct mst_sim_world *w)
{
	uint32_t index = mst_heap_first(&w->wakes);
	struct mst_sim_act does;

	if (index == w->workers + WAKE_CHANGE) {
		change(w);
	} else if (index == w->workers + WAKE_BEAT) {
		beat(w);
	} else if (index == w->workers + WAKE_HEARD) {
		hear(w);
	} else {
		mst_sim_worker_wake(&w->worker[index], w->now_ns, &does);
		act(w, &w->worker[index], &does);
	}
}

/* A push that was under way when its process died does not arrive: it was not written whole. */
static bool is_cut_off(const struct mst_sim_world *w, const struct mst_ledger_event *ev)
{
	const struct mst_sim_worker *from = &w->worker[ev->who.rank];

	return ev->kind == MST_EV_FULL &&
	       (from->state == MST_SIM_GONE || from->who.incarnation != ev->who.incarnation);
}

static void step_network(struct mst_sim_world *w)
{
	struct mst_sim_message m;
	int rc = mst_sim_network_step(&w->network, w->now_ns, &m);

	check(w, rc);
	if (rc <= 0)
		return;
	if (m.kind == MST_SIM_ORDER)
		tell_worker(w, &m.order);
	else if (!is_cut_off(w, &m.event))
		handle(w, &m.event);
}

/* When several things happen at the same time, messages come first, and timers of the ledger last.
 * Return: false: nothing can happen any more. */
static bool step(struct mst_sim_world *w)
{
	uint64_t network_ns = mst_sim_network_due(&w->network);
	uint64_t wake_ns = mst_heap_least(&w->wakes);
	uint64_t first_ns = network_ns < wake_ns ? network_ns : wake_ns;

	uint64_t tick_ns = w->deadline_ns > w->now_ns ? w->deadline_ns : w->now_ns;

	if (w->deadline_ns != MST_NEVER && tick_ns < first_ns) {
		w->now_ns = tick_ns;
		mst_ledger_tick(w->ledger, w->now_ns);
		obey_all(w);
		return true;
	}
	if (first_ns == MST_NEVER)
		return false;
	MST_ASSERT(first_ns >= w->now_ns);
	w->now_ns = first_ns;
	if (network_ns == first_ns)
		step_network(w);
	else
		wake_first(w);
	return true;
}

static void live(struct mst_sim_world *w)
{
	w->now_ns = BEGIN_NS;
	w->deadline_ns = MST_NEVER;
	if (w->ledger != NULL) { /* it ends sessions that are silent */
		wake_at(w, w->workers + WAKE_HEARD, w->now_ns);
		wake_at(w, w->workers + WAKE_BEAT, w->now_ns);
	}
	for (uint32_t rank = 0; rank < w->workers; rank++)
		join(w, rank);
	while (w->failed == 0 && !w->figures->ended && step(w))
		;
	if (w->failed == 0 && w->trainer != NULL)
		check(w, mst_sim_trainer_end(w->trainer, w->now_ns));
}

int mst_sim_run(const struct mst_sim_cfg *cfg, struct mst_sim_figures *out, struct mst_reason *why)
{
	struct mst_sim_world w = { .cfg = cfg, .figures = out, .workers = cfg->ledger.workers };
	int rc = make_parts(&w);

	mst_reason_set(why, "no memory for %u workers", w.workers);
	if (rc == 0)
		rc = give_delays(&w, why);
	if (rc == 0) {
		live(&w);
		rc = w.failed;
		if (rc == -E2BIG)
			mst_reason_set(why,
				       "there are %u points of the error already: let --every be "
				       "longer",
				       MST_SIM_POINTS_MAX);
	}
	world_fini(&w);
	return rc;
}
