/* SPDX-License-Identifier: MIT */
/*
 * The training of a simulated job. Workers and decisions are those of the simulation; this computes
 * what they would: each contribution is a gradient at the version that its worker has read, and
 * each commit is the sum, the division and the optimiser's step of the server, by the same kernels
 * in the same order, with the coefficients, the divisor and the scalars that the ledger gives.
 *
 * A gradient depends on the seed, the rank, and how many gradients of the rank were pushed before
 * it. So the same job gives the same bytes, and what a worker learns from does not depend on how
 * long it takes.
 */
#ifndef MST_TOOLS_SIM_LEARN_TRAINER_H
#define MST_TOOLS_SIM_LEARN_TRAINER_H

#include "tools/sim/cfg.h"
#include "tools/sim/learn/curve.h"
#include "tools/sim/worker.h"

struct mst_sim_trainer;

/* Bytes of memory that a job may need for its training; 0: it does not train. */
uint64_t mst_sim_trainer_bytes(const struct mst_sim_cfg *cfg);

/* @curve: filled as the job goes on. Return: 0 or -ENOMEM. */
int mst_sim_trainer_new(const struct mst_sim_cfg *cfg, struct mst_sim_curve *curve,
			struct mst_sim_trainer **out);
void mst_sim_trainer_free(struct mst_sim_trainer *t); /* accepts NULL */

/* A worker has come so far, and does this. If it pushes, the loss is written into the header.
 * Return: 0 or -ENOMEM. */
int mst_sim_trainer_acted(struct mst_sim_trainer *t, const struct mst_sim_worker *w,
			  struct mst_sim_act *act);
/* Every decision but COMMIT, in order. Return: 0, or what mst_sim_curve_add() gives. */
int mst_sim_trainer_decided(struct mst_sim_trainer *t, const struct mst_decision *d,
			    uint64_t now_ns);

/* What a commit came to. */
struct mst_sim_step {
	bool finite;
	bool reduced;                  /* the optimiser has a reduce phase; */
	struct mst_exact_sum squares;  /* of the mean; 0 where norms of tensors are wanted */
	bool compared;                 /* the rate depends on a distance, */
	struct mst_exact_sum distance; /* whose square this is */
	bool measured;                 /* the curve has a point more, of this version or an older */
	double error;                  /* in it */
};

/* @record: of the version; NULL: it is a sum of equals, as under the rule of TensorFlow.
 * Return: as mst_sim_trainer_decided(). */
int mst_sim_trainer_commit(struct mst_sim_trainer *t, uint64_t version,
			   const struct mst_record *record, uint64_t now_ns,
			   struct mst_sim_step *out);
/* The job is over: the last point of the curve. Return: as mst_sim_trainer_decided(). */
int mst_sim_trainer_end(struct mst_sim_trainer *t, uint64_t now_ns);

#endif
