/* SPDX-License-Identifier: MIT */
/*
 * Periods: what has happened while each policy was in force. A period begins with the first version
 * that is made under its policy, and lasts until the next begins. The last MST_STATUS_POLICIES of
 * them are kept. Pure.
 */
#ifndef MST_SERVER_CORE_STATISTICS_PERIODS_H
#define MST_SERVER_CORE_STATISTICS_PERIODS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"
#include "common/wire/rule.h"

struct mst_period {
	uint64_t since, versions;
	uint64_t steps, steps_ns;
	uint64_t verdict[MUSTER_DAMAGED + 1]; /* by enum muster_verdict */
	uint32_t window;
	bool drops; /* the window has become 0: what was on its way cannot count */
	uint64_t dropped;
};

/* Zeroed: none has begun. */
struct mst_periods {
	uint32_t count; /* in all */
	struct mst_period kept[MST_STATUS_POLICIES];
};

/* The present one. */
static inline struct mst_period *mst_periods_now(struct mst_periods *s)
{
	return &s->kept[(s->count - 1) % MST_STATUS_POLICIES];
}

/* A policy is in force, from version @since on. */
void mst_periods_begin(struct mst_periods *s, uint64_t since, const struct mst_rule *rule);

/* A version is committed. */
static inline void mst_periods_version(struct mst_periods *s)
{
	mst_periods_now(s)->versions++;
}
/* Its step has lasted @step_ns. */
static inline void mst_periods_step(struct mst_periods *s, uint64_t step_ns)
{
	struct mst_period *period = mst_periods_now(s);

	period->steps++;
	period->steps_ns += step_ns;
}
/* A gradient is judged; @version was committed last. Before the first period nothing is counted. */
static inline void mst_periods_verdict(struct mst_periods *s, enum muster_verdict verdict,
				       uint64_t version)
{
	if (s->count == 0)
		return;
	struct mst_period *period = mst_periods_now(s);
	period->verdict[verdict]++;
	period->dropped += period->drops && verdict == MUSTER_LATE && version + 1 == period->since;
}

/* mst_statistics_dropped(); @version was committed last. */
static inline uint64_t mst_periods_dropped(const struct mst_periods *s, uint64_t version)
{
	const struct mst_period *period = &s->kept[(s->count - 1) % MST_STATUS_POLICIES];

	return s->count > 0 && version == period->since ? period->dropped : 0;
}
/* Writes the periods that are kept to the status, the oldest first. */
void mst_periods_fill(const struct mst_periods *s, struct mst_status *out);

#endif
