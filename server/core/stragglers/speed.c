/* SPDX-License-Identifier: MIT */
#include "server/core/stragglers/speed.h"

#include <math.h>
#include <string.h>

#include "common/base/clock.h"

/* K of the bets. With 0.4 bets on a rank three times as slow grow fastest, whose durations are
 * exponential: those are the hardest to tell. */
#define K 0.4
/* Evidence is kept up to so many times what is enough, or a rank that was slow for an hour would
 * have to be fast for an hour. */
#define MOST 1.5

static void recent_add(struct mst_speed_recent *r, uint64_t ns)
{
	r->ns[r->count++ % MST_SPEED_RECENT] = ns;
}

/* Return: the mean of the last @count. */
static double recent_mean(const struct mst_speed_recent *r, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 1; i <= count; i++)
		sum += (double)r->ns[(r->count - i) % MST_SPEED_RECENT];
	return sum / count;
}

static uint64_t recent_median(const struct mst_speed_recent *r)
{
	uint32_t count = r->count < MST_SPEED_RECENT ? r->count : MST_SPEED_RECENT;
	uint64_t sorted[MST_SPEED_RECENT];

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;
		for (; at > 0 && sorted[at - 1] > r->ns[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = r->ns[i];
	}
	return sorted[(count - 1) / 2];
}

uint64_t mst_speed_choice(const struct mst_speed *p)
{
	return p->choice.count < 2 || p->sample.count < 2 ? 0 : recent_median(&p->choice);
}

/* ---- evidence ---- */

static double bet(const struct mst_reference *ref, uint64_t ns)
{
	return log(K) + (K - 1) * log(mst_reference_share(ref, ns));
}

static void take(struct mst_speed *p, const struct mst_reference *ref, double enough, uint64_t ns)
{
	if (p->evidence <= 0) {
		p->since_ns = p->began_ns;
		p->sum_ns = p->waited_ns = p->gradients = 0;
	}
	p->evidence = fmin(fmax(p->evidence + bet(ref, ns), 0), MOST * enough);
	p->sum_ns += mst_reference_cut(ref, ns);
	p->gradients++;
}

static double ratio_of(const struct mst_speed *p, const struct mst_reference *ref)
{
	if (p->gradients == 0 || ref->mean_ns == 0)
		return 1;
	return (double)p->sum_ns / p->gradients / (double)ref->mean_ns;
}

/* @p with its present gradient as if it ended now: it lasts at least as long. */
static struct mst_speed with_present(const struct mst_speed *p, const struct mst_reference *ref,
				     double enough, uint64_t now_ns)
{
	struct mst_speed with = *p;

	if (p->began_ns != 0 && ref->count > 0)
		take(&with, ref, enough, now_ns - p->began_ns);
	return with;
}

static bool is_found(const struct mst_speed *p, const struct mst_reference *ref, double enough)
{
	return p->evidence >= enough && ratio_of(p, ref) >= MST_SPEED_RATIO;
}

/* ---- a gradient ---- */

void mst_speed_begin(struct mst_speed *p, uint64_t now_ns)
{
	p->began_ns = now_ns;
}

static void remember(struct mst_speed *p, uint64_t ns)
{
	recent_add(p->next_is_sample ? &p->sample : &p->choice, ns);
	p->next_is_sample = !p->next_is_sample;
	recent_add(&p->last, ns);
}

void mst_speed_forget(struct mst_speed *p)
{
	p->evidence = 0;
	p->since_ns = p->sum_ns = p->waited_ns = p->gradients = 0;
	p->slow = false;
	p->last.count = 0;
}

static bool is_fast_again(const struct mst_speed *p, const struct mst_reference *ref)
{
	return p->last.count >= MST_SPEED_AGAIN &&
	       recent_mean(&p->last, MST_SPEED_AGAIN) < MST_SPEED_RATIO * (double)ref->mean_ns;
}

void mst_speed_end(struct mst_speed *p, const struct mst_reference *ref, double enough,
		   uint64_t now_ns)
{
	uint64_t ns = now_ns - p->began_ns;

	if (p->began_ns == 0)
		return;
	remember(p, ns);
	if (ref->count > 0) {
		take(p, ref, enough, ns);
		if (!p->slow && is_found(p, ref, enough)) {
			p->slow = true;
			p->last.count = 0;
		} else if (p->slow && is_fast_again(p, ref)) {
			mst_speed_forget(p);
		}
	}
	p->began_ns = 0;
}

void mst_speed_drop(struct mst_speed *p)
{
	p->began_ns = 0;
}

void mst_speed_probed(struct mst_speed *p, uint64_t now_ns)
{
	if (p->began_ns != 0)
		recent_add(&p->last, now_ns - p->began_ns);
	p->began_ns = 0;
}

/* ---- verdicts ---- */

bool mst_speed_is_stalled(const struct mst_speed *p, const struct mst_reference *ref,
			  uint64_t now_ns)
{
	uint64_t ns = now_ns - p->began_ns;

	return p->began_ns != 0 && ref->count > 0 && ns > MST_SPEED_LONG_MS * MST_MS &&
	       ns > MST_SPEED_STALLED * ref->mean_ns;
}

bool mst_speed_is_slow(const struct mst_speed *p, const struct mst_reference *ref, double enough,
		       uint64_t now_ns)
{
	if (p->slow || p->began_ns == 0 || ref->count == 0)
		return p->slow && ref->count > 0;
	struct mst_speed with = with_present(p, ref, enough, now_ns);
	return mst_speed_is_stalled(p, ref, now_ns) || is_found(&with, ref, enough);
}

bool mst_speed_is_long(const struct mst_speed *p, const struct mst_reference *ref, uint64_t now_ns)
{
	uint64_t ns = now_ns - p->began_ns;

	return p->began_ns != 0 && ref->count > 0 && ns > MST_SPEED_LONG_MS * MST_MS &&
	       ns > MST_SPEED_LONG * ref->mean_ns && ns > ref->sorted_ns[ref->count - 1];
}

double mst_speed_ratio(const struct mst_speed *p, const struct mst_reference *ref, uint64_t now_ns)
{
	struct mst_speed with = with_present(p, ref, HUGE_VAL, now_ns);
	double alone = ratio_of(p, ref), together = ratio_of(&with, ref);

	return together > alone ? together : alone;
}

bool mst_speed_may_return(const struct mst_speed *p, const struct mst_reference *ref)
{
	return p->last.count >= MST_SPEED_PROBES &&
	       recent_mean(&p->last, MST_SPEED_PROBES) < MST_SPEED_BACK * (double)ref->mean_ns;
}
