/* SPDX-License-Identifier: MIT */
/*
 * The options of `muster tune`: its own, and those of the server, which go to each run as they were
 * typed (tools/passthrough.h).
 */
#ifndef MST_TOOLS_TUNE_OPTIONS_H
#define MST_TOOLS_TUNE_OPTIONS_H

#include "common/base/reason.h"
#include "common/config/option.h"
#include "server/options/options.h"
#include "tools/passthrough.h"

#define MST_TUNE_RUNS_MAX 32u
#define MST_TUNE_TRIES_MAX 10u /* shares then have ten digits at most after the point */

struct mst_tune_options {
	struct mst_server_options server; /* only to be parsed: a run reads them again */
	const char *metric, *json;
	double tolerance;
	uint32_t runs, tries;
	uint64_t seed, grace_ns;
	bool higher, lower, quiet, help;
};

/* A command line and what it came to. */
struct mst_tune_line {
	struct mst_tune_options options;
	char **flags;   /* for each run; ends with NULL */
	char **program; /* what the workers execute, and its arguments; empty: not given */
	struct mst_options parsed; /* owns the strings of `options` */
};

/* All rows: the command's own, and the server's that are passed on. */
extern struct mst_passthrough mst_tune_passthrough;

/* Reads argv[1..]; argv must outlive the line. @why: a sentence. Call mst_tune_line_fini() in any
 * case. Return: 0; -EINVAL; -ENOMEM. */
int mst_tune_line_init(struct mst_tune_line *line, int argc, char **argv, struct mst_reason *why);
void mst_tune_line_fini(struct mst_tune_line *line);

#endif
