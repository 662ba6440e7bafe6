/* SPDX-License-Identifier: MIT */
/* The rule of the open step, and what follows from it: whom the step waits for, when it may commit,
 * who may go on, who is asked to hand in (PROTOCOL 2, 3 and 7), typed once more. What must have
 * happened is judged when the ledger has nothing more to decide. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

/* For what lies between a timer and the commit that follows. */
#define SLACK_NS (200 * MST_MS)
/* All workers may pass once more before the hint that is taken back has reached them. */
#define EARLY_VOIDS_MAX 8u

bool obs_repeats(void)
{
	return obs.rule.release != MST_RELEASE_COMMIT;
}

bool obs_rank_is_open(uint32_t rank)
{
	for (uint32_t i = 0; i < obs.open_count; i++) {
		if (obs.open[i]->rank == rank)
			return true;
	}
	return false;
}

static bool is_missing(const struct obs_session *s)
{
	return s->live && s->rostered && !s->passed && !obs_rank_is_open(s->rank);
}

/* Nobody knows what workers that break the rules have said. */
static bool is_lawful(void)
{
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		if (s->rogue)
			return false;
	}
	return true;
}

static bool is_running(void)
{
	return obs.started && !obs.settling && !obs.finished && !obs.end_asked;
}

struct obs_view {
	uint32_t roster, missing;
};

static struct obs_view view_now(void)
{
	struct obs_view v = { 0 };

	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		v.roster += s->live && s->rostered;
		v.missing += is_missing(s);
	}
	return v;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t needed(const struct obs_view *v)
{
	uint32_t reachable = obs.open_count + v->missing;
	int32_t quorum = obs.rule.quorum;

	if (obs.rule.by_micro)
		return v->roster > 0 ? MST_MICRO_MAX * obs.plan->workers : obs.open_count;
	if (quorum > 0 && obs_repeats())
		return v->roster > 0 ? (uint32_t)quorum : obs.open_count;
	if (quorum > 0)
		return least((uint32_t)quorum, reachable);
	if (quorum == 0)
		return reachable;
	uint32_t spare = (uint32_t)-quorum;
	return least(v->roster > spare ? v->roster - spare : 1, reachable);
}

/* For how long a commit may be held for a micro-batch that would be too old. */
static uint64_t held_most_ns(void)
{
	uint64_t grace_ns = obs.rule.grace_ns, patience_ns = obs.plan->patience_ns;

	return grace_ns > 0 && grace_ns < patience_ns ? grace_ns : patience_ns;
}

/* Is a micro-batch at hand that would be too old after the commit? @surely: its worker asks for
 * nothing. Else it may also be one that has been put, and that the ledger does not know yet. A
 * worker that owns is given each version before the one after it may go. */
static bool is_at_hand(bool surely)
{
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		bool computes = !s->asks || (!surely && s->judged != s->headers) ||
				obs.plan->owner == MUSTER_WORKERS_OWN;
		if (s->live && s->started && s->rostered && computes &&
		    obs.commits + 1 - s->given > obs.rule.window)
			return true;
	}
	return false;
}

/* When a timer ends the step; MST_NEVER: none does. Before that time a step has its quorum. */
static uint64_t overdue_at(void)
{
	if (obs.rule.by_micro)
		return obs.full ? obs.full_ns + held_most_ns() : MST_NEVER;
	if (obs.rule.trigger == MST_TRIGGER_DEADLINE && !obs.rule.collect)
		return obs.opened_ns + obs.rule.deadline_ns;
	if (obs.collecting && obs.rule.grace_ns > 0)
		return obs.collecting_ns + obs.rule.grace_ns;
	return MST_NEVER;
}

/* ---- the roster ---- */

static void roster_new(void)
{
	for (struct obs_session *s = obs.sessions; s != NULL; s = s->next)
		s->rostered |= s->live && s->started && !s->rests && !s->behind;
}

