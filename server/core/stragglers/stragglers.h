/* SPDX-License-Identifier: MIT */
/*
 * The judge of who is slow. Pure: it is told when gradients begin and end.
 *
 * A rank is compared with the fast ranks. A rank is fast if its median is at most MST_SPEED_RATIO
 * times that of the rank at the first quarter in order of speed. So up to three
 * quarters of the ranks can be slow. If all are, none is: nobody holds the others up. How one rank
 * is judged says speed.h.
 *
 * Evidence is enough if it is MST_STRAGGLERS_RARE times the number of ranks. So a job with more
 * ranks has no more false alarms: about one in a thousand steps (docs/policies.md has a table).
 * Each costs some gradients of one rank.
 */
#ifndef MST_SERVER_CORE_STRAGGLERS_STRAGGLERS_H
#define MST_SERVER_CORE_STRAGGLERS_STRAGGLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/stragglers/speed.h"

#define MST_STRAGGLERS_RARE 50.0

struct mst_stragglers {
	struct mst_speed *speed; /* by rank */
	uint32_t ranks;
	double enough; /* the logarithm of the evidence that is */
	struct mst_reference fast;
	uint32_t fresh;   /* gradients that came since `fast` was made */
	uint64_t *choice; /* by rank: mst_speed_choice(), as `fast` was made */
	uint64_t *sorted; /* room for one number for each rank */
};

/* Return: 0 or -ENOMEM. */
int mst_stragglers_init(struct mst_stragglers *s, uint32_t ranks);
void mst_stragglers_fini(struct mst_stragglers *s);
uint64_t mst_stragglers_bytes(uint32_t ranks);

/* A rank's gradient begins, and is there. No effect: an end without a beginning. */
void mst_stragglers_began(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns);
void mst_stragglers_came(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns);
/* The gradient of a rank that rests is there. */
void mst_stragglers_probed(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns);
/* The worker of a rank has gone. Nothing of it says anything of the next one. */
void mst_stragglers_gone(struct mst_stragglers *s, uint32_t rank);
/* A rank rests from now on, or takes part again: it is not slow until it is found to be anew. */
void mst_stragglers_forget(struct mst_stragglers *s, uint32_t rank);

static inline bool mst_stragglers_is_slow(const struct mst_stragglers *s, uint32_t rank,
					  uint64_t now_ns)
{
	return mst_speed_is_slow(&s->speed[rank], &s->fast, s->enough, now_ns);
}

static inline double mst_stragglers_ratio(const struct mst_stragglers *s, uint32_t rank,
					  uint64_t now_ns)
{
	return mst_speed_ratio(&s->speed[rank], &s->fast, now_ns);
}

static inline bool mst_stragglers_may_return(const struct mst_stragglers *s, uint32_t rank)
{
	return mst_speed_may_return(&s->speed[rank], &s->fast);
}

#endif
