/* SPDX-License-Identifier: MIT */
/* Parameters of the worker's own, which it steps on between two exchanges (paced.h), and a gradient
 * for one of its batches. Most workers have none. */
#ifndef MST_CLIENT_OWN_H
#define MST_CLIENT_OWN_H

#include <stdbool.h>
#include <stdint.h>

struct mst_own {
	float *parameters, *grad; /* [elems] each; NULL: never needed yet */
	bool begun;               /* the parameters began as a result, and are stepped on since */
	/* Batches since the last push and since the last fetch. */
	uint32_t pushed_ago, fetched_ago;
	/* Of the batches that have not been pushed. */
	double weight, loss_sum;
	bool has_loss;
};

/* Return: 0 or -ENOMEM. What there is already stays. */
int mst_own_allocate(struct mst_own *own, uint64_t elems);
void mst_own_fini(struct mst_own *own); /* of a zeroed struct too */

#endif
