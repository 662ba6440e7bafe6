/* SPDX-License-Identifier: MIT */
/*
 * The course of a run: musterd comes up, the workers are started, the job goes on, ends, and every
 * process is gone again. One thread, one loop: it sleeps on signals, on musterd's ready line and on
 * the control connection, and never anywhere else.
 *
 * What ends a run: musterd says that the job has ended; musterd dies; a worker dies before the job
 * has started (after that the policy decides what a loss means); a signal. Whatever it is, the
 * workers are given the time to go by themselves, then asked, then killed; musterd after them.
 */
#ifndef MST_TOOLS_COURSE_H
#define MST_TOOLS_COURSE_H

#include "tools/run_options.h"
#include "tools/signals.h"
#include "tools/summary.h"

struct mst_course;

struct mst_course_cfg {
	const struct mst_run_line *line;
	struct mst_signals *signals;
};

/* Return: 0 or -ENOMEM. */
int mst_course_new(const struct mst_course_cfg *cfg, struct mst_course **out);
void mst_course_free(struct mst_course *c); /* accepts NULL */

/* Runs until no process is left. @out points into the course. */
void mst_course_run(struct mst_course *c, struct mst_ending *out);

#endif
