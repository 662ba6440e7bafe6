/* SPDX-License-Identifier: MIT */
/* Sessions, birth and end, and timers of the reference ledger. */
#include "tests/unit/reference_ledger.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/unit/reference_state.h"

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
	for (size_t i = 0; i < r->session_count; i++) {
		if (!r->session[i]->ended && r->session[i]->who.rank == rank)
			return r->session[i];
	}
	return NULL;
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

void job_finish(struct reference *r, enum mst_finish_why why)
{
	if (r->finished)
		return;
	r->finished = true;
	struct mst_decision *d = decide(r, MST_DO_FINISH, (struct mst_identity){ 0 });
	d->finish.why = why;
	d->finish.version = r->born ? reference_newest(r) : MST_VERSION_NONE;
}

/* A worker that never started is not yet one of those the job is made of. */
static void job_bereaved(struct reference *r, const struct session *s, enum mst_evict_why why)
{
	bool loss = why != MST_EVICT_LEFT && why != MST_EVICT_STALE && !s->leaving;

	if (!r->born || !s->started || r->finished || r->asked_to_finish || r->all_left)
		return;
	if (loss && r->rule.on_loss == MST_LOSS_FAIL)
		job_finish(r, MST_FINISH_LOSS);
	else if (loss && started_count(r) < r->rule.min_workers)
		job_finish(r, MST_FINISH_TOO_FEW);
	else if (!loss && started_count(r) == 0)
		r->all_left = true;
}

void session_end(struct reference *r, struct session *s, enum mst_evict_why why)
{
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
	decide(r, MST_DO_EVICT, s->who)->evict = why;
	open_step(r)->rostered[s->who.rank] = false;
	if (r->sender == s)
		r->sender = NULL;
	job_bereaved(r, s, why);
}

static bool anybody(const struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		if (session_of(r, rank) != NULL)
			return true;
	}
	return false;
}