static void open_step(void)
{
	for (struct obs_session *s = obs.sessions; s != NULL; s = s->next)
		s->passed = s->late = false;
	roster_new();
	obs.opened_ns = obs.now_ns;
	obs.collecting = obs.lowered = obs.full = false;
	obs.early_voids = 0;
	obs.step_rule[obs.commits] = obs.rule;
	obs.roster = view_now().roster;
}

static uint64_t least_clock(void)
{
	uint64_t clock = UINT64_MAX;

	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		if (s->live && s->rostered && s->clock < clock)
			clock = s->clock;
	}
	return clock != UINT64_MAX ? clock : 0;
}

void obs_start_steps(void)
{
	obs.started = true;
	open_step();
}

static void rebase_clocks(void)
{
	uint64_t clock = least_clock();

	for (struct obs_session *s = obs.sessions; s != NULL; s = s->next)
		s->clock = clock;
}

void obs_next_step(void)
{
	bool bounds = obs.rule_changes && obs.next_rule.release == MST_RELEASE_BOUND &&
		      obs.rule.release != MST_RELEASE_BOUND;
	bool waits = obs.rule.release == MST_RELEASE_COMMIT && obs.rule.quorum == 0 &&
		     obs.rule.grace_ns == 0;

	obs.held = false;
	obs.policy_due = obs.rule_changes;
	if (obs.rule_changes) {
		obs_outliers_change(&obs.rule, &obs.next_rule);
		obs.rule = obs.next_rule;
	}
	if (obs.rule_changes && !waits)
		obs.all_since = obs.commits;
	obs.rule_changes = false;
	open_step();
	if (bounds)
		rebase_clocks();
}

/* All pass although nothing has ended the step. Hints that were taken back may come too late, so a
 * few times this is right. */
static void note_early_void(void)
{
	if (obs.rule.trigger == MST_TRIGGER_DEADLINE &&
	    obs.now_ns - obs.opened_ns < obs.rule.deadline_ns)
		obs.early_voids++;
	if (obs.early_voids > EARLY_VOIDS_MAX)
		obs_violated("all workers pass version %" PRIu64
			     " again and again, though nobody wants anything",
			     obs.commits + 1);
}

/* Where all have passed, and nothing is counted, the passes are void; where nobody is left, those
 * begin who would have begun with the next step. */
void obs_revive(void)
{
	struct obs_view v = view_now();

	if (!is_running() || !is_lawful() || obs.open_count > 0 || v.missing > 0)
		return;
	if (v.roster == 0)
		roster_new();
	else
		note_early_void();
	for (struct obs_session *s = obs.sessions; s != NULL; s = s->next)
		s->passed = false;
	obs.opened_ns = obs.now_ns;
	obs.collecting = false;
}

/* ---- what comes in ---- */

static void joins(struct obs_session *s)
{
	if (s->started || !s->start_called || s->links < obs.plan->servers)
		return;
	s->started = true;
	s->clock = obs.started ? least_clock() : 0;
	obs.was_in[s->rank] |= obs.started;
}

static void of_session(struct obs_session *s, const struct mst_ledger_event *ev)
{
	switch (ev->kind) {
	case MST_EV_LINKED:
		s->links++;
		joins(s);
		break;
	case MST_EV_START:
		s->start_called = true;
		obs_readers_ask(s);
		joins(s);
		break;
	case MST_EV_ASK:
		obs_readers_ask(s);
		break;
	case MST_EV_TAKEN:
		obs_taken(s);
		break;
	case MST_EV_LEAVE:
		s->leaves = true;
		break;
	case MST_EV_UNLINKED:
		s->unlinked++;
		break;
	default:
		break;
	}
}

/* A step that has all that it needs may wait for a buffer, or for the version before it. No other
 * version is made of a job that is stopped. */
static void stops(void)
{
	struct obs_view v = view_now();
	bool over = obs.now_ns >= overdue_at() || (obs.rule.by_micro && obs.full);
	bool due = obs.started && obs.open_count > 0 && (over || obs.open_count >= needed(&v));

	if (!obs.stops)
		obs.stops_at = obs.commits + (due || !is_lawful());
	obs.stops = true;
}

