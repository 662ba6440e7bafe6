/* SPDX-License-Identifier: MIT */
#include "server/core/stragglers/misses.h"

#include <math.h>
#include <stddef.h>

/* A share cannot be told exactly from few gradients; and a bet on what never happens to others
 * would be won with one gradient. */
#define SHARE_LEAST 0.02
#define SHARE_MOST 0.95
#define MORE 0.25
#define MOST 1.5 /* times what is enough: more evidence is not kept */

static double bounded(double share)
{
	return fmin(fmax(share, SHARE_LEAST), SHARE_MOST);
}

static double bet(bool missed, double share)
{
	double q = bounded(share), a = fmin(fmax(2 * q, q + MORE), SHARE_MOST);

	return missed ? log(a / q) : log((1 - a) / (1 - q));
}

uint32_t mst_misses_recent(const struct mst_missing_rate *m)
{
	return (uint32_t)__builtin_popcount(m->recent);
}

static void remember(struct mst_missing_rate *m, bool missed)
{
	m->recent = m->recent << 1 | missed;
	m->known += m->known < MST_MISSES_RECENT;
}

static void forget(struct mst_missing_rate *m)
{
	*m = (struct mst_missing_rate){ .recent = m->recent, .known = m->known };
}

static void take(struct mst_missing_rate *m, const struct mst_miss *miss, double more,
		 double enough, uint64_t now_ns)
{
	if (m->evidence <= 0) {
		forget(m);
		m->since_ns = now_ns;
	}
	m->evidence = fmin(fmax(m->evidence + more, 0), MOST * enough);
	m->gradients++;
	if (miss == NULL)
		return;
	m->missed++;
	m->given_up += miss->given_up;
	if (!miss->given_up) {
		m->behind_ns += miss->behind_ns;
		m->step_ns += miss->step_ns;
	}
}

static bool holds_up(const struct mst_missing_rate *m)
{
	return 2 * m->given_up > m->missed ||
	       (double)m->behind_ns > MST_MISSES_FLOOR * (double)m->step_ns;
}

static bool is_found(const struct mst_missing_rate *m, double share, double enough)
{
	return m->evidence >= enough && m->missed > MST_MISSES_RATIO * share * m->gradients &&
	       holds_up(m);
}

/* A rank that is late is late no more when its gradients come in time again, or hardly after it. */
static bool is_in_time_again(const struct mst_missing_rate *m, double share)
{
	uint32_t missed = (uint32_t)__builtin_popcount(m->recent & ((1u << MST_MISSES_AGAIN) - 1));

	return m->after >= MST_MISSES_AGAIN &&
	       (missed <= MST_MISSES_RATIO * bounded(share) * MST_MISSES_AGAIN || !holds_up(m));
}

#define FADES 8u /* each gradient that misses its step takes so much of what was before it */

static void follow(struct mst_missing_rate *m, const struct mst_miss *miss)
{
	if (miss == NULL)
		return;
	m->missed++;
	m->given_up += miss->given_up;
	if (miss->given_up)
		return;
	m->behind_ns += miss->behind_ns - m->behind_ns / FADES;
	m->step_ns += miss->step_ns - m->step_ns / FADES;
}

void mst_misses_add(struct mst_missing_rate *m, const struct mst_miss *miss, double share,
		    double enough, uint64_t now_ns)
{
	remember(m, miss != NULL);
	if (m->late) {
		m->after++;
		follow(m, miss);
		if (is_in_time_again(m, share))
			forget(m);
		return;
	}
	take(m, miss, bet(miss != NULL, share), enough, now_ns);
	m->late = is_found(m, share, enough);
}
