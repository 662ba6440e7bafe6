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

/* Is it of a process that comes as one that is new, or that is gone? */
static bool is_unknown(const struct obs_session *s)
{
	return !obs.had[s->rank].any || s->process != obs.process[s->rank];
}

static void forget_unknown(void)
{
	for (struct obs_session **at = &obs.sessions; *at != NULL;) {
		if (is_unknown(*at) && (*at)->born != obs.losses)
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
}

/* Servers that have admitted the process before count on from its incarnation; others begin anew,
 * for nobody tells them of it. */
void obs_enters(uint32_t rank)
{
	obs.process[rank]++;
	obs.had[rank] = (struct obs_had){ .any = false };
	obs.was_in[rank] = false;
	obs.begun_with.incarnation[rank] = 0;
	obs.changes.known[rank] = 0;
	forget_unknown();
	obs_disturbed();
}

void obs_next_generation(void)
{
	struct obs_state *had = sim_alloc(sizeof(*had));

	expect_keep(obs.losses);
	*had = obs;
	memset(&obs, 0, sizeof(obs));
	obs.plan = had->plan;
	obs.sessions = had->sessions;
	obs.judged = had->judged;
	obs.commits = had->commits;
	obs.rule = had->plan->rule;
	obs.end_asked = had->end_asked;
	obs.losses = had->losses + 1;
	memcpy(obs.had, had->had, sizeof(obs.had));
	memcpy(obs.process, had->process, sizeof(obs.process));
	memcpy(obs.was_in, had->was_in, sizeof(obs.was_in));
	memcpy(obs.line, had->line, sizeof(obs.line));
	obs.all_have_begun = had->all_have_begun;
	obs.kept = obs.begun_with = had->begun_with;
	obs.changes = had->changes;
	forget_unknown();
	for (struct obs_session *s = obs.sessions; s != NULL; s = s->next)
		end(s);
	obs_disturbed();
	obs_outliers_forget_all();
}

void obs_disturbed(void)
{
	obs.disturbed_ns = sim_now();
	obs.committed = false;
}

bool obs_all_have_begun(void)
{
	for (uint32_t rank = 0; !obs.all_have_begun && rank < obs.plan->workers; rank++) {
		if (!obs.had[rank].any)
			return false;
	}
	obs.all_have_begun = true;
	return true;
}

/* Without all ranks a start needs more than half that remember what was before. Else another leader
 * goes on with the rest, and no later start learns of this one. */
static void check_majority(void)
{
	uint32_t started = 0, remember = 0;

	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		started += s->live && s->started;
		remember += s->live && s->started && obs.was_in[s->rank];
	}
	if (started < obs.plan->workers && 2 * remember <= obs.plan->workers)
		obs_violated("generation %" PRIu32 " begins with %" PRIu32 " of %" PRIu32
			     " ranks, and only %" PRIu32 " of them were in one before",
			     obs.losses + 1, started, obs.plan->workers, remember);
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next)
		obs.was_in[s->rank] |= s->live && s->started;
}

/* A version that nobody has had an outcome of may be torn, and one that somebody has had who starts
 * is not to be lost. */
void obs_returns_start(uint64_t version)
{
	const struct obs_had *newest = obs_newest_had();
	uint64_t had = newest != NULL ? newest->version : 0;

	if (!obs.plan->generations.wanted)
		return;
	if (version != had) {
		obs_violated("the job goes on with version %" PRIu64 ", and the newest that a rank "
			     "has had is %" PRIu64,
			     version, had);
		return;
	}
	check_majority();
	obs_line_begins(newest, version);
	if (obs.losses > 0)
		expect_return(newest != NULL ? newest->generation : obs.losses - 1, version);
	obs.commits = obs.applied = version;
	for (uint32_t k = 0; k < obs.plan->servers; k++)
		obs.executed_commits[k] = version;
	obs.samples = obs.line[obs.losses]->samples[version];
	sim_say("  generation %" PRIu32 " begins with version %" PRIu64, obs.losses + 1, version);
}

/* From the last loss on, or from the last process on that has come. Who stays away is waited for,
 * and so is who has said hello. */
static uint64_t longest_pause_ns(void)
{
	const struct sim_plan *p = obs.plan;
	uint64_t most_ns = COME_BACK_NS + p->patience_ns + sim_plan_server_lease_ns(p);

	if (p->generations.ranks)
		most_ns += p->generations.return_ns + 2 * p->lease_ns + 2 * p->patience_ns;
	return most_ns;
}

void obs_returns_committed(const struct mst_record *r)
{
	uint64_t pause_ns = sim_now() - obs.disturbed_ns;

	if (!obs.plan->generations.wanted)
		return;
	if (obs.disturbed_ns > 0 && !obs.committed && pause_ns > longest_pause_ns())
		obs_violated("version %" PRIu64 " is committed %.3f s after the last loss",
			     obs.commits, (double)pause_ns / (double)MST_SECOND);
	if (r->total != obs.samples)
		obs_violated("the record of version %" PRIu64 " tells %.17g samples, must be %.17g",
			     obs.commits, r->total, obs.samples);
	obs_line_grows();
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
