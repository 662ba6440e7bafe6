/* SPDX-License-Identifier: MIT */
/*
 * The supervisor of a run: it starts musterd, then the workers, follows the job to its end, and
 * sees to it that every process is gone again. One thread, one loop: it sleeps on signals, on
 * musterd's ready line and on the control connection, and never anywhere else.
 *
 * What ends a run: musterd says that the job has ended; musterd dies; a worker dies before the job
 * has started (after that the policy decides what a loss means); a signal. Whatever it is, the
 * workers are given the time to go by themselves, then asked, then killed; musterd after them.
 */
#ifndef MST_TOOLS_RUN_SUPERVISOR_H
#define MST_TOOLS_RUN_SUPERVISOR_H

#include "tools/run/options.h"
#include "tools/run/summary.h"
#include "tools/signals.h"

struct mst_supervisor;

struct mst_supervisor_cfg {
	const struct mst_run_line *line;
	struct mst_signals *signals;
};

/* Return: 0 or -ENOMEM. */
int mst_supervisor_new(const struct mst_supervisor_cfg *cfg, struct mst_supervisor **out);
void mst_supervisor_free(struct mst_supervisor *s); /* accepts NULL */

/* Runs until no process is left. @out points into the supervisor. */
void mst_supervisor_run(struct mst_supervisor *s, struct mst_ending *out);

#endif
