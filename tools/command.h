/* SPDX-License-Identifier: MIT */
/* The subcommands of muster, and how they take and refuse what is typed. Each reads argv[1..],
 * argv[0] being "muster NAME", and returns the process's exit status (enum mst_exit). */
#ifndef MST_TOOLS_COMMAND_H
#define MST_TOOLS_COMMAND_H

#include "common/host/exit.h"

struct mst_option;
struct mst_options;

int mst_run_command(int argc, char **argv);
int mst_status_command(int argc, char **argv);
int mst_bench_command(int argc, char **argv);
int mst_request_command(int argc, char **argv); /* policy, rest, evict, finish */
/* The options of such a command, "rest" of "muster rest"; NULL: there is no such command. */
const struct mst_option *mst_request_table(const char *command);
int mst_key_command(int argc, char **argv);
int mst_doctor_command(int argc, char **argv);
int mst_plan_command(int argc, char **argv);
int mst_checkpoint_command(int argc, char **argv);
int mst_tune_command(int argc, char **argv);
int mst_sim_command(int argc, char **argv);

/* A command line of options and of at most two operands, in any order. */
#define MST_OPERANDS_MAX 2

struct mst_operands {
	int count;
	const char *text[MST_OPERANDS_MAX];
};

/* Return: 0 or -EINVAL: @parsed->why is a sentence. */
int mst_operands_read(struct mst_options *parsed, int argc, char **argv, struct mst_operands *out);

/* How a command refuses what was typed: logs the sentence, and where the help of @command is,
 * "status" of "muster status".
 * Return: the exit status, MST_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int mst_refuse(const char *command, const char *fmt, ...);

#endif
