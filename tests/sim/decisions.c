/* SPDX-License-Identifier: MIT */
/* What the server decides, in order. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/heap.h"
#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

/* For what is between a timer and what it leads to. */
#define SLACK_NS (100 * MST_MS)

static struct obs_session *find_or_complain(struct mst_identity who, const char *what)
{
	struct obs_session *s = obs_find(who.rank, who.incarnation);

	if (s == NULL)
		obs_violated("%s names rank %" PRIu32 ".%" PRIu32 ", who was never admitted", what,
			     who.rank, who.incarnation);
	return s;
}

static void enter(struct expect_item *item)
{
	if (obs.open_count == 0) {
		obs.first_count_ns = sim_now();
		obs.first_count_at_ns = obs.now_ns;
	}
	obs.open[obs.open_count++] = item;
	obs.spoiled_counts |= item->spoiled;
}

/* It may have handed in what it likes, but what is counted is counted. */
static void counted_of_rogue(const struct obs_session *s, const struct mst_decision *d)
{
	struct expect_item *item = sim_alloc(sizeof(*item));

	*item = (struct expect_item){ .rank = s->rank,
				      .incarnation = s->incarnation,
				      .seq = d->count.seq,
				      .spoiled = true,
				      .base = 1,
				      .coefficient = d->count.coefficient };
	enter(item);
}

static void counted(const struct mst_decision *d)
{
	struct obs_session *s = find_or_complain(d->who, "a count");
	struct expect_item *item = s != NULL ? obs_item(s, d->count.seq) : NULL;

	if (s == NULL)
		return;
	if (s->rogue) {
		counted_of_rogue(s, d);
		return;
	}
	if (item == NULL || item->slot != d->count.slot || item->empty) {
		obs_violated("counted: %" PRIu64 " of rank %" PRIu32 ", which it has not handed in",
			     d->count.seq, d->who.rank);
		return;
	}
	if (!s->live || item->verdict != MUSTER_NONE || item->counted)
		obs_violated("counted: %" PRIu64 " of rank %" PRIu32 ", %s", item->seq, item->rank,
			     s->live ? "which was judged before" : "whose session has ended");
	if (obs.commits - item->tag > obs.rule.window)
		obs_violated("counted: %" PRIu64 " of rank %" PRIu32 " on version %" PRIu64
			     " in version %" PRIu64 ", beyond the window",
			     item->seq, item->rank, item->tag, obs.commits + 1);
	if (!obs_repeats() && obs_rank_is_open(item->rank))
		obs_violated("counted: rank %" PRIu32 " twice in version %" PRIu64, item->rank,
			     obs.commits + 1);
	item->counted = true;
	item->version = obs.commits + 1;
	expect_weigh(item, &obs.rule);
	if (item->spoiled) /* the header too may be another than was put */
		item->coefficient = d->count.coefficient;
	if (item->coefficient != d->count.coefficient)
		obs_violated("coefficient of %" PRIu64 " of rank %" PRIu32 " is %a, must be %a",
			     item->seq, item->rank, (double)d->count.coefficient,
			     (double)item->coefficient);
	if (d->count.repeats != obs_repeats())
		obs_violated("counted: %" PRIu64 " of rank %" PRIu32
			     ", which may %shave others in the same version",
			     item->seq, item->rank, d->count.repeats ? "" : "not ");
	s->clock++;
	enter(item);
	obs_measure(s, item);
	if (obs.rule.by_micro)
		obs_counted_micro(s);
	else if (item->full)
		obs_counted_full();
}

/* Late and stale have a reason that can be seen. */
static void check_reason(const struct obs_session *s, const struct expect_item *item,
			 enum muster_verdict verdict)
{
	bool outside = obs.commits - item->tag > obs.rule.window;
	bool twice = !obs_repeats() && obs_rank_is_open(item->rank);

