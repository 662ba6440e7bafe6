/* SPDX-License-Identifier: MIT */
/* Contributions and steps of the reference ledger. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/reference_state.h"

/* ---- The commit condition ---- */

static uint32_t roster_count(const struct reference *r)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		count += open_step(r)->rostered[rank];
	return count;
}

bool is_missing(const struct reference *r, uint32_t rank)
{
	const struct reference_step *step = open_step(r);

	return step->rostered[rank] && !step->counted[rank] && !step->passed[rank];
}

uint32_t missing_count(const struct reference *r)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		count += is_missing(r, rank);
	return count;
}

/* A thousand for each worker in small jobs, and some for each in large ones. */
static uint32_t micro_room(uint32_t workers)
{
	if (workers <= 64)
		return 1024 * workers;
	return workers <= 512 ? 65536 : 128 * workers;
}

/* Two ways to hold contributions from any ranks: a slot for each, or what the job began with. */
static uint32_t step_room(const struct reference *r)
{
	uint32_t began = 0, slots = 0;

	if (r->cfg.rule.by_micro)
		began = micro_room(r->cfg.workers);
	else if (r->cfg.rule.release != MST_RELEASE_COMMIT)
		began = (uint32_t)r->cfg.rule.quorum;
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		slots += open_step(r)->rostered[rank] ? r->cfg.slots : 0;
	return slots > began ? slots : began;
}

/* PROTOCOL 2, "Needed", under the release in force. */
uint32_t step_needed(const struct reference *r, int32_t quorum)
{
	uint32_t possible = (uint32_t)open_step(r)->made.entry_count + missing_count(r);
	uint32_t needed;

	if (r->rule.by_micro)
		return roster_count(r) > 0 ? step_room(r)
					   : (uint32_t)open_step(r)->made.entry_count;
	if (quorum == 0)
		return possible;
	if (quorum < 0) {
		uint32_t spared = (uint32_t)-quorum;
		needed = roster_count(r) > spared ? roster_count(r) - spared : 1;
	} else {
		needed = (uint32_t)quorum;
		if (r->rule.release != MST_RELEASE_COMMIT && roster_count(r) > 0)
			return needed < step_room(r) ? needed : step_room(r);
	}
	return needed < possible ? needed : possible;
}

/* Has somebody, whom the step waits for, something under way that would be too old afterwards? Or,
 * where every version goes to everybody, is the next one that somebody needs about to go? */
bool step_held(const struct reference *r)
{
	const struct reference_step *step = open_step(r);

	if (!r->rule.by_micro || !r->born || !step->overdue || step->waited || is_ending(r) ||
	    step->made.entry_count >= step_needed(r, 0))
		return false;
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (s == NULL || !step->rostered[rank] || s->given == MST_VERSION_NONE)
			continue;
		bool under_way = !s->asking || !ask_is_in_turn(s) ||
				 r->cfg.owner == MUSTER_WORKERS_OWN;
		if (under_way && reference_newest(r) + 1 - s->given > r->rule.window)
			return true;
	}
	return false;
}

bool step_due(const struct reference *r)
{
	return step_met(r) && !step_held(r);
}

bool step_met(const struct reference *r)
{
	const struct reference_step *step = open_step(r);

	if (!r->born || r->finished || r->settling || step->made.entry_count == 0)
		return false;
	if ((r->asked_to_finish && !r->end_waits) || r->goal_passed || roster_count(r) == 0 ||
	    step->overdue)
		return true;
	if (r->rule.quorum == 0 && !r->rule.by_micro)
		return missing_count(r) == 0;
	return step->made.entry_count >= step_needed(r, r->rule.quorum);
}

/* The newest version says how the next one is worked at. */
static void tell_pace(struct reference *r)
{
	struct reference_version *newest = &r->step[reference_newest(r)].made;

	newest->window = r->rule.window;
	newest->until_asked = r->rule.collect && r->rule.trigger == MST_TRIGGER_DEADLINE;
	newest->by_micro = r->rule.by_micro;
	newest->pace = r->rule.pace;
}

