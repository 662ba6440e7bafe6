/* SPDX-License-Identifier: MIT */
/* Sessions, birth and end, and timers of the reference ledger. */
#include "tests/unit/server/core/ledger/reference_ledger.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/reference_state.h"

void *reference_room(void *array, size_t count, size_t size)
{
	/* Room doubles each time it is used up, which is when the count is a power of two. */
	if (count != 0 && (count & (count - 1)) != 0)
		return array;
	void *more = realloc(array, (count == 0 ? 1 : count * 2) * size);
	if (more == NULL)
		abort();
	return more;
}

struct mst_decision *decide(struct reference *r, enum mst_decision_kind kind,
			    struct mst_identity who)
{
	r->decision = reference_room(r->decision, r->decision_count, sizeof(*r->decision));
	struct mst_decision *d = &r->decision[r->decision_count++];
	memset(d, 0, sizeof(*d));
	d->kind = kind;
	d->who = who;
	return d;
}

struct session *session_of(const struct reference *r, uint32_t rank)
{
	return r->live[rank];
}

static uint32_t started_count(const struct reference *r)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		count += s != NULL && s->started;
	}
	return count;
}

static uint32_t resting_count(const struct reference *r)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		count += session_of(r, rank) != NULL && session_of(r, rank)->rests;
	return count;
}

/* It leaves the steps at once; who returns is in them from the next one on, like one that joins. At
 * least one is always left in them. */
static void rest(struct reference *r, struct session *s, bool rests)
{
	if (!r->born || r->finished || !s->started || s->rests == rests ||
	    (rests && started_count(r) - resting_count(r) < 2))
		return;
	s->rests = rests;
	decide(r, MST_DO_REST, s->who)->rests = rests;
	if (rests) {
		open_step(r)->rostered[s->who.rank] = false;
	} else {
		s->first = reference_newest(r) + 1;
		s->clock = least_clock(r);
	}
}

static void return_all(struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		if (session_of(r, rank) != NULL)
			rest(r, session_of(r, rank), false);
	}
}

/* A worker that never started is not yet one of those the job is made of. */
static void job_bereaved(struct reference *r, const struct session *s, enum mst_evict_why why)
{
	bool loss = why != MST_EVICT_LEFT && why != MST_EVICT_STALE && !s->leaving;

	if (!r->born || !s->started)
		return;
	if (is_ending(r)) {
		bool ends = loss ? r->rule.on_loss == MST_LOSS_FAIL ||
					    started_count(r) < r->rule.min_workers
				 : started_count(r) == 0;
		r->end_waits &= !ends;
		return;
	}
	if (started_count(r) == resting_count(r))
		return_all(r);
	if (loss && r->rule.on_loss == MST_LOSS_FAIL)
		job_finish(r, MST_FINISH_LOSS);
	else if (loss && started_count(r) < r->rule.min_workers)
		job_finish(r, MST_FINISH_TOO_FEW);
	else if (!loss && started_count(r) == 0)
		r->all_left = true;
}

void session_end(struct reference *r, struct session *s, enum mst_evict_why why)
{
	size_t came = s->judged;

	while (came < s->gift_count && s->gift[came].shards == all_shards(r))
		came++;
	for (size_t i = 0; i < s->gift_count; i++) {
		struct gift *g = &s->gift[i];
		if (g->judged || g->shards == 0)
			continue;
		g->judged = true;
		if ((g->header.flags & MST_HEADER_PASS) != 0)
			continue;
		struct mst_decision *d = decide(r, MST_DO_VERDICT, s->who);
		d->verdict.seq = g->header.seq;
		d->verdict.tag = g->header.tag;
		d->verdict.slot = g->header.slot;
		d->verdict.verdict = MUSTER_CANCELLED;
	}
	s->ended = true;
	r->live[s->who.rank] = NULL;
	struct mst_decision *end = decide(r, MST_DO_EVICT, s->who);
	end->evict = why;
	if (s->leaving && s->started) {
		end->announced = s->leave_seq;
		end->came = came;
	}
	open_step(r)->rostered[s->who.rank] = false;
	if (r->sender == s)
		r->sender = NULL;
	job_bereaved(r, s, why);
}

