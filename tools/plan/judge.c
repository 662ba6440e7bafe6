/* SPDX-License-Identifier: MIT */
#include "tools/plan/judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "server/core/stragglers/stragglers.h"

#define NS_PER_US 1e3
#define BEGIN_NS 1 /* of each step, as only differences count; 0 would be: not begun */
/* Eleven days. Longer times say no more, and sums of them might not fit. */
#define MOST_US 1e12
/* As many as the judge keeps of a rank, of which every second says how fast the fast ones are. */
#define STEPS_TWICE (2 * MST_SPEED_RECENT)

struct hearing {
	const struct mst_arrivals *a;
	struct mst_stragglers judge;
	bool *slow;
	uint32_t *since; /* by rank: where its period begins, if the judge finds it slow */
	bool *was;       /* by rank: the judge did so after the step before */
};

static uint64_t time_ns(const struct hearing *h, uint32_t step, uint32_t rank)
{
	return (uint64_t)(fmin(h->a->us[(size_t)step * h->a->ranks + rank], MOST_US) * NS_PER_US);
}

static void tell(struct hearing *h, uint32_t step)
{
	for (uint32_t rank = 0; rank < h->a->ranks; rank++)
		mst_stragglers_began(&h->judge, rank, BEGIN_NS);
	for (uint32_t rank = 0; rank < h->a->ranks; rank++)
		mst_stragglers_came(&h->judge, rank, BEGIN_NS + time_ns(h, step, rank));
}

static void warm_up(struct hearing *h)
{
	for (uint32_t step = 0; step < h->a->steps && step < STEPS_TWICE; step++)
		tell(h, step);
	for (uint32_t rank = 0; rank < h->a->ranks; rank++)
		mst_stragglers_forget(&h->judge, rank);
}

/* The judge's evidence may begin with a long time that chance brought, and the judge is sure that a
 * rank is fast again some time after it is so. Marks the part of the period at hand in which the
 * sum of what its times are above the judge's ratio is largest.
 * @before: the step after the last one that the judge found the rank slow in. */
static void mark(struct hearing *h, uint32_t rank, uint32_t before)
{
	double limit = MST_SPEED_RATIO * (double)h->judge.fast.mean_ns, sum = 0, most = 0;
	uint32_t from = h->since[rank], begin = from, end = from;

	for (uint32_t step = from; step < before; step++) {
		uint64_t ns = mst_reference_cut(&h->judge.fast, time_ns(h, step, rank));
		if (sum <= 0) {
			from = step;
			sum = 0;
		}
		sum += (double)ns - limit;
		if (sum > most) {
			most = sum;
			begin = from;
			end = step + 1;
		}
	}
	for (uint32_t step = begin; step < end; step++)
		h->slow[(size_t)step * h->a->ranks + rank] = true;
}

/* The gradients of the evidence are the last ones, up to @step. */
static void look(struct hearing *h, uint32_t step, uint32_t rank)
{
	bool is_slow = mst_stragglers_is_slow(&h->judge, rank, BEGIN_NS);

	if (is_slow && !h->was[rank]) {
		uint32_t gradients = h->judge.speed[rank].gradients;
		h->since[rank] = step + 1 > gradients ? step + 1 - gradients : 0;
	} else if (!is_slow && h->was[rank]) {
		mark(h, rank, step);
	}
	h->was[rank] = is_slow;
}

static void judge(struct hearing *h)
{
	uint32_t steps = h->a->steps, ranks = h->a->ranks;

	warm_up(h);
	for (uint32_t step = 0; step < steps; step++) {
		tell(h, step);
		for (uint32_t rank = 0; rank < ranks; rank++)
			look(h, step, rank);
	}
	for (uint32_t rank = 0; rank < ranks; rank++)
		if (h->was[rank])
			mark(h, rank, steps);
}

int mst_judge_trace(const struct mst_arrivals *a, bool *slow)
{
	struct hearing h = { .a = a, .slow = slow };
	int rc = mst_stragglers_init(&h.judge, a->ranks);

	h.since = calloc(a->ranks, sizeof(*h.since));
	h.was = calloc(a->ranks, sizeof(*h.was));
	if (rc == 0 && h.since != NULL && h.was != NULL)
		judge(&h);
	else
		rc = -ENOMEM;
	mst_stragglers_fini(&h.judge);
	free(h.since);
	free(h.was);
	return rc;
}
