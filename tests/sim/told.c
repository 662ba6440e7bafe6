/* SPDX-License-Identifier: MIT */
/* What workers are told. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

static void check_set(const struct obs_worker *w, const struct muster_outcome *out)
{
	struct muster_share want[SIM_WORKERS_MAX];
	uint32_t count = expect_set(out->version, want);
	bool same = count == out->set_len;

	for (uint32_t i = 0; same && i < count; i++)
		same = want[i].rank == out->set[i].rank && want[i].count == out->set[i].count &&
		       want[i].weight == out->set[i].weight;
	if (!same)
		obs_violated("rank %" PRIu32 " is told another set of version %" PRIu64
			     " than was counted",
			     w->rank, out->version);
}

static void check_bits(const struct obs_worker *w, const char *when)
{
	bool known = w->result != NULL && !obs_is_apart(w);
	int64_t at = known ? expect_differs(w->result_version, w->result) : -1;

	if (at >= 0)
		obs_violated("rank %" PRIu32 " reads wrong bits in element %" PRId64
			     " of version %" PRIu64 " %s",
			     w->rank, at, w->result_version, when);
}

static bool is_counted(const struct expect_item *item)
{
	return item->counted && !obs_is_void(item);
}

/* What is counted in a version that is void has no verdict. If its version is not, the servers may
 * have been lost before the verdict. */
static enum muster_verdict verdict_of(const struct expect_item *item)
{
	if (is_counted(item) && item->version <= obs.commits)
		return MUSTER_COUNTED;
	return obs_is_void(item) ? MUSTER_CANCELLED : item->verdict;
}

static void check_told(struct obs_worker *w, const struct muster_outcome *out)
{
	const struct obs_session *s = obs_session_of(w, out->ticket);
	struct expect_item *item = s != NULL ? obs_item(s, out->ticket - s->tickets_before) : NULL;
	bool over = obs.finished || out->ticket <= w->tickets_before;

	/* What an earlier leader does beside a later one is seen in its versions alone. */
	if (obs.plan->generations.apart &&
	    (item == NULL || (!item->counted && item->of != obs.losses))) {
		w->last_ticket_told = out->ticket;
		return;
	}
	bool unsent = item == NULL && out->verdict == MUSTER_CANCELLED && over;

	if (out->ticket <= w->last_ticket_told || (item == NULL && !unsent) ||
	    (item != NULL && item->told))
		obs_violated("rank %" PRIu32 " is told of ticket %" PRIu64 " after %" PRIu64,
			     w->rank, out->ticket, w->last_ticket_told);
	else if (item != NULL && !obs_is_apart(w) && out->verdict != verdict_of(item) &&
		 (out->verdict != MUSTER_CANCELLED || !over || is_counted(item)))
		obs_violated("rank %" PRIu32 " is told that ticket %" PRIu64 " is %s, it was %s%s",
			     w->rank, out->ticket, obs_verdict_name(out->verdict),
			     obs_verdict_name(verdict_of(item)),
			     obs_is_void(item) ? ", in a version that is void" : "");
	else if (item != NULL && is_counted(item) && out->counted_in != item->version)
		obs_violated("rank %" PRIu32 " is told that ticket %" PRIu64
			     " is in version %" PRIu64 ", it is in %" PRIu64,
			     w->rank, out->ticket, out->counted_in, item->version);
	if (item != NULL)
		item->told = true;
	w->last_ticket_told = out->ticket;
}

/* Where servers own: does a worker that was counted go on with that version, or a newer one? */
static bool answers_with_own(void)
{
	return obs.plan->owner == MUSTER_SERVERS_OWN && !obs.ever_changed &&
	       (obs.rule.release != MST_RELEASE_PUSH ||
		(obs.rule.quorum == 1 && !obs.plan->adaptive));
}

/* Whatever servers made of it, nobody is given a version with such a number. */
static void check_finite(const struct obs_worker *w, const struct muster_outcome *out)
{
	const float *result = out->result;

	for (uint64_t i = 0; obs.plan->guarded && result != NULL && i < obs.plan->elems; i++) {
		if (isfinite(result[i]))
			continue;
		obs_violated("rank %" PRIu32 " is given version %" PRIu64
			     ", which is not finite from element %" PRIu64 " on",
			     w->rank, out->version, i);
		return;
	}
}

