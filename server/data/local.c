/* SPDX-License-Identifier: MIT */
/*
 * Decides for the data side of its own server: the ledger, and who watches it: the statistics, and
 * the recorder where the job is recorded.
 * Where a job has further servers, a leader stands before it (server/cluster/leader.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/core/statistics/statistics.h"
#include "server/data/decider.h"
#include "server/data/recorder.h"

struct mst_local {
	struct mst_decider decider; /* first */
	struct mst_ledger *ledger;
	struct mst_statistics *statistics;
	struct mst_recorder *recorder; /* NULL: the job is not recorded */
	uint32_t workers;
	struct mst_kept kept;  /* of the version that is saved */
	double norm_median;    /* the last that there was; NaN: there was none */
	uint64_t refused_most; /* so many gradients refused in a row are told of */
	bool is_stuck;         /* the policy lacks what it would choose its rule by */
	/* By rank, what was told last: enum mst_straggler_kind; and when something was. */
	uint8_t *told_kind;
	uint64_t told_ns;
	/* The version that is not finite, and "0, 1, 4": the ranks in it. */
	struct mst_spoilt spoilt;
	char spoilt_ranks[96];
};

static struct mst_local *local_of(struct mst_decider *d)
{
	return (struct mst_local *)d;
}

static void local_free(struct mst_decider *d)
{
	struct mst_local *l = local_of(d);

	mst_recorder_free(l->recorder);
	mst_statistics_free(l->statistics);
	mst_ledger_free(l->ledger);
	free(l->kept.rank);
	free(l->told_kind);
	free(l);
}

/* ---- events ---- */

static bool local_takes(const struct mst_decider *d)
{
	(void)d;
	return true;
}

/* Adds a rank to a list of them. Return: there is room for more. */
static bool add_rank(char *list, size_t len, uint32_t rank)
{
	size_t used = strlen(list);

	if (used + 24 > len) {
		snprintf(list + used, len - used, ", ...");
		return false;
	}
	snprintf(list + used, len - used, "%s%" PRIu32, used > 0 ? ", " : "", rank);
	return true;
}

/* Written down at once: the record is kept no longer than its buffer. The first is the one that
 * ends the job. */
static void see_spoilt(struct mst_local *l, const struct mst_spoilt *spoilt)
{
	const struct mst_record *record = mst_ledger_record_of(l->ledger, spoilt->version);

	if (l->spoilt.version != 0)
		return;
	l->spoilt = *spoilt;
	for (uint32_t i = 0; record != NULL && i < record->share_count; i++) {
		if (!add_rank(l->spoilt_ranks, sizeof(l->spoilt_ranks), record->share[i].rank))
			return;
	}
}

/* A start has failed. */
static void fill_gathered(const struct mst_local *l, struct mst_notice *notice)
{
	mst_ledger_gathered(l->ledger, &notice->finish.gathered);
	notice->finish.ranks[0] = '\0';
	for (uint32_t rank = 0; rank < notice->finish.gathered.workers; rank++) {
		if (mst_ledger_lacks_outside(l->ledger, rank) &&
		    !add_rank(notice->finish.ranks, sizeof(notice->finish.ranks), rank))
			return;
	}
}

static void say(const struct mst_local *l, const struct mst_notice *notice)
{
	l->decider.note(l->decider.note_ctx, notice);
}

/* The open step goes on under the rule before, and its commit brings the new one. That is said when
 * the ledger has copied the controller, which is lent until then. */
static void handle_policy(struct mst_local *l, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	struct mst_notice notice = { .kind = MST_NOTE_TAKEN };

	notice.policy.version = mst_ledger_version(l->ledger) + 2;
	mst_ledger_handle(l->ledger, ev, now_ns);
	say(l, &notice);
}

static enum mst_rest_outcome rest_outcome(const struct mst_local *l, struct mst_member_view before,
					  const struct mst_ledger_event *ev)
{
	struct mst_member_view after;

	mst_ledger_member(l->ledger, ev->who.rank, &after);
	if (!before.started || before.incarnation != ev->who.incarnation)
		return MST_REST_ABSENT;
	if (before.rests == ev->rests)
		return MST_REST_ALREADY;
	if (after.rests == ev->rests)
		return MST_REST_DONE;
	return before.behind ? MST_REST_BEHIND : MST_REST_LAST;
}