	if (verdict == MUSTER_OUTLIER && obs.plan->norm_limit > 0)
		return;
	outside |= item->empty; /* it was when it was pushed, whatever rule is in force now */
	if (verdict >= MUSTER_REFUSED || ((verdict == MUSTER_LATE || verdict == MUSTER_STALE) &&
					  !outside && !twice && !obs.finished))
		obs_violated("%" PRIu64 " of rank %" PRIu32 " on version %" PRIu64
			     " is %s, without a reason",
			     item->seq, s->rank, item->tag, obs_verdict_name(verdict));
	/* Each step of bsp waits for it, so it has the newest version, and nothing in its step. A
	 * worker that comes again where workers own begins with an old one. */
	bool behind = s->fell_behind ||
		      (s->incarnation > 1 && obs.plan->owner == MUSTER_WORKERS_OWN) ||
		      s->has_rested || item->tag < obs.all_since || obs.rule.grace_ns > 0;
	if (verdict == MUSTER_LATE && item->alone && !obs_repeats() && obs.rule.quorum == 0 &&
	    !behind && !obs.finished)
		obs_violated("%" PRIu64 " of rank %" PRIu32 " on version %" PRIu64
			     " is late, though it had waited for that version",
			     item->seq, s->rank, item->tag);
}

static void judged(const struct mst_decision *d)
{
	struct obs_session *s = find_or_complain(d->who, "a verdict");
	enum muster_verdict verdict = d->verdict.verdict;

	if (s == NULL)
		return;
	struct expect_item *item = s->rogue ? NULL : obs_item(s, d->verdict.seq);
	obs_outliers_judged(d, item);
	if (s->rogue || d->verdict.seq == 0) /* of an abandoned contribution */
		return;
	if (item == NULL) {
		obs_violated("%s: %" PRIu64 " of rank %" PRIu32 ", which it has not handed in",
			     obs_verdict_name(verdict), d->verdict.seq, s->rank);
		return;
	}
	if (item->verdict != MUSTER_NONE)
		obs_violated("%" PRIu64 " of rank %" PRIu32 " is judged twice: %s, then %s",
			     item->seq, s->rank, obs_verdict_name(item->verdict),
			     obs_verdict_name(verdict));
	if ((verdict == MUSTER_COUNTED) != item->counted ||
	    (item->counted && d->verdict.counted_in != item->version))
		obs_violated("%" PRIu64 " of rank %" PRIu32 " is %s in %" PRIu64
			     ", but was %scounted",
			     item->seq, s->rank, obs_verdict_name(verdict), d->verdict.counted_in,
			     item->counted ? "" : "not ");
	obs_measure(s, item);
	check_reason(s, item, verdict);
	s->outlier |= verdict == MUSTER_OUTLIER;
	item->verdict = verdict;
	obs.judged++;
	if (s->spent_by[item->slot] == item->seq)
		s->slot[item->slot] = SLOT_JUDGED;
	sim_say("  %" PRIu64 " of rank %" PRIu32 " is %s", item->seq, s->rank,
		obs_verdict_name(verdict));
}

static void check_record(const struct mst_record *r)
{
	struct expect_item *const *open = obs.open;
	bool same = r->entry_count == obs.open_count;

	for (uint32_t i = 0; same && i < r->entry_count; i++)
		same = r->entry[i].who.rank == open[i]->rank &&
		       r->entry[i].who.incarnation == open[i]->incarnation &&
		       r->entry[i].seq == open[i]->seq &&
		       r->entry[i].coefficient == open[i]->coefficient;
	for (uint32_t i = 0; same && i < r->entry_count; i++) {
		if (!open[i]->spoiled)
			continue;
		open[i]->samples = r->entry[i].samples;
		open[i]->base = r->entry[i].base;
	}
	if (!same)
		obs_violated("the record of version %" PRIu64 " is not what was counted",
			     r->version);
}

/* The ledger waits for a missing rank so long, and no longer. Who was held has not been waited for:
 * when patience is over it begins, and has as long. Where ranks contribute as often as they like no
 * rank is missing. */
static void check_patience(void)
{
	uint64_t most_ns = obs.plan->patience_ns + obs.plan->lease_ns + SLACK_NS;

	if (obs_repeats())
		return;
	if (obs.held)
		most_ns += obs.plan->patience_ns;
	for (uint32_t i = 0; i < obs.plan->fault_count; i++) {
		const struct sim_fault *f = &obs.plan->fault[i];
		if (!f->left_out && sim_target_is_server(f->target) && sim_fault_is_felt(f->kind))
			most_ns += f->span_ns;
	}
	if (sim_now() - obs.first_count_ns > most_ns)
		obs_violated("version %" PRIu64 " is committed %.3f s after its first contribution",
			     obs.commits + 1,
			     (double)(sim_now() - obs.first_count_ns) / (double)MST_SECOND);
}

