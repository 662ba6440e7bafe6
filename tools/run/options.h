/* SPDX-License-Identifier: MIT */
/*
 * The options of `muster run`: its own, and every option of the server, which are passed on to
 * musterd as they were typed (tools/passthrough.h).
 */
#ifndef MST_TOOLS_RUN_OPTIONS_H
#define MST_TOOLS_RUN_OPTIONS_H

#include "common/base/reason.h"
#include "common/config/option.h"
#include "server/options/options.h"
#include "tools/passthrough.h"

#define MST_RUN_LISTEN "127.0.0.1:17077"

struct mst_run_options {
	struct mst_server_options server; /* as musterd will see them: default, -c FILE, flag */
	const char *json;                 /* the run's, not musterd's */
	uint64_t grace_ns;                /* 0: auto */
	uint32_t restarts;
	bool chose_patience; /* nobody has given --server-patience: the run has chosen it */
	bool quiet, help;
};

/* A command line and what it came to. */
struct mst_run_line {
	struct mst_run_options options;
	char **flags;   /* for musterd; ends with NULL */
	char **program; /* what the workers execute, and its arguments; empty: not given */
	struct mst_options parsed;           /* owns the strings of `options` */
	struct mst_server_options from_file; /* what -c FILE says */
	struct mst_options file;             /* and its strings */
};

/* All rows: the run's own, and the server's that are passed on. */
extern struct mst_passthrough mst_run_passthrough;

/* Reads argv[1..]; argv must outlive the line. @why: a sentence. Call mst_run_line_fini() in any
 * case. Return: 0; -EINVAL; -ENOMEM; or what reading -c FILE gives. */
int mst_run_line_init(struct mst_run_line *line, int argc, char **argv, struct mst_reason *why);
void mst_run_line_fini(struct mst_run_line *line);

/* An option of the run that was typed after PROGRAM, whose argument it is; NULL: there is none. */
const char *mst_run_line_late(const struct mst_run_line *line);

/* Is standard output taken by the figures, so that nobody else may write there? */
bool mst_run_prints_json(const struct mst_run_options *options);

#endif
