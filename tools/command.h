/* SPDX-License-Identifier: MIT */
/* The subcommands of muster. Each reads argv[1..], argv[0] being "muster NAME", and returns the
 * process's exit status. */
#ifndef MST_TOOLS_COMMAND_H
#define MST_TOOLS_COMMAND_H

#define MST_EXIT_DONE 0
#define MST_EXIT_FAILED 1
#define MST_EXIT_USAGE 2

int mst_run_command(int argc, char **argv);
int mst_status_command(int argc, char **argv);
int mst_bench_command(int argc, char **argv);
int mst_request_command(int argc, char **argv); /* policy, rest, evict, finish */
int mst_key_command(int argc, char **argv);
int mst_doctor_command(int argc, char **argv);
int mst_plan_command(int argc, char **argv);
int mst_checkpoint_command(int argc, char **argv);
int mst_tune_command(int argc, char **argv);
int mst_sim_command(int argc, char **argv);

#endif
