/* SPDX-License-Identifier: MIT */
/*
 * Random histories: for each policy, seeded worlds of simulated workers, and after every event the
 * decisions of the real ledger held against those of the reference, and both against what must
 * hold under any policy. At the end of a history the world calms down, and then nobody may hang.
 *
 * test_ledger_random [--seed N] [--count N] [--policy NAME] [--members N]
 * With --members they are N to half of N in each history, else 1 to 5.
 * A failure prints the seed, the history up to there and what differs.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "server/core/policy/rule.h"
#include "tests/policies.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/unit/server/core/ledger/ledger_check.h"
#include "tests/unit/server/core/ledger/ledger_text.h"
#include "tests/unit/server/core/ledger/ledger_watch.h"
#include "tests/unit/server/core/ledger/ledger_world.h"
#include "tests/unit/server/core/ledger/reference_ledger.h"

#define LEASE_NS (100 * MST_MS)
#define STORM_STEPS 300u
#define RULES_MAX 6u
/* Longer than the longest patience: a worker that has been confused is waited for as long. */
#define CALM_STEPS 3000u

/* One history under way. */
struct random_run {
	const struct policy_row *policy;
	uint64_t seed;
	uint32_t members; /* at most; 0: few */
	bool loud;        /* print every event and decision */
	struct ledger_world_cfg cfg;
	struct mst_rule rules[RULES_MAX];
	bool punctual; /* there is a tick whenever a timer is due */
	uint64_t looked_ns;
	bool ends; /* all asks wait until it has */
	struct ledger_world *world;
	struct mst_ledger *ledger;
	struct reference *reference;
	struct watch *watch;
	struct mst_decision *real; /* on the last event or tick */
	size_t real_count, real_room;
	uint32_t line;
	uint64_t versions; /* made in all */
	char complaint[256];
};

static void draw_rule(struct mst_rand *rand, const struct policy_row *policy,
		      const struct mst_ledger_cfg *cfg, struct mst_rule *out)
{
	bool has_quorum = policy->number[0] == POLICY_QUORUM || policy->number[1] == POLICY_QUORUM;

	*out = policy->rule;
	if (has_quorum) {
		int32_t drawn = (int32_t)(1 + mst_rand_below(rand, cfg->workers));
		out->quorum = policy->rule.quorum < 0 ? -drawn : drawn;
		if (-drawn <= -(int32_t)cfg->workers && out->quorum < 0)
			out->quorum = -1;
	}
	if (policy->number[1] == POLICY_AGE)
		out->window = (uint32_t)(1 + mst_rand_below(rand, 3));
	if (policy->number[0] == POLICY_WINDOW)
		out->window = (uint32_t)mst_rand_below(rand, 4);
	if (policy->number[0] == POLICY_BOUND)
		out->bound = (uint32_t)mst_rand_below(rand, 4);
	out->weigh = mst_rand_below(rand, 2) ? MST_WEIGH_SAMPLES : MST_WEIGH_ONE;
	out->linear = mst_rand_below(rand, 2) == 0;
	out->batch = mst_rand_below(rand, 4) == 0 ? 12.5 : 0;
	if (!out->deltas)
		out->divide = mst_rand_below(rand, 4) != 0;
	if (out->deadline_ns > 0)
		out->deadline_ns = LEASE_NS * (1 + mst_rand_below(rand, 40)) / 40;
	if (out->grace_ns > 0)
		out->grace_ns = LEASE_NS * (1 + mst_rand_below(rand, 20)) / 80;
	out->late_start = (enum mst_late_start)mst_rand_below(rand, 3);
	out->on_loss = mst_rand_below(rand, 8) == 0 ? MST_LOSS_FAIL : MST_LOSS_SHRINK;
	out->min_workers = 1;
	if (mst_rand_below(rand, 8) == 0)
		out->min_workers = (uint32_t)(1 + mst_rand_below(rand, cfg->workers));
	out->patience_ns = LEASE_NS * (1 + mst_rand_below(rand, 40)) / 2;
}

