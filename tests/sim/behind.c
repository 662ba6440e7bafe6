/* SPDX-License-Identifier: MIT */
/* Workers that lack versions, and take the state of another: no step waits for them until they have
 * the newest version. */
#include <inttypes.h>

#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

void obs_behind(const struct mst_decision *d)
{
	struct obs_session *s = obs_find(d->who.rank, d->who.incarnation);

	if (s == NULL)
		return;
	if (!obs.plan->generations.ranks)
		obs_violated("rank %" PRIu32 " is to take a state, and has not said that it can",
			     s->rank);
	s->behind = s->fell_behind = true;
	s->rostered = false;
	sim_say("  rank %" PRIu32 " is to take a state", s->rank);
	obs_revive();
}

void obs_handed(const struct mst_decision *d)
{
	struct obs_session *s = obs_find(d->who.rank, d->who.incarnation);

	if (s == NULL)
		return;
	if (!s->behind)
		obs_violated("rank %" PRIu32 " is given a state, and lacks nothing", s->rank);
	s->handed = d->state.version;
}

void obs_caught_up(struct obs_session *s, uint64_t version)
{
	s->behind &= version != obs.commits;
}

void obs_taken(struct obs_session *s)
{
	s->given = s->handed;
	obs_caught_up(s, s->handed);
}