void step_open(struct reference *r)
{
	uint32_t workers = r->cfg.workers;

	r->moved_ns = r->now_ns;
	r->step = reference_room(r->step, r->step_count, sizeof(*r->step));
	struct reference_step *step = &r->step[r->step_count++];
	*step = (struct reference_step){
		.opened_ns = r->now_ns,
		.rostered = calloc(workers, sizeof(bool)),
		.counted = calloc(workers, sizeof(bool)),
		.passed = calloc(workers, sizeof(bool)),
	};
	for (uint32_t rank = 0; r->born && rank < workers; rank++) {
		const struct session *s = session_of(r, rank);
		step->rostered[rank] = s != NULL && s->started && !s->rests;
	}
	if (r->born)
		tell_pace(r);
}

/* A set of nothing is never committed. With nobody left to add to it, those who joined meanwhile
 * need not wait for the next version: there would be none without them. */
static void refill_roster(struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s == NULL || !s->started || s->rests)
			continue;
		open_step(r)->rostered[rank] = true;
		s->first = reference_newest(r);
	}
}

/* And where all have passed, all are waited for again. */
static void revive(struct reference *r)
{
	struct reference_step *step = open_step(r);

	if (!r->born || is_ending(r) || step->made.entry_count > 0 || missing_count(r) > 0)
		return;
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		step->passed[rank] = false;
	if (roster_count(r) == 0)
		refill_roster(r);
	trigger_again(r);
}

/* ---- Commit ---- */

/* The loss that was told with a contribution; NaN: none. */
static double told_loss(const struct reference *r, const struct mst_entry *e)
{
	for (size_t k = 0; k < r->session_count; k++) {
		const struct session *s = r->session[k];
		if (s->who.rank != e->who.rank || s->who.incarnation != e->who.incarnation)
			continue;
		const struct mst_lane_header *h = &s->gift[e->seq - 1].header;
		return (h->flags & MST_HEADER_LOSS) != 0 ? h->loss : (double)NAN;
	}
	return (double)NAN;
}

/* Sums of figures of a version: of each rank in the order of its contributions, then of the ranks
 * in order. */
struct rank_sums {
	double base, samples, loss, loss_samples;
};

static struct rank_sums sums_of(const struct reference *r, const struct reference_version *made,
				uint32_t rank)
{
	struct rank_sums sums = { 0 };

	for (size_t i = 0; i < made->entry_count; i++) {
		const struct mst_entry *e = &made->entry[i];
		if (e->who.rank != rank)
			continue;
		double loss = told_loss(r, e);
		bool told = !isnan(loss) && !isinf(loss);
		sums.base += e->base;
		sums.samples += e->samples;
		sums.loss += told ? loss * e->samples : 0;
		sums.loss_samples += told ? e->samples : 0;
	}
	return sums;
}

/* The factor of the two schedules that histories have. */
static double scheduled(const struct reference *r, double samples)
{
	double factor = 1;

	for (uint32_t i = 0; i < r->cfg.schedule.count; i++) {
		const struct mst_schedule_term *t = &r->cfg.schedule.term[i];
		if (strncmp(t->row->form, "warmup:", 7) == 0)
			factor *= samples < t->number[0] ? samples / t->number[0] : 1;
		else if (strncmp(t->row->form, "steps:", 6) == 0)
			factor *= samples >= t->number[1] ? t->number[0] : 1;
		else
			abort();
	}
	return factor;
}

static void settle_figures(struct reference *r, struct reference_step *step)
{
	struct reference_version *made = &step->made;
	struct rank_sums all = { 0 };
	size_t parts = 0;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		parts += r->rule.by_micro && step->counted[rank];
		struct rank_sums of = sums_of(r, made, rank);
		all.base += of.base;
		all.samples += of.samples;
		all.loss += of.loss;
		all.loss_samples += of.loss_samples;
	}
	made->samples = all.samples;
	made->total = r->samples + all.samples;
	made->loss = all.loss_samples > 0 ? all.loss / all.loss_samples : (double)NAN;
	made->divisor = r->rule.divide ? (float)all.base : 1.0f;
	if (!r->rule.by_micro)
		parts = made->entry_count;
	made->lr_scale = r->rule.linear ? (double)parts / r->cfg.workers : 1.0;
	if (r->rule.batch > 0)
		made->lr_scale = made->samples / (r->rule.batch * r->cfg.workers);
	made->lr_scale *= scheduled(r, r->samples + made->samples);
	made->rate = r->cfg.optimizer.row != NULL
			     ? (float)(r->cfg.optimizer.parameter[0] * made->lr_scale)
			     : 0;
}