void obs_event(const struct mst_ledger_event *ev, uint64_t now_ns)
{
	obs.now_ns = now_ns;
	obs.answers_event = ev->kind == MST_EV_POLICY;
	obs_saves_event(ev);
	if (ev->kind == MST_EV_STOP)
		stops();
	if (ev->kind == MST_EV_POLICY) {
		obs_changes_asked(&ev->rule);
		obs.next_rule = ev->rule;
		obs.rule_changes = true;
		obs.ever_changed = true;
		return;
	}
	struct obs_session *s = obs_find(ev->who.rank, ev->who.incarnation);
	if (s != NULL && s->live)
		obs_readers_event(s, ev);
	if (s != NULL && s->live && !s->rogue && ev->who.incarnation > 0)
		of_session(s, ev);
}

void obs_tick(uint64_t now_ns)
{
	obs.now_ns = now_ns;
	obs.answers_event = false;
}

/* A slot is granted again: what was in it has been judged, and its ask has been taken. */
void obs_regranted(const struct mst_decision *d)
{
	struct obs_session *s = obs_find(d->who.rank, d->who.incarnation);
	uint64_t seq = s != NULL && d->grant.slot < MST_SLOTS_MAX ? s->spent_by[d->grant.slot] : 0;
	struct expect_item *item = seq != 0 && !s->rogue ? obs_item(s, seq) : NULL;

	if (item == NULL || item->seq <= s->judged)
		return;
	s->judged = item->seq;
	if (item->asks) {
		obs_readers_ask(s);
		s->late = item->verdict == MUSTER_LATE;
	}
	if (!item->pass)
		return;
	item->passed = true;
	s->slot[item->slot] = SLOT_JUDGED;
	s->passed = is_running();
	sim_say("  rank %" PRIu32 " has passed", s->rank);
	obs_revive();
}

void obs_rested(const struct mst_decision *d)
{
	struct obs_session *s = obs_find(d->who.rank, d->who.incarnation);

	if (s == NULL || s->rests == d->rests)
		return;
	s->rests = d->rests;
	s->has_rested = obs.ever_rested = true;
	if (s->rests)
		s->rostered = false;
	else
		s->clock = least_clock();
	sim_say("  rank %" PRIu32 " %s", s->rank, s->rests ? "rests" : "returns");
	if (s->rests)
		obs_revive();
	else
		obs.returning = true;
}

/* When the last worker that takes part is lost, all that rest return together. */
void obs_returned(void)
{
	if (!obs.returning)
		return;
	obs.returning = false;
	obs_revive();
}

/* ---- rules ---- */

void obs_adapts(const struct mst_rule *rule)
{
	obs.next_rule = *rule;
	obs.adapts = true;
}

/* From bsp to async, once. */
static void switch_over(void)
{
	if (!obs.switch_due)
		obs_violated("bsp is over after %.0f samples, before %.0f", obs.samples,
			     obs.plan->switches_at);
	if (obs.next_rule.quorum != 1 || obs.next_rule.release != MST_RELEASE_PUSH)
		obs_violated("bsp is over, and async is not in force");
	obs_outliers_change(&obs.rule, &obs.next_rule);
	obs.rule = obs.next_rule;
	obs.switch_due = false;
	obs.switched = true;
}

/* Takes the rule that an adaptive policy has chosen. Nobody has changed the policy, and only the
 * quorum may differ, unless bsp ends. */
static void take_adapted(void)
{
	if (!obs.plan->adaptive || obs.ever_changed)
		obs_violated("a fixed policy has chosen another rule");
	if (obs.plan->switches_at > 0)
		switch_over();
	obs.rule.quorum = obs.next_rule.quorum;
	obs.step_rule[obs.commits] = obs.rule;
	obs.adapts = false;
}

/* Right after a change was asked for, the number of contributions alone; else right after a commit,
 * all of it, which obs_next_step() has taken already. */
