/* SPDX-License-Identifier: MIT */
/* How a run ended: for people, as JSON, and as an exit status. */
#ifndef MST_TOOLS_RUN_SUMMARY_H
#define MST_TOOLS_RUN_SUMMARY_H

#include <jansson.h>
#include <stdio.h>

#include "common/base/reason.h"
#include "tools/run/children.h"
#include "tools/watch.h"

struct mst_ending {
	bool finished;                      /* the job was, and musterd said so */
	int signo;                          /* the signal that ended the run, or 0 */
	struct mst_reason why;              /* in one sentence */
	const struct mst_job_snapshot *job; /* the last that musterd told, or a blank one */
	const struct mst_child *musterd;    /* the leader */
	const struct mst_child *follower;   /* the servers beside it: [followers] */
	uint32_t followers;
	const struct mst_child *worker; /* by rank: [workers] */
	uint32_t workers;
};

/* "finished", "failed" or "interrupted". */
const char *mst_ending_state(const struct mst_ending *e);

/* 0: the job finished, and every worker that the policy did not lose exited with 0; 128 + n: signal
 * n ended the run; else 1. */
int mst_ending_status(const struct mst_ending *e);

/* A few lines and a table. */
void mst_summary_print(const struct mst_ending *e, FILE *out);
/* Return: a new object, or NULL if memory is short. */
json_t *mst_summary_json(const struct mst_ending *e);

#endif