/* Rules the job may change to: those that its owner and its slots allow. */
static void draw_rules(struct mst_rand *rand, struct random_run *h)
{
	struct mst_rule_context ctx = { .owner = h->cfg.ledger.owner,
					.workers = h->cfg.ledger.workers,
					.slots = h->cfg.ledger.slots,
					.force = true };
	struct mst_reason why;

	if (mst_rand_below(rand, 2) == 0)
		return;
	while (h->cfg.rule_count < RULES_MAX) {
		const struct policy_row *other = &policy_rows[mst_rand_below(rand, POLICY_ROWS)];
		struct mst_rule *rule = &h->rules[h->cfg.rule_count];
		draw_rule(rand, other, &h->cfg.ledger, rule);
		h->cfg.rule_count += mst_rule_check(rule, &ctx, &why) == 0;
	}
	h->cfg.rule = h->rules;
}

/* Many that read versions of their own in place, and ask while a header of theirs is on its way:
 * more than there are buffers to be held. */
static void draw_many(struct random_run *h)
{
	struct mst_ledger_cfg *cfg = &h->cfg.ledger;

	cfg->workers = 5;
	cfg->shards = 2;
	cfg->buffers = 3;
	cfg->in_place = true;
	h->cfg.keeps = h->cfg.lags = true;
}

/* A warm-up, and a step down, within the samples of a history. */
static const struct mst_schedule warmup_and_step = {
	.count = 2,
	.term = { { &mst_schedule_rows[1], 1, { 60 } },
		  { &mst_schedule_rows[2], 2, { 0.5, 150 } } },
};

static void draw_cfg(struct random_run *h)
{
	struct mst_rand rand;
	struct mst_ledger_cfg *cfg = &h->cfg.ledger;

	mst_rand_seed(&rand, h->seed);
	*cfg = (struct mst_ledger_cfg){
		.workers = (uint32_t)(1 + mst_rand_below(&rand, 5)),
		.shards = (uint32_t)(1 + mst_rand_below(&rand, 3)),
		.slots = (uint32_t)(1 + mst_rand_below(&rand, 3)),
		.buffers = (uint32_t)(3 + mst_rand_below(&rand, 3)),
		.in_place = mst_rand_below(&rand, 2) == 0,
		.optimizer = optim_case_sgd(0.1, 0.9),
		.commits_max = mst_rand_below(&rand, 4) == 0 ? 1 + mst_rand_below(&rand, 20) : 0,
		.samples_max = mst_rand_below(&rand, 4) == 0 ? 300 : 0,
		.lease_ns = LEASE_NS,
		.join_until_ns = 20 * LEASE_NS,
	};
	if (h->members > 0)
		cfg->workers = h->members - (uint32_t)mst_rand_below(&rand, h->members / 2 + 1);
	if (policy_fits_workers(h->policy) && mst_rand_below(&rand, 2) == 0) {
		cfg->owner = MUSTER_WORKERS_OWN;
		cfg->optimizer.row = NULL;
		cfg->history = (uint32_t)(1 + mst_rand_below(&rand, 6));
	}
	if (cfg->owner == MUSTER_WORKERS_OWN && mst_rand_below(&rand, 3) == 0 && h->members == 0)
		draw_many(h);
	cfg->sent = !cfg->in_place && mst_rand_below(&rand, 2) == 0;
	draw_rule(&rand, h->policy, cfg, &cfg->rule);
	draw_rules(&rand, h);
	h->cfg.seed = mst_rand_next(&rand);
	h->cfg.mischief = mst_rand_below(&rand, 3) == 0;
	h->cfg.keeps |= mst_rand_below(&rand, 3) == 0;
	h->cfg.lags |= mst_rand_below(&rand, 8) == 0;
	h->cfg.passes = mst_rand_below(&rand, 6) == 0;
	h->cfg.sleeps = mst_rand_below(&rand, 3) == 0;
	h->cfg.spoils = mst_rand_below(&rand, 10) == 0;
	h->cfg.rests = mst_rand_below(&rand, 4) == 0;
	h->cfg.dawdles = mst_rand_below(&rand, 4) == 0;
	h->punctual = mst_rand_below(&rand, 2) == 0;
	if (mst_rand_below(&rand, 3) == 0)
		cfg->schedule = warmup_and_step;
	cfg->saves.wanted = mst_rand_below(&rand, 3) == 0;
	cfg->average = mst_rand_below(&rand, 3) == 0 ? 0.5 : 0;
	cfg->saves.commits = 1 + mst_rand_below(&rand, 8);
	if (mst_rand_below(&rand, 2) == 0)
		cfg->saves.pause_ns = LEASE_NS * mst_rand_below(&rand, 40) / 20;
}

