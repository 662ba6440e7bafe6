/* SPDX-License-Identifier: MIT */
/* How a run ended: for people, as JSON, and as an exit status. */
#ifndef MST_TOOLS_RUN_SUMMARY_H
#define MST_TOOLS_RUN_SUMMARY_H

#include <jansson.h>
#include <stdio.h>

#include "common/base/reason.h"
#include "tools/run/children.h"
#include "tools/watch.h"

/* What has become of a rank, besides how its last process has ended. */
struct mst_rank_course {
	uint32_t restarts;    /* how often the run has started it again */
	uint32_t incarnation; /* its newest session after that process had ended */
	bool known;           /* that musterd has told */
	uint64_t ask;         /* the question before the end, whose answer does not tell it */
	uint64_t again_ns;    /* when it is started again; 0: it is not */
	bool untold; /* that it has ended has not been logged: musterd is asked for the version */
};

/* The most things that are told to be missing. */
#define MST_MISSING_MAX 4u

struct mst_ending {
	bool finished;                      /* the job was, and musterd said so */
	int signo;                          /* the signal that ended the run, or 0 */
	struct mst_reason why;              /* in one sentence */
	const struct mst_job_snapshot *job; /* the last that musterd told, or a blank one */
	const struct mst_child *musterd;    /* the leader */
	const struct mst_child *follower;   /* the servers beside it: [followers] */
	uint32_t followers;
	const struct mst_child *worker;       /* by rank: [workers] */
	const struct mst_rank_course *course; /* by rank: [workers] */
	uint32_t workers;
	/* What was asked for and is not there, a clause each. */
	uint32_t missing_count;
	struct mst_reason missing[MST_MISSING_MAX];
};

/* "finished", "failed" or "interrupted". */
const char *mst_ending_state(const struct mst_ending *e);

/* MST_EXIT_DONE: the job finished, every worker has ended well, and nothing is missing;
 * MST_EXIT_INCOMPLETE: something is; MST_EXIT_BY_SIGNAL + n: signal n ended the run; else
 * MST_EXIT_FAILED. A worker has ended well if its last process has exited with 0; if it was killed,
 * has not crashed, and the policy has lost it; if an operator has evicted it; or if another process
 * has taken its rank since. */
int mst_ending_status(const struct mst_ending *e);

/* Something was asked for and is not there. */
void mst_ending_miss(struct mst_ending *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A few lines and a table. */
void mst_summary_print(const struct mst_ending *e, FILE *out);
/* Return: a new object, or NULL if memory is short. */
json_t *mst_summary_json(const struct mst_ending *e);

#endif