/* When all have joined and had a version, there is nothing more to allocate; but for the manifests
 * of what is saved and for averages that workers ask for, on which no step waits. */
static void check_allocations(uint64_t version)
{
	uint64_t calls = sim_heap_now().calls;

	if (obs.plan->saves.wanted || obs.plan->average > 0)
		return;
	if (version == 2)
		obs.allocations = calls;
	if (version > 2 && sim_plan_is_calm(obs.plan) && !sim_plan_changes(obs.plan) &&
	    !obs.ever_lost && calls != obs.allocations)
		obs_violated("version %" PRIu64 ": memory was allocated %" PRIu64
			     " times since version 2",
			     version, calls - obs.allocations);
}

static void committed(const struct mst_decision *d, const struct mst_record *r)
{
	uint64_t version = obs.commits + 1;

	if (d->commit.version != version || r->version != version) {
		obs_violated("version %" PRIu64 " is committed after %" PRIu64, d->commit.version,
			     obs.commits);
		return;
	}
	if (obs.buffer_version[d->commit.buffer] == version && version > 1)
		obs_violated("version %" PRIu64 " goes where the version before it is", version);
	obs_check_quorum();
	obs_check_timer();
	check_record(r);
	check_patience();
	check_allocations(version);
	struct expect_figures told = { r->divisor, r->scalar[MST_SCALAR_RATE] };
	const char *wrong = expect_commit(version, obs.open, obs.open_count, &obs.rule, &told);
	if (wrong != NULL)
		obs_violated("version %" PRIu64 ": %s", version, wrong);
	obs.buffer_version[d->commit.buffer] = version + 1;
	for (uint32_t i = 0; i < obs.open_count; i++)
		obs.samples += obs.open[i]->samples;
	obs.commits = version;
	obs_returns_committed(r);
	obs.switch_due = obs.plan->switches_at > 0 && !obs.switched &&
			 obs.samples >= obs.plan->switches_at;
	obs.open_count = 0;
	obs_next_step();
	sim_say("  version %" PRIu64 " of %" PRIu32, version, r->entry_count);
}

/* The factor follows from the means of all servers, each of which is there and counts once. */
static void applied(const struct mst_decision *d)
{
	uint64_t version = d->apply.version;

	if (!sim_plan_reduces(obs.plan) || version != obs.applied + 1 || version > obs.commits) {
		obs_violated("version %" PRIu64 " is applied after %" PRIu64 " of %" PRIu64,
			     version, obs.applied, obs.commits);
		return;
	}
	for (uint32_t k = 1; k < obs.plan->servers; k++) {
		if (obs.executed_commits[k] < version)
			obs_violated("version %" PRIu64 " is applied before follower %" PRIu32
				     " has its mean",
				     version, k);
	}
	const char *wrong = expect_apply(version, d->apply.factor,
					 d->apply.scalar[MST_SCALAR_RATE]);
	if (wrong != NULL)
		obs_violated("version %" PRIu64 ": %s", version, wrong);
	obs.applied = version;
	sim_say("  version %" PRIu64 " is applied, times %a", version, (double)d->apply.factor);
}

static void released(const struct mst_decision *d, const struct mst_record *record)
{
	obs_goes_on(d, record);
	bool by_buffer = d->answer.where == MST_WHERE_IN_PLACE ||
			 d->answer.where == MST_WHERE_COPIED;

	if (d->answer.version > obs.commits)
		obs_violated("rank %" PRIu32 " is given version %" PRIu64 ", which is not there",
			     d->who.rank, d->answer.version);
	if (by_buffer && obs.buffer_version[d->answer.buffer] != d->answer.version + 1)
		obs_violated("rank %" PRIu32 " is given version %" PRIu64
			     " from a buffer that holds %" PRIu64,
			     d->who.rank, d->answer.version,
			     obs.buffer_version[d->answer.buffer] - 1);
}

