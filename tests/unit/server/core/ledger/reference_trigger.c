/* SPDX-License-Identifier: MIT */
/* What ends a step of the reference ledger before its quorum is there (PROTOCOL 3, "Triggers"). */
#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/reference_state.h"

/* Is everybody to hand in what is finished? */
static bool collects(const struct reference *r)
{
	return r->rule.collect && open_step(r)->triggered && !r->finished;
}

/* Does the step wait for this worker, and does the worker compute? */
static bool can_hand_in(const struct reference *r, const struct session *s)
{
	return s->started && !s->leaving && !s->asking && is_missing(r, s->who.rank);
}

static void trigger(struct reference *r)
{
	struct reference_step *step = open_step(r);

	step->triggered = true;
	step->triggered_ns = r->now_ns;
	step->overdue = !r->rule.collect;
	for (uint32_t rank = 0; r->rule.collect && rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (s != NULL && can_hand_in(r, s))
			advise(r, s, true);
	}
}

void trigger_full(struct reference *r)
{
	if (r->rule.trigger == MST_TRIGGER_FULL && !open_step(r)->triggered)
		trigger(r);
}

/* Nobody asks for what grows on a version of a rule that has gone. */
static void call(struct reference *r, const struct session *s)
{
	bool asked_for = r->rule.collect && r->rule.trigger == MST_TRIGGER_DEADLINE;

	if (asked_for || !s->started || s->leaving || s->asking || r->finished ||
	    !r->step[s->given].made.until_asked)
		return;
	struct mst_decision *d = decide(r, MST_DO_ADVISE, s->who);
	d->advice.version = s->given;
	d->advice.hand_in = true;
}

void trigger_answered(struct reference *r, const struct session *s)
{
	if (collects(r) && can_hand_in(r, s))
		advise(r, s, true);
	else
		call(r, s);
}

void trigger_gone(struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		if (session_of(r, rank) != NULL)
			call(r, session_of(r, rank));
	}
}

uint64_t trigger_due(const struct reference *r)
{
	const struct reference_step *step = open_step(r);

	if (step_held(r)) /* for a while, or for as long as patience is */
		return step->triggered_ns +
		       (r->rule.grace_ns != 0 && r->rule.grace_ns < r->rule.patience_ns
				? r->rule.grace_ns
				: r->rule.patience_ns);
	if (!r->born || !still_gathers(r) || step->overdue)
		return MST_NEVER;
	if (step->triggered && r->rule.grace_ns != 0)
		return step->triggered_ns + r->rule.grace_ns;
	if (!step->triggered && r->rule.trigger == MST_TRIGGER_DEADLINE)
		return step->opened_ns + r->rule.deadline_ns;
	return MST_NEVER;
}

void trigger_tick(struct reference *r)
{
	if (r->now_ns < trigger_due(r))
		return;
	if (step_held(r))
		open_step(r)->waited = true;
	else if (open_step(r)->triggered)
		open_step(r)->overdue = true;
	else
		trigger(r);
}

/* A worker that has been asked to hand in is told that there is no hurry any more, before it gets
 * its answer. */
void trigger_again(struct reference *r)
{
	struct reference_step *step = open_step(r);

	for (uint32_t rank = 0; r->rule.collect && rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (step->rostered[rank] && !s->leaving)
			advise(r, s, false);
	}
	step->triggered = step->overdue = false;
	step->opened_ns = r->now_ns;
}
