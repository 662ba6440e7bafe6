/* SPDX-License-Identifier: MIT */
/*
 * Delay models, for examples, tools and the simulator: how long a worker's gradient takes longer.
 *
 *   const:MS  uniform:LO,HI  exp:MEAN  sexp:SHIFT,MEAN  pareto:SCALE,ALPHA
 *   lognormal:MEDIAN,SIGMA   mix:P,FACTOR  trace:FILE        (milliseconds)
 *
 * A list of them is given as "MODEL" for all ranks and "RANK:MODEL" for one, which replaces it.
 * mix:P,FACTOR multiplies what the model for all ranks gives by FACTOR with probability P and so
 * is given beside another model. trace:FILE: CSV of step,worker,ready_us with a header line; rank r
 * takes the times of worker r mod (workers in the file), and starts over at the end.
 */
#ifndef MST_DELAY_DELAY_H
#define MST_DELAY_DELAY_H

#include <stddef.h>
#include <stdint.h>

struct mst_delay;

/* The model of one rank out of a list of specs as above. @why: on failure a sentence that quotes
 * the spec. Return: 0; -EINVAL; -ENOMEM; the errno of a trace that cannot be read. */
struct mst_delay_options {
	const char *const *spec;
	uint32_t spec_count;
	uint32_t rank;
	uint64_t seed; /* together with rank: same seed, same delays */
};
int mst_delay_new(const struct mst_delay_options *opt, struct mst_delay **out, char *why,
		  size_t why_len);
void mst_delay_free(struct mst_delay *d); /* accepts NULL */

/* The next delay, in ns. 0 for an empty list. */
uint64_t mst_delay_next(struct mst_delay *d);

#endif