static int join_refused(const struct reference *r, int32_t wanted, uint32_t *rank)
{
	if (is_ending(r))
		return -ESHUTDOWN;
	if (wanted < -1 || (wanted >= 0 && (uint32_t)wanted >= r->cfg.workers))
		return -ERANGE;
	/* Every worker needs each version from 0 on. */
	if (r->born && r->cfg.owner == MUSTER_WORKERS_OWN && !version_held(r, 0))
		return -ESTALE;
	if (wanted >= 0) {
		*rank = (uint32_t)wanted;
		return session_of(r, *rank) == NULL ? 0 : -EEXIST;
	}
	for (*rank = 0; *rank < r->cfg.workers; ++*rank) {
		if (session_of(r, *rank) == NULL)
			return 0;
	}
	return -ENOSPC;
}

static void join(struct reference *r, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	uint32_t rank = 0;
	int error = join_refused(r, ev->join.rank, &rank);

	if (error != 0) {
		struct mst_decision *d = decide(r, MST_DO_REFUSE, (struct mst_identity){ 0 });
		d->join.cookie = ev->join.cookie;
		d->join.error = error;
		return;
	}
	struct session *s = calloc(1, sizeof(*s));
	if (s == NULL)
		abort();
	s->who = (struct mst_identity){ rank, ++r->incarnation[rank] };
	s->heard_ns = now_ns;
	s->given = MST_VERSION_NONE;
	for (uint32_t slot = 0; slot < r->cfg.slots; slot++)
		s->epoch[slot] = 1;
	r->session = reference_room(r->session, r->session_count, sizeof(struct session *));
	r->session[r->session_count++] = s;
	r->live[rank] = s;
	decide(r, MST_DO_ADMIT, s->who)->join.cookie = ev->join.cookie;
}

/* The whole job waits for its last member; a member of a running job waits for the next version. */
static void start_if_ready(struct reference *r, struct session *s)
{
	if (s->started || !s->ready || s->linked != all_shards(r))
		return;
	if (r->born) {
		s->first = reference_newest(r) + 1;
		s->clock = least_clock(r);
	}
	s->started = true;
}

static void start(struct reference *r, struct session *s, bool offers)
{
	if (s->ready) {
		session_end(r, s, MST_EVICT_INVALID);
		return;
	}
	s->ready = true;
	s->offers = offers;
	ask_heard(r, s, (struct mst_lane_ask){ .number = 1, .have = MST_VERSION_NONE }, 0);
	start_if_ready(r, s);
}

static void be_born(struct reference *r)
{
	r->born = true;
	r->step[0].made.loss = (double)NAN;
	r->step[0].made.divisor = 1;
	r->step[0].made.lr_scale = 1;
	decide(r, MST_DO_START, (struct mst_identity){ 0 });
	step_open(r);
}

static struct session *first_that_offers(const struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s->offers)
			return s;
	}
	return NULL;
}

/* All ranks have started: where does version 0 come from? One at a time is asked for it. */
static void birth(struct reference *r)
{
	if (r->born || r->finished || started_count(r) < r->cfg.workers)
		return;
	if (r->has_state) {
		be_born(r);
		return;
	}
	if (r->sender != NULL)
		return;
	r->sender = first_that_offers(r);
	if (r->sender != NULL)
		decide(r, MST_DO_SEND_STATE, r->sender->who);
	else if (r->cfg.owner == MUSTER_WORKERS_OWN)
		be_born(r);
	else
		job_finish(r, MST_FINISH_NO_START);
}

static void answered(struct reference *r, struct session *s, const struct mst_ledger_event *ev)
{
	for (size_t i = 0; i < s->copy_count; i++) {
		struct copy *c = &s->copy[i];
		if (c->number != ev->answered.number || c->shards == all_shards(r))
			continue;
		c->shards |= UINT64_C(1) << ev->answered.shard;
		if (c->shards == all_shards(r))
			r->moved_ns = r->now_ns;
	}
}

/* What is to be judged next is looked for in each shard that hears nothing more. */
void end_if_mute(struct reference *r, struct session *s)
{
	uint64_t have = s->judged < s->gift_count ? s->gift[s->judged].shards : 0;

	for (uint32_t shard = 0; shard < r->cfg.shards && s->leaving && !s->ended; shard++) {
		uint64_t bit = UINT64_C(1) << shard;
		if ((s->mute & bit) != 0 && (have & bit) == 0)
			session_end(r, s, MST_EVICT_LOST);
	}
}

static void leave(struct reference *r, struct session *s, uint64_t seq)
{
	if (s->leaving)
		return;
	s->leaving = true;
	s->leave_seq = seq;
	if (!s->started || seq <= s->judged)
		session_end(r, s, MST_EVICT_LEFT);
	end_if_mute(r, s);
}

