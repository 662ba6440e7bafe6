/* SPDX-License-Identifier: MIT */
/*
 * Makes a manual page at build time: manpage [PROGRAM] < FRAME > PAGE. The frame is hand-written;
 * its line @OPTIONS@ becomes the options of PROGRAM, @EXITS@ the exit statuses, @POLICIES@ the
 * policies, @RANK@ the figures of a rank, and so on, from the tables that the program itself reads,
 * so that page and program cannot differ. @VERSION@ is the version.
 */
#include <stdio.h>
#include <string.h>

#include "common/config/option.h"
#include "common/host/exit.h"
#include "server/core/policy/policy.h"
#include "server/options/options.h"
#include "tools/bench/options.h"
#include "tools/checkpoint/options.h"
#include "tools/command.h"
#include "tools/doctor/options.h"
#include "tools/figures.h"
#include "tools/key/options.h"
#include "tools/plan/options.h"
#include "tools/run/options.h"
#include "tools/sim/options.h"
#include "tools/status/options.h"
#include "tools/tune/options.h"

static const struct mst_option *find_table(const char *program)
{
	if (strcmp(program, "musterd") == 0)
		return mst_server_table;
	if (strcmp(program, "muster-run") == 0)
		return mst_passthrough_table(&mst_run_passthrough);
	if (strcmp(program, "muster-bench") == 0)
		return mst_passthrough_table(&mst_bench_passthrough);
	if (strcmp(program, "muster-sim") == 0)
		return mst_sim_table;
	if (strcmp(program, "muster-status") == 0)
		return mst_status_table;
	if (strcmp(program, "muster-key") == 0)
		return mst_key_table;
	if (strcmp(program, "muster-doctor") == 0)
		return mst_doctor_table;
	if (strcmp(program, "muster-plan") == 0)
		return mst_plan_table;
	if (strcmp(program, "muster-tune") == 0)
		return mst_passthrough_table(&mst_tune_passthrough);
	if (strcmp(program, "muster-checkpoint") == 0)
		return mst_checkpoint_table;
	if (strncmp(program, "muster-", 7) == 0)
		return mst_request_table(program + 7);
	return NULL;
}

/* A line of help is a name, blanks, and what the policy does. */
static void print_policies(void)
{
	const char *line;

	(void)puts(".SH POLICIES");
	for (unsigned i = 0; (line = mst_policy_help(i)) != NULL; i++) {
		size_t name = strcspn(line, " ");

		(void)printf(".TP\n.B %.*s\n%s\n", (int)name, line,
			     line + name + strspn(line + name, " "));
	}
}

static void print_line(const char *line)
{
	static const char version[] = "@VERSION@";
	const char *at;

	while ((at = strstr(line, version)) != NULL) {
		(void)printf("%.*s%s", (int)(at - line), line, MST_VERSION);
		line = at + strlen(version);
	}
	(void)fputs(line, stdout);
}

int main(int argc, char **argv)
{
	const struct mst_option *table = argc == 2 ? find_table(argv[1]) : NULL;
	char line[1024];

	if (argc > 2 || (argc == 2 && table == NULL)) {
		(void)fputs("usage: manpage [PROGRAM] < FRAME > PAGE\n", stderr);
		return 2;
	}
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (table != NULL && strcmp(line, "@OPTIONS@\n") == 0)
			mst_options_man(table, stdout);
		else if (strcmp(line, "@EXITS@\n") == 0)
			mst_exit_man(stdout);
		else if (strcmp(line, "@POLICIES@\n") == 0)
			print_policies();
		else if (strcmp(line, "@OPTIMISERS@\n") == 0)
			mst_optim_man(stdout);
		else if (strcmp(line, "@SCHEDULES@\n") == 0)
			mst_schedule_man(stdout);
		else if (strcmp(line, "@PROBLEMS@\n") == 0)
			mst_sim_problem_man(stdout);
		else if (strcmp(line, "@JOB@\n") == 0)
			mst_figures_man(MST_FIGURES_OF_JOB, stdout);
		else if (strcmp(line, "@POLICY@\n") == 0)
			mst_figures_man(MST_FIGURES_OF_POLICY, stdout);
		else if (strcmp(line, "@RANK@\n") == 0)
			mst_figures_man(MST_FIGURES_OF_RANK, stdout);
		else if (strcmp(line, "@SERVER@\n") == 0)
			mst_figures_man(MST_FIGURES_OF_SERVER, stdout);
		else
			print_line(line);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
