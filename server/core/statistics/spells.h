/* SPDX-License-Identifier: MIT */
/*
 * Spells: what has happened while each policy was in force. A spell begins with the first version
 * that is made under its policy, and lasts until the next begins. The last MST_STATUS_POLICIES of
 * them are kept. Pure.
 */
#ifndef MST_SERVER_CORE_STATISTICS_SPELLS_H
#define MST_SERVER_CORE_STATISTICS_SPELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"
#include "common/wire/rule.h"

struct mst_spell {
	uint64_t since, versions;
	uint64_t steps, steps_ns;
	uint64_t verdict[MUSTER_DAMAGED + 1]; /* by enum muster_verdict */
	uint32_t window;
	bool drops; /* the window has become 0: what was on its way cannot count */
	uint64_t dropped;
};

/* Zeroed: none has begun. */
struct mst_spells {
	uint32_t count; /* in all */
	struct mst_spell kept[MST_STATUS_POLICIES];
};

/* The present one. */
static inline struct mst_spell *mst_spells_now(struct mst_spells *s)
{
	return &s->kept[(s->count - 1) % MST_STATUS_POLICIES];
}

/* A policy is in force, from version @since on. */
void mst_spells_begin(struct mst_spells *s, uint64_t since, const struct mst_rule *rule);

/* A version is committed. */
static inline void mst_spells_version(struct mst_spells *s)
{
	mst_spells_now(s)->versions++;
}
/* Its step has lasted @step_ns. */
static inline void mst_spells_step(struct mst_spells *s, uint64_t step_ns)
{
	struct mst_spell *spell = mst_spells_now(s);

	spell->steps++;
	spell->steps_ns += step_ns;
}
/* A gradient is judged; @version was committed last. Before the first spell nothing is counted. */
static inline void mst_spells_verdict(struct mst_spells *s, enum muster_verdict verdict,
				      uint64_t version)
{
	if (s->count == 0)
		return;
	struct mst_spell *spell = mst_spells_now(s);
	spell->verdict[verdict]++;
	spell->dropped += spell->drops && verdict == MUSTER_LATE && version + 1 == spell->since;
}

/* mst_statistics_dropped(); @version was committed last. */
static inline uint64_t mst_spells_dropped(const struct mst_spells *s, uint64_t version)
{
	const struct mst_spell *spell = &s->kept[(s->count - 1) % MST_STATUS_POLICIES];

	return s->count > 0 && version == spell->since ? spell->dropped : 0;
}
/* Writes the spells that are kept to the status, the oldest first. */
void mst_spells_fill(const struct mst_spells *s, struct mst_status *out);

#endif
