/* SPDX-License-Identifier: MIT */
/*
 * A random commit: leaves of every kind at any alignment, and what a reference that computes one
 * element at a time, in integers and in double, makes of it.
 */
#ifndef MST_TESTS_UNIT_COMMON_KERNELS_COMMIT_CASE_H
#define MST_TESTS_UNIT_COMMON_KERNELS_COMMIT_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rand.h"
#include "common/kernels/commit.h"
#include "common/optim/kernels.h"
#include "common/optim/optim.h"

#define CASE_ELEMS 1000 /* several tiles of the kernels */
#define CASE_SHIFT 40   /* elements by which a vector may begin later than its room */
#define CASE_ROOM (CASE_ELEMS + 2 * CASE_SHIFT)
#define CASE_SCALES 40
#define CASE_LEAVES 700 /* more than a plan of the kernels holds */

struct commit_case {
	/* Set before drawing: all numbers are finite, and none so large that a sum overflows. What
	 * a small divisor makes of them may be too large for f16. */
	bool tame;
	struct mst_commit commit;
	const struct mst_optim *optim; /* NULL: the mean is the version */
	size_t elems;
	struct mst_scale scale[CASE_SCALES];
	struct mst_leaf leaf[CASE_LEAVES];
	float wide[CASE_LEAVES][CASE_ELEMS]; /* the gradients, widened by the reference */
	float theta_before[CASE_ELEMS], momentum_before[CASE_ELEMS], average_before[CASE_ELEMS];
	/* Where the vectors of the commit lie. */
	float gradient[CASE_LEAVES][CASE_ROOM];
	float theta[CASE_ROOM], momentum[CASE_ROOM], average[CASE_ROOM], out[CASE_ROOM];
};

/* Draws one: a few leaves mostly, now and then very many. */
void commit_case_draw(struct mst_rand *rand, struct commit_case *c);

/* Makes one number of one of its inputs infinite, NaN, or the largest that there is. */
void commit_case_poison(struct mst_rand *rand, struct commit_case *c);

/* Puts back what a commit changes. */
void commit_case_reset(struct commit_case *c);

/* Return: elements of the result, the parameters, the momentum or the average that are not the
 * reference's, and elements that were written outside of them. */
size_t commit_case_wrong(const struct commit_case *c);

/* Return: whether the result, the parameters and the momentum are finite in elements
 * [first, first + count). */
bool commit_case_finite(const struct commit_case *c, size_t first, size_t count);

#endif