void advise(struct reference *r, const struct session *s, bool hand_in)
{
	uint64_t newest = reference_newest(r);
	struct mst_decision *d = decide(r, MST_DO_ADVISE, s->who);

	d->advice.version = r->rule.window < newest ? newest - r->rule.window : 0;
	d->advice.hand_in = hand_in;
}

/* A worker that has no ask out is computing. Under the rule now in force, what it computes cannot
 * count any more. */
static void preempt(struct reference *r)
{
	for (uint32_t rank = 0; r->rule.preempt && rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (s != NULL && s->started && !s->leaving && !s->asking)
			advise(r, s, false);
	}
}

/* What was counted under a rule without a bound says nothing about who is ahead. */
static void begin_clocks_anew(struct reference *r)
{
	uint64_t least = least_clock(r);

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		if (open_step(r)->rostered[rank])
			session_of(r, rank)->clock = least;
	}
}

/* What is contributed from now on is something else. */
static void forget_norms(struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		if (session_of(r, rank) != NULL)
			session_of(r, rank)->has_norm = false;
}

static void commit(struct reference *r)
{
	struct reference_step *step = open_step(r);
	bool bounded = r->rule.release == MST_RELEASE_BOUND;

	span_add(&r->steps, r->now_ns - step->opened_ns);
	late_release(r);
	settle_figures(r, step);
	r->samples += step->made.samples;
	decide(r, MST_DO_COMMIT, (struct mst_identity){ 0 })->commit.version = reference_newest(r) +
									       1;
	bool changes = r->rule_changes;
	if (changes) {
		if (r->rule.deltas != r->next_rule.deltas ||
		    r->rule.pace.alpha != r->next_rule.pace.alpha ||
		    r->rule.pace.local_steps != r->next_rule.pace.local_steps ||
		    r->rule.pace.push_every != r->next_rule.pace.push_every)
			forget_norms(r);
		r->rule = r->next_rule;
		r->rule_changes = false;
		decide(r, MST_DO_POLICY, (struct mst_identity){ 0 });
	}
	step_open(r);
	save_every(r);
	if (changes)
		trigger_gone(r);
	if (!bounded && r->rule.release == MST_RELEASE_BOUND)
		begin_clocks_anew(r);
	preempt(r);
	if (is_ending(r))
		return;
	if (r->goal != 0 && reference_newest(r) >= r->goal)
		job_finish(r, MST_FINISH_COMMITS);
	else if (r->cfg.samples_max > 0 && r->samples >= r->cfg.samples_max)
		job_finish(r, MST_FINISH_SAMPLES);
}

/* ---- Contributions ---- */

/* What the shards must agree about. Bits, not values: a weight that is no number is equal to
 * itself here. */
static bool same_header(const struct mst_lane_header *a, const struct mst_lane_header *b)
{
	union {
		double value;
		uint64_t bits;
	} wa = { a->weight }, wb = { b->weight };

	return a->seq == b->seq && a->tag == b->tag && wa.bits == wb.bits && a->flags == b->flags &&
	       a->unheard == b->unheard && a->slot == b->slot && a->epoch == b->epoch;
}

static bool report_is_valid(const struct reference *r, const struct session *s, uint64_t shard,
			    const struct mst_lane_header *h)
{
	if (h->slot >= r->cfg.slots || h->seq <= s->judged || h->seq > s->judged + r->cfg.slots)
		return false;
	if (h->epoch != s->epoch[h->slot] || s->abandoned[h->slot] != 0)
		return false;
	/* The lane to the leader keeps their order, which tells what an ask comes after. */
	if (shard == MST_SHARD_LEAD && h->seq != last_gift(s) + 1)
		return false;
	/* It can have heard of what was judged, and must have heard of all but so many. */
	if (h->unheard > h->seq - 1 || h->seq - 1 - h->unheard > s->judged ||
	    h->unheard >= MUSTER_TICKETS_MAX)
		return false;
	for (size_t i = s->judged; i < s->gift_count; i++) {
		const struct gift *g = &s->gift[i];
		if (g->shards == 0 || (g->header.slot != h->slot && g->header.seq != h->seq))
			continue;
		if ((g->shards >> shard & 1) != 0 || !same_header(&g->header, h))
			return false;
	}
	return true;
}