void obs_policy(void)
{
	if (obs.finished)
		return; /* it is of no use any more */
	if (obs.adapts) {
		take_adapted();
	} else if (obs.answers_event && obs.started) {
		if (obs.next_rule.quorum == 0)
			obs_violated("a quorum of all workers is in force before the next version");
		obs.rule.quorum = obs.next_rule.quorum;
		obs.lowered = true;
	} else if (!obs.started) {
		obs.rule = obs.next_rule;
		obs.rule_changes = false;
	} else if (!obs.policy_due) {
		obs_violated("a rule is in force that nobody asked for");
	}
	obs.policy_due = false;
}

static bool is_same_pace(const struct mst_pace *a, const struct mst_pace *b)
{
	return a->local_steps == b->local_steps && a->push_every == b->push_every &&
	       a->fetch_every == b->fetch_every && a->alpha == b->alpha;
}

static bool is_until_asked(const struct mst_rule *rule)
{
	return rule->trigger == MST_TRIGGER_DEADLINE && rule->collect;
}

/* What a version tells is of the rule of the step that it opens. */
static void check_pace(const struct mst_decision *d, const struct mst_record *r)
{
	const struct mst_rule *rule = &obs.step_rule[d->answer.version];

	if (r == NULL || d->answer.version > obs.commits)
		return;
	if (r->window != rule->window || r->until_asked != is_until_asked(rule) ||
	    r->by_micro != rule->by_micro || !is_same_pace(&r->pace, &rule->pace))
		obs_violated("rank %" PRIu32 " is given version %" PRIu64
			     " with the window or the pace of another rule",
			     d->who.rank, d->answer.version);
}

void obs_orders(const struct obs_worker *w, const struct muster_outcome *out)
{
	const struct muster_orders *o = &out->orders;
	struct mst_pace told = { o->local_steps, o->push_every, o->fetch_every, o->alpha };

	if (out->fresh && out->version <= obs.commits &&
	    (!is_same_pace(&told, &obs.step_rule[out->version].pace) ||
	     o->by_micro != obs.step_rule[out->version].by_micro))
		obs_violated("rank %" PRIu32 " is told another pace with version %" PRIu64
			     " than its rule has",
			     w->rank, out->version);
}

/* ---- hints ---- */

/* What grows until it is asked for is asked for when the rule does that no longer. */
static bool is_called(const struct obs_session *s)
{
	return s->grows && !is_until_asked(&obs.rule) && s->wanted && s->wanted_of == s->given;
}

static bool may_collect(void)
{
	if (!obs.rule.collect)
		return false;
	return obs.collecting || (obs.rule.trigger == MST_TRIGGER_DEADLINE &&
				  obs.now_ns - obs.opened_ns >= obs.rule.deadline_ns);
}

static void collect(void)
{
	if (obs.collecting)
		return;
	obs.collecting = true;
	obs.collecting_ns = obs.now_ns;
}

void obs_advised(const struct mst_decision *d)
{
	struct obs_session *s = obs_find(d->who.rank, d->who.incarnation);

	if (s == NULL)
		return;
	s->wanted = d->advice.hand_in;
	s->wanted_of = d->advice.version;
	if (!d->advice.hand_in || is_called(s))
		return;
	if (is_lawful() && !may_collect())
		obs_violated("rank %" PRIu32
			     " is asked to hand in, though nothing has ended the step",
			     s->rank);
	collect();
}

/* A worker that ends its batch makes all others hand in. */
void obs_counted_full(void)
{
	if (obs.rule.trigger == MST_TRIGGER_FULL && obs.rule.collect)
		collect();
}

void obs_measure(struct obs_session *s, struct expect_item *item)
{
	if (item->measured || item->pass)
		return;
	item->measured = true;
	s->batch += item->samples;
	if (item->part)
		return;
	s->last_batch = s->batch;
	s->batch = 0;
}

/* The step is over when one rank has handed over a batch within it. */
void obs_counted_micro(const struct obs_session *s)
{
	double samples = 0;

	for (uint32_t i = 0; i < obs.open_count; i++)
		samples += obs.open[i]->rank == s->rank ? obs.open[i]->samples : 0;
	if (obs.full || s->last_batch == 0 || samples < s->last_batch)
		return;
	obs.full = true;
	obs.full_ns = obs.now_ns;
}

