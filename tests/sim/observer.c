/* SPDX-License-Identifier: MIT */
#include "tests/sim/observer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "server/core/policy/rule.h"
#include "tests/sim/disk.h"
#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

struct obs_state obs;

/* ---- violations ---- */

void obs_violated(const char *fmt, ...)
{
	va_list args;

	if (obs.violation[0] != '\0')
		return;
	va_start(args, fmt);
	(void)vsnprintf(obs.violation, sizeof(obs.violation), fmt, args);
	va_end(args);
	sim_say("VIOLATION: %s", obs.violation);
	sim_stop();
}

const char *obs_violation(void)
{
	return obs.violation[0] != '\0' ? obs.violation : NULL;
}

void obs_begin(const struct sim_plan *plan)
{
	memset(&obs, 0, sizeof(obs));
	obs.plan = plan;
	obs.rule = plan->rule;
	obs_outliers_forget_all();
	expect_begin(plan);
}

/* An adaptive policy goes on where it was, if it was in force. How many contributions it wants
 * follows from losses and times, which are not followed here. Of backup workers 0 is all. */
static void adapt_rule(const struct sim_plan *plan)
{
	double wanted, done;
	struct mst_reason why;

	if (plan->switches_at > 0) {
		obs.switched = disk_figure("syncswitch.done", &done) && done != 0;
		if (obs.switched && mst_rule_parse("async", &obs.rule, &why) != 0)
			obs_violated("there is no async: %s", why.text);
		return;
	}
	if (!plan->adaptive ||
	    !disk_figure(plan->backs_up ? "dbw.wanted" : "adasync.wanted", &wanted))
		return;
	obs.rule.quorum = wanted < plan->workers ? (int32_t)wanted : (int32_t)plan->workers;
}

void obs_go_on(const struct sim_plan *plan, uint64_t version)
{
	struct obs_kept kept = obs.kept;

	memset(&obs, 0, sizeof(obs));
	obs.kept = obs.begun_with = kept;
	obs.plan = plan;
	obs.rule = plan->rule;
	obs.samples = kept.samples;
	adapt_rule(plan);
	obs.commits = obs.applied = version;
	for (uint32_t k = 0; k < plan->servers; k++)
		obs.executed_commits[k] = version;
	obs_outliers_forget_all();
	expect_go_on(plan, version);
}

uint64_t obs_commits(void)
{
	return obs.commits;
}

uint64_t obs_judged(void)
{
	return obs.judged;
}

bool obs_began(void)
{
	return obs.sessions != NULL;
}

bool obs_finished(void)
{
	return obs.finished;
}

bool obs_is_done(void)
{
	return obs.finished && !obs_job_failed();
}

/* ---- sessions and what they hand in ---- */

struct obs_session *obs_find(uint32_t rank, uint32_t incarnation)
{
	struct obs_session *s = obs.sessions;

	while (s != NULL && (s->rank != rank || s->incarnation != incarnation))
		s = s->next;
	return s;
}

struct expect_item *obs_item(const struct obs_session *s, uint64_t seq)
{
	struct expect_item *item = s->items;

	while (item != NULL && item->seq != seq)
		item = item->next;
	return item;
}

void obs_dies(const struct obs_worker *w)
{
	struct obs_session *s = obs_find(w->rank, w->incarnation);

	if (s != NULL && s->died_ns == 0)
		s->died_ns = sim_now();
	obs_disturbed();
}

void obs_turns_rogue(struct obs_worker *w)
{
	struct obs_session *s = obs_find(w->rank, w->incarnation);

	w->rogue = true;
	if (s == NULL)
		return;
	s->rogue = true;
	/* What is counted may still be to be read, however long ago that was. */
	for (struct expect_item *item = s->items; item != NULL; item = item->next) {
		item->spoiled = true;
		obs.spoiled_counts |= item->counted;
		if (item->counted && item->version <= obs.commits)
			expect_spoil(item->version, obs.commits);
	}
}

static uint32_t all_servers(void)
{
	return (1u << obs.plan->servers) - 1;
}

/* What one server was told already the next is told in the same words. Return: was it? */
static bool is_told(struct obs_session *s, uint32_t server, uint32_t slot, const char *what)
{
	uint32_t told = s->told[slot];

	if (told >> server & 1u)
		obs_violated("rank %" PRIu32 " %s slot %" PRIu32 " at server %" PRIu32 " twice",
			     s->rank, what, slot, server);
	s->told[slot] |= 1u << server;
	return told != 0 && told != all_servers();
}

