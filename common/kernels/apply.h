/* SPDX-License-Identifier: MIT */
/*
 * The arguments of an optimiser's kernel: one tile of the vector, which lies in the first cache. A
 * commit calls the kernel tile by tile, between the mean and the rounding of the result, so that an
 * optimiser needs no pass over memory of its own. The kernels are in common/optim.
 */
#ifndef MST_KERNELS_APPLY_H
#define MST_KERNELS_APPLY_H

#include <stddef.h>

#define MST_PARAMETERS_MAX 8u /* that a user can set */
#define MST_SCALARS_MAX 4u    /* of a version, in its record */
#define MST_STATES_MAX 4u     /* vectors that are kept from version to version */

/* The first scalar of every optimiser is the rate of the version. */
#define MST_SCALAR_RATE 0u

struct mst_figures {
	float parameter[MST_PARAMETERS_MAX]; /* as the user set them, rounded to f32 */
	float scalar[MST_SCALARS_MAX];       /* as the version's record has them */
};

/* Factors of the version's rate and of the weight decay. They hold for the elements before `end`,
 * from where the scale before this one ends. */
struct mst_scale {
	size_t end;
	float rate, decay;
	float trust; /* a second factor of the rate, which norms of the tensor give; else 1 */
};

/* One tile. None of the vectors overlaps another. */
struct mst_apply {
	float *next;                  /* written: the parameters of the new version */
	const float *theta;           /* the parameters of the version before */
	const float *mean;            /* of the contributions; of deltas their sum */
	float *state[MST_STATES_MAX]; /* read and written; NULL where a state is not kept */
	const struct mst_figures *figures;
	size_t count;
};

/* Each product and sum is rounded to f32, never fused (PROTOCOL 5), so that every instruction set
 * gives the same bits. What an infinity or a NaN in a state or in the mean touches must become one
 * in `next`: that is how a commit finds it. */
typedef void mst_apply_fn(const struct mst_apply *apply);

#endif