static void check_all_asked(void)
{
	for (const struct obs_session *s = obs.sessions; s != NULL && obs.collecting; s = s->next) {
		bool computes = is_missing(s) && !s->asks && !s->leaves;
		if (computes && (!s->wanted || s->wanted_of != obs.commits))
			obs_violated("rank %" PRIu32
				     " computes, and is not asked to hand in for version %" PRIu64,
				     s->rank, obs.commits + 1);
	}
}

/* One that computes on an older version than it was told of gives up instead. */
static void check_all_called(void)
{
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		bool computes = s->live && s->started && !s->asks && !s->leaves;
		if (computes && s->grows && !is_until_asked(&obs.rule) && !is_called(s) &&
		    s->wanted_of <= s->given)
			obs_violated("rank %" PRIu32 " computes until it is asked, and nobody asks",
				     s->rank);
	}
}

/* ---- commits ---- */

void obs_check_quorum(void)
{
	struct obs_view v = view_now();
	uint32_t count = obs.open_count;
	int32_t quorum = obs.rule.quorum;

	if (count == 0)
		obs_violated("version %" PRIu64 " is of nobody", obs.commits + 1);
	if (obs.stops && obs.commits + 1 > obs.stops_at)
		obs_violated("version %" PRIu64 " is made by %" PRIu32
			     " after the server was told to end at %" PRIu64,
			     obs.commits + 1, count, obs.stops_at);
	if (quorum > 0 && !obs.lowered && count > (uint32_t)quorum)
		obs_violated("version %" PRIu64 " takes %" PRIu32 " of %" PRId32, obs.commits + 1,
			     count, quorum);
	if (!is_running() || !is_lawful() || obs.now_ns >= overdue_at())
		return;
	if (obs.rule.by_micro && obs.full && count < needed(&v)) {
		if (is_at_hand(true))
			obs_violated("version %" PRIu64
				     " is committed, and a micro-batch at hand is too old",
				     obs.commits + 1);
		return;
	}
	if (count < needed(&v))
		obs_violated("version %" PRIu64 " is committed by %" PRIu32 " of %" PRIu32,
			     obs.commits + 1, count, needed(&v));
}

/* A timer that has ended the step is not waited for. */
void obs_check_timer(void)
{
	uint64_t at = overdue_at();

	for (uint32_t i = 0; i < obs.plan->fault_count; i++) {
		const struct sim_fault *f = &obs.plan->fault[i];
		if (!f->left_out && sim_target_is_server(f->target) && sim_fault_is_felt(f->kind))
			return;
	}
	if (at != MST_NEVER && at < obs.first_count_at_ns)
		at = obs.first_count_at_ns;
	if (at != MST_NEVER && is_running() && obs.now_ns > at + SLACK_NS)
		obs_violated("version %" PRIu64 " is committed %.3f s after its time was over",
			     obs.commits + 1, (double)(obs.now_ns - at) / (double)MST_SECOND);
}

/* ---- who goes on ---- */

/* A worker that goes on has handed in no more than the bound beyond the slowest. */
static void check_bound(const struct obs_session *s)
{
	uint64_t ahead = s->clock + s->headers - s->judged;

	if (obs.rule.release == MST_RELEASE_BOUND && s->rostered &&
	    ahead > least_clock() + obs.rule.bound)
		obs_violated("rank %" PRIu32 " goes on after %" PRIu64
			     " contributions, the slowest is at %" PRIu64,
			     s->rank, ahead, least_clock());
}