static void handle_rest(struct mst_local *l, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	struct mst_notice notice = { .kind = MST_NOTE_REST_TAKEN, .who = ev->who };
	struct mst_member_view before;

	mst_ledger_member(l->ledger, ev->who.rank, &before);
	mst_ledger_handle(l->ledger, ev, now_ns);
	notice.rest.rests = ev->rests;
	notice.rest.outcome = rest_outcome(l, before, ev);
	say(l, &notice);
}

static void handle_evict(struct mst_local *l, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	struct mst_member_view after;

	mst_ledger_handle(l->ledger, ev, now_ns);
	mst_ledger_member(l->ledger, ev->who.rank, &after);
	if (after.live && after.incarnation == ev->who.incarnation)
		say(l, &(struct mst_notice){ .kind = MST_NOTE_EVICT_REFUSED, .who = ev->who });
}

static void local_handle(struct mst_decider *d, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	struct mst_local *l = local_of(d);

	mst_statistics_event(l->statistics, ev, now_ns);
	if (l->recorder != NULL)
		mst_recorder_event(l->recorder, ev, now_ns);
	if (ev->kind == MST_EV_SPOILT)
		see_spoilt(l, &ev->spoilt);
	if (ev->kind == MST_EV_REST)
		handle_rest(l, ev, now_ns);
	else if (ev->kind == MST_EV_EVICT)
		handle_evict(l, ev, now_ns);
	else if (ev->kind == MST_EV_POLICY)
		handle_policy(l, ev, now_ns);
	else
		mst_ledger_handle(l->ledger, ev, now_ns);
}

/* There is no other server. */
static bool local_reported(struct mst_decider *d, struct mst_ledger_event *out, uint64_t now_ns)
{
	(void)d;
	(void)out;
	(void)now_ns;
	return false;
}

/* ---- decisions ---- */

static const struct mst_record *record_for(const struct mst_local *l, const struct mst_decision *d)
{
	if (d->kind == MST_DO_COMMIT)
		return mst_ledger_record(l->ledger, d->commit.buffer);
	if (d->kind == MST_DO_RELEASE)
		return mst_ledger_record(l->ledger, d->answer.buffer);
	return NULL;
}

static bool local_next(struct mst_decider *d, struct mst_orders *out, uint64_t now_ns)
{
	struct mst_local *l = local_of(d);

	(void)now_ns;
	if (!mst_ledger_next(l->ledger, &out->decision))
		return false;
	out->record = record_for(l, &out->decision);
	out->rule = mst_ledger_rule(l->ledger);
	return true;
}

/* What the ledger decides can be executed. */
static void local_refuse(struct mst_decider *d, uint64_t now_ns)
{
	(void)d;
	(void)now_ns;
	MST_ASSERT(false);
}

static void note_join(const struct mst_local *l, const struct mst_decision *d)
{
	struct mst_notice notice = { .kind = MST_NOTE_REFUSED, .who = d->who };

	notice.join.cookie = d->join.cookie;
	notice.join.error = d->join.error;
	if (d->kind == MST_DO_ADMIT) {
		notice.kind = MST_NOTE_ADMITTED;
		notice.join.verdicts = mst_ledger_verdicts(l->ledger, d->who.rank);
		notice.join.number = d->join.number;
	}
	say(l, &notice);
}

static void note_policy(const struct mst_local *l, const struct mst_decision *d)
{
	const struct mst_controller *c = mst_ledger_controller(l->ledger);
	const struct mst_rule *rule = mst_ledger_rule(l->ledger);
	struct mst_notice notice = { .kind = MST_NOTE_POLICY };

	notice.policy.version = d->policy.version;
	notice.policy.whole = d->policy.whole;
	notice.policy.adapts = d->policy.adapts;
	notice.policy.rule = *rule;
	mst_controller_now(c, rule, notice.policy.now, sizeof(notice.policy.now));
	mst_controller_why(c, rule, notice.policy.why, sizeof(notice.policy.why));
	say(l, &notice);
}