static struct mst_entry entry_of(const struct reference *r, const struct session *s,
				 const struct mst_lane_header *h)
{
	uint64_t staleness = reference_newest(r) - h->tag;
	int64_t most = r->rule.quorum > 0 ? r->rule.quorum
					  : r->rule.quorum + (int64_t)r->cfg.workers;
	bool by_samples = r->rule.weigh == MST_WEIGH_SAMPLES && r->rule.divide &&
			  (most > 1 || r->rule.by_micro);
	bool sum = h->flags & MST_HEADER_SUM;
	long double c = by_samples ? (sum ? 1.0L : (long double)h->weight)
				   : (sum ? 1.0L / (long double)h->weight : 1.0L);

	if (r->rule.compensate && staleness > 1)
		c /= (long double)staleness;
	if ((h->flags & MST_HEADER_CLIPPED) != 0)
		c *= (long double)h->clip;
	return (struct mst_entry){
		.who = s->who,
		.seq = h->seq,
		.tag = h->tag,
		.samples = h->weight,
		.base = by_samples ? h->weight : 1.0,
		.coefficient = (float)c,
		.slot = h->slot,
	};
}

/* Has the open step as much of this rank as its last batch was? */
static bool has_a_batch_in(const struct reference *r, const struct session *s)
{
	const struct reference_version *made = &open_step(r)->made;
	double samples = 0;

	for (size_t i = 0; i < made->entry_count; i++)
		samples += made->entry[i].who.rank == s->who.rank ? made->entry[i].samples : 0;
	return s->last_batch > 0 && samples >= s->last_batch;
}

static void count(struct reference *r, struct session *s, const struct mst_lane_header *h,
		  uint64_t now_ns)
{
	struct reference_step *step = open_step(r);
	struct reference_version *made = &step->made;
	struct mst_entry entry = entry_of(r, s, h);

	made->entry = reference_room(made->entry, made->entry_count, sizeof(entry));
	made->entry[made->entry_count++] = entry;
	step->counted[s->who.rank] = true;
	if (!step->counting)
		step->first_count_ns = now_ns;
	step->counting = true;
	s->clock++;
	s->counted_since_answer = true;

	struct mst_decision *d = decide(r, MST_DO_COUNT, s->who);
	d->count.seq = h->seq;
	d->count.slot = h->slot;
	d->count.coefficient = entry.coefficient;
	d->count.repeats = r->rule.release != MST_RELEASE_COMMIT;
	if (r->rule.by_micro ? has_a_batch_in(r, s) : (h->flags & MST_HEADER_FULL) != 0)
		trigger_full(r);
}

/* A slot is granted again only when it has been read, so more than this cannot be meant. */
static bool set_is_full(const struct reference *r)
{
	uint32_t workers = r->cfg.workers;
	uint32_t quorum = r->cfg.rule.quorum > (int32_t)workers ? (uint32_t)r->cfg.rule.quorum
								: workers;

	if (r->cfg.rule.by_micro)
		quorum = micro_room(workers);
	return open_step(r)->made.entry_count >= quorum + workers * r->cfg.slots;
}

/* How many live ranks' norms are at most so large, and how many there are. */
static uint32_t norms_up_to(const struct reference *r, double norm)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		count += s != NULL && s->has_norm && s->norm <= norm;
	}
	return count;
}

/* The least of these norms that at least half of all are no larger than. */
static double median_norm(const struct reference *r)
{
	uint32_t all = norms_up_to(r, (double)INFINITY);
	double median = (double)INFINITY;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (s != NULL && s->has_norm && s->norm < median &&
		    2 * norms_up_to(r, s->norm) >= all)
			median = s->norm;
	}
	return median;
}