void obs_header(const struct obs_worker *w, uint32_t server, const struct mst_lane_header *h)
{
	struct obs_session *s = obs_find(w->rank, w->incarnation);

	if (s == NULL || s->rogue)
		return;
	if (h->slot < MST_SLOTS_MAX && is_told(s, server, h->slot, "hands in")) {
		struct mst_lane_header told = s->header[h->slot];
		told.sum = h->sum; /* each server is told the one of its part */
		if (memcmp(&told, h, sizeof(told)) != 0)
			obs_violated("rank %" PRIu32 " says something else to server %" PRIu32
				     " of its contribution %" PRIu64,
				     w->rank, server, h->seq);
		return;
	}
	if (h->seq != s->headers + 1)
		obs_violated("rank %" PRIu32 " sends header %" PRIu64 " after %" PRIu64, w->rank,
			     h->seq, s->headers);
	if (h->slot >= MST_SLOTS_MAX || s->slot[h->slot] != SLOT_GRANTED)
		obs_violated("rank %" PRIu32 " uses slot %" PRIu32 " without a grant", w->rank,
			     h->slot);
	s->headers = h->seq;
	s->of = w;
	s->tickets_before = w->tickets_before;
	s->header[h->slot] = *h;
	s->granted[h->slot] = 0;
	s->slot[h->slot] = SLOT_SPENT;
	s->spent_by[h->slot] = h->seq;
	struct expect_item *item = sim_alloc(sizeof(*item));
	*item = (struct expect_item){ .rank = w->rank,
				      .incarnation = w->incarnation,
				      .of = s->born,
				      .seq = h->seq,
				      .tag = h->tag,
				      .samples = h->weight,
				      .is_sum = (h->flags & MST_HEADER_SUM) != 0,
				      .empty = (h->flags & (MST_HEADER_EMPTY | MST_HEADER_PASS)) !=
					       0,
				      .full = (h->flags & MST_HEADER_FULL) != 0,
				      .part = (h->flags & MST_HEADER_PART) != 0,
				      .asks = (h->flags & MST_HEADER_ASK) != 0,
				      .pass = (h->flags & MST_HEADER_PASS) != 0,
				      .slot = h->slot,
				      .content = w->content,
				      .alone = s->waited,
				      .spoiled = w->spoils,
				      .next = s->items };
	s->items = item;
	s->waited = false;
	sim_say("rank %" PRIu32 ".%" PRIu32 " hands in %" PRIu64 " on version %" PRIu64
		", slot %" PRIu32,
		w->rank, w->incarnation, h->seq, h->tag, h->slot);
}

void obs_abandon(const struct obs_worker *w, uint32_t server, uint32_t slot)
{
	struct obs_session *s = obs_find(w->rank, w->incarnation);

	if (s == NULL || s->rogue || slot >= MST_SLOTS_MAX || is_told(s, server, slot, "gives up"))
		return;
	if (s->slot[slot] != SLOT_GRANTED)
		obs_violated("rank %" PRIu32 " abandons slot %" PRIu32 " without a grant", w->rank,
			     slot);
	s->slot[slot] = SLOT_JUDGED;
	s->spent_by[slot] = 0;
	s->granted[slot] = 0;
}

void obs_granted(struct mst_identity who, uint32_t server, uint32_t slot)
{
	struct obs_session *s = obs_find(who.rank, who.incarnation);

	if (s == NULL || s->rogue || slot >= MST_SLOTS_MAX)
		return;
	if (s->slot[slot] != SLOT_JUDGED)
		obs_violated("rank %" PRIu32 " is granted slot %" PRIu32
			     " though what is in it has no verdict",
			     who.rank, slot);
	if (s->granted[slot] >> server & 1u)
		obs_violated("rank %" PRIu32 " is granted slot %" PRIu32 " by server %" PRIu32
			     " twice",
			     who.rank, slot, server);
	s->granted[slot] |= 1u << server;
	if (s->granted[slot] != all_servers())
		return;
	s->slot[slot] = SLOT_GRANTED;
	s->told[slot] = 0;
}

const char *obs_verdict_name(enum muster_verdict verdict)
{
	const char *const names[] = { "none",      "counted", "late",    "stale",
				      "cancelled", "refused", "outlier", "damaged" };

	return (unsigned)verdict <= MUSTER_DAMAGED ? names[verdict] : "?";
}

/* ---- the end ---- */

/* A fault before the job was born may keep it from being born. */
static void check_end(void)
{
	bool whole = sim_plan_is_calm(obs.plan) ||
		     (sim_plan_servers_hold(obs.plan) && obs.commits > 0);
	whole &= !obs.ever_behind;

	if (obs.finished && obs.why == MST_FINISH_SPOILT) {
		if (!obs.plan->guarded || !obs.spoiled_counts)
			obs_violated("the job has failed, and all that was counted is finite");
		return;
	}
	if (!whole || (obs.finished && !mst_finish_failed(obs.why)))
		return;
	for (uint32_t rank = 0; rank < obs.plan->workers; rank++) {
		if (!sim_plan_hits(obs.plan, (int)rank))
			obs_violated("the job has %s, though rank %" PRIu32 " was well all along",
				     obs.finished ? "failed" : "not ended", rank);
	}
}

void obs_end(void)
{
	check_end();
	obs_returns_end();
	obs_check_servers();
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		for (const struct expect_item *i = s->items; i != NULL; i = i->next) {
			if (i->verdict == MUSTER_NONE && !i->passed && s->live && !obs.finished &&
			    !sim_plan_hits(obs.plan, (int)s->rank) &&
			    sim_plan_servers_hold(obs.plan))
				obs_violated("%" PRIu64 " of rank %" PRIu32 " was never judged",
					     i->seq, s->rank);
		}
	}
}