/* Said when it begins. */
static void say_stuck(struct mst_local *l)
{
	const struct mst_controller *c = mst_ledger_controller(l->ledger);
	const struct mst_rule *rule = mst_ledger_rule(l->ledger);
	struct mst_notice notice = { .kind = MST_NOTE_STUCK };
	bool was_stuck = l->is_stuck;

	l->is_stuck = mst_controller_is_stuck(c);
	if (!l->is_stuck || was_stuck)
		return;
	mst_controller_now(c, rule, notice.policy.now, sizeof(notice.policy.now));
	mst_controller_why(c, rule, notice.policy.why, sizeof(notice.policy.why));
	say(l, &notice);
}

#define TOLD_NS MST_SECOND

/* Says who is a straggler now, or is none any more: at most once a second, for where steps are
 * short much may happen in between. */
static void say_stragglers(struct mst_local *l, uint64_t now_ns)
{
	struct mst_notice notice = { .kind = MST_NOTE_STRAGGLER };
	uint32_t rank;

	if (now_ns < l->told_ns + TOLD_NS)
		return;
	l->told_ns = now_ns;
	notice.straggler.fast_ns = mst_ledger_fast_ns(l->ledger);
	while ((rank = mst_ledger_next_found(l->ledger)) != MST_RANK_NONE) {
		struct mst_straggler of = mst_ledger_straggler(l->ledger, rank, now_ns);
		uint8_t kind = of.now && of.sure ? (uint8_t)of.kind : MST_STRAGGLER_NONE;
		notice.who.rank = rank;
		notice.straggler.of = of;
		if (kind != l->told_kind[rank])
			say(l, &notice);
		l->told_kind[rank] = kind;
	}
}

static enum mst_notice_kind transfer_kind(enum mst_decision_kind kind)
{
	switch (kind) {
	case MST_DO_BEHIND:
		return MST_NOTE_BEHIND;
	case MST_DO_WANT:
		return MST_NOTE_WANT;
	case MST_DO_HAND:
		return MST_NOTE_HAND;
	default:
		return MST_NOTE_HANDED;
	}
}

static void note_decision(const struct mst_local *l, const struct mst_decision *d)
{
	struct mst_notice notice = { .who = d->who };

	switch (d->kind) {
	case MST_DO_ADMIT:
	case MST_DO_REFUSE:
		note_join(l, d);
		return;
	case MST_DO_SEND_STATE:
		notice.kind = MST_NOTE_SEND_STATE;
		break;
	case MST_DO_START:
		notice.kind = MST_NOTE_STARTED;
		notice.generation = mst_ledger_generation(l->ledger);
		mst_statistics_go_on(l->statistics, mst_ledger_samples(l->ledger));
		break;
	case MST_DO_SAVED:
		notice.kind = MST_NOTE_SAVED;
		notice.saved.version = d->saved.version;
		notice.saved.failed = d->saved.failed;
		notice.saved.again = d->saved.again;
		break;
	case MST_DO_EVICT:
		notice.kind = MST_NOTE_EVICTED;
		notice.evict.why = d->evict;
		notice.evict.announced = d->announced;
		notice.evict.came = d->came;
		break;
	case MST_DO_POLICY:
		note_policy(l, d);
		return;
	case MST_DO_REST:
		notice.kind = MST_NOTE_RESTS;
		notice.rest.rests = d->rests;
		break;
	case MST_DO_BEHIND:
	case MST_DO_WANT:
	case MST_DO_HAND:
	case MST_DO_HANDED:
		notice.kind = transfer_kind(d->kind);
		notice.state.number = d->state.number;
		notice.state.version = d->state.version;
		break;
	case MST_DO_GOAL:
		notice.kind = MST_NOTE_GOAL;
		notice.goal.of_job = d->goal.of_job;
		notice.goal.asked = d->goal.asked;
		notice.goal.newest = mst_ledger_version(l->ledger);
		break;
	case MST_DO_FINISH:
		notice.kind = MST_NOTE_FINISHED;
		notice.finish.why = d->finish.why;
		notice.finish.version = d->finish.version;
		notice.finish.samples = mst_ledger_samples(l->ledger);
		notice.finish.spoilt = l->spoilt;
		memcpy(notice.finish.ranks, l->spoilt_ranks, sizeof(notice.finish.ranks));
		if (d->finish.why == MST_FINISH_JOIN_TIMEOUT ||
		    d->finish.why == MST_FINISH_NOT_BEGUN)
			fill_gathered(l, &notice);
		break;
	default:
		return;
	}
	say(l, &notice);
}

