/* SPDX-License-Identifier: MIT */
/*
 * The open step: which ranks it waits for, when it commits, and what the commit records (PROTOCOL
 * 2, 5).
 */
#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/core/ledger/state.h"
#include "server/core/policy/factor.h"

/* The member with this standing that has the lowest rank; NULL: there is none. */
static struct mst_member *first(struct mst_ledger *l, enum mst_standing standing)
{
	uint32_t rank = mst_census_next(&l->census, standing, 0);

	return rank != MST_RANK_NONE ? &l->member[rank] : NULL;
}

static void forget_passes(struct mst_ledger *l)
{
	for (struct mst_member *m; (m = first(l, MST_STANDS_PASSED)) != NULL;) {
		m->passed = false;
		mst_changed(l, m);
	}
}

static void roster_new(struct mst_ledger *l)
{
	for (struct mst_member *m; (m = first(l, MST_STANDS_NEW)) != NULL;) {
		m->rostered = true;
		mst_changed(l, m);
	}
}

/* Everybody begins anew at the slowest clock. Clocks count contributions, and those that were made
 * under a rule without a bound say nothing about who is ahead now: the fast workers would wait
 * until the slowest had made up for all of them. */
static void rebase_clocks(struct mst_ledger *l)
{
	uint64_t least = mst_step_clock_min(l);

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		l->member[rank].clock = least;
		mst_changed(l, &l->member[rank]);
	}
}

static void tell_rule(struct mst_ledger *l, bool whole)
{
	struct mst_decision *d = mst_decide(l, MST_DO_POLICY, NULL);

	d->policy.version = mst_ledger_version(l) + 1;
	d->policy.whole = whole;
	d->policy.adapts = whole && l->rule_adapts;
}

/* Do contributions stay what they are: gradients, or what a worker gathers in so many steps? */
static bool alike(const struct mst_rule *a, const struct mst_rule *b)
{
	return a->deltas == b->deltas && a->pace.local_steps == b->pace.local_steps &&
	       a->pace.push_every == b->pace.push_every && a->pace.alpha == b->pace.alpha;
}

static void change_rule(struct mst_ledger *l)
{
	bool bounds = l->rule.release != MST_RELEASE_BOUND &&
		      l->next_rule.release == MST_RELEASE_BOUND;

	if (!alike(&l->rule, &l->next_rule))
		mst_outliers_forget_all(&l->outliers);
	l->rule = l->next_rule;
	l->controller = l->next_controller;
	l->rule_changes = false;
	if (bounds)
		rebase_clocks(l);
	mst_ask_try_all(l);
	tell_rule(l, true);
	mst_trigger_changed(l);
}

/* The version that the step is computed on says how. */
static void record_pace(struct mst_ledger *l)
{
	uint32_t buffer;

	if (!mst_store_find(&l->store, l->store.newest, &buffer))
		return;
	l->record[buffer].window = l->rule.window;
	l->record[buffer].until_asked = mst_rule_until_asked(&l->rule);
	l->record[buffer].pace = l->rule.pace;
}

/* Opens a step: empties the set, and puts every member that takes part on the roster. */
void mst_step_open(struct mst_ledger *l)
{
	struct mst_member *m;

	MST_ASSERT(l->phase == MST_PHASE_RUNNING);
	MST_ASSERT(l->census.clocks.count == mst_census_count(&l->census, MST_STANDS_ROSTERED));
	/* Before the first step nobody was busy, as if everybody had been waited for. */
	mst_starts_open(&l->starts, l->store.newest,
			l->entry_count > 0 ? l->entry_count : l->cfg.workers, l->now_ns);
	l->entry_count = 0;
	l->active_ns = l->opened_ns = l->now_ns;
	l->collecting = l->overdue = false;
	while ((m = first(l, MST_STANDS_COUNTED)) != NULL) {
		m->step_count = 0;
		m->step_samples = 0;
		mst_changed(l, m);
	}
	forget_passes(l);
	roster_new(l);
	if (l->rule_changes)
		change_rule(l);
	record_pace(l);
}

/* A step that has no contributions and misses none can only be committed if some member still
 * contributes to it. This may happen when the last member of the roster leaves while another one
 * joins, which would wait for a version that no member makes; or when all members pass, and all
 * wait for the commit of nothing. */
