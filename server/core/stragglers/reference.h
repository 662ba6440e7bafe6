/* SPDX-License-Identifier: MIT */
/*
 * How long the fast ranks take: durations of their last gradients, in order. A duration is compared
 * with them by its place among them, so no distribution is assumed. Pure.
 */
#ifndef MST_SERVER_CORE_STRAGGLERS_REFERENCE_H
#define MST_SERVER_CORE_STRAGGLERS_REFERENCE_H

#include <stdint.h>

#define MST_REFERENCE_MOST 256u
#define MST_REFERENCE_LEAST 12u /* fewer say nothing */

/* All zero: nothing is known. */
struct mst_reference {
	uint64_t sorted_ns[MST_REFERENCE_MOST];
	uint32_t count;
	uint64_t mean_ns; /* of durations that are cut at MST_REFERENCE_CUT medians */
};

/* A rank that stood still once has one very long duration. Where durations are added up, none
 * counts as more than so many medians, or means. */
#define MST_REFERENCE_CUT 10u

/* Sorts durations, the shortest first. */
void mst_reference_sort(uint64_t *ns, uint32_t count);

/* Makes the reference of @ns, which stays as it is. @count: at most MST_REFERENCE_MOST; below
 * MST_REFERENCE_LEAST: nothing is known any more. */
void mst_reference_make(struct mst_reference *ref, const uint64_t *ns, uint32_t count);

/* How often a duration of the fast ranks is at least @ns long, @ns being one of them: from
 * 1 / (count + 1) to 1. If @ns is a duration of a rank that is like them, this is a p-value: it is
 * at most u with a probability of at most u. */
double mst_reference_share(const struct mst_reference *ref, uint64_t ns);

/* @ns, or, if it is longer, MST_REFERENCE_CUT means. */
uint64_t mst_reference_cut(const struct mst_reference *ref, uint64_t ns);

#endif
