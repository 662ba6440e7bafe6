/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/ledger_watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/server/core/ledger/ledger_watch_state.h"
#include "tests/unit/server/core/ledger/reference_state.h"

void watch_complain(struct watch *w, const char *format, ...)
{
	va_list args;

	if (w->complaint[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(w->complaint, sizeof(w->complaint), format, args);
	va_end(args);
}

static struct visitor *visitor_of(const struct watch *w, struct mst_identity who)
{
	for (size_t i = 0; i < w->visitor_count; i++) {
		struct visitor *v = w->visitor[i];
		if (v->who.rank == who.rank && v->who.incarnation == who.incarnation)
			return v;
	}
	return NULL;
}

static struct verdict *verdict_of(struct visitor *v, uint64_t seq)
{
	while (v->verdict_count <= seq) {
		v->verdict = reference_room(v->verdict, v->verdict_count, sizeof(*v->verdict));
		v->verdict[v->verdict_count++] = (struct verdict){ 0 };
	}
	return &v->verdict[seq];
}

static void hear_ask(struct visitor *v, struct mst_lane_ask ask, uint64_t after)
{
	if (ask.number != v->asked + 1 || v->answered != v->asked)
		return;
	v->asked = ask.number;
	v->ask_after = after;
	v->had_in_place = v->in_place;
	v->had = v->reads;
	v->in_place = false;
	v->copy_count = 0; /* it has gone on, so it waits for none of those bytes */
}

static void hear_header(const struct watch *w, struct visitor *v, const struct mst_lane_header *h)
{
	struct verdict *f = verdict_of(v, h->seq);

	if (!f->reported)
		f->tag = h->tag;
	f->reported = v->pushed = true;
	f->passes = (h->flags & MST_HEADER_PASS) != 0;
	f->full = (h->flags & MST_HEADER_FULL) != 0;
	if (h->seq > h->unheard && h->seq - 1 - h->unheard > v->heard)
		v->heard = h->seq - 1 - h->unheard;
	/* A header's ask is heard when the header is judged. */
	if ((h->flags & MST_HEADER_ASK) != 0 && h->slot < w->cfg.slots)
		v->asks_with[h->slot] = h->ask;
}

static void hear_answered(struct visitor *v, const struct mst_ledger_event *ev)
{
	for (size_t i = 0; i < v->copy_count; i++) {
		if (v->copy[i].number == ev->answered.number)
			v->copy[i].shards |= UINT64_C(1) << ev->answered.shard;
	}
}

static void hear_start(struct visitor *v)
{
	v->start_called = true;
	hear_ask(v, (struct mst_lane_ask){ .number = 1 }, 0);
}

static void hear_linked(struct visitor *v, const struct mst_ledger_event *ev)
{
	v->linked |= UINT64_C(1) << ev->shard;
	if (ev->shard == MST_SHARD_LEAD)
		v->far = ev->far;
}

void watch_event(struct watch *w, const struct mst_ledger_event *ev)
{
	struct visitor *v = visitor_of(w, ev->who);

	if (ev->kind == MST_EV_RETURNED && w->lent) {
		w->returned |= UINT64_C(1) << ev->lent.shard;
		w->lent = w->returned != UINT64_MAX >> (64 - w->cfg.shards);
	}
	if (ev->kind == MST_EV_SETTLED && w->settling)
		w->settled |= UINT64_C(1) << ev->shard;
	w->spoilt |= ev->kind == MST_EV_SPOILT;
	if (ev->kind == MST_EV_JOIN || ev->kind == MST_EV_POLICY || ev->kind == MST_EV_SETTLED ||
	    ev->kind == MST_EV_LEND || ev->kind == MST_EV_RETURNED || ev->kind == MST_EV_SPOILT ||
	    v == NULL || v->ended)
		return;
	if (ev->kind == MST_EV_START)
		hear_start(v);
	else if (ev->kind == MST_EV_LINKED)
		hear_linked(v, ev);
	else if (ev->kind == MST_EV_STATE)
		v->sends_state = false;
	else if (ev->kind == MST_EV_LEAVE)
		v->leaving = true;
	else if (ev->kind == MST_EV_ASK)
		hear_ask(v, ev->ask, v->told);
	else if (ev->kind == MST_EV_FULL)
		hear_header(w, v, &ev->full.header);
	if (ev->kind == MST_EV_FULL && ev->full.shard == MST_SHARD_LEAD)
		v->told = ev->full.header.seq;
	else if (ev->kind == MST_EV_ANSWERED)
		hear_answered(v, ev);
}

/* Has it called start, and are its links with all shards up? */
bool watch_takes_part(const struct watch *w, const struct visitor *v)
{
	return !v->ended && v->start_called && v->linked == (UINT64_C(1) << w->cfg.shards) - 1;
}

/* Is this buffer being copied to @v? MST_BUFFER_NONE: is any? */
static bool copies(const struct watch *w, const struct visitor *v, uint32_t buffer)
{
	uint64_t all = (UINT64_C(1) << w->cfg.shards) - 1;

	for (size_t i = 0; i < v->copy_count; i++) {
		bool meant = buffer == MST_BUFFER_NONE || v->copy[i].buffer == buffer;
		if (meant && v->copy[i].shards != all)
			return true;
	}
	return false;
}

static void check_buffer(struct watch *w, uint64_t version, uint32_t buffer)
{
	uint32_t buffers = mst_ledger_buffers(&w->cfg);

	if (buffer >= buffers)
		watch_complain(w, "version %" PRIu64 " is in buffer %u of %u", version, buffer,
			       buffers);
	for (size_t i = 0; i < w->visitor_count; i++) {
		const struct visitor *v = w->visitor[i];
		if (!v->ended && v->in_place && v->reads == buffer)
			watch_complain(
				w, "version %" PRIu64 " overwrites buffer %u, which %u.%u reads",
				version, buffer, v->who.rank, v->who.incarnation);
		if (!v->ended && copies(w, v, buffer))
			watch_complain(w,
				       "version %" PRIu64
				       " overwrites buffer %u, being copied to %u.%u",
				       version, buffer, v->who.rank, v->who.incarnation);
	}
	size_t kept = w->cfg.owner == MUSTER_WORKERS_OWN ? w->cfg.history : 1;
	/* The version that is being made is the newest of those kept. */
	for (size_t back = 1; back <= w->version_count; back++) {
		if (back == 1 || back < kept) {
			if (w->buffer_of[w->version_count - back] == buffer)
				watch_complain(
					w, "version %" PRIu64 " overwrites the version %zu before",
					version, back);
		}
	}
}

/* With it a step opens. */
static void see_version(struct watch *w, uint64_t version, uint32_t buffer)
{
	w->opened_ns = w->now_ns;
	w->full_counted = false;
	if (version != w->version_count)
		watch_complain(w, "version %" PRIu64 " after %zu versions", version,
			       w->version_count);
	if (version > 0 || buffer != MST_BUFFER_NONE)
		check_buffer(w, version, buffer);
	if (w->saving && buffer == w->saved_buffer)
		watch_complain(w, "version %" PRIu64 " overwrites one that is saved", version);
	w->buffer_of = reference_room(w->buffer_of, w->version_count, sizeof(uint32_t));
	w->buffer_of[w->version_count++] = buffer;
}

static void see_lend(struct watch *w, const struct mst_decision *d)
{
	if (w->lent)
		watch_complain(w, "the average is lent while somebody reads it");
	if (d->commit.version + 1 != w->version_count)
		watch_complain(
			w, "the average of version %" PRIu64 " is lent, which is not the newest",
			d->commit.version);
	w->lent = true;
	w->returned = 0;
}

static void see_save(struct watch *w, const struct mst_decision *d)
{
	if (w->saving || d->commit.version + 1 != w->version_count ||
	    d->commit.buffer != w->buffer_of[d->commit.version])
		watch_complain(w, "version %" PRIu64 " is saved, which is not the newest",
			       d->commit.version);
	w->saving = true;
	w->saved_buffer = d->commit.buffer;
}

static void see_record(struct watch *w, const struct mst_decision *d)
{
	const struct mst_record *rec = mst_ledger_record(w->ledger, d->commit.buffer);

	if (rec->version != d->commit.version || rec->entry_count != w->uncommitted)
		watch_complain(
			w, "version %" PRIu64 " of %u, recorded as %" PRIu64 ", after %zu counted",
			d->commit.version, rec->entry_count, rec->version, w->uncommitted);
	if (rec->entry_count > mst_ledger_entries(&w->cfg))
		watch_complain(w, "version %" PRIu64 " is made of %u, there is room for %u",
			       rec->version, rec->entry_count, mst_ledger_entries(&w->cfg));
	w->uncommitted = 0;
	for (uint32_t i = 0; i < rec->entry_count; i++) {
		const struct mst_entry *e = &rec->entry[i];
		struct visitor *v = visitor_of(w, e->who);
		struct verdict *f = v == NULL ? NULL : verdict_of(v, e->seq);
		if (f == NULL || f->counts != 1 || f->recorded++ != 0)
			watch_complain(w,
				       "%u.%u seq %" PRIu64 " in version %" PRIu64
				       " was not counted, or is there twice",
				       e->who.rank, e->who.incarnation, e->seq, rec->version);
		else if (f->verdicts == 1 && f->counted_in != rec->version)
			watch_complain(
				w, "%u.%u seq %" PRIu64 " counted in %" PRIu64 " is in %" PRIu64,
				e->who.rank, e->who.incarnation, e->seq, f->counted_in,
				rec->version);
	}
}

static void see_shares(struct watch *w, const struct mst_decision *d)
{
	const struct mst_record *rec = mst_ledger_record(w->ledger, d->commit.buffer);
	uint32_t entries = 0;
	double samples = 0;

	for (uint32_t i = 0; i < rec->share_count; i++) {
		if (i > 0 && rec->share[i].rank <= rec->share[i - 1].rank)
			watch_complain(w, "shares of version %" PRIu64 " are out of order",
				       rec->version);
		entries += rec->share[i].count;
		samples += rec->share[i].weight;
	}
	if (entries != rec->entry_count || fabs(samples - rec->samples) > 1e-9)
		watch_complain(w, "shares of version %" PRIu64 ": %u contributions, %g samples",
			       rec->version, entries, samples);
}

static void see_count(struct watch *w, struct visitor *v, const struct mst_decision *d)
{
	struct verdict *f = verdict_of(v, d->count.seq);

	if (f->counts++ != 0 || f->verdicts != 0)
		watch_complain(w, "seq %" PRIu64 " is counted twice, or after its verdict",
			       d->count.seq);
	w->uncommitted++;
	w->full_counted |= f->full;
}

static void see_verdict(struct watch *w, struct visitor *v, const struct mst_decision *d)
{
	struct verdict *f = verdict_of(v, d->verdict.seq);
	bool counted = d->verdict.verdict == MUSTER_COUNTED;

	if (!f->reported || f->tag != d->verdict.tag)
		watch_complain(
			w, "a verdict on seq %" PRIu64 " tag %" PRIu64 ", which no shard reported",
			d->verdict.seq, d->verdict.tag);
	if (f->verdicts++ != 0 || d->verdict.verdict == MUSTER_NONE)
		watch_complain(w, "seq %" PRIu64 " gets a second verdict, or none", d->verdict.seq);
	if (counted != (f->counts == 1) || counted != (d->verdict.counted_in != 0))
		watch_complain(w, "verdict and count of seq %" PRIu64 " differ", d->verdict.seq);
	if (counted && d->verdict.counted_in != w->version_count)
		watch_complain(w,
			       "seq %" PRIu64 " is counted in %" PRIu64 ", the open step makes %zu",
			       d->verdict.seq, d->verdict.counted_in, w->version_count);
	f->verdict = d->verdict.verdict;
	f->counted_in = d->verdict.counted_in;
}

/* Nothing it had pushed before it asked is still open, unless the job is over. */
static void check_turn(struct watch *w, const struct visitor *v)
{
	for (uint64_t seq = 1; seq <= v->ask_after && !w->finished; seq++) {
		const struct verdict *f = &v->verdict[seq];
		if (f->reported && !f->passes && f->verdicts == 0)
			watch_complain(w,
				       "ask %" PRIu64 " of %u.%u is answered before seq %" PRIu64
				       " is judged",
				       v->asked, v->who.rank, v->who.incarnation, seq);
	}
}

/* Memory that is far is not read in place; nor is any read that somebody far may wait for. */
static void check_nobody_far(struct watch *w, const struct visitor *reader)
{
	for (size_t i = 0; i < w->visitor_count; i++) {
		const struct visitor *v = w->visitor[i];
		if (!v->ended && v->far)
			watch_complain(w, "%u.%u begins to read in place, and %u.%u is far",
				       reader->who.rank, reader->who.incarnation, v->who.rank,
				       v->who.incarnation);
	}
}

static void see_answer(struct watch *w, struct visitor *v, const struct mst_decision *d)
{
	uint64_t version = d->answer.version;

	if (!watch_takes_part(w, v))
		watch_complain(w, "%u.%u is answered before it takes part", v->who.rank,
			       v->who.incarnation);
	if (d->answer.number != v->asked || v->answered + 1 != v->asked)
		watch_complain(w, "ask %" PRIu64 " is answered after %" PRIu64 " of %" PRIu64,
			       d->answer.number, v->answered, v->asked);
	check_turn(w, v);
	v->answered = d->answer.number;
	if (version >= w->version_count || d->answer.newest != w->version_count - 1)
		watch_complain(w, "an answer of version %" PRIu64 ", newest %" PRIu64, version,
			       d->answer.newest);
	else if ((d->answer.where == MST_WHERE_IN_PLACE || d->answer.where == MST_WHERE_COPIED) &&
		 d->answer.buffer != w->buffer_of[version])
		watch_complain(w, "version %" PRIu64 " is in buffer %u, not %u", version,
			       w->buffer_of[version], d->answer.buffer);
	if (d->answer.where == MST_WHERE_IN_PLACE) {
		check_nobody_far(w, v);
		v->in_place = true;
		v->reads = d->answer.buffer;
	} else if (d->answer.where == MST_WHERE_KEEP && v->had_in_place &&
		   v->has_version == version) {
		v->in_place = true;
		v->reads = v->had;
	} else if (d->answer.where == MST_WHERE_COPIED) {
		v->copy = reference_room(v->copy, v->copy_count, sizeof(*v->copy));
		v->copy[v->copy_count++] = (struct copying){ d->answer.number, 0,
							     d->answer.buffer };
	}
	v->has_version = version;
	const struct mst_record *rec = mst_ledger_record_of(w->ledger, version);
	v->grows = rec == NULL || rec->until_asked;
}

/* A slot is granted anew when its header has been judged, and then the header's ask is heard. */
static void see_regrant(struct watch *w, struct visitor *v, const struct mst_decision *d)
{
	uint32_t slot = d->grant.slot;

	if (d->grant.epoch != ++v->epoch[slot])
		watch_complain(w, "slot %u is granted in epoch %" PRIu64, slot, d->grant.epoch);
	hear_ask(v, v->asks_with[slot], 0); /* itself and all before it are judged */
	v->asks_with[slot] = (struct mst_lane_ask){ 0 };
}

/* Whatever the shards knew of when the session ended has a verdict by now. */
static void see_end(struct watch *w, struct visitor *v, enum mst_evict_why why)
{
	v->ended = true;
	w->standing[v->who.rank] = (struct standing){ 0 };
	v->lied = why == MST_EVICT_INVALID;
	for (size_t seq = 1; seq < v->verdict_count; seq++) {
		if (v->verdict[seq].counts != 0 && v->verdict[seq].verdicts == 0)
			watch_complain(w, "seq %zu was counted, and its worker never told", seq);
	}
}

/* One at a time, and all must be there: the state would overwrite another, or come too late. */
static void see_state_wanted(struct watch *w, struct visitor *v)
{
	uint32_t started = 0;

	for (size_t i = 0; i < w->visitor_count; i++) {
		const struct visitor *other = w->visitor[i];
		started += watch_takes_part(w, other);
		if (!other->ended && other->sends_state)
			watch_complain(w, "%u.%u is to send its state while %u.%u sends",
				       v->who.rank, v->who.incarnation, other->who.rank,
				       other->who.incarnation);
	}
	if (w->started || started != w->cfg.workers)
		watch_complain(w, "%u.%u is to send its state when %u have started%s", v->who.rank,
			       v->who.incarnation, started, w->started ? ", and the job too" : "");
	v->sends_state = true;
}

static void see_rest(struct watch *w, const struct visitor *v, const struct mst_decision *d)
{
	struct standing *s = &w->standing[v->who.rank];

	if (!watch_takes_part(w, v) || s->rests == d->rests)
		watch_complain(w, "%u.%u is told to %s out of turn", v->who.rank,
			       v->who.incarnation, d->rests ? "rest" : "return");
	s->rests = d->rests;
}

/* The verdicts of a session that has neither started nor pushed are those of the one before it.
 * Told are all verdicts that were not acknowledged, in order of tickets, and nothing else. Of one
 * that broke the protocol it is not known here what it acknowledged. */
static void check_verdicts(struct watch *w, struct mst_identity who, const struct visitor *last)
{
	static struct muster_push_verdict told[MUSTER_TICKETS_MAX];
	uint32_t count = mst_verdicts_list(mst_ledger_verdicts(w->ledger, who.rank), told), at = 0;

	while (last != NULL && !last->start_called && !last->pushed)
		last = visitor_of(
			w, (struct mst_identity){ last->who.rank, last->who.incarnation - 1 });
	if (last != NULL && last->lied)
		return;
	for (size_t seq = last != NULL ? last->heard + 1 : 0;
	     last != NULL && seq < last->verdict_count; seq++) {
		const struct verdict *f = &last->verdict[seq];
		if (f->verdicts == 0)
			continue;
		if (at == count || told[at].ticket != seq || told[at].verdict != f->verdict ||
		    told[at].incarnation != last->who.incarnation ||
		    told[at].counted_in != f->counted_in)
			watch_complain(w,
				       "%u.%u is not told the verdict of ticket %zu of session %u",
				       who.rank, who.incarnation, seq, last->who.incarnation);
		at += at < count;
	}
	if (at != count)
		watch_complain(w, "%u.%u is told %u verdicts, there are %u", who.rank,
			       who.incarnation, count, at);
}

static void see_admission(struct watch *w, const struct mst_decision *d)
{
	struct mst_identity before = { d->who.rank, d->who.incarnation - 1 };
	const struct visitor *last = visitor_of(w, before);

	if ((d->who.incarnation > 1) != (last != NULL) || (last != NULL && !last->ended))
		watch_complain(w, "%u.%u is admitted out of turn", d->who.rank, d->who.incarnation);
	check_verdicts(w, d->who, last);
	struct visitor *v = calloc(1, sizeof(*v));
	if (v == NULL)
		abort();
	v->who = d->who;
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++)
		v->epoch[slot] = 1;
	w->visitor = reference_room(w->visitor, w->visitor_count, sizeof(struct visitor *));
	w->visitor[w->visitor_count++] = v;
}

static void see_member(struct watch *w, const struct mst_decision *d)
{
	struct visitor *v = visitor_of(w, d->who);

	if (v == NULL || v->ended) {
		watch_complain(w, "a decision about %u.%u, who is not there", d->who.rank,
			       d->who.incarnation);
		return;
	}
	if (d->kind == MST_DO_COUNT)
		see_count(w, v, d);
	else if (d->kind == MST_DO_VERDICT)
		see_verdict(w, v, d);
	else if (d->kind == MST_DO_RELEASE)
		see_answer(w, v, d);
	else if (d->kind == MST_DO_EVICT)
		see_end(w, v, d->evict);
	else if (d->kind == MST_DO_REGRANT)
		see_regrant(w, v, d);
	else if (d->kind == MST_DO_SEND_STATE)
		see_state_wanted(w, v);
	else if (d->kind == MST_DO_ADVISE)
		watch_hint(w, v, d);
	else if (d->kind == MST_DO_REST)
		see_rest(w, v, d);
}

static void see_finish(struct watch *w, const struct mst_decision *d)
{
	bool settled = w->settled == (UINT64_C(1) << w->cfg.shards) - 1;
	bool well = !mst_finish_failed(d->finish.why);

	w->finished = true;
	if (well && w->uncommitted != 0)
		watch_complain(w, "the job ends well, and %zu counted are in no version",
			       w->uncommitted);
	if (well && w->version_count > 1 && (!settled || w->spoilt))
		watch_complain(w,
			       "the job ends well, and its last version is not known to be finite");
}

void watch_decision(struct watch *w, const struct mst_decision *d)
{
	bool counts = d->kind == MST_DO_COUNT || d->kind == MST_DO_COMMIT ||
		      d->kind == MST_DO_START || d->kind == MST_DO_ADMIT ||
		      d->kind == MST_DO_SEND_STATE || d->kind == MST_DO_FINISH;

	if (w->finished && counts)
		watch_complain(w, "a decision of kind %d after the end", d->kind);
	if (w->settling && (d->kind == MST_DO_COUNT || d->kind == MST_DO_COMMIT))
		watch_complain(w, "a decision of kind %d while the job ends", d->kind);
	switch (d->kind) {
	case MST_DO_ADMIT:
		see_admission(w, d);
		break;
	case MST_DO_START:
		see_version(w, 0, d->commit.buffer);
		w->started = true;
		break;
	case MST_DO_COMMIT:
		see_version(w, d->commit.version, d->commit.buffer);
		see_record(w, d);
		see_shares(w, d);
		break;
	case MST_DO_FINISH:
		see_finish(w, d);
		break;
	case MST_DO_SETTLE:
		if (w->settling)
			watch_complain(w, "the shards are asked twice whether they are done");
		w->settling = true;
		break;
	case MST_DO_SAVE:
		see_save(w, d);
		break;
	case MST_DO_LEND:
		see_lend(w, d);
		break;
	case MST_DO_SAVED:
		if (!w->saving)
			watch_complain(w, "a version is saved that nobody was to save");
		w->saving = false;
		break;
	case MST_DO_APPLY: /* no optimiser here has a reduce phase */
		watch_complain(w, "a version is applied that nobody has reduced");
		break;
	case MST_DO_POLICY:
		w->rule = *mst_ledger_rule(w->ledger);
		break;
	case MST_DO_REFUSE:
		break;
	default:
		see_member(w, d);
	}
}

/* May this buffer be held for as long as a worker, or its link, likes? */
static bool held_for_long(const struct watch *w, uint32_t buffer)
{
	for (size_t i = 0; i < w->visitor_count; i++) {
		const struct visitor *v = w->visitor[i];
		bool reads = v->in_place && v->reads == buffer;
		bool sent = (w->cfg.sent || v->far) && copies(w, v, buffer);
		if (!v->ended && (reads || sent))
			return true;
	}
	return false;
}

/* One buffer is left for the next version, even when all that is held for long has become old. */
static void check_room(struct watch *w)
{
	uint32_t buffers = mst_ledger_buffers(&w->cfg), held = 0;
	uint32_t kept = w->cfg.owner == MUSTER_WORKERS_OWN ? w->cfg.history : 1;

	for (uint32_t buffer = 0; buffer < buffers; buffer++)
		held += held_for_long(w, buffer);
	if (!w->finished && held + kept + 1 > buffers)
		watch_complain(w, "of %u buffers workers hold %u, and %u are kept: none is left",
			       buffers, held, kept);
}

/* A worker that rests is not waited for. A worker whose ask is held is answered with the next
 * version. The step never waits for such workers alone. */
static void check_standings(struct watch *w)
{
	uint32_t held = 0, awaited = 0;

	for (uint32_t rank = 0; rank < w->cfg.workers; rank++) {
		struct standing *s = &w->standing[rank];
		struct mst_member_view view;
		mst_ledger_member(w->ledger, rank, &view);
		if (view.rests != s->rests || (view.rests && view.awaited))
			watch_complain(w, "rank %u: rests %d not %d, awaited %d", rank, view.rests,
				       s->rests, view.awaited);
		if (view.held && s->held && s->versions != w->version_count)
			watch_complain(w, "rank %u is held for longer than to the next version",
				       rank);
		if (view.held && (!view.awaited || !view.asks))
			watch_complain(w, "rank %u is held, asks %d, awaited %d", rank, view.asks,
				       view.awaited);
		s->held = view.held;
		s->versions = w->version_count;
		held += view.held;
		awaited += view.awaited;
	}
	if (held > 0 && w->uncommitted == 0 && awaited == held)
		watch_complain(w, "all %u that the step waits for are held", held);
}

/* The newest version tells how its successor is worked at. */
static void check_pace(struct watch *w)
{
	const struct mst_rule *rule = mst_ledger_rule(w->ledger);
	const struct mst_record *rec = mst_ledger_record_of(w->ledger, w->version_count - 1);
	bool until_asked = rule->collect && rule->trigger == MST_TRIGGER_DEADLINE;

	if (rec->window != rule->window || rec->until_asked != until_asked ||
	    rec->by_micro != rule->by_micro ||
	    memcmp(&rec->pace, &rule->pace, sizeof(rule->pace)) != 0)
		watch_complain(w, "version %zu has not the pace of its step", w->version_count - 1);
}

void watch_time(struct watch *w, uint64_t now_ns)
{
	w->now_ns = now_ns;
}

void watch_settled(struct watch *w)
{
	uint64_t newest = w->version_count == 0 ? 0 : w->version_count - 1;

	check_room(w);
	check_standings(w);
	if (w->started && !w->finished)
		check_pace(w);
	if (mst_ledger_version(w->ledger) != newest)
		watch_complain(w, "the newest version is %" PRIu64 ", the ledger says %" PRIu64,
			       newest, mst_ledger_version(w->ledger));
}

void watch_blocked(struct watch *w)
{
	for (size_t i = 0; i < w->visitor_count && !w->cfg.sent; i++) {
		const struct visitor *v = w->visitor[i];
		if (!v->ended && !v->far && copies(w, v, MST_BUFFER_NONE))
			return;
	}
	watch_complain(w, "a commit waits for workers, not for a shard that copies");
}

void watch_ticked(struct watch *w, uint64_t now_ns)
{
	watch_settled(w);
	if (mst_ledger_deadline(w->ledger) <= now_ns)
		watch_complain(w, "a tick at %" PRIu64 " leaves a deadline at %" PRIu64, now_ns,
			       mst_ledger_deadline(w->ledger));
}

const char *watch_complaint(const struct watch *w)
{
	return w->complaint[0] == '\0' ? NULL : w->complaint;
}

struct watch *watch_new(const struct mst_ledger_cfg *cfg, const struct mst_ledger *ledger)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		abort();
	w->cfg = *cfg;
	w->ledger = ledger;
	w->rule = cfg->rule;
	w->standing = calloc(cfg->workers, sizeof(*w->standing));
	return w;
}

void watch_free(struct watch *w)
{
	for (size_t i = 0; i < w->visitor_count; i++) {
		free(w->visitor[i]->copy);
		free(w->visitor[i]->verdict);
		free(w->visitor[i]);
	}
	free(w->visitor);
	free(w->buffer_of);
	free(w->standing);
	free(w);
}
