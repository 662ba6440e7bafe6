/* SPDX-License-Identifier: MIT */
/* Optimisers for tests: ready to be put into a configuration, or run alone over a vector. */
#ifndef MST_TESTS_UNIT_COMMON_OPTIM_OPTIM_CASE_H
#define MST_TESTS_UNIT_COMMON_OPTIM_OPTIM_CASE_H

#include <string.h>

#include "common/optim/kernels.h"
#include "common/optim/optim.h"

#define OPTIM_CASE_TILE 256

static inline struct mst_optimizer optim_case_sgd(double lr, double momentum)
{
	return (struct mst_optimizer){
		.row = mst_optim_find("sgd"),
		.parameter = { [MST_SGD_LR] = lr, [MST_SGD_MOMENTUM] = momentum },
	};
}

/* None where the workers own the parameters. */
static inline struct mst_optimizer optim_case_of(enum muster_owner owner)
{
	struct mst_optimizer none = { .row = NULL };

	return owner == MUSTER_SERVERS_OWN ? optim_case_sgd(0.1, 0.9) : none;
}

/* What an optimiser makes of a vector. @whole->next may be @whole->theta. */
static inline void optim_case_apply(const char *name, const struct mst_apply *whole)
{
	const struct mst_optim *row = mst_optim_find(name);
	float made[OPTIM_CASE_TILE];

	for (size_t done = 0; done < whole->count; done += OPTIM_CASE_TILE) {
		struct mst_apply tile = *whole;

		tile.count = whole->count - done < OPTIM_CASE_TILE ? whole->count - done
								   : OPTIM_CASE_TILE;
		tile.next = made;
		tile.theta += done;
		tile.mean += done;
		for (unsigned i = 0; i < MST_STATES_MAX; i++)
			if (tile.state[i] != NULL)
				tile.state[i] += done;
		row->apply[mst_isa()->index](&tile);
		memcpy(whole->next + done, made, tile.count * sizeof(*made));
	}
}

/* @m: NULL where @mu is 0. */
static inline void optim_case_step_sgd(float *next, const float *theta, const float *g, float *m,
				       float mu, float eta, size_t count)
{
	struct mst_figures figures = { .parameter = { [MST_SGD_MOMENTUM] = mu },
				       .scalar = { [MST_SCALAR_RATE] = eta } };

	optim_case_apply("sgd", &(struct mst_apply){ .next = next,
						     .theta = theta,
						     .mean = g,
						     .state = { mu != 0 ? m : NULL },
						     .figures = &figures,
						     .count = count });
}

static inline void optim_case_step_add(float *next, const float *theta, const float *total,
				       size_t count)
{
	struct mst_figures figures = { .scalar = { 0 } };

	optim_case_apply("add", &(struct mst_apply){ .next = next,
						     .theta = theta,
						     .mean = total,
						     .figures = &figures,
						     .count = count });
}

#endif
