/* SPDX-License-Identifier: MIT */
/* Servers are lost, others take their place, and the same workers come back to them: with which
 * version the job goes on, and what has become of contributions. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

/* Workers look for servers every fraction of a second, and each look takes a moment. */
#define COME_BACK_NS (3 * MST_SECOND)

static void end(struct obs_session *s)
{
	uint32_t *last = &obs.begun_with.incarnation[s->rank];

	s->live = s->started = s->rostered = s->asks = s->rests = false;
	s->reads = s->copies = 0;
	*last = s->incarnation > *last ? s->incarnation : *last;
}

/* A rank that has had no outcome yet comes as one that is new. */
void obs_next_generation(void)
{
	struct obs_state *had = sim_alloc(sizeof(*had));

	*had = obs;
	memset(&obs, 0, sizeof(obs));
	obs.plan = had->plan;
	obs.sessions = had->sessions;
	obs.judged = had->judged;
	obs.commits = had->commits;
	obs.rule = had->plan->rule;
	obs.end_asked = had->end_asked;
	obs.losses = had->losses + 1;
	obs.began_ns = sim_now();
	memcpy(obs.given, had->given, sizeof(obs.given));
	memcpy(obs.samples_of, had->samples_of, sizeof(obs.samples_of));
	obs.kept = obs.begun_with = had->begun_with;
	obs.changes = had->changes;
	for (struct obs_session **at = &obs.sessions; *at != NULL;) {
		if (obs.given[(*at)->rank] == 0) {
			*at = (*at)->next;
			continue;
		}
		end(*at);
		at = &(*at)->next;
	}
	obs_outliers_forget_all();
}

bool obs_all_have_begun(void)
{
	for (uint32_t rank = 0; rank < obs.plan->workers; rank++) {
		if (obs.given[rank] == 0)
			return false;
	}
	return true;
}

static uint64_t newest_given(void)
{
	uint64_t newest = 0;

	for (uint32_t rank = 0; rank < obs.plan->workers; rank++)
		newest = obs.given[rank] > newest ? obs.given[rank] : newest;
	return newest > 0 ? newest - 1 : 0;
}

/* A version that nobody has had an outcome of may be torn, and one that somebody has had is not to
 * be lost. */
void obs_returns_start(uint64_t version)
{
	if (version != newest_given())
		obs_violated("the job goes on with version %" PRIu64 ", and the newest that a rank "
			     "has had is %" PRIu64,
			     version, newest_given());
	for (struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		for (struct expect_item *item = s->items; item != NULL; item = item->next)
			item->is_void |= item->counted && item->version > version;
	}
	expect_return(version);
	obs.commits = obs.applied = version;
	for (uint32_t k = 0; k < obs.plan->servers; k++)
		obs.executed_commits[k] = version;
	obs.samples = obs.samples_of[version];
	sim_say("  generation %" PRIu32 " begins with version %" PRIu64, obs.losses + 1, version);
}

void obs_returns_committed(const struct mst_record *r)
{
	uint64_t most_ns = COME_BACK_NS + obs.plan->patience_ns +
			   sim_plan_server_lease_ns(obs.plan);

	if (obs.losses > 0 && !obs.committed && sim_now() - obs.began_ns > most_ns)
		obs_violated("version %" PRIu64 " is committed %.3f s after other servers began",
			     obs.commits, (double)(sim_now() - obs.began_ns) / (double)MST_SECOND);
	if (obs.plan->generations.wanted && r->total != obs.samples)
		obs_violated("the record of version %" PRIu64 " tells %.17g samples, must be %.17g",
			     obs.commits, r->total, obs.samples);
	obs.committed = true;
}

struct obs_session *obs_session_of(const struct obs_worker *w, uint64_t ticket)
{
	struct obs_session *last = NULL;

	for (struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		bool before = s->of == w && s->tickets_before < ticket;
		if (before && (last == NULL || s->tickets_before > last->tickets_before))
			last = s;
	}
	return last;
}

void obs_returns_end(void)
{
	if (obs.plan->generations.wanted && (!obs.finished || obs_job_failed()))
		obs_violated("the job has %s, though other servers took the place of all that "
			     "were lost",
			     obs.finished ? "failed" : "not ended");
}
