/* SPDX-License-Identifier: MIT */
/*
 * What a run says while it goes on: on a terminal one line, redrawn in place and cut to its width;
 * elsewhere a line every two seconds. All of it goes to standard error by way of the log, so that a
 * terminal which has been stopped holds up nothing.
 */
#ifndef MST_TOOLS_RUN_PROGRESS_H
#define MST_TOOLS_RUN_PROGRESS_H

#include "tools/watch.h"

struct mst_progress {
	bool quiet;
	bool in_place;    /* a terminal that can redraw */
	bool drawn;       /* the live line is on the screen */
	uint64_t next_ns; /* plain lines: not before */
};

void mst_progress_init(struct mst_progress *p, bool quiet);
void mst_progress_show(struct mst_progress *p, const struct mst_job_snapshot *s, uint64_t now_ns);
/* Takes the live line away. Call before anything else is written. */
void mst_progress_clear(struct mst_progress *p);

#endif