/* From a source of its own: all other histories are what they would be without. */
static void draw_looks(struct random_run *h)
{
	struct mst_rand rand;

	mst_rand_seed(&rand, h->seed ^ UINT64_C(0x6e6f726d));
	if (mst_rand_below(&rand, 3) == 0)
		h->cfg.ledger.norm_limit = (double)(1 + mst_rand_below(&rand, 5));
	h->cfg.damages = mst_rand_below(&rand, 6) == 0;
	h->cfg.mixes = !h->cfg.ledger.sent && mst_rand_below(&rand, 3) == 0;
}

/* ---- Comparing ---- */

__attribute__((format(printf, 2, 3))) static void complain(struct random_run *h, const char *format,
							   ...)
{
	va_list args;

	if (h->complaint[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(h->complaint, sizeof(h->complaint), format, args);
	va_end(args);
}

static bool same_decision(const struct mst_decision *a, const struct mst_decision *b)
{
	if (a->who.rank != b->who.rank || a->who.incarnation != b->who.incarnation)
		return false;
	switch (a->kind) {
	case MST_DO_ADMIT:
		return a->join.cookie == b->join.cookie;
	case MST_DO_REFUSE:
		return a->join.cookie == b->join.cookie && a->join.error == b->join.error;
	case MST_DO_COUNT:
		return a->count.seq == b->count.seq && a->count.slot == b->count.slot &&
		       a->count.coefficient == b->count.coefficient &&
		       a->count.repeats == b->count.repeats;
	case MST_DO_VERDICT:
		return a->verdict.seq == b->verdict.seq && a->verdict.slot == b->verdict.slot &&
		       a->verdict.tag == b->verdict.tag &&
		       a->verdict.verdict == b->verdict.verdict &&
		       a->verdict.counted_in == b->verdict.counted_in;
	case MST_DO_REGRANT:
		return a->grant.epoch == b->grant.epoch && a->grant.slot == b->grant.slot;
	case MST_DO_COMMIT:
	case MST_DO_SAVE:
	case MST_DO_LEND:
		return a->commit.version == b->commit.version;
	case MST_DO_SAVED:
		return a->saved.version == b->saved.version && a->saved.failed == b->saved.failed &&
		       a->saved.again == b->saved.again;
	case MST_DO_RELEASE:
		return a->answer.number == b->answer.number &&
		       a->answer.version == b->answer.version &&
		       a->answer.newest == b->answer.newest && a->answer.where == b->answer.where;
	case MST_DO_ADVISE:
		return a->advice.version == b->advice.version &&
		       a->advice.hand_in == b->advice.hand_in;
	case MST_DO_REST:
		return a->rests == b->rests;
	case MST_DO_EVICT:
		return a->evict == b->evict;
	case MST_DO_FINISH:
		return a->finish.why == b->finish.why && a->finish.version == b->finish.version;
	case MST_DO_GOAL:
		return a->goal.asked == b->goal.asked &&
		       a->goal.of_job.version == b->goal.of_job.version &&
		       a->goal.of_job.rank == b->goal.of_job.rank;
	case MST_DO_BEHIND:
	case MST_DO_WANT:
	case MST_DO_HAND:
		return a->state.number == b->state.number && a->state.version == b->state.version;
	case MST_DO_HANDED:
	case MST_DO_SEND_STATE:
	case MST_DO_START:
	case MST_DO_POLICY:
	case MST_DO_SETTLE:
	case MST_DO_APPLY:
		return true;
	}
	return false;
}

static const struct mst_decision *next_of_kind(const struct mst_decision *list, size_t count,
					       size_t *at, enum mst_decision_kind kind)
{
	while (*at < count && list[*at].kind != kind)
		++*at;
	return *at < count ? &list[(*at)++] : NULL;
}

/* How many answers the worker of the decision at @at was given before it. */
static size_t answers_before(const struct mst_decision *list, size_t at)
{
	size_t count = 0;

	for (size_t i = 0; i < at; i++)
		count += list[i].kind == MST_DO_RELEASE && list[i].who.rank == list[at].who.rank &&
			 list[i].who.incarnation == list[at].who.incarnation;
	return count;
}

/* Decisions of one kind must be the same, in the same order. A hint that comes before an answer
 * must do so in both. */
static void compare_kind(struct random_run *h, enum mst_decision_kind kind)
{
	size_t want_count, real_at = 0, want_at = 0;
	const struct mst_decision *wants = reference_decisions(h->reference, &want_count);

	for (;;) {
		const struct mst_decision *real = next_of_kind(h->real, h->real_count, &real_at,
							       kind);
		const struct mst_decision *want = next_of_kind(wants, want_count, &want_at, kind);
		char text[LEDGER_TEXT_LEN];
		if (real == NULL && want == NULL)
			return;
		if (real != NULL && want != NULL && same_decision(real, want) &&
		    (kind != MST_DO_ADVISE ||
		     answers_before(h->real, real_at - 1) == answers_before(wants, want_at - 1)))
			continue;
		ledger_decision_text(real != NULL ? real : want, text);
		if (want == NULL)
			complain(h, "the reference does not decide: %s", text);
		else if (real == NULL)
			complain(h, "the ledger does not decide: %s", text);
		else
			complain(h, "the reference decides otherwise: %s", text);
		return;
	}
}

static bool same_double(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return fabs(a - b) <= 1e-12 * fabs(b);
}

static void compare_record(struct random_run *h, const struct mst_decision *d)
{
	const struct mst_record *real = mst_ledger_record(h->ledger, d->commit.buffer);
	const struct reference_version *want = reference_version(h->reference, d->commit.version);

	if (d->commit.version > reference_newest(h->reference))
		return;
	if (real->divisor != want->divisor || real->scalar[MST_SCALAR_RATE] != want->rate)
		complain(h, "version %" PRIu64 ": divisor %.9g not %.9g, rate %.9g not %.9g",
			 d->commit.version, (double)real->divisor, (double)want->divisor,
			 (double)real->scalar[MST_SCALAR_RATE], (double)want->rate);
	if (!same_double(real->loss, want->loss) || !same_double(real->samples, want->samples) ||
	    !same_double(real->lr_scale, want->lr_scale) || !same_double(real->total, want->total))
		complain(h,
			 "version %" PRIu64 ": loss %g not %g, samples %g not %g, in all %g not %g",
			 d->commit.version, real->loss, want->loss, real->samples, want->samples,
			 real->total, want->total);
	if (real->window != want->window || real->until_asked != want->until_asked ||
	    real->by_micro != want->by_micro || real->pace.local_steps != want->pace.local_steps ||
	    real->pace.push_every != want->pace.push_every ||
	    real->pace.fetch_every != want->pace.fetch_every ||
	    real->pace.alpha != want->pace.alpha)
		complain(h, "version %" PRIu64 " tells the pace of another rule",
			 d->commit.version);
	for (uint32_t i = 0; i < real->entry_count && i < want->entry_count; i++) {
		const struct mst_entry *a = &real->entry[i], *b = &want->entry[i];
		if (a->who.rank != b->who.rank || a->who.incarnation != b->who.incarnation ||
		    a->seq != b->seq || a->tag != b->tag || a->samples != b->samples ||
		    a->base != b->base || a->coefficient != b->coefficient || a->slot != b->slot)
			complain(h, "version %" PRIu64 ", entry %u: %u.%u seq %" PRIu64 " differs",
				 d->commit.version, i, a->who.rank, a->who.incarnation, a->seq);
	}
}

static void compare_members(struct random_run *h)
{
	for (uint32_t rank = 0; rank < h->cfg.ledger.workers; rank++) {
		struct mst_member_view real, want;
		mst_ledger_member(h->ledger, rank, &real);
		reference_member(h->reference, rank, &want);
		if (real.incarnation != want.incarnation || real.live != want.live)
			complain(h, "rank %u: incarnation %u not %u, live %d not %d", rank,
				 real.incarnation, want.incarnation, real.live, want.live);
		/* A member has no part in a job that is over, or in which it has not started. */
		if (reference_finished(h->reference) || (!real.started && !want.started))
			continue;
		if (real.started != want.started || real.awaited != want.awaited ||
		    real.rests != want.rests || (!real.rests && real.clock != want.clock))
			complain(h,
				 "rank %u: started %d not %d, awaited %d not %d, rests %d not %d, "
				 "clock %" PRIu64 " not %" PRIu64,
				 rank, real.started, want.started, real.awaited, want.awaited,
				 real.rests, want.rests, real.clock, want.clock);
		if ((real.held != want.held && !h->ends) || real.asks != want.asks)
			complain(h, "rank %u: held %d not %d, asks %d not %d", rank, real.held,
				 want.held, real.asks, want.asks);
	}
}

/* ---- Running ---- */

static void say(const struct random_run *h, const char *who, const char *text)
{
	if (h->loud)
		printf("%4u  %s%s\n", h->line, who, text);
}

static void see_decision(struct random_run *h, const struct mst_decision *d)
{
	char text[LEDGER_TEXT_LEN];

	ledger_decision_text(d, text);
	say(h, "    -> ", text);
	watch_decision(h->watch, d);
	h->ends |= d->kind == MST_DO_SETTLE;
	if (d->kind == MST_DO_COMMIT || d->kind == MST_DO_START)
		compare_record(h, d);
	if (h->real_count == h->real_room) {
		h->real_room = h->real_room == 0 ? 64 : 2 * h->real_room;
		h->real = realloc(h->real, h->real_room * sizeof(*h->real));
	}
	h->real[h->real_count++] = *d;
}

static void compare(struct random_run *h)
{
	struct mst_decision d;

	h->real_count = 0;
	while (mst_ledger_next(h->ledger, &d))
		see_decision(h, &d);
	for (int kind = MST_DO_ADMIT; kind <= MST_DO_FINISH; kind++)
		compare_kind(h, (enum mst_decision_kind)kind);
	compare_members(h);
	if (h->complaint[0] != '\0' && h->loud) {
		size_t count;
		const struct mst_decision *want = reference_decisions(h->reference, &count);
		for (size_t i = 0; i < count; i++) {
			char text[LEDGER_TEXT_LEN];
			ledger_decision_text(&want[i], text);
			say(h, "    reference -> ", text);
		}
	}
	reference_forget(h->reference);
	for (size_t i = 0; i < h->real_count; i++) {
		if (!world_told(h->world, &h->real[i]))
			complain(h, "a worker that beats is said to be silent");
	}
}

static void tick(struct random_run *h, uint64_t now_ns)
{
	if (h->loud)
		printf("%4u  tick at %" PRIu64 " us\n", h->line, now_ns / 1000);
	h->looked_ns = now_ns;
	watch_time(h->watch, now_ns);
	mst_ledger_tick(h->ledger, now_ns);
	reference_tick(h->reference, now_ns);
	compare(h);
	watch_ticked(h->watch, now_ns);
	if (mst_ledger_deadline(h->ledger) > reference_due(h->reference))
		complain(h, "the deadline is %" PRIu64 ", too late for a timer due at %" PRIu64,
			 mst_ledger_deadline(h->ledger), reference_due(h->reference));
}

/* Timers that are due before the next event. */
static void be_punctual(struct random_run *h, uint64_t now_ns)
{
	uint64_t due_ns;

	while ((due_ns = mst_ledger_deadline(h->ledger)) < now_ns && h->complaint[0] == '\0' &&
	       watch_complaint(h->watch) == NULL)
		tick(h, due_ns > h->looked_ns ? due_ns : h->looked_ns);
}

static void step(struct random_run *h)
{
	struct mst_ledger_event ev;
	char text[LEDGER_TEXT_LEN];
	bool event = world_next(h->world, &ev);
	uint64_t now_ns = world_now(h->world);

	h->line++;
	if (h->punctual)
		be_punctual(h, now_ns);
	if (event) {
		ledger_event_text(&ev, text);
		say(h, "", text);
		h->looked_ns = now_ns;
		watch_time(h->watch, now_ns);
		watch_event(h->watch, &ev);
		mst_ledger_handle(h->ledger, &ev, now_ns);
		reference_handle(h->reference, &ev, now_ns);
		compare(h);
		watch_settled(h->watch);
		if (reference_blocked(h->reference))
			watch_blocked(h->watch);
	}
	if (world_ticks(h->world))
		tick(h, now_ns);
}

static bool broken(struct random_run *h)
{
	const char *unequal = ledger_check(h->ledger);

	if (unequal != NULL)
		complain(h, "what is kept of members: %s", unequal);
	if (watch_complaint(h->watch) != NULL)
		complain(h, "%s", watch_complaint(h->watch));
	return h->complaint[0] != '\0';
}

/* In a calm world the job goes on, unless it is over or waits for newcomers it must refuse. */
static void must_progress(struct random_run *h)
{
	uint64_t before = reference_newest(h->reference), wanted = h->members > 100 ? 1 : 3;

	world_calm(h->world);
	for (uint32_t i = 0; i < CALM_STEPS + 60 * h->members && !broken(h); i++) {
		step(h);
		if (reference_finished(h->reference) ||
		    reference_newest(h->reference) >= before + wanted)
			return;
	}
	if (!broken(h))
		complain(h, "the job hangs at version %" PRIu64, reference_newest(h->reference));
}

static bool run(struct random_run *h)
{
	draw_cfg(h);
	draw_looks(h);
	int rc = mst_ledger_new(&h->cfg.ledger, &h->ledger);
	if (rc != 0) {
		complain(h, "mst_ledger_new() returns %d", rc);
		return false;
	}
	h->reference = reference_new(&h->cfg.ledger);
	h->watch = watch_new(&h->cfg.ledger, h->ledger);
	h->world = world_new(&h->cfg);
	uint32_t after = 0;
	uint32_t storm = STORM_STEPS + (h->members > 0 ? 1500 + h->members : 0),
		 birth = 10 * h->members;
	while (storm > 0 && after < 60 && !broken(h)) {
		step(h);
		if (birth > 0 && !mst_ledger_started(h->ledger))
			birth--; /* the storm of many begins with the job */
		else
			storm--;
		after += reference_finished(h->reference);
	}
	if (!broken(h))
		must_progress(h);
	bool good = !broken(h);
	h->versions = reference_newest(h->reference);
	world_free(h->world);
	watch_free(h->watch);
	reference_free(h->reference);
	mst_ledger_free(h->ledger);
	free(h->real);
	return good;
}

static void print_cfg(const struct random_run *h)
{
	const struct mst_ledger_cfg *cfg = &h->cfg.ledger;
	char text[LEDGER_TEXT_LEN];

	ledger_rule_text(&cfg->rule, text);
	printf("%s: %s\n%u workers, %u shards, %u slots, %u buffers, history %u, %s own, %s%s, "
	       "commits %" PRIu64 ", samples %g, %s at %u workers, patience %" PRIu64 " us\n",
	       h->policy->name, text, cfg->workers, cfg->shards, cfg->slots, cfg->buffers,
	       cfg->history, cfg->owner == MUSTER_SERVERS_OWN ? "servers" : "workers",
	       cfg->in_place ? "in place"
	       : cfg->sent   ? "sent"
			     : "copied",
	       h->cfg.mixes ? ", some far" : "", cfg->commits_max, cfg->samples_max,
	       cfg->rule.on_loss == MST_LOSS_FAIL ? "fails" : "shrinks", cfg->rule.min_workers,
	       cfg->rule.patience_ns / 1000);
}

struct arguments {
	uint64_t seed, count;
	uint32_t members;
	const char *policy;
};

/* Return: how many versions were made; -1: it went wrong. */
static int64_t replay(const struct arguments *args, const struct policy_row *policy, uint64_t seed,
		      bool loud)
{
	struct random_run h = {
		.policy = policy, .seed = seed, .members = args->members, .loud = loud
	};
	bool good = run(&h);

	if (!good && !loud) {
		replay(args, policy, seed, true);
	} else if (!good) {
		print_cfg(&h);
		printf("FAILED at line %u: %s\nagain with: --policy %s --seed %" PRIu64
		       " --members %u\n",
		       h.line, h.complaint, policy->name, seed, h.members);
	}
	return good ? (int64_t)h.versions : -1;
}

static void parse(int argc, char **argv, struct arguments *out)
{
	*out = (struct arguments){ .seed = 1, .count = 1000 };
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0) {
			out->seed = strtoull(argv[i + 1], NULL, 10);
			out->count = 1;
		} else if (strcmp(argv[i], "--count") == 0) {
			out->count = strtoull(argv[i + 1], NULL, 10);
		} else if (strcmp(argv[i], "--policy") == 0) {
			out->policy = argv[i + 1];
		} else if (strcmp(argv[i], "--members") == 0) {
			out->members = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		}
	}
}

int main(int argc, char **argv)
{
	struct arguments args;

	parse(argc, argv, &args);
	for (size_t i = 0; i < POLICY_ROWS; i++) {
		if (args.policy != NULL && strcmp(args.policy, policy_rows[i].name) != 0)
			continue;
		int64_t versions = 0;
		for (uint64_t k = 0; k < args.count; k++) {
			int64_t made = replay(&args, &policy_rows[i], args.seed + k, false);
			if (made < 0)
				return EXIT_FAILURE;
			versions += made;
		}
		printf("%s: %" PRIu64 " histories from seed %" PRIu64 ", %" PRId64 " versions\n",
		       policy_rows[i].name, args.count, args.seed, versions);
	}
	return EXIT_SUCCESS;
}
