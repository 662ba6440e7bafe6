/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/strides.h"

#include <math.h>

#include "server/core/ledger/state/verdict.h"

void mst_stride_answered(struct mst_ledger *l, const struct mst_member *m)
{
	struct mst_stride *s = &l->stride[m->rank];

	s->answered_ns = l->now_ns;
	s->probes = false;
	if (!s->goes_on && l->phase != MST_PHASE_ENDED)
		mst_stragglers_began(&l->judge, m->rank, l->now_ns);
	s->goes_on = false;
}

/* When a contribution would have come that has as many samples as the first one. */
static uint64_t came_scaled(struct mst_ledger *l, const struct mst_member *m, double samples)
{
	uint64_t began_ns = l->judge.speed[m->rank].began_ns;

	if (!mst_stride_by_samples(&l->rule) || !mst_weight_is_sane(samples) || began_ns == 0)
		return l->now_ns;
	if (l->part_samples <= 0)
		l->part_samples = samples;
	if (samples > l->part_most)
		l->part_most = samples;
	double took_ns = (double)(l->now_ns - began_ns) * (l->part_samples / samples);
	return began_ns + (uint64_t)fmin(took_ns, MST_STRAGGLERS_MOST_NS);
}

/* The time in which an ask was held does not count: the time runs from the answer. */
void mst_stride_came(struct mst_ledger *l, const struct mst_member *m,
		     const struct mst_lane_header *h)
{
	struct mst_stride *s = &l->stride[m->rank];

	if (s->answered_ns != 0)
		mst_durations_add(&s->durations, l->now_ns - s->answered_ns);
	s->answered_ns = 0;
	s->goes_on = l->rule.collect && (h->flags & MST_HEADER_PASS);
	if (s->goes_on)
		return;
	if (s->put_to_rest)
		mst_stragglers_probed(&l->judge, m->rank, l->now_ns);
	else
		mst_stragglers_came(&l->judge, m->rank, came_scaled(l, m, h->weight));
}

void mst_stride_gave_up(struct mst_ledger *l, const struct mst_member *m, uint64_t so_far)
{
	struct mst_stride *s = &l->stride[m->rank];
	bool more = so_far > s->given_up;

	if (!more || l->phase != MST_PHASE_RUNNING)
		return;
	s->given_up = so_far;
	if (s->put_to_rest)
		mst_stragglers_probed(&l->judge, m->rank, l->now_ns);
	else
		mst_stragglers_gave_up(&l->judge, m->rank, l->now_ns);
}

/* How long after the commit of its step a gradient on version @tag came. Of steps before the last
 * one it is known only how long they usually take. */
static uint64_t behind(const struct mst_ledger *l, uint64_t tag, uint64_t came_ns, uint64_t step_ns)
{
	uint64_t steps = l->store.newest > tag + 1 ? l->store.newest - tag - 1 : 0;

	return (came_ns > l->opened_ns ? came_ns - l->opened_ns : 0) + steps * step_ns;
}

void mst_stride_judged(struct mst_ledger *l, const struct mst_member *m, uint64_t tag,
		       enum muster_verdict verdict, uint64_t came_ns)
{
	uint64_t step_ns = mst_durations_median(&l->steps);

	if (l->stride[m->rank].put_to_rest)
		return;
	if (verdict == MUSTER_COUNTED) {
		if (l->rule.release == MST_RELEASE_COMMIT)
			mst_stragglers_counted(&l->judge, m->rank, came_ns);
		mst_stragglers_missed(&l->judge, m->rank, NULL, l->now_ns);
	} else if (verdict == MUSTER_LATE || verdict == MUSTER_STALE) {
		struct mst_miss miss = { .step_ns = step_ns };
		miss.behind_ns = behind(l, tag, came_ns, step_ns);
		mst_stragglers_missed(&l->judge, m->rank, &miss, l->now_ns);
	}
}

void mst_stride_gone(struct mst_ledger *l, const struct mst_member *m)
{
	struct mst_stride *s = &l->stride[m->rank];

	s->slow_windows = 0;
	s->put_to_rest = s->probes = s->goes_on = false;
	s->given_up = 0;
	mst_stragglers_gone(&l->judge, m->rank, mst_member_missing(m), l->now_ns);
}

/* Where contributions are parts of batches, what is under way will be as large as the largest one
 * of the last step. The first of all, by which times are scaled, may be much smaller: programs are
 * slow at first. */
static void scale_present(struct mst_ledger *l)
{
	if (!mst_stride_by_samples(&l->rule))
		l->judge.scale = 1;
	else if (l->part_most > 0)
		l->judge.scale = l->part_samples / l->part_most;
	l->part_most = 0;
}

void mst_stride_step(struct mst_ledger *l)
{
	scale_present(l);
	mst_stragglers_step(&l->judge, l->opened_ns);
}

void mst_stride_rule(struct mst_ledger *l, const struct mst_rule *before)
{
	if (mst_stride_by_samples(before) == mst_stride_by_samples(&l->rule))
		return;
	l->part_samples = l->part_most = 0;
	mst_stragglers_compare_anew(&l->judge);
}