static int join_refused(const struct reference *r, int32_t wanted, uint32_t *rank)
{
	if (r->finished || r->asked_to_finish || r->all_left)
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
	if (!r->joined)
		r->first_join_ns = now_ns;
	r->joined = true;
	if (!anybody(r)) {
		r->ticked = true;
		r->ticked_ns = now_ns;
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

static void start(struct reference *r, struct session *s, bool offers, uint64_t now_ns)
{
	if (s->ready) {
		session_end(r, s, MST_EVICT_INVALID);
		return;
	}
	s->ready = true;
	s->offers = offers;
	ask_heard(r, s, (struct mst_lane_ask){ .number = 1, .have = MST_VERSION_NONE }, now_ns);
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

static void answered(struct session *s, const struct mst_ledger_event *ev)
{
	for (size_t i = 0; i < s->copy_count; i++) {
		if (s->copy[i].number == ev->answered.number)
			s->copy[i].shards |= UINT64_C(1) << ev->answered.shard;
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
		start_if_ready(r, s);
		break;
	case MST_EV_START:
		start(r, s, ev->offers, now_ns);
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
		ask_heard(r, s, ev->ask, now_ns);
		break;
	case MST_EV_ANSWERED:
		answered(s, ev);
		break;
	case MST_EV_HEARTBEAT:
		s->heard_ns = now_ns;
		break;
	case MST_EV_LEAVE:
		leave(r, s, ev->seq);
		break;
	case MST_EV_LOST:
		lost(r, s, ev->error);
		break;
	case MST_EV_FINISH:
		r->asked_to_finish = r->asked_to_finish || r->born;
		break;
	case MST_EV_JOIN:
	case MST_EV_POLICY:
	case MST_EV_SERVER:
		abort();
	}
}

void reference_handle(struct reference *r, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	r->now_ns = now_ns;
	if (ev->kind == MST_EV_JOIN) {
		join(r, ev, now_ns);
	} else if (ev->kind == MST_EV_POLICY) {
		policy(r, &ev->rule);
	} else {
		struct session *s = session_of(r, ev->who.rank);
		if (s == NULL || s->who.incarnation != ev->who.incarnation)
			return;
		member_event(r, s, ev, now_ns);
	}
	birth(r);
	settle(r);
}

/* After a gap the server was asleep, not the workers; with none of them there, no tick was due. */
static void forgive_gap(struct reference *r, uint64_t now_ns)
{
	uint64_t gap = r->ticked ? now_ns - r->ticked_ns : 0;

	r->ticked = true;
	r->ticked_ns = now_ns;
	if (gap <= r->cfg.lease_ns / 2 || !anybody(r))
		return;
	for (size_t i = 0; i < r->session_count; i++) {
		r->session[i]->heard_ns += gap;
		r->session[i]->asked_ns += gap;
		for (size_t k = 0; k < r->session[i]->gift_count; k++)
			r->session[i]->gift[k].first_ns += gap;
	}
	open_step(r)->first_count_ns += gap;
	r->first_join_ns += gap;
}

static uint64_t lease_due(const struct reference *r, const struct session *s)
{
	return s->heard_ns + r->cfg.lease_ns;
}

static uint64_t join_due(const struct reference *r)
{
	if (!r->joined || r->born || r->finished)
		return MST_NEVER;
	return r->first_join_ns + r->cfg.join_timeout_ns;
}

static bool held_up(const struct reference *r, uint32_t rank)
{
	const struct step *step = open_step(r);

	return step->rostered[rank] && !step->counted[rank] && !step->passed[rank];
}

/* A step that only lacks a buffer waits for nobody; nor does an ask that waits for that step. */
static uint64_t step_patience_due(const struct reference *r)
{
	if (!r->born || r->finished || !open_step(r)->counting || step_due(r))
		return MST_NEVER;
	return open_step(r)->first_count_ns + r->rule.patience_ns;
}

static uint64_t ask_patience_due(const struct reference *r, const struct session *s)
{
	if (!r->born || r->finished || step_due(r) || !held_by_bound(r, s))
		return MST_NEVER;
	return s->asked_ns + r->rule.patience_ns;
}

/* It is the servers' turn: to answer, or to report what others have reported, for a lease. */
static bool waits_for_servers(const struct reference *r, const struct session *s)
{
	if (s->asking)
		return true;
	if (s->judged >= s->gift_count)
		return false;
	const struct gift *due = &s->gift[s->judged];
	return due->shards != 0 && due->shards != all_shards(r) &&
	       r->now_ns < due->first_ns + r->cfg.lease_ns;
}

static void evict_held_up(struct reference *r, uint64_t now_ns)
{
	open_step(r)->first_count_ns = now_ns;
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (held_up(r, rank) && !waits_for_servers(r, s))
			session_end(r, s, MST_EVICT_PATIENCE);
	}
}

/* Those who come next have not been waited for yet: every parked ask begins to wait anew. */
static void evict_slowest(struct reference *r, const struct session *asker, uint64_t now_ns)
{
	uint64_t least = least_clock(r);

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s != NULL)
			s->asked_ns = now_ns;
		if (open_step(r)->rostered[rank] && s != asker && s->clock == least &&
		    !waits_for_servers(r, s))
			session_end(r, s, MST_EVICT_PATIENCE);
	}
}

void reference_tick(struct reference *r, uint64_t now_ns)
{
	r->now_ns = now_ns;
	forgive_gap(r, now_ns);
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s != NULL && lease_due(r, s) <= now_ns)
			session_end(r, s, MST_EVICT_LEASE);
	}
	if (join_due(r) <= now_ns)
		job_finish(r, MST_FINISH_JOIN_TIMEOUT);
	settle(r);
	if (step_patience_due(r) <= now_ns)
		evict_held_up(r, now_ns);
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
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (s == NULL)
			continue;
		due = lease_due(r, s) < due ? lease_due(r, s) : due;
		patience = ask_patience_due(r, s);
		due = patience < due ? patience : due;
	}
	return due;
}

struct reference *reference_new(const struct mst_ledger_cfg *cfg)
{
	struct reference *r = calloc(1, sizeof(*r));

	if (r == NULL)
		abort();
	r->cfg = *cfg;
	r->rule = cfg->rule;
	r->incarnation = calloc(cfg->workers, sizeof(*r->incarnation));
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
	free(r->session);
	free(r->step);
	free(r->incarnation);
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
	out->awaited = r->born && held_up(r, rank);
	out->clock = s->clock;
}