static void admitted(const struct mst_decision *d)
{
	const struct obs_session *before = obs_find(d->who.rank, d->who.incarnation);
	struct obs_session *s = sim_alloc(sizeof(*s));

	if (before != NULL)
		obs_violated("rank %" PRIu32 ".%" PRIu32 " is admitted twice", d->who.rank,
			     d->who.incarnation);
	for (const struct obs_session *o = obs.sessions; o != NULL; o = o->next) {
		if (o->rank == d->who.rank && o->live)
			obs_violated("rank %" PRIu32 " is admitted while %" PRIu32 ".%" PRIu32
				     " is live",
				     d->who.rank, o->rank, o->incarnation);
	}
	*s = (struct obs_session){ .rank = d->who.rank,
				   .incarnation = d->who.incarnation,
				   .born = obs.losses,
				   .process = obs.process[d->who.rank],
				   .live = true,
				   .next = obs.sessions };
	obs.sessions = s;
	if (s->incarnation <= obs.begun_with.incarnation[s->rank])
		obs_violated("rank %" PRIu32 ".%" PRIu32
			     " is admitted, and was before the checkpoint",
			     s->rank, s->incarnation);
	obs.ever_lost |= s->incarnation > 1;
	sim_say("  rank %" PRIu32 ".%" PRIu32 " is admitted", s->rank, s->incarnation);
}

/* A server that only stood still must not hold it against others; they may have gone meanwhile. */
static bool server_is_to_blame(enum mst_evict_why why)
{
	if (obs.plan->servers > 1)
		return !sim_plan_servers_hold(obs.plan);
	for (uint32_t i = 0; i < obs.plan->fault_count; i++) {
		const struct sim_fault *f = &obs.plan->fault[i];
		bool stood = f->kind == SIM_FAULT_DEAF || f->kind == SIM_FAULT_FREEZE;
		bool only_stood = stood && why != MST_EVICT_LOST;
		if (!f->left_out && f->target == SIM_SERVER && !only_stood &&
		    sim_fault_is_felt(f->kind))
			return true;
	}
	return false;
}

/* One that keeps what it has, or throws away what it made, may come too late again and again; or it
 * is refused for its norm again and again. */
static bool dawdles(const struct obs_session *s, enum mst_evict_why why)
{
	const struct sim_manners *m = &obs.plan->manners[s->rank];

	if (s->outlier && why == MST_EVICT_PATIENCE)
		return true;
	return why == MST_EVICT_PATIENCE &&
	       ((m->keep_chance > 0 && m->wait_chance < 1) || m->abandon_chance > 0);
}

/* A process that has died is silent. Silence is noticed after a lease in which the server listened,
 * and no other server was silent. */
static void check_lease(const struct obs_session *s)
{
	uint64_t most_ns = 2 * obs.plan->lease_ns + obs_leases_stood_ns() + SLACK_NS;

	if (s->died_ns != 0 && sim_now() - s->died_ns > most_ns)
		obs_violated("rank %" PRIu32 " is ended %.3f s after it has died", s->rank,
			     (double)(sim_now() - s->died_ns) / (double)MST_SECOND);
}

/* A worker that has left is not waited for when no link can bring anything of it any more. */
static void check_leave(const struct obs_session *s, enum mst_evict_why why)
{
	if (s->leaves && s->unlinked == obs.plan->servers &&
	    (why == MST_EVICT_LEASE || why == MST_EVICT_PATIENCE))
		obs_violated("rank %" PRIu32 " has left, and is waited for without a link",
			     s->rank);
}

