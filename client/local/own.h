/* SPDX-License-Identifier: MIT */
/* Parameters of the worker's own, which it steps on between two exchanges (paced.h), and a gradient
 * for one of its batches. Most workers have none. */
#ifndef MST_CLIENT_LOCAL_OWN_H
#define MST_CLIENT_LOCAL_OWN_H

#include <stdbool.h>
#include <stdint.h>

/* What a worker with parameters of its own does next. */
enum mst_own_stage {
	MST_OWN_STEP,   /* a batch, and the step that follows from it */
	MST_OWN_ACCRUE, /* add the gradient of that step to those before it (Downpour) */
	MST_OWN_MEET,   /* the newest version is here: contribute the difference from it */
	MST_OWN_AWAIT,  /* the next version that comes replaces the parameters */
};

struct mst_own {
	float *parameters, *grad; /* [elems] each; NULL: not needed so far */
	bool begun; /* the parameters are a copy of a result, with the steps since then */
	enum mst_own_stage stage;
	/* Steps since the last exchange; gradients in the slot; steps since the last fetch. */
	uint32_t steps, accrued, unfetched;
	/* These belong to the batches that have not been pushed. */
	double weight, loss_sum;
	bool has_loss;
};

/* Allocates what is not there yet, zeroed. Return: 0 or -ENOMEM. */
int mst_own_allocate(struct mst_own *own, uint64_t elems);
void mst_own_fini(struct mst_own *own); /* of a zeroed struct too */

#endif
