/* SPDX-License-Identifier: MIT */
/*
 * A simulated job, from the join of its workers to its end: a discrete event simulation on one
 * thread. Its clock jumps from one thing that happens to the next. The decider is real; workers and
 * network are models. Pure: the same configuration gives the same figures.
 */
#ifndef MST_TOOLS_SIM_WORLD_H
#define MST_TOOLS_SIM_WORLD_H

#include "common/base/reason.h"
#include "tools/sim/cfg.h"
#include "tools/sim/figures.h"

/* Lives through the whole job.
 * @out: filled; initialised by the caller for as many workers.
 * @why: on failure a sentence.
 * Return: 0, also if the job has failed; -ENOMEM; -EINVAL, or what reading a trace gives: the
 * delays. */
int mst_sim_run(const struct mst_sim_cfg *cfg, struct mst_sim_figures *out, struct mst_reason *why);

#endif
