/* SPDX-License-Identifier: MIT */
/* Hints, which the observer of ledger_watch.h looks at: whether anything asks for them. */
#include <inttypes.h>

#include "tests/unit/server/core/ledger/ledger_watch_state.h"

/* What is finished is asked for when the step's trigger has come, and of those who are busy. */
static void see_hand_in(struct watch *w, const struct visitor *v)
{
	bool over = w->now_ns - w->opened_ns >= w->rule.deadline_ns;
	bool due = w->rule.trigger == MST_TRIGGER_FULL ? w->full_counted : over;

	if (!w->rule.collect || !due)
		watch_complain(w, "%u.%u is to hand in, and the step collects nothing", v->who.rank,
			       v->who.incarnation);
	if (v->answered != v->asked || w->standing[v->who.rank].rests)
		watch_complain(w, "%u.%u is to hand in, and it is not busy", v->who.rank,
			       v->who.incarnation);
}

/* What grows until it is asked for is asked for when such a rule has gone. */
static bool is_call(const struct watch *w, const struct visitor *v, const struct mst_decision *d)
{
	bool grow = w->rule.collect && w->rule.trigger == MST_TRIGGER_DEADLINE;

	return d->advice.hand_in && v->grows && !grow && v->answered == v->asked &&
	       d->advice.version == v->has_version;
}

/* Only of what was decided. Where hints ask for something, they are also taken back, and then the
 * worker may wait for its answer. */
void watch_hint(struct watch *w, const struct visitor *v, const struct mst_decision *d)
{
	const struct mst_record *rec = mst_ledger_record_of(w->ledger, w->version_count - 1);
	uint64_t newest = w->version_count - 1;

	if (!watch_takes_part(w, v) || v->leaving || (v->answered != v->asked && !w->rule.collect))
		watch_complain(w, "%u.%u is advised, and it is not busy", v->who.rank,
			       v->who.incarnation);
	if (is_call(w, v, d))
		return;
	if (rec != NULL && d->advice.version != (rec->window < newest ? newest - rec->window : 0))
		watch_complain(w, "%u.%u is advised of version %" PRIu64 " of %zu, window %" PRIu32,
			       v->who.rank, v->who.incarnation, d->advice.version, w->version_count,
			       rec->window);
	if (d->advice.hand_in)
		see_hand_in(w, v);
}