void mst_step_revive(struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	if (l->phase != MST_PHASE_RUNNING || l->end_due || step.contributions > 0 ||
	    step.missing > 0)
		return;
	if (step.roster == 0)
		roster_new(l);
	mst_trigger_again(l);
	forget_passes(l);
}

uint64_t mst_step_clock_min(const struct mst_ledger *l)
{
	return l->census.clocks.count > 0 ? mst_heap_least(&l->census.clocks) : 0;
}

/* Contributions keep their slots until the commit, except that partial sums are planned for the
 * quorum that the job starts with. */
static uint32_t room(const struct mst_ledger *l, uint32_t roster)
{
	const struct mst_rule *first = &l->cfg.rule;
	uint32_t slots = roster * l->cfg.slots;
	bool planned = mst_rule_repeats(first) && first->quorum > 0;

	return planned && (uint32_t)first->quorum > slots ? (uint32_t)first->quorum : slots;
}

struct mst_rule_step mst_step_view(const struct mst_ledger *l)
{
	uint32_t roster = mst_census_count(&l->census, MST_STANDS_ROSTERED);

	return (struct mst_rule_step){
		.roster = roster,
		.room = room(l, roster),
		.missing = mst_census_count(&l->census, MST_STANDS_MISSING),
		.contributions = l->entry_count,
		.overdue = l->overdue,
	};
}

void mst_step_arrived(struct mst_ledger *l, uint64_t version)
{
	struct mst_arrival arrival;

	if (l->phase == MST_PHASE_RUNNING && mst_controller_by_norms(&l->controller) &&
	    mst_starts_add(&l->starts, version, l->now_ns, &arrival))
		mst_controller_arrived(&l->controller, &arrival, l->cfg.workers);
}

/* Records the share of each rank, and the sum of the samples. */
static void record_shares(const struct mst_ledger *l, struct mst_record *r)
{
	const struct mst_census *c = &l->census;

	uint32_t counted = 0;

	r->share_count = 0;
	r->samples = 0;
	for (uint32_t rank = mst_census_next(c, MST_STANDS_COUNTED, 0); rank != MST_RANK_NONE;
	     rank = mst_census_next(c, MST_STANDS_COUNTED, rank + 1)) {
		const struct mst_member *m = &l->member[rank];
		r->share[r->share_count++] = (struct mst_lane_share){ .rank = rank,
								      .count = m->step_count,
								      .weight = m->step_samples };
		r->samples += m->step_samples;
		counted += m->step_count;
	}
	MST_ASSERT(counted == l->entry_count);
}

static void record_loss(struct mst_record *r)
{
	double loss = 0;

	r->loss_samples = 0;
	for (uint32_t i = 0; i < r->entry_count; i++) {
		if (!isfinite(r->entry[i].loss))
			continue;
		loss += r->entry[i].loss * r->entry[i].samples;
		r->loss_samples += r->entry[i].samples;
	}
	r->loss = r->loss_samples > 0 ? loss / r->loss_samples : (double)NAN;
}

/* Each figure is computed once in double and rounded once to f32 (PROTOCOL 5). */
static void record_fill(const struct mst_ledger *l, struct mst_record *r, uint64_t version)
{
	double base = 0;

	r->version = version;
	r->entry_count = l->entry_count;
	memcpy(r->entry, l->entry, l->entry_count * sizeof(*l->entry));
	for (uint32_t i = 0; i < r->entry_count; i++)
		base += r->entry[i].base;
	record_shares(l, r);
	r->divisor = mst_divisor(&l->rule, base);
	r->rate = (struct mst_lr_scale_of){
		.linear = l->rule.linear,
		.schedule = &l->cfg.schedule,
		.contributions = l->entry_count,
		.workers = l->cfg.workers,
		.samples = l->samples_total + r->samples,
		.distance = l->cfg.distance,
		.lr = mst_optimizer_rate(&l->cfg.optimizer),
	};
	r->lr_scale = mst_lr_scale(&r->rate);
	mst_optimizer_scalars(&l->cfg.optimizer,
			      &(struct mst_optim_version){ version, r->lr_scale }, r->scalar);
	r->average = mst_average_rest(l->cfg.average, version);
	record_loss(r);
}

