/* SPDX-License-Identifier: MIT */
/*
 * muster: one program, one table of subcommands. The exit status of each is one of
 * common/host/exit.h.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/log_writer.h"
#include "common/config/option.h"
#include "common/host/inherited.h"
#include "common/host/tasks.h"
#include "common/transport/tls/wiping.h"
#include "tools/command.h"

struct command {
	const char *name;
	const char *synopsis;
	const char *help;
	int (*main)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "run", "run -n W [options] -- PROGRAM ARGS", "a server and W workers on this host",
	  mst_run_command },
	{ "bench", "bench [options]", "how long a step takes, every result checked",
	  mst_bench_command },
	{ "status", "status [HOST:PORT]", "who is late, by how much, how often",
	  mst_status_command },
	{ "sim", "sim -n W --delay SPEC [options]", "what a policy would do, simulated",
	  mst_sim_command },
	{ "policy", "policy [HOST:PORT] POLICY", "another policy for a job that runs",
	  mst_request_command },
	{ "rest", "rest [--return] RANK [HOST:PORT]", "a worker rests, or returns",
	  mst_request_command },
	{ "evict", "evict RANK [HOST:PORT]", "the session of a worker ends", mst_request_command },
	{ "workers", "workers N [HOST:PORT]", "a job goes on with N workers", mst_request_command },
	{ "finish", "finish [--why TEXT] [HOST:PORT]", "the job ends well", mst_request_command },
	{ "key", "key new DIR | show FILE", "certificates of a job, and who has which",
	  mst_key_command },
	{ "doctor", "doctor [--peer HOST | --listen]", "what keeps hosts from a job, and its fix",
	  mst_doctor_command },
	{ "plan", "plan --trace FILE", "which policy would have served best", mst_plan_command },
	{ "tune", "tune syncswitch -n W -- PROGRAM", "how long bsp has to come before async",
	  mst_tune_command },
	{ "checkpoint", "checkpoint DIR [--verify]", "which checkpoints a directory has",
	  mst_checkpoint_command },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
	(void)fputs("usage: muster COMMAND ...\n\n", out);
	for (unsigned i = 0; i < COMMANDS; i++)
		(void)fprintf(out, "  muster %-36s %s\n", commands[i].synopsis, commands[i].help);
	(void)fputs("\nEach has --help and a manual page, such as muster-run(1). The server is "
		    "musterd(8).\n",
		    out);
	mst_exit_help(out);
}

/* Commands that other programs have, and what is meant by them here. */
static const struct {
	const char *words; /* each between two blanks */
	const char *says;
} habits[] = {
	{ " stop kill cancel end quit terminate abort shutdown scancel ",
	  "muster finish HOST:PORT ends a job, which then counts as done, muster evict RANK "
	  "HOST:PORT the session of one worker, and Ctrl-C a muster run" },
	{ " kick remove drop ", "muster evict RANK HOST:PORT ends the session of a worker" },
	{ " ps list ls top show info jobs squeue watch log logs ",
	  "muster status HOST:PORT shows a job that runs" },
	{ " start launch exec submit train torchrun mpirun srun job ",
	  "muster run -n W -- PROGRAM starts a server and W workers" },
	{ " serve server daemon musterd master ",
	  "the server is a program of its own, as in musterd --workers W" },
	{ " scale resize grow shrink rescale ",
	  "muster workers N HOST:PORT has a job go on with N workers" },
	{ " pause suspend hold ", "muster rest RANK HOST:PORT lets a job go on without a worker" },
	{ " continue unpause return ",
	  "muster rest --return RANK HOST:PORT has a worker return that rests" },
	{ " resume restart restore ",
	  "muster run --resume DIR goes on from a checkpoint, and muster rest --return RANK "
	  "HOST:PORT has a worker return that rests" },
	{ " config init ", "musterd --workers W --print-config prints all options as a file" },
	{ " help man ", "muster COMMAND --help is the help of one" },
	{ " version ", "muster --version prints it" },
	{ " simulate predict ", "muster sim simulates a job" },
	{ " record trace advise ", "muster plan --trace FILE reads what --record has written" },
	{ " keygen cert certs tls ", "muster key new DIR makes certificates" },
};

/* Return: what to type; NULL: the word means nothing. */
static const char *habit_of(const char *word)
{
	char spelt[32];

	if (strpbrk(word, " ") != NULL || strlen(word) > sizeof(spelt) - 3)
		return NULL;
	(void)snprintf(spelt, sizeof(spelt), " %s ", word);
	for (unsigned i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
		if (strstr(habits[i].words, spelt) != NULL)
			return habits[i].says;
	return NULL;
}

static int refuse(const char *word)
{
	const char *names[COMMANDS + 1] = { NULL };

	for (unsigned i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	const char *near = mst_nearest(word, names);
	if (strcmp(word, "-version") == 0 || strcmp(word, "-help") == 0)
		mst_error("unknown option %s: did you mean -%s?", word, word);
	else if (word[0] == '-')
		mst_error("muster alone has no option %s; it has --help and --version, and options "
			  "of a command stand after it, as in muster status %s",
			  word, word);
	else if (habit_of(word) != NULL)
		mst_error("there is no command %s: %s; muster --help lists all", word,
			  habit_of(word));
	else if (near != NULL)
		mst_error("there is no command %s; did you mean %s?", word, near);
	else
		mst_error("there is no command %s; muster --help lists them", word);
	return MST_EXIT_USAGE;
}

static int start(const struct command *command, int argc, char **argv)
{
	struct mst_reason cause;
	int rc = mst_log_start();

	if (rc == 0)
		return command->main(argc, argv);
	mst_error("cannot start the thread that writes the log: %s",
		  mst_host_tasks_failed(rc, &cause));
	return MST_EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	struct mst_reason why;

	if (mst_inherited_settle(&why) != 0) {
		mst_error("%s", why.text);
		return MST_EXIT_FAILED;
	}
	if (mst_tls_guard_keys() != 0) {
		mst_error("no memory to keep private keys in; free some memory of this host");
		return MST_EXIT_FAILED;
	}
	if (argc < 2) {
		print_help(stderr);
		return MST_EXIT_USAGE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		print_help(stdout);
		return MST_EXIT_DONE;
	}
	if (strcmp(word, "--version") == 0) {
		(void)puts("muster " MST_VERSION);
		return MST_EXIT_DONE;
	}
	for (unsigned i = 0; i < COMMANDS; i++)
		if (strcmp(word, commands[i].name) == 0)
			return start(&commands[i], argc - 1, argv + 1);
	return refuse(word);
}

int main(int argc, char **argv)
{
	return mst_exit_close(run(argc, argv));
}
