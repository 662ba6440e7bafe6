/* SPDX-License-Identifier: MIT */
#include "tools/tune/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/config/shared_rows.h"

#define FIELD(name) .offset = offsetof(struct mst_tune_options, name)

static const struct mst_option own_table[] = {
	{ .name = "metric",
	  .kind = MST_OPTION_STRING,
	  FIELD(metric),
	  .value = "NAME",
	  .help = "the value to keep, as the program reports it by muster_report(); the last "
		  "report of a run counts" },
	{ .name = "higher",
	  .kind = MST_OPTION_FLAG,
	  FIELD(higher),
	  .help = "a higher value of the metric is better, such as of an accuracy; this is the "
		  "default" },
	{ .name = "lower",
	  .kind = MST_OPTION_FLAG,
	  FIELD(lower),
	  .help = "a lower value of the metric is better, such as of a loss" },
	{ .name = "tolerance",
	  .kind = MST_OPTION_REAL,
	  FIELD(tolerance),
	  .fallback = "0.01",
	  .max = INFINITY,
	  .value = "BETA",
	  .help = "a share is kept if the mean of its runs is worse than that of bsp by no more "
		  "than BETA" },
	{ .name = "runs",
	  .kind = MST_OPTION_U32,
	  FIELD(runs),
	  .fallback = "3",
	  .min = 1,
	  .max = MST_TUNE_RUNS_MAX,
	  .value = "R",
	  .help = "runs of each share, each with another seed" },
	{ .name = "tries",
	  .kind = MST_OPTION_U32,
	  FIELD(tries),
	  .fallback = "5",
	  .min = 1,
	  .max = MST_TUNE_TRIES_MAX,
	  .value = "M",
	  .help = "shares to try after bsp; each halves the interval that the answer lies in" },
	{ .name = "seed",
	  .kind = MST_OPTION_U64,
	  FIELD(seed),
	  .fallback = "1",
	  .max = INFINITY,
	  .value = "S",
	  .help = "the runs of a share have the seeds S, S+1, ..., which workers find in "
		  "MUSTER_SEED" },
	MST_FILE_ROW("json", FIELD(json),
		     "write all figures there as JSON; - is standard output, instead of the table"),
	{ .name = "grace",
	  .kind = MST_OPTION_DURATION,
	  FIELD(grace_ns),
	  .fallback = "auto",
	  .min = 1e6,
	  .max = INFINITY,
	  .automatic = "auto",
	  .help = "how long workers may take to exit at the end of a run before they are made to; "
		  "auto as of muster run" },
	MST_QUIET_ROW(FIELD(quiet), "no line for each run; the table, warnings and errors only"),
	MST_HELP_ROW(FIELD(help)),
	{ .name = NULL },
};

/* The command chooses the policy, starts all servers itself, and begins each run anew. */
static const char *const without[] = { "policy",
				       "join",
				       "budget",
				       "state",
				       "checkpoint-every",
				       "resume",
				       "or-begin",
				       "checkpoint-rate",
				       "record",
				       "version",
				       "print-config",
				       "user",
				       NULL };

struct mst_passthrough mst_tune_passthrough = {
	.own = own_table,
	.without = without,
	.server_offset = offsetof(struct mst_tune_options, server),
};

int mst_tune_line_init(struct mst_tune_line *line, int argc, char **argv, struct mst_reason *why)
{
	int operand = argc;

	*line = (struct mst_tune_line){ .program = &argv[argc] };
	int rc = mst_options_init(&line->parsed, mst_passthrough_table(&mst_tune_passthrough),
				  &line->options);
	if (rc == 0)
		rc = mst_options_argv(&line->parsed, argc, argv, &operand);
	if (rc == 0)
		rc = mst_passthrough_collect(&mst_tune_passthrough, argv, operand, &line->flags);
	if (rc < 0)
		mst_reason_set(why, "%s", rc == -ENOMEM ? "no memory" : line->parsed.why.text);
	line->program = &argv[operand];
	return rc;
}

void mst_tune_line_fini(struct mst_tune_line *line)
{
	free(line->flags);
	mst_options_free(&line->parsed);
}