void obs_outcome(struct obs_worker *w, const struct muster_outcome *out)
{
	struct obs_session *s = obs_find(w->rank, w->incarnation);

	if (w->rogue)
		return;
	if (s != NULL)
		s->waited = s->heard = true;
	if (out->ticket != 0)
		check_told(w, out);
	if (out->verdict == MUSTER_COUNTED && out->version < out->counted_in && answers_with_own())
		obs_violated("rank %" PRIu32 " is given version %" PRIu64
			     ", and is in version %" PRIu64,
			     w->rank, out->version, out->counted_in);
	obs_line_moves(w);
	obs_line_numbered(w, out->generation);
	obs_line_withdrawn(w, out->withdrawn);
	if (out->fresh && obs.plan->owner == MUSTER_WORKERS_OWN && w->last_version != UINT64_MAX &&
	    out->version != w->last_version + 1)
		obs_violated("rank %" PRIu32 " is given version %" PRIu64 " after %" PRIu64,
			     w->rank, out->version, w->last_version);
	if (w->last_version != UINT64_MAX && out->version < w->last_version)
		obs_violated("rank %" PRIu32 " goes back from version %" PRIu64 " to %" PRIu64,
			     w->rank, w->last_version, out->version);
	w->last_version = out->version;
	if (s != NULL)
		obs.had[w->rank] = (struct obs_had){ true, s->born, out->version };
	w->result = out->result;
	w->result_version = out->version;
	obs_orders(w, out);
	bool seen = !obs.plan->generations.apart || expect_knows(out->version);
	if (out->version > 0 && out->set_len > 0 && !obs_is_apart(w) && seen)
		check_set(w, out);
	if (out->fresh)
		check_finite(w, out);
	check_bits(w, "when it gets them");
}

void obs_takes(struct obs_worker *w, uint64_t version, uint32_t of)
{
	const struct obs_session *s = obs_find(w->rank, w->incarnation);
	const struct obs_line *line = s != NULL ? obs.line[s->born] : NULL;

	if (w->rogue || line == NULL)
		return;
	obs_line_moves(w);
	if (version > line->newest || line->maker[version] != obs.line[of]->maker[version])
		obs_violated("rank %" PRIu32 " takes a state of version %" PRIu64
			     ", which is of another line",
			     w->rank, version);
	if (w->last_version != UINT64_MAX && version < w->last_version)
		obs_violated("rank %" PRIu32 " takes a state of version %" PRIu64
			     ", and has %" PRIu64,
			     w->rank, version, w->last_version);
	w->last_version = version;
	w->result = NULL;
	obs.had[w->rank] = (struct obs_had){ true, s->born, version };
	sim_say("rank %" PRIu32 " takes a state of version %" PRIu64, w->rank, version);
}

void obs_average(const struct obs_worker *w, const float *average, uint64_t version)
{
	if (w->rogue)
		return;
	if (version < w->average_from && w->average_from != UINT64_MAX)
		obs_violated("rank %" PRIu32 " has asked with version %" PRIu64
			     ", and is given the average of %" PRIu64,
			     w->rank, w->average_from, version);
	int64_t at = expect_kept_differs(version, EXPECT_AVERAGE, 0, average, obs.plan->elems);
	if (at >= 0)
		obs_violated("rank %" PRIu32 " is given a wrong average of version %" PRIu64
			     ", from element %" PRId64 " on",
			     w->rank, version, at);
	sim_say("rank %" PRIu32 " has the average of version %" PRIu64, w->rank, version);
}

static bool is_among(const struct expect_item *item, const struct muster_push_verdict *verdict,
		     uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (verdict[i].incarnation == item->incarnation && verdict[i].ticket == item->seq)
			return true;
	}
	return false;
}

/* The last session before this one. If it may have started, the verdicts before its own are
 * dropped; if it is not known whether it has, neither is whose verdicts are told. */
static const struct obs_session *session_before(const struct obs_worker *w)
{
	const struct obs_session *s = NULL;

	for (uint32_t i = w->incarnation - 1; i > 0 && s == NULL; i--)
		s = obs_find(w->rank, i);
	return s != NULL && s->born == obs.losses && !s->rogue && s->items != NULL ? s : NULL;
}

