/* SPDX-License-Identifier: MIT */
/*
 * What a simulated job has come to: step times, arrivals, staleness, verdicts, and what was
 * computed in vain. It observes decisions, as server/core/statistics does, but has a tenth of its
 * memory for each rank, looks at no rank at a commit, and knows what only a simulation knows: how
 * long each worker has computed. Pure.
 *
 * - A step lasts from commit to commit; the first from the start of the job.
 * - The k-th arrival of a step is the time from the commit of a version to when the k-th gradient
 *   on that version has come, in time or not. What is given up never comes.
 * - A gradient is wasted if it was computed, in whole or in part, and not counted. What is still
 *   being computed at the end of the job is not looked at.
 */
#ifndef MST_TOOLS_SIM_FIGURES_H
#define MST_TOOLS_SIM_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/hist.h"
#include "server/core/ledger/ledger.h"
#include "tools/sim/learn/curve.h"

struct mst_sim_rank {
	uint64_t counted, late, stale, given_up;
	double samples; /* counted: batches, or parts of them */
	uint64_t lost;  /* cut off by the end of the session */
	uint64_t useful_ns, wasted_ns;
	bool pushed; /* a gradient, whose verdict is not known yet; */
	double pushed_samples;
	uint64_t pushed_ns; /* that it took */
};

struct mst_sim_arrival {
	uint64_t count; /* steps that had one */
	double sum_ns;
};

struct mst_sim_opened {
	uint64_t version, at_ns;
	uint32_t arrivals;
};

struct mst_sim_figures {
	uint32_t workers;
	struct mst_sim_rank *rank;
	struct mst_sim_arrival *arrival; /* [k - 1], k up to the number of workers */
	struct mst_sim_opened *opened;   /* the newest versions: version & (room - 1) */
	uint32_t room;
	uint64_t started_ns, last_commit_ns, commits;
	struct mst_hist step, staleness;
	bool started, ended; /* ended: by the decider, and not because nothing was left to happen */
	enum mst_finish_why why;
	uint64_t calls;             /* events that the decider has handled */
	struct mst_sim_curve curve; /* of the training, if there is one */
	uint64_t wall_ns, cpu_ns;   /* real and processor time that the simulation took */
};

uint64_t mst_sim_figures_bytes(uint32_t workers); /* that mst_sim_figures_init() allocates */
/* Return: 0 or -ENOMEM. Call mst_sim_figures_fini() in any case. */
int mst_sim_figures_init(struct mst_sim_figures *f, uint32_t workers);
void mst_sim_figures_fini(struct mst_sim_figures *f); /* accepts one that is all zero */

/* A gradient is pushed that took so long, is given up after so long, or is cut off. */
void mst_sim_figures_pushed(struct mst_sim_figures *f, uint32_t rank, double samples,
			    uint64_t took_ns);
void mst_sim_figures_given_up(struct mst_sim_figures *f, uint32_t rank, uint64_t spent_ns);
void mst_sim_figures_cut_off(struct mst_sim_figures *f, uint32_t rank, uint64_t spent_ns);
/* To be called for every decision, in order. */
void mst_sim_figures_decided(struct mst_sim_figures *f, const struct mst_decision *d,
			     uint64_t now_ns);

/* The sum over all ranks. */
struct mst_sim_rank mst_sim_figures_total(const struct mst_sim_figures *f);
/* Shares from 0 to 1 of one rank, or of the total: gradients, and time, that were wasted. */
double mst_sim_wasted_gradients(const struct mst_sim_rank *r);
double mst_sim_wasted_time(const struct mst_sim_rank *r);
/* Simulated time from the start of the job to the last commit. */
uint64_t mst_sim_figures_elapsed_ns(const struct mst_sim_figures *f);
/* The share of the time for a counted sample that was saved against @base; NAN: one of the two
 * has counted nothing. */
double mst_sim_saved(const struct mst_sim_figures *f, const struct mst_sim_figures *base);

#endif