/* Is its norm too far from the others? It is one of them from now on. */
static bool is_outlier(const struct reference *r, struct session *s, const struct gift *g)
{
	const struct mst_lane_header *h = &g->header;
	double norm = sqrt(g->squares), median = median_norm(r);

	if (r->cfg.norm_limit == 0)
		return false;
	if ((h->flags & MST_HEADER_CLIPPED) != 0)
		norm *= (double)h->clip;
	if ((h->flags & MST_HEADER_SUM) != 0)
		norm /= h->weight;
	if (isinf(norm))
		return true;
	bool enough = norms_up_to(r, (double)INFINITY) >= 3 && median != 0;
	s->has_norm = true;
	s->norm = norm;
	return enough && norm > r->cfg.norm_limit * median;
}

static enum muster_verdict verdict_on(const struct reference *r, struct session *s,
				      const struct gift *g)
{
	const struct mst_lane_header *h = &g->header;
	enum muster_verdict outside = r->rule.late == MST_LATE_DROP ? MUSTER_LATE : MUSTER_STALE;

	if (!s->started)
		return MUSTER_REFUSED;
	if (r->finished || r->settling)
		return MUSTER_CANCELLED;
	if ((h->flags & MST_HEADER_EMPTY) != 0)
		return outside;
	if (!r->born || h->tag > reference_newest(r))
		return MUSTER_REFUSED;
	if (isnan(h->weight) || h->weight < ldexp(1, -53) || h->weight > ldexp(1, 53))
		return MUSTER_REFUSED;
	if ((h->flags & MST_HEADER_CLIPPED) != 0 &&
	    (r->rule.deltas || isnan(h->clip) || h->clip <= 0 || h->clip > 1))
		return MUSTER_REFUSED;
	if (r->rule.window != MST_WINDOW_MAX && reference_newest(r) - h->tag > r->rule.window)
		return outside;
	if (r->rule.release == MST_RELEASE_COMMIT && open_step(r)->counted[s->who.rank])
		return MUSTER_LATE;
	if (set_is_full(r))
		return MUSTER_LATE;
	if (g->damaged)
		return MUSTER_DAMAGED;
	return is_outlier(r, s, g) ? MUSTER_OUTLIER : MUSTER_COUNTED;
}

static enum muster_verdict give_verdict(struct reference *r, struct session *s,
					const struct gift *g, uint64_t now_ns)
{
	const struct mst_lane_header *h = &g->header;
	enum muster_verdict verdict = verdict_on(r, s, g);

	if (verdict == MUSTER_COUNTED) {
		count(r, s, h, now_ns);
		r->last = s->who.rank;
	}
	struct mst_decision *d = decide(r, MST_DO_VERDICT, s->who);
	d->verdict.seq = h->seq;
	d->verdict.tag = h->tag;
	d->verdict.slot = h->slot;
	d->verdict.verdict = verdict;
	d->verdict.counted_in = verdict == MUSTER_COUNTED ? reference_newest(r) + 1 : 0;
	return verdict;
}

static void regrant(struct reference *r, struct session *s, uint32_t slot)
{
	struct mst_decision *d = decide(r, MST_DO_REGRANT, s->who);

	d->grant.slot = slot;
	d->grant.epoch = ++s->epoch[slot];
	s->abandoned[slot] = 0;
	r->moved_ns = r->now_ns;
}

/* This gift was the last thing that the step waited for. */
static bool was_last_hope(const struct reference *r, const struct session *s,
			  enum muster_verdict verdict)
{
	const struct reference_step *step = open_step(r);

	bool left = s->leaving && s->judged >= s->leave_seq;

	if (!r->born || r->finished || !s->started || left)
		return false;
	return s->excused == s->judged && s->excused_in == reference_newest(r) &&
	       step->rostered[s->who.rank] && !step->passed[s->who.rank] &&
	       verdict != MUSTER_COUNTED && verdict != MUSTER_CANCELLED;
}