static void say_saves(struct mst_local *l)
{
	struct mst_notice notice = { .kind = MST_NOTE_SAVES, .kept = &l->kept };

	mst_ledger_keep(l->ledger, &l->kept);
	say(l, &notice);
}

static void say_dropped(const struct mst_local *l, uint64_t version)
{
	struct mst_notice notice = { .kind = MST_NOTE_DROPPED };

	notice.dropped.version = version;
	notice.dropped.count = mst_statistics_dropped(l->statistics);
	if (notice.dropped.count > 0)
		say(l, &notice);
}

/* The control side is told when so many gradients of each worker have been refused. */
#define REFUSED_ROUNDS 3u

/* Without this a job in which everything is refused would go round for ever without a word. */
static void see_refused(struct mst_local *l)
{
	struct mst_notice notice = { .kind = MST_NOTE_ALL_REFUSED };

	notice.refused.count = mst_statistics_refused(l->statistics);
	notice.refused.version = mst_ledger_version(l->ledger) + 1;
	if (notice.refused.count == 0)
		l->refused_most = REFUSED_ROUNDS * (uint64_t)l->workers;
	if (notice.refused.count < l->refused_most)
		return;
	l->refused_most *= 2;
	say(l, &notice);
}

/* After the end of all sessions there is none any more, but status still says what it was. */
static void see_median(struct mst_local *l)
{
	double median = mst_ledger_norm_median(l->ledger);

	if (!isnan(median))
		l->norm_median = median;
}

static void local_done(struct mst_decider *d, const struct mst_orders *orders, uint64_t now_ns)
{
	struct mst_local *l = local_of(d);

	mst_statistics_decided(l->statistics,
			       &(struct mst_statistics_decision){ &orders->decision, orders->record,
								  orders->rule },
			       now_ns);
	if (l->recorder != NULL)
		mst_recorder_decided(l->recorder, &orders->decision, now_ns);
	if (orders->decision.kind == MST_DO_VERDICT) {
		see_median(l);
		see_refused(l);
	}
	if (orders->decision.kind == MST_DO_REST) { /* first why it rests */
		l->told_ns = 0;
		say_stragglers(l, now_ns);
	}
	note_decision(l, &orders->decision);
	if (orders->decision.kind == MST_DO_SAVE)
		say_saves(l);
	if (orders->decision.kind != MST_DO_COMMIT)
		return;
	say_dropped(l, orders->decision.commit.version);
	say_stuck(l);
}

static bool local_wants(const struct mst_decider *d, struct mst_identity who)
{
	const struct mst_local *l = (const struct mst_local *)d;
	struct mst_member_view view;

	mst_ledger_member(l->ledger, who.rank, &view);
	return view.live && view.incarnation == who.incarnation;
}

/* ---- the control side ---- */

static void fill_straggler(const struct mst_local *l, uint64_t now_ns, struct mst_status_rank *out)
{
	struct mst_straggler of = mst_ledger_straggler(l->ledger, out->rank, now_ns);

	out->straggler = of.kind;
	out->straggler_ratio = of.kind != MST_STRAGGLER_NONE ? of.ratio : (double)NAN;
	out->straggler_ns = of.now ? now_ns - of.since_ns : MST_NOT_KNOWN;
	out->straggler_total_ns = of.total_ns;
	out->waited_ns = of.waited_ns;
}