void obs_verdicts(const struct obs_worker *w, const struct muster_push_verdict *verdict,
		  uint32_t count)
{
	const struct obs_session *before = session_before(w);

	for (uint32_t i = 0; i < count; i++) {
		const struct obs_session *s = obs_find(w->rank, verdict[i].incarnation);
		const struct expect_item *item = s != NULL ? obs_item(s, verdict[i].ticket) : NULL;
		if (s == NULL || (!s->rogue && item == NULL) ||
		    (item != NULL && !s->rogue && item->verdict != verdict[i].verdict))
			obs_violated("rank %" PRIu32 " is told a wrong verdict of ticket %" PRIu64
				     " of session %" PRIu32,
				     w->rank, verdict[i].ticket, verdict[i].incarnation);
	}
	for (const struct expect_item *item = before != NULL ? before->items : NULL; item != NULL;
	     item = item->next) {
		if (item->verdict != MUSTER_NONE && !item->told && !is_among(item, verdict, count))
			obs_violated("rank %" PRIu32 " is not told the verdict of ticket %" PRIu64
				     " of session %" PRIu32,
				     w->rank, item->seq, item->incarnation);
	}
}

void obs_lets_go(struct obs_worker *w)
{
	const struct obs_session *s = obs_find(w->rank, w->incarnation);

	if (!w->rogue && s != NULL && s->live)
		check_bits(w, "before it lets go of them");
	else if (!w->rogue && w->result != NULL && !obs_is_apart(w))
		w->reads_void |= expect_differs(w->result_version, w->result) >= 0;
	w->result = NULL;
}

void obs_end_asked(void)
{
	obs.end_asked = true;
}

/* Where a handle outlives its servers, a wait tells, and other calls work on. */
void obs_success(const struct obs_worker *w, const char *call)
{
	bool tells = !obs.plan->generations.wanted || strcmp(call, "wait") == 0;

	if (w->reads_void && !w->rogue && tells)
		obs_violated("rank %" PRIu32 " has read what was written over after its session "
			     "had ended, and %s does not tell it",
			     w->rank, call);
}

/* A leader that is told to end gives its ledger at least so long before it tells its workers. */
#define STOP_NS MST_SECOND

/* Has this worker heard of a signal to the leader before the ledger has ended the job? Others would
 * go on without it. */
static bool hears_too_early(const char *reason)
{
	uint64_t stopped_ns = obs.saves.stopped_ns;

	return obs.started && !obs.finished && stopped_ns != 0 &&
	       sim_now() - stopped_ns < STOP_NS &&
	       strstr(reason, "the server was ended by") != NULL;
}

void obs_error(const struct obs_worker *w, const char *call, int error, const char *reason)
{
	sim_say("rank %" PRIu32 ": %s: %d: %s", w->rank, call, error, reason);
	const struct obs_session *s = obs_find(w->rank, w->incarnation);
	bool excused = w->excused || (s != NULL && s->dawdled);
	bool stale = error == -ESTALE && obs.plan->owner == MUSTER_WORKERS_OWN &&
		     (!obs.plan->generations.ranks || obs.finished);
	bool over = error == -ESHUTDOWN && obs.finished;
	bool failed = error == -EHOSTDOWN && obs.finished && obs_job_failed();

	if (reason[0] == '\0')
		obs_violated("rank %" PRIu32 ": %s fails with %d and no word", w->rank, call,
			     error);
	if (hears_too_early(reason))
		obs_violated("rank %" PRIu32 ": %s: the server ends, and the job has not ended yet",
			     w->rank, call);
	bool too_late = obs.finished && strcmp(call, "open") == 0;
	/* Servers stay for so long, and a slow link may take longer to bring all versions. */
	too_late |= error == -ENOTCONN && obs.finished &&
		    sim_now() - obs.finished_ns > obs.plan->patience_ns;
	if (!excused && !sim_plan_servers_hold(obs.plan) && !obs.plan->generations.wanted) {
		excused = obs.plan->servers == 1 || sim_plan_hits(obs.plan, SIM_SERVER) ||
			  (obs.server_hit != 0 && obs_names_cause(reason));
	}
	if (!excused && !stale && !over && !failed && !too_late)
		obs_violated("rank %" PRIu32 ": %s fails, though nothing happened to it: %s",
			     w->rank, call, reason);
}

void obs_spoiled(const struct obs_worker *w)
{
	if (!w->rogue)
		obs_violated("rank %" PRIu32 " writes to what is still being sent", w->rank);
}

void obs_took(const struct obs_worker *w, const char *call, uint64_t took_ns, uint64_t most_ns)
{
	if (took_ns > most_ns)
		obs_violated("rank %" PRIu32 ": %s took %.3f s, at most %.3f s are promised",
			     w->rank, call, (double)took_ns / (double)MST_SECOND,
			     (double)most_ns / (double)MST_SECOND);
}