static void judge(struct reference *r, struct session *s, struct gift *g, uint64_t now_ns)
{
	const struct mst_lane_header *h = &g->header;
	bool pass = (h->flags & MST_HEADER_PASS) != 0;
	enum muster_verdict verdict = MUSTER_NONE;

	g->judged = true;
	s->judged = h->seq;
	if (s->asking && s->judged == s->after)
		s->asked_ns = now_ns;
	if (!pass && h->weight >= ldexp(1, -53) && h->weight <= ldexp(1, 53)) {
		s->batch += h->weight;
		if ((h->flags & MST_HEADER_PART) == 0) {
			s->last_batch = s->batch;
			s->batch = 0;
		}
	}
	if (!pass)
		verdict = give_verdict(r, s, g, now_ns);
	else if (r->born && s->started && !r->finished)
		open_step(r)->passed[s->who.rank] = true;
	again_judged(r, s, verdict);
	bool late = verdict == MUSTER_LATE;
	regrant(r, s, h->slot);
	if (was_last_hope(r, s, verdict)) {
		session_end(r, s, MST_EVICT_PATIENCE);
		return;
	}
	if ((h->flags & MST_HEADER_ASK) != 0)
		ask_heard(r, s, h->ask, h->seq);
	if ((h->flags & MST_HEADER_ASK) != 0)
		s->late = late;
	if (!s->ended && s->leaving && s->judged == s->leave_seq)
		session_end(r, s, MST_EVICT_LEFT);
	end_if_mute(r, s);
}

void gift_reported(struct reference *r, struct session *s, const struct mst_ledger_event *ev)
{
	const struct mst_lane_header *h = &ev->full.header;

	if (!report_is_valid(r, s, ev->full.shard, h)) {
		session_end(r, s, MST_EVICT_INVALID);
		return;
	}
	while (h->seq > s->gift_count) {
		s->gift = reference_room(s->gift, s->gift_count, sizeof(*s->gift));
		s->gift[s->gift_count++] = (struct gift){ .shards = 0 };
	}
	if (s->gift[h->seq - 1].shards == 0) {
		s->gift[h->seq - 1].header = *h;
		s->gift[h->seq - 1].first_ns = r->now_ns;
		if (s->computes)
			span_add(&r->stride[s->who.rank], r->now_ns - s->answer_ns);
		s->computes = false;
	}
	s->gift[h->seq - 1].shards |= UINT64_C(1) << ev->full.shard;
	s->gift[h->seq - 1].squares += ev->full.squares;
	s->gift[h->seq - 1].damaged |= ev->full.damaged;
}

/* The next gift of the lowest rank that has one all shards have reported; but a commit that is due
 * comes first, even if it has to wait for a buffer. */
static bool judge_next(struct reference *r)
{
	if (step_due(r))
		return false;
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s == NULL || s->judged >= s->gift_count ||
		    s->gift[s->judged].shards != all_shards(r) ||
		    again_holds(r, s, &s->gift[s->judged]))
			continue;
		judge(r, s, &s->gift[s->judged], r->now_ns);
		return true;
	}
	return false;
}

void grant_abandoned(struct reference *r, struct session *s, const struct mst_ledger_event *ev)
{
	uint32_t slot = ev->abandoned.slot;
	uint64_t shard = UINT64_C(1) << ev->abandoned.shard;

	if (slot >= r->cfg.slots || ev->abandoned.epoch != s->epoch[slot] ||
	    (s->abandoned[slot] & shard) != 0) {
		session_end(r, s, MST_EVICT_INVALID);
		return;
	}
	for (size_t i = s->judged; i < s->gift_count; i++) {
		if (s->gift[i].shards != 0 && s->gift[i].header.slot == slot) {
			session_end(r, s, MST_EVICT_INVALID);
			return;
		}
	}
	s->abandoned[slot] |= shard;
	if (s->abandoned[slot] == all_shards(r))
		regrant(r, s, slot);
}

void settle(struct reference *r)
{
	size_t before;

	do {
		before = r->decision_count;
		revive(r);
		if (step_due(r) && buffers_free(r) > 0)
			commit(r);
		late_look(r);
		bool waits = r->end_waits && open_step(r)->made.entry_count > 0;
		if (!step_due(r) && r->stopped)
			job_finish(r, MST_FINISH_STOPPED);
		if (!step_due(r) && r->goal_passed)
			job_finish(r, MST_FINISH_COMMITS);
		if (!step_due(r) && r->asked_to_finish && !waits)
			job_finish(r, MST_FINISH_ASKED);
		if (!step_due(r) && r->all_left)
			job_finish(r, MST_FINISH_LEFT);
		answer_all(r);
	} while (judge_next(r) || r->decision_count != before);
}
