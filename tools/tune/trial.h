/* SPDX-License-Identifier: MIT */
/*
 * Trials of one policy: runs of the whole job, as muster run makes them, each with another seed.
 * All processes of a run have ended when it returns.
 */
#ifndef MST_TOOLS_TUNE_TRIAL_H
#define MST_TOOLS_TUNE_TRIAL_H

#include "common/wire/message.h"
#include "tools/run/options.h"
#include "tools/signals.h"
#include "tools/tune/options.h"

/* What a run has come to. */
struct mst_trial {
	uint64_t seed, version, wall_ns; /* the version of the value */
	double value;
};

/* The command line of the runs of a policy. */
struct mst_trial_line {
	char policy[MST_POLICY_LEN];
	struct mst_run_line run;
	char **argv;
	char option[2][MST_POLICY_LEN + 16];
};

/* Reads and checks what muster run would be told. @policy: as musterd takes it. @tune must outlive
 * the line. @why: a sentence. Call mst_trial_line_fini() in any case. Return: 0 or -errno. */
int mst_trial_line_init(struct mst_trial_line *line, const struct mst_tune_line *tune,
			const char *policy, struct mst_reason *why);
void mst_trial_line_fini(struct mst_trial_line *line);

/* Runs the job once. @out: its seed is set; the rest is written on success only. @why: on failure
 * a sentence. Return: MST_EXIT_DONE; MST_EXIT_FAILED; 128 + n: signal n has ended it. */
int mst_trial_run(const struct mst_trial_line *line, const char *metric,
		  struct mst_signals *signals, struct mst_trial *out, struct mst_reason *why);

#endif