static void fill_snapshot(struct mst_local *l, struct mst_snapshot *snapshot, uint64_t now_ns)
{
	struct mst_status *status = &snapshot->status;

	status->live = 0;
	for (uint32_t rank = 0; rank < l->workers; rank++) {
		struct mst_member_view view;
		mst_ledger_member(l->ledger, rank, &view);
		snapshot->rank[rank].rank = rank;
		mst_statistics_rank(l->statistics, &view, now_ns, &snapshot->rank[rank]);
		fill_straggler(l, now_ns, &snapshot->rank[rank]);
		status->live += view.started;
	}
	mst_statistics_job(l->statistics, now_ns, status);
	status->norm_median = l->norm_median;
	uint64_t fast_ns = mst_ledger_fast_ns(l->ledger);
	status->fast_ready_ns = fast_ns > 0 ? fast_ns : MST_NOT_KNOWN;
	const struct mst_controller *c = mst_ledger_controller(l->ledger);
	const struct mst_rule *rule = mst_ledger_rule(l->ledger);
	mst_controller_now(c, rule, status->policy_now, sizeof(status->policy_now));
	mst_controller_why(c, rule, status->policy_why, sizeof(status->policy_why));
	say(l, &(struct mst_notice){ .kind = MST_NOTE_SNAPSHOT });
}

static void local_request(struct mst_decider *d, const struct mst_request *request, uint64_t now_ns)
{
	struct mst_local *l = local_of(d);

	if (request->kind == MST_REQ_GATHER) {
		mst_ledger_gather(l->ledger, request->until_ns);
		return;
	}
	MST_ASSERT(request->kind == MST_REQ_SNAPSHOT); /* the others are about other servers */
	fill_snapshot(l, request->snapshot, now_ns);
}

static void local_arrived(struct mst_decider *d, const struct mst_net_event *ev, uint64_t now_ns)
{
	(void)d;
	(void)ev;
	(void)now_ns;
	MST_ASSERT(false); /* every link is a worker's */
}

static bool local_flush(struct mst_decider *d, uint64_t now_ns)
{
	(void)d;
	(void)now_ns;
	return true;
}

/* ---- timers ---- */

static void local_lags(struct mst_decider *d, uint64_t lag_ns)
{
	mst_ledger_lag(local_of(d)->ledger, lag_ns);
}

static uint64_t local_deadline(const struct mst_decider *d)
{
	return mst_ledger_deadline(((const struct mst_local *)d)->ledger);
}

static void local_tick(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_local *l = local_of(d);

	mst_ledger_tick(l->ledger, now_ns);
	say_stragglers(l, now_ns);
}

static const struct mst_decider_ops ops = {
	.free = local_free,
	.takes = local_takes,
	.handle = local_handle,
	.reported = local_reported,
	.next = local_next,
	.refuse = local_refuse,
	.done = local_done,
	.wants = local_wants,
	.request = local_request,
	.arrived = local_arrived,
	.flush = local_flush,
	.lags = local_lags,
	.deadline = local_deadline,
	.tick = local_tick,
};

uint64_t mst_local_bytes(const struct mst_ledger_cfg *cfg, bool records)
{
	return sizeof(struct mst_local) + mst_ledger_bytes(cfg) +
	       mst_statistics_bytes(cfg->workers) +
	       cfg->workers * (sizeof(struct mst_kept_rank) + sizeof(uint8_t)) +
	       (records ? mst_recorder_bytes(cfg->workers) : 0);
}

int mst_local_new(const struct mst_ledger_cfg *cfg, struct mst_recording *recording,
		  struct mst_decider **out)
{
	struct mst_local *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->decider.ops = &ops;
	l->workers = cfg->workers;
	l->norm_median = (double)NAN;
	l->refused_most = REFUSED_ROUNDS * (uint64_t)cfg->workers;
	l->kept.rank = calloc(cfg->workers, sizeof(*l->kept.rank));
	l->told_kind = calloc(cfg->workers, sizeof(*l->told_kind));
	int rc = l->kept.rank == NULL || l->told_kind == NULL ? -ENOMEM
							      : mst_ledger_new(cfg, &l->ledger);
	if (rc == 0)
		rc = mst_statistics_new(cfg->workers, &l->statistics);
	if (rc == 0 && cfg->kept != NULL)
		mst_statistics_go_on(l->statistics, cfg->kept->samples);
	if (rc == 0 && recording != NULL)
		rc = mst_recorder_new(cfg->workers, recording, &l->recorder);
	if (rc != 0) {
		local_free(&l->decider);
		return rc;
	}
	*out = &l->decider;
	return 0;
}