void obs_goes_on(const struct mst_decision *d, const struct mst_record *record)
{
	struct obs_session *s = obs_find(d->who.rank, d->who.incarnation);
	/* It lacks versions that are gone, and keeps what it has, record and all. */
	bool lacks = d->answer.where == MST_WHERE_KEEP && d->answer.version < d->answer.newest;

	if (lacks && (!obs.finished || obs.plan->owner != MUSTER_WORKERS_OWN))
		obs_violated("rank %" PRIu32 " is told to keep version %" PRIu64 " of %" PRIu64,
			     d->who.rank, d->answer.version, d->answer.newest);
	if (!lacks)
		check_pace(d, record);
	if (s == NULL)
		return;
	bool judges = is_running() && is_lawful() && s->live;
	if (judges)
		check_bound(s);
	if (judges && !obs_repeats() && s->rostered && !is_missing(s))
		obs_violated("rank %" PRIu32 " goes on before the version that it is in", s->rank);
	if (judges && !s->rostered && !s->behind)
		obs_violated("rank %" PRIu32 " goes on, and takes no part in the step", s->rank);
	if (judges && s->wanted && s->wanted_of == d->answer.version &&
	    d->answer.version == obs.commits && !obs.collecting)
		obs_violated("rank %" PRIu32 " goes on, and is still asked to hand in", s->rank);
	obs_readers_answered(s, d);
	obs_caught_up(s, d->answer.version);
	s->asks = s->late = false;
	s->given = d->answer.version;
	s->grows = s->given <= obs.commits && is_until_asked(&obs.step_rule[s->given]);
}

/* Would the rule answer this ask? Who was late may be held. */
static bool is_parked_wrongly(const struct obs_session *s)
{
	if (obs.rule.release == MST_RELEASE_BOUND)
		return s->clock <= least_clock() + obs.rule.bound;
	if (obs.rule.release == MST_RELEASE_PUSH)
		return true;
	bool holds = s->late && obs.rule.late_start != MST_LATE_START_NOW;
	return is_missing(s) && !holds;
}

static void check_asks(const struct obs_view *v)
{
	uint32_t held = 0;

	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		if (!s->live || !s->rostered || !s->asks || s->judged != s->headers ||
		    obs_may_lack_room(s))
			continue;
		if (is_parked_wrongly(s))
			obs_violated("rank %" PRIu32
				     " asks, and is not answered though nothing is in its way",
				     s->rank);
		held += is_missing(s);
	}
	obs.held |= held > 0;
	if (!obs_repeats() && held > 0 && obs.open_count + v->missing - held < needed(v))
		obs_violated("%" PRIu32 " that were late are held, though version %" PRIu64
			     " needs one of them",
			     held, obs.commits + 1);
}

/* The ledger has nothing more to decide before the next event. Copies that shards make may hold the
 * buffer of a commit. What is sent, and what is read in place, may hold that of an answer to a far
 * worker. */
void obs_settled(void)
{
	obs_returned();
	obs_saves_settled();
	struct obs_view v = view_now();

	if (!is_running() || !is_lawful() || obs_violation() != NULL)
		return;
	if (obs.policy_due)
		obs_violated("version %" PRIu64 " is there, and the rule that was asked for is not",
			     obs.commits);
	if (obs.switch_due && !obs.ever_changed)
		obs_violated("version %" PRIu64 " has %.0f samples, and bsp is not over",
			     obs.commits, obs.samples);
	if (obs.plan->adaptive && !obs.plan->backs_up && !obs.ever_changed && obs.roster > 0 &&
	    obs.rule.quorum > (int32_t)obs.roster)
		obs_violated("version %" PRIu64 " wants %" PRId32 " of %" PRIu32 " live workers",
			     obs.commits + 1, obs.rule.quorum, obs.roster);
	bool due = obs.open_count > 0 && obs.open_count >= needed(&v);
	due |= obs.rule.by_micro && obs.full && !is_at_hand(false);
	/* A distance is one of versions that are made. */
	bool waits = obs.plan->distance > 0 && obs.applied != obs.commits;
	if (due && !obs_shards_copy() && !waits)
		obs_violated("version %" PRIu64 " has all that it needs, and is not committed",
			     obs.commits + 1);
	check_all_asked();
	check_all_called();
	if (!due)
		check_asks(&v);
}