static void evicted(const struct mst_decision *d)
{
	struct obs_session *s = find_or_complain(d->who, "an eviction");

	if (s == NULL)
		return;
	check_lease(s);
	check_leave(s, d->evict);
	if (!s->live)
		obs_violated("rank %" PRIu32 ".%" PRIu32 " is ended twice", s->rank,
			     s->incarnation);
	bool stale = d->evict == MST_EVICT_STALE && obs.plan->owner == MUSTER_WORKERS_OWN;
	if (d->evict != MST_EVICT_LEFT && !stale && !dawdles(s, d->evict) && !obs.finished &&
	    !sim_plan_hits(obs.plan, (int)s->rank) && !server_is_to_blame(d->evict))
		obs_violated("rank %" PRIu32 " is ended (why %d), though nothing happened to it",
			     s->rank, (int)d->evict);
	s->live = s->rostered = s->asks = s->rests = false;
	obs_outliers_forget(s->rank);
	s->dawdled = dawdles(s, d->evict);
	obs.ever_lost = true;
	obs.ever_behind |= stale || s->dawdled;
	obs_revive();
	sim_say("  rank %" PRIu32 ".%" PRIu32 " is ended, why %d", s->rank, s->incarnation,
		(int)d->evict);
}

static void finished(const struct mst_decision *d)
{
	if (obs.finished)
		obs_violated("the job ends twice");
	obs.finished = true;
	obs.finished_ns = sim_now();
	obs.why = d->finish.why;
	obs_end_decided();
	obs_saves_finished();
	if (d->finish.version != obs.commits &&
	    (obs.commits > 0 || d->finish.version != MST_VERSION_NONE))
		obs_violated("the job ends with version %" PRIu64 " of %" PRIu64, d->finish.version,
			     obs.commits);
	if (!mst_finish_failed(obs.why) && obs.open_count > 0)
		obs_violated("the job ends, and %" PRIu32 " that were counted are in no version",
			     obs.open_count);
	if (!mst_finish_failed(obs.why) && sim_plan_reduces(obs.plan) && obs.applied != obs.commits)
		obs_violated("the job ends, and of its %" PRIu64 " versions %" PRIu64
			     " are applied",
			     obs.commits, obs.applied);
	sim_say("  the job ends, why %d", (int)obs.why);
}

/* With version 0, or with that of a checkpoint. */
static void begun(const struct mst_decision *d)
{
	for (struct obs_session *s = obs.sessions; s != NULL; s = s->next)
		s->started &= s->live;
	obs_returns_start(d->commit.version);
	obs_changes_start();
	if (d->commit.version != obs.commits)
		obs_violated("the job begins with version %" PRIu64 ", must be %" PRIu64,
			     d->commit.version, obs.commits);
	obs.buffer_version[d->commit.buffer] = d->commit.version + 1;
	obs_saves_start(d->commit.version);
	obs_start_steps();
}

void obs_decided(const struct mst_decision *d, const struct mst_record *record)
{
	sim_mix((uint64_t)d->kind << 8 ^ d->who.rank);
	obs_order_keep(d, record);
	if (d->kind != MST_DO_REST)
		obs_returned();
	switch (d->kind) {
	case MST_DO_ADMIT:
		admitted(d);
		break;
	case MST_DO_SEND_STATE:
		if (!obs.plan->saves.resumes) /* else it sends its table of tensors alone */
			expect_start(d->who.rank);
		break;
	case MST_DO_START:
		begun(d);
		break;
	case MST_DO_COUNT:
		counted(d);
		break;
	case MST_DO_VERDICT:
		judged(d);
		break;
	case MST_DO_COMMIT:
		committed(d, record);
		obs_saves_committed();
		break;
	case MST_DO_SAVE:
		obs_save_decided(d);
		break;
	case MST_DO_SAVED:
		obs_saved_decided(d);
		break;
	case MST_DO_REGRANT:
		obs_regranted(d);
		break;
	case MST_DO_POLICY:
		obs_policy();
		break;
	case MST_DO_REST:
		obs_rested(d);
		break;
	case MST_DO_ADVISE:
		obs_advised(d);
		break;
	case MST_DO_SETTLE:
		obs.settling = true;
		break;
	case MST_DO_APPLY:
		applied(d);
		break;
	case MST_DO_RELEASE:
		released(d, record);
		break;
	case MST_DO_EVICT:
		evicted(d);
		break;
	case MST_DO_FINISH:
		finished(d);
		break;
	case MST_DO_BEHIND:
		obs_behind(d);
		break;
	case MST_DO_HAND:
		obs_handed(d);
		break;
	default:
		break;
	}
}
