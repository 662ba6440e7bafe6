/* SPDX-License-Identifier: MIT */
/*
 * Delay models for examples, tools and the simulator: by how much a worker's gradient takes longer.
 *
 *   const:MS  uniform:LO,HI  exp:MEAN  sexp:SHIFT,MEAN  pareto:SCALE,ALPHA
 *   lognormal:MEDIAN,SIGMA   mix:P,FACTOR  trace:FILE        (milliseconds)
 *
 * In a list of specs, "MODEL" is for all ranks, and "RANK:MODEL" for one rank, for which it
 * replaces the former. mix:P,FACTOR multiplies the delay of another model by FACTOR with
 * probability P, so it must be given together with another model. trace:FILE is a CSV file of
 * step,worker,ready_us with a header line; rank r uses the times of worker r mod (workers in the
 * file), and begins again at the end.
 */
#ifndef MST_DELAY_DELAY_H
#define MST_DELAY_DELAY_H

#include <stdint.h>

#include "common/base/reason.h"

struct mst_delay;

/* Makes the model of one rank from a list of specs as above.
 * @why: on failure a sentence that quotes the spec.
 * Return: 0; -EINVAL; -ENOMEM; the errno of a trace that cannot be read. */
struct mst_delay_options {
	const char *const *spec;
	uint32_t spec_count;
	uint32_t rank;
	uint64_t seed; /* the same seed and rank give the same delays */
};
int mst_delay_new(const struct mst_delay_options *opt, struct mst_delay **out,
		  struct mst_reason *why);
/* The models of @count ranks, from opt->rank on, to @out[@count], which has no meaning after a
 * failure. Specs are parsed, and files are read, only once. Return: as mst_delay_new(). */
int mst_delay_new_each(const struct mst_delay_options *opt, uint32_t count, struct mst_delay **out,
		       struct mst_reason *why);
void mst_delay_free(struct mst_delay *d); /* accepts NULL */

/* The next delay, in ns. 0 for an empty list. */
uint64_t mst_delay_next(struct mst_delay *d);

#endif