static void lost(struct reference *r, struct session *s, int error)
{
	/* A worker closes its connections after it has said that it leaves. */
	if (error == -EPROTO)
		session_end(r, s, MST_EVICT_INVALID);
	else if (!s->leaving)
		session_end(r, s, MST_EVICT_LOST);
}

static void policy(struct reference *r, const struct mst_rule *rule)
{
	if (!r->born || r->finished) {
		r->rule = *rule;
		decide(r, MST_DO_POLICY, (struct mst_identity){ 0 });
		return;
	}
	r->next_rule = *rule;
	r->rule_changes = true;
	/* Quorum 0 names everybody, which is never less than a number. */
	if (rule->quorum != 0 && step_needed(r, rule->quorum) < step_needed(r, r->rule.quorum)) {
		r->rule.quorum = rule->quorum;
		decide(r, MST_DO_POLICY, (struct mst_identity){ 0 });
	}
}

static void member_event(struct reference *r, struct session *s, const struct mst_ledger_event *ev,
			 uint64_t now_ns)
{
	switch (ev->kind) {
	case MST_EV_LINKED:
		s->linked |= UINT64_C(1) << ev->shard;
		s->far |= ev->shard == 0 && ev->far;
		start_if_ready(r, s);
		break;
	case MST_EV_START:
		start(r, s, ev->offers);
		break;
	case MST_EV_STATE:
		r->has_state = r->has_state || s == r->sender;
		break;
	case MST_EV_FULL:
		gift_reported(r, s, ev);
		break;
	case MST_EV_ABANDONED:
		grant_abandoned(r, s, ev);
		break;
	case MST_EV_ASK:
		ask_heard(r, s, ev->ask, last_gift(s));
		break;
	case MST_EV_ANSWERED:
		answered(r, s, ev);
		break;
	case MST_EV_HEARTBEAT:
		s->heard_ns = now_ns;
		break;
	case MST_EV_LEAVE:
		leave(r, s, ev->seq);
		break;
	case MST_EV_REST:
		rest(r, s, ev->rests);
		break;
	case MST_EV_LOST:
		lost(r, s, ev->error);
		break;
	case MST_EV_UNLINKED:
		s->mute |= UINT64_C(1) << ev->shard;
		end_if_mute(r, s);
		break;
	case MST_EV_EVICT:
		/* no job fails because somebody is evicted */
		if (!r->born || is_ending(r) || !s->started ||
		    (r->rule.on_loss != MST_LOSS_FAIL && started_count(r) > r->rule.min_workers))
			session_end(r, s, MST_EVICT_ASKED);
		break;
	case MST_EV_FINISH:
		if (!r->stopped)
			r->asked_to_finish = r->asked_to_finish || r->born;
		r->end_waits = false;
		break;
	case MST_EV_GOAL:
		end_with(r, s, ev->goal);
		break;
	default: /* not of a member; and nobody here comes back, strays, or reports anything */
		abort();
	}
}

/* What was heard is good for a quarter of a lease. Return: the time without what is lost. */
static uint64_t pass_time(struct reference *r, uint64_t now_ns)
{
	if (r->looked_ns == 0)
		r->looked_ns = r->heard_ns = now_ns;
	uint64_t good = r->heard_ns + r->cfg.lease_ns / 4;
	uint64_t from = good > r->looked_ns ? good : r->looked_ns;
	if (now_ns > from)
		r->lost_ns += now_ns - from;
	r->looked_ns = now_ns;
	return r->now_ns = now_ns - r->lost_ns;
}

static void heard(struct reference *r, uint64_t heard_ns)
{
	uint64_t read_ns = heard_ns > r->lost_ns ? heard_ns - r->lost_ns : 0;

	r->heard_ns = heard_ns;
	r->read_ns = read_ns > r->read_ns ? read_ns : r->read_ns;
}

