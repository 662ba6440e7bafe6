/* SPDX-License-Identifier: MIT */
/* How the job of the reference ledger ends. */
#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/reference_state.h"

void job_finish(struct reference *r, enum mst_finish_why why)
{
	if (r->finished)
		return;
	bool makes = !mst_finish_failed(why) || why == MST_FINISH_STOPPED;
	if (makes && r->settling)
		why = r->settle_why;
	if (makes && r->born && reference_newest(r) > 0 && r->settled != all_shards(r)) {
		if (!r->settling)
			decide(r, MST_DO_SETTLE, (struct mst_identity){ 0 });
		r->settling = true;
		r->settle_why = why;
		return;
	}
	r->finished = true;
	if (why != MST_FINISH_SPOILT)
		save_newest(r);
	struct mst_decision *d = decide(r, MST_DO_FINISH, (struct mst_identity){ 0 });
	d->finish.why = why;
	d->finish.version = r->born ? reference_newest(r) : MST_VERSION_NONE;
}

void end_asked(struct reference *r)
{
	uint64_t ns = 2 * span_median(&r->steps) + MST_SECOND;

	if (!r->born || is_ending(r))
		return;
	r->asked_to_finish = r->end_waits = true;
	r->end_waits_ns = r->now_ns + (ns < r->rule.patience_ns ? ns : r->rule.patience_ns);
}

/* What is counted then is committed first, as ever. */
void end_with(struct reference *r, const struct session *s, uint64_t version)
{
	if (!r->finished && (r->goal == 0 || version < r->goal)) {
		r->goal = version;
		r->goal_rank = s->who.rank;
	}
	struct mst_decision *d = decide(r, MST_DO_GOAL, s->who);
	d->goal.of_job = (struct mst_goal){ r->goal, r->goal_rank };
	d->goal.asked = version;
	if (!r->born || r->finished || r->settling || reference_newest(r) < r->goal)
		return;
	if (!is_ending(r))
		r->goal_passed = true;
	r->end_waits = false;
}

/* A job that ends well already, without waiting for anybody, does so. */
void end_stopped(struct reference *r)
{
	if (!still_gathers(r))
		return;
	r->stopped = true;
	r->asked_to_finish = r->end_waits = false;
}

uint64_t end_due(const struct reference *r)
{
	return r->end_waits && !r->settling && !r->finished ? r->end_waits_ns : MST_NEVER;
}
