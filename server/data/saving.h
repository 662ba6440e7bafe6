/* SPDX-License-Identifier: MIT */
/* The vectors that a server writes to a checkpoint, each over the server's range. */
#ifndef MST_SERVER_DATA_SAVING_H
#define MST_SERVER_DATA_SAVING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/kernels/apply.h"

/* The vectors of a version that is saved. */
struct mst_saving {
	uint64_t version;
	bool spoilt;        /* the version was never made, or is not finite; nothing follows */
	const void *result; /* result_type[elems]; NULL: workers own, and there is nothing */
	const float *theta; /* the parameters in f32; NULL: `result` is f32 */
	const float *state[MST_STATES_MAX]; /* NULL: not kept */
	const float *average;               /* of the parameters of all versions; NULL: not kept */
};

/* The vectors of the version that a job goes on from. The control side fills them before the
 * start. */
struct mst_resumed {
	void *result;                 /* result_type[elems] */
	float *theta;                 /* NULL: `result` is f32 */
	float *state[MST_STATES_MAX]; /* NULL: not kept */
	float *average;               /* NULL: not kept */
};

#endif
