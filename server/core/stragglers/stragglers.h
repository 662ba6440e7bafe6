/* SPDX-License-Identifier: MIT */
/*
 * The judge of who is slow. Pure: it is told when gradients begin and end, what their verdicts are,
 * and when steps are over.
 *
 * A rank is compared with the fast ranks. A rank is fast if its median is at most MST_SPEED_RATIO
 * times that of the rank at the first quarter in order of speed. So up to three quarters of the
 * ranks can be slow. If all are, none is: nobody holds the others up. How one rank is judged says
 * speed.h.
 *
 * Evidence is enough if it is MST_STRAGGLERS_RARE times the number of ranks. So a job with more
 * ranks has no more false alarms: about one in a thousand steps (docs/policies.md has a table).
 * Each costs some gradients of one rank.
 *
 * A rank that is no slower may be late: misses.h says how that is found.
 */
#ifndef MST_SERVER_CORE_STRAGGLERS_STRAGGLERS_H
#define MST_SERVER_CORE_STRAGGLERS_STRAGGLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/stragglers/misses.h"
#include "server/core/stragglers/speed.h"
#include "server/core/stragglers/straggler.h"
#include "server/core/stragglers/waiting.h"

#define MST_STRAGGLERS_RARE 50.0

/* However a time is scaled, it is no longer than this. */
#define MST_STRAGGLERS_MOST_NS 1e15

struct mst_stragglers {
	/* By rank. */
	struct mst_speed *speed;
	struct mst_missing_rate *misses;
	struct mst_straggler *found; /* as mst_stragglers_look() has left it */
	uint64_t *came_ns; /* its contribution to the open step, if it is a straggler; or 0 */
	uint32_t ranks;
	struct mst_waiting waiting;
	double missed_share; /* of all gradients, how many miss their step */
	double enough;       /* the logarithm of the evidence that is */
	/* Times of gradients that came may be told as those of equally many samples. How many will
	 * be in one that is under way is not known: its time is multiplied by this. */
	double scale;
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
/* The worker has given its gradient up, because it could not count any more. How long it would have
 * taken is not known, but that it missed its step is. */
void mst_stragglers_gave_up(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns);
/* A gradient that came has missed its step, or has not (@miss: NULL). */
void mst_stragglers_missed(struct mst_stragglers *s, uint32_t rank, const struct mst_miss *miss,
			   uint64_t now_ns);
/* A contribution to the open step has come at @came_ns, and is counted. To be called where workers
 * wait for the commit. */
void mst_stragglers_counted(struct mst_stragglers *s, uint32_t rank, uint64_t came_ns);
/* The step that was opened at @opened_ns is over. */
void mst_stragglers_step(struct mst_stragglers *s, uint64_t opened_ns);
/* The worker of a rank has gone. @awaited: the open step has waited for it. Nothing of it says
 * anything of the next one. */
void mst_stragglers_gone(struct mst_stragglers *s, uint32_t rank, bool awaited, uint64_t now_ns);
/* The job is over: nothing is under way, and nobody is a straggler any longer. */
void mst_stragglers_over(struct mst_stragglers *s, uint64_t now_ns);
/* A rank rests from now on, or takes part again: it is not slow until it is found to be anew. */
void mst_stragglers_forget(struct mst_stragglers *s, uint32_t rank);

/* Judges a rank now. A rank that rests is not judged, and stays what it was found to be.
 * Return: it is found to be a straggler, or to be none any more, or one of another kind. */
bool mst_stragglers_look(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns);
/* What the rank was found to be by the last look; or, if it was found to be no straggler and is at
 * its present gradient for long, STALLED. */
struct mst_straggler mst_stragglers_of(const struct mst_stragglers *s, uint32_t rank,
				       uint64_t now_ns);

/* @now_ns, as it is for the rank's present gradient, whose time is scaled. */
uint64_t mst_stragglers_scaled(const struct mst_stragglers *s, uint32_t rank, uint64_t now_ns);

/* How long the fast ranks' gradients take on average; 0: not known. */
uint64_t mst_stragglers_fast_ns(const struct mst_stragglers *s);

/* A rank that rests returns for another reason than its speed: it is slow until its gradients say
 * that it is not, unless its probes have. */
void mst_stragglers_stay_slow(struct mst_stragglers *s, uint32_t rank);
/* What a contribution is has changed, so durations from before say nothing of those after it. */
void mst_stragglers_compare_anew(struct mst_stragglers *s);

static inline bool mst_stragglers_is_slow(const struct mst_stragglers *s, uint32_t rank,
					  uint64_t now_ns)
{
	return mst_speed_is_slow(&s->speed[rank], &s->fast, s->enough,
				 mst_stragglers_scaled(s, rank, now_ns));
}

static inline double mst_stragglers_ratio(const struct mst_stragglers *s, uint32_t rank,
					  uint64_t now_ns)
{
	return mst_speed_ratio(&s->speed[rank], &s->fast, mst_stragglers_scaled(s, rank, now_ns));
}

static inline bool mst_stragglers_may_return(const struct mst_stragglers *s, uint32_t rank)
{
	return mst_speed_may_return(&s->speed[rank], &s->fast);
}

#endif