void reference_handle(struct reference *r, const struct mst_ledger_event *ev, uint64_t real_ns)
{
	uint64_t now_ns = pass_time(r, real_ns);

	if (ev->kind == MST_EV_HEARD) {
		heard(r, ev->heard_ns);
		return;
	}
	if (ev->kind == MST_EV_JOIN) {
		join(r, ev, now_ns);
	} else if (ev->kind == MST_EV_POLICY) {
		policy(r, &ev->rule);
	} else if (ev->kind == MST_EV_END) {
		end_asked(r);
	} else if (ev->kind == MST_EV_STOP) {
		end_stopped(r);
	} else if (ev->kind == MST_EV_SAVED) {
		save_reported(r, ev);
	} else if (ev->kind == MST_EV_LEND) {
		lend_asked(r);
	} else if (ev->kind == MST_EV_RETURNED) {
		lend_returned(r, ev);
	} else if (ev->kind == MST_EV_SPOILT) {
		job_finish(r, MST_FINISH_SPOILT);
	} else if (ev->kind == MST_EV_SETTLED) {
		r->settled |= UINT64_C(1) << ev->shard;
		if (r->settling)
			job_finish(r, r->settle_why);
	} else {
		struct session *s = session_of(r, ev->who.rank);
		if (s == NULL || s->who.incarnation != ev->who.incarnation)
			return;
		member_event(r, s, ev, now_ns);
	}
	birth(r);
	settle(r);
}

static uint64_t lease_due(const struct reference *r, const struct session *s)
{
	return s->heard_ns + r->cfg.lease_ns;
}

static uint64_t join_due(const struct reference *r)
{
	return r->born || r->finished ? MST_NEVER : r->join_until_ns;
}

/* A step that only lacks a buffer waits for nobody; nor does an ask that waits for that step. Ranks
 * that lack in a set are waited for since it was begun; where any worker could go on, since the
 * last one did. */
static uint64_t step_patience_due(const struct reference *r)
{
	const struct reference_step *step = open_step(r);

	if (!r->born || !still_gathers(r) || step_met(r))
		return MST_NEVER;
	if (step->counting && missing_count(r) > 0)
		return step->first_count_ns + r->rule.patience_ns;
	return r->moved_ns + r->rule.patience_ns + (r->cfg.shards > 1 ? r->cfg.lease_ns : 0);
}

static uint64_t ask_patience_due(const struct reference *r, const struct session *s)
{
	if (!r->born || r->finished || r->settling || !held_by_bound(r, s) || step_met(r))
		return MST_NEVER;
	return s->asked_ns + r->rule.patience_ns;
}

/* It is the servers' turn: to answer, or to report what others have reported, for a lease. That
 * report is then the last thing that is waited for. */
static bool waits_for_servers(const struct reference *r, struct session *s)
{
	if (s->asking && ask_is_in_turn(s))
		return true;
	if (s->judged >= s->gift_count)
		return false;
	const struct gift *due = &s->gift[s->judged];
	if (due->shards == 0 || due->shards == all_shards(r) ||
	    r->now_ns >= due->first_ns + r->cfg.lease_ns)
		return false;
	s->excused = s->judged + 1;
	s->excused_in = reference_newest(r);
	return true;
}

/* Each contribution of the rank to the open step has a slot of its own until the commit. Is there
 * one more slot? */
static bool has_room(const struct reference *r, uint32_t rank)
{
	const struct reference_version *made = &open_step(r)->made;
	uint32_t count = 0;

	for (size_t i = 0; i < made->entry_count; i++)
		count += made->entry[i].who.rank == rank;
	return open_step(r)->rostered[rank] && count < r->cfg.slots;
}

static void evict_awaited(struct reference *r, uint64_t now_ns)
{
	bool more_of_all = open_step(r)->counting && missing_count(r) == 0, some_room = false;
	bool *room = calloc(r->cfg.workers, sizeof(bool));

	for (uint32_t rank = 0; more_of_all && rank < r->cfg.workers; rank++) {
		room[rank] = has_room(r, rank);
		some_room |= room[rank];
	}
	late_release(r);
	open_step(r)->first_count_ns = now_ns;
	r->moved_ns = now_ns;
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		bool awaited = more_of_all ? open_step(r)->rostered[rank] : is_missing(r, rank);
		if (some_room)
			awaited = room[rank];
		if (awaited && !waits_for_servers(r, s))
			session_end(r, s, MST_EVICT_PATIENCE);
	}
	free(room);
}

/* The slowest workers after these have not been waited for yet. So every parked ask begins to wait
 * anew. */
static void evict_slowest(struct reference *r, const struct session *requester, uint64_t now_ns)
{
	uint64_t least = least_clock(r);

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s != NULL)
			s->asked_ns = now_ns;
		if (open_step(r)->rostered[rank] && s != requester && s->clock == least &&
		    !waits_for_servers(r, s))
			session_end(r, s, MST_EVICT_PATIENCE);
	}
}

