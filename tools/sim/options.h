/* SPDX-License-Identifier: MIT */
/*
 * The options of `muster sim`. What a simulated job has in common with a real one is kept in the
 * struct of the server's options, so that it means the same and is checked by the same code.
 */
#ifndef MST_TOOLS_SIM_OPTIONS_H
#define MST_TOOLS_SIM_OPTIONS_H

#include "common/base/reason.h"
#include "common/config/option.h"
#include "server/options/options.h"
#include "tools/sim/cfg.h"
#include "tools/sim/problem/problem.h"
#include "tools/sim/schedule.h"

#define MST_SIM_NAME_LEN 24u /* "staleness:4294967295" */

enum mst_sim_view { MST_SIM_STEPS, MST_SIM_ARRIVALS, MST_SIM_RANKS, MST_SIM_ERRORS };

struct mst_sim_options {
	struct mst_server_options server; /* its policy is set for each job */
	struct mst_option_list policy, delay, change[MST_SIM_JOIN + 1], rule_switch;
	const char *checks, *json, *csv;
	const char *train, *every; /* NULL: nothing is trained; the curve has a fitting distance */
	struct mst_option_list staleness;
	uint64_t staleness_ramp; /* 0: in proportion to the staleness */
	uint64_t seed, latency_ns, bytes;
	uint32_t micro;
	double worker_rate, server_rate;
	uint32_t table; /* enum mst_sim_view */
	bool quiet, help;
};

/* A command line and what it came to. */
struct mst_sim_line {
	struct mst_sim_options options;
	struct mst_sim_cfg job[MST_OPTION_LIST_MAX]; /* one for each policy */
	uint32_t job_count;
	struct mst_sim_problem *problem;                  /* NULL: nothing is trained */
	char name[MST_OPTION_LIST_MAX][MST_SIM_NAME_LEN]; /* of jobs that no policy names */
	struct mst_sim_changes changes;
	struct mst_sim_switches switches;
	struct mst_options parsed, fixed; /* own the strings of `options` */
};

extern const struct mst_option mst_sim_table[];

/* Reads argv[1..] and checks all of it, unless help is wanted; argv must outlive the line. @why: a
 * sentence. Call mst_sim_line_fini() in any case. Return: 0; -EINVAL; -ENOMEM; or what opening a
 * file gives. */
int mst_sim_line_init(struct mst_sim_line *line, int argc, char **argv, struct mst_reason *why);
void mst_sim_line_fini(struct mst_sim_line *line);

#endif