/* A member that has no ask open computes; under a rule that preempts its gradient cannot count any
 * more. */
void mst_step_preempt(struct mst_ledger *l)
{
	const struct mst_census *c = &l->census;

	if (!l->rule.preempt)
		return;
	for (uint32_t rank = mst_census_next(c, MST_STANDS_BUSY, 0); rank != MST_RANK_NONE;
	     rank = mst_census_next(c, MST_STANDS_BUSY, rank + 1))
		mst_advise(l, &l->member[rank], false);
}

/* Members that the next step waits for. */
static uint32_t count_live(const struct mst_ledger *l)
{
	return mst_census_count(&l->census, MST_STANDS_ROSTERED) +
	       mst_census_count(&l->census, MST_STANDS_NEW);
}

/* Asks the controller for the rule of the next step, unless another policy is about to come into
 * force, or no step follows. */
void mst_step_control(struct mst_ledger *l, const struct mst_record *r)
{
	struct mst_commit_view view = {
		.gradients = r->entry_count,
		.live = count_live(l),
		.loss = r->loss,
		.loss_samples = r->loss_samples,
		.samples = r->samples,
		.samples_total = l->samples_total,
		.samples_max = l->cfg.samples_max,
		.workers = l->cfg.workers,
		.rate = (double)r->scalar[MST_SCALAR_RATE],
		.linear = l->rule.linear,
		.norms = l->norms,
	};

	l->norms.known = false;
	if (l->rule_changes || l->end_due || mst_has_commits(l) || mst_has_samples(l))
		return;
	mst_stragglers_commit(l, view.gradients, view.live);
	view.stragglers = l->stragglers;
	l->next_rule = l->rule;
	l->rule_changes = mst_controller_decide(&l->controller, &view, &l->next_rule);
	l->next_controller = l->controller;
	l->rule_adapts = l->rule_changes;
	mst_stragglers_rest(l);
}

static void commit(struct mst_ledger *l, uint32_t buffer)
{
	uint64_t version = l->store.newest;

	record_fill(l, &l->record[buffer], version);
	l->samples_total += l->record[buffer].samples;
	struct mst_decision *d = mst_decide(l, MST_DO_COMMIT, NULL);
	d->commit.version = version;
	d->commit.buffer = buffer;
	d->commit.read = l->compared;
	mst_ask_let_go(l, &l->compared);
	mst_tempo_add(&l->steps, l->now_ns - l->opened_ns);
}

/* When the job is about to end, what is counted is committed even if the rule still waits for more:
 * its workers were told "counted", and that is final. A job that fails or is stopped commits
 * nothing that the rule would not. */
bool mst_step_due(const struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	if (l->phase != MST_PHASE_RUNNING || l->entry_count == 0)
		return false;
	if (mst_step_gathers(l))
		return mst_rule_met(&l->rule, &step);
	return !mst_finish_failed(l->end_why);
}

const struct mst_record *mst_step_commit_if_due(struct mst_ledger *l)
{
	uint32_t buffer;

	if (!mst_step_due(l) || !mst_store_take(&l->store, l->store.newest + 1, &buffer))
		return NULL;
	commit(l, buffer);
	return &l->record[buffer];
}

/* A change that only lowers the number of contributions needed takes effect at once, any other
 * change with the next version. */
void mst_step_policy(struct mst_ledger *l, const struct mst_rule *rule,
		     const struct mst_controller *controller)
{
	static const struct mst_controller none = { .kind = MST_CONTROLLER_NONE };

	l->rule_adapts = false;
	l->next_controller = controller != NULL ? *controller : none;
	if (l->phase != MST_PHASE_RUNNING) {
		l->rule = *rule;
		l->controller = l->next_controller;
		tell_rule(l, true);
		return;
	}
	l->next_rule = *rule;
	l->rule_changes = true;
	/* The numbers are compared under the release in force. Quorum 0, which is all workers, is
	 * never lower than a number. */
	struct mst_rule_step step = mst_step_view(l);
	struct mst_rule lowered = l->rule;
	lowered.quorum = rule->quorum;
	if (rule->quorum != 0 &&
	    mst_rule_needed(&lowered, &step) < mst_rule_needed(&l->rule, &step)) {
		l->rule.quorum = rule->quorum;
		tell_rule(l, false);
	}
}
