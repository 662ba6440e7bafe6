/* SPDX-License-Identifier: MIT */
/*
 * The parameters of a worker's own, under a rule with a pace: what client/api/paced.c computes with
 * them, while paced.h says when.
 */
#ifndef MST_TOOLS_SIM_LEARN_OWN_H
#define MST_TOOLS_SIM_LEARN_OWN_H

#include <stdbool.h>
#include <stdint.h>

struct mst_sim_own {
	bool begun;        /* there are parameters, made of a version that was read */
	bool accrues;      /* gradients are added up (Downpour); else a difference is made */
	uint64_t batches;  /* since the last push */
	double loss;       /* of these, summed */
	float *parameters; /* NULL until they are needed */
	float *sum;        /* of the gradients since the last push; only if it accrues */
	float *gradient;   /* of one batch */
};

/* The parameters begin anew with a version. Return: 0 or -ENOMEM. */
int mst_sim_own_begin(struct mst_sim_own *o, const float *version, uint64_t elems, bool accrues);
void mst_sim_own_fini(struct mst_sim_own *o);
/* All that was done since the last push is forgotten, and the parameters, too. */
void mst_sim_own_reset(struct mst_sim_own *o);
/* The parameters become those of a version; what was added up stays. */
void mst_sim_own_take(struct mst_sim_own *o, const float *version, uint64_t elems);
/* A step down own->gradient, which has been computed on own->parameters. */
void mst_sim_own_step(struct mst_sim_own *o, double loss, double lr, uint64_t elems);
/* Writes what is pushed, with @alpha as in struct mst_pace and @version the one that was read last.
 * Return: the mean loss. */
double mst_sim_own_push(struct mst_sim_own *o, const float *version, double alpha, uint64_t elems,
			float *out);

#endif