void reference_tick(struct reference *r, uint64_t real_ns)
{
	uint64_t now_ns = pass_time(r, real_ns);

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s != NULL && lease_due(r, s) <= r->read_ns)
			session_end(r, s, MST_EVICT_LEASE);
	}
	if (join_due(r) <= now_ns)
		job_finish(r, MST_FINISH_JOIN_TIMEOUT);
	if (end_due(r) <= now_ns)
		r->end_waits = false;
	trigger_tick(r);
	/* A worker that would be answered now, because another one is gone, has not been waited
	 * for. So patience is judged before settle(). */
	if (step_patience_due(r) <= now_ns && again_given_up(r))
		r->moved_ns = now_ns;
	else if (step_patience_due(r) <= now_ns)
		evict_awaited(r, now_ns);
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s != NULL && ask_patience_due(r, s) <= now_ns)
			evict_slowest(r, s, now_ns);
	}
	settle(r);
}

uint64_t reference_due(const struct reference *r)
{
	uint64_t due = join_due(r);
	uint64_t patience = step_patience_due(r);

	due = patience < due ? patience : due;
	due = trigger_due(r) < due ? trigger_due(r) : due;
	due = end_due(r) < due ? end_due(r) : due;
	due = late_due(r) < due ? late_due(r) : due;
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (s == NULL)
			continue;
		patience = ask_patience_due(r, s);
		due = patience < due ? patience : due;
	}
	/* Nothing is due in time that will be lost if nobody listens. */
	uint64_t good = r->heard_ns + r->cfg.lease_ns / 4;
	return due == MST_NEVER || due + r->lost_ns > good ? MST_NEVER : due + r->lost_ns;
}

struct reference *reference_new(const struct mst_ledger_cfg *cfg)
{
	struct reference *r = calloc(1, sizeof(*r));

	if (r == NULL)
		abort();
	r->cfg = *cfg;
	r->goal = cfg->commits_max;
	r->goal_rank = UINT32_MAX;
	r->rule = cfg->rule;
	r->join_until_ns = cfg->join_until_ns;
	r->saving = r->lent = MST_VERSION_NONE;
	r->incarnation = calloc(cfg->workers, sizeof(*r->incarnation));
	r->stride = calloc(cfg->workers, sizeof(*r->stride));
	r->live = calloc(cfg->workers, sizeof(struct session *));
	step_open(r);
	return r;
}

static void session_free(struct session *s)
{
	free(s->gift);
	free(s->copy);
	free(s);
}

void reference_free(struct reference *r)
{
	for (size_t i = 0; i < r->session_count; i++)
		session_free(r->session[i]);
	for (size_t i = 0; i < r->step_count; i++) {
		free(r->step[i].made.entry);
		free(r->step[i].rostered);
		free(r->step[i].counted);
		free(r->step[i].passed);
	}
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		free(r->stride[rank].ns);
	free(r->stride);
	free(r->steps.ns);
	free(r->session);
	free(r->step);
	free(r->incarnation);
	free(r->live);
	free(r->decision);
	free(r);
}

const struct mst_decision *reference_decisions(const struct reference *r, size_t *count)
{
	*count = r->decision_count;
	return r->decision;
}

void reference_forget(struct reference *r)
{
	free(r->decision);
	r->decision = NULL;
	r->decision_count = 0;
}

const struct reference_version *reference_version(const struct reference *r, uint64_t version)
{
	return &r->step[version].made;
}

uint64_t reference_newest(const struct reference *r)
{
	return r->born ? r->step_count - 2 : 0;
}

bool reference_finished(const struct reference *r)
{
	return r->finished;
}

bool reference_blocked(const struct reference *r)
{
	return step_due(r) && buffers_free(r) == 0;
}

const struct mst_rule *reference_rule(const struct reference *r)
{
	return &r->rule;
}

void reference_member(const struct reference *r, uint32_t rank, struct mst_member_view *out)
{
	const struct session *s = session_of(r, rank);

	memset(out, 0, sizeof(*out));
	out->incarnation = r->incarnation[rank];
	if (s == NULL)
		return;
	out->live = true;
	out->started = s->started;
	out->awaited = r->born && is_missing(r, rank);
	out->rests = s->rests;
	out->held = s->held;
	out->asks = s->asking;
	out->clock = s->clock;
}
