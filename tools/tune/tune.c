/* SPDX-License-Identifier: MIT */
/* muster tune: runs a job again and again to find the smallest share of bsp that is enough. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/reason.h"
#include "common/host/limits.h"
#include "tools/command.h"
#include "tools/report.h"
#include "tools/tune/print.h"

static int print_help(void)
{
	(void)puts(
		"usage: muster tune syncswitch -n W --samples N --metric NAME [options] -- "
		"PROGRAM [ARGUMENT]...\n\n"
		"Finds the smallest SHARE with which the policy syncswitch:SHARE reaches what "
		"bsp reaches,\nby runs of the whole job on this host.\n\nOptions of the search:");
	mst_passthrough_help(&mst_tune_passthrough, "each run");
	return MST_EXIT_DONE;
}

static bool prints_json(const struct mst_tune_options *o)
{
	return o->json != NULL && strcmp(o->json, "-") == 0;
}

static int write_json(const struct mst_search *s, const char *path)
{
	json_t *doc = mst_tune_json(s);
	int rc = mst_report_write(doc, path);

	json_decref(doc);
	return rc;
}

/* Return: the exit status. */
static int tell(const struct mst_search *s)
{
	const struct mst_tune_options *o = &s->line->options;

	if (s->status == MST_EXIT_FAILED)
		mst_error("%s", s->why.text);
	if (!prints_json(o))
		mst_tune_print(s, stdout);
	if (o->json != NULL && write_json(s, o->json) < 0)
		return mst_exit_incomplete(s->status);
	return s->status;
}

static int search(const struct mst_tune_line *line)
{
	static struct mst_search s;
	struct mst_signals signals;
	int rc = mst_signals_open(&signals);

	if (rc < 0) {
		mst_error("cannot begin: %s",
			  mst_limit_refused("signalfd", rc, &(struct mst_reason){ 0 }));
		return MST_EXIT_FAILED;
	}
	(void)mst_search_run(&s, line, &signals);
	int status = tell(&s);
	mst_signals_close(&signals);
	return status;
}

static int check_and_search(const struct mst_tune_line *line)
{
	const struct mst_tune_options *o = &line->options;
	struct mst_reason why;

	if (o->metric == NULL || o->metric[0] == '\0')
		return mst_refuse("tune", "which value is to be kept? --metric NAME says it");
	if (o->higher && o->lower)
		return mst_refuse("tune",
				  "--higher and --lower: the metric cannot be better both ways");
	if (line->program[0] == NULL)
		return mst_refuse(
			"tune",
			"no program for the workers: muster tune syncswitch ... -- PROGRAM");
	if (mst_report_check("json", o->json, &why) != 0 || mst_search_check(line, &why) < 0)
		return mst_refuse("tune", "%s", why.text);
	mst_log_open("muster", o->quiet ? MST_LOG_WARN : MST_LOG_INFO);
	return search(line);
}

static int tune(int argc, char **argv)
{
	struct mst_tune_line line;
	struct mst_reason why;
	int rc = mst_tune_line_init(&line, argc, argv, &why);
	int status;

	if (rc < 0)
		status = mst_refuse("tune", "%s", why.text);
	else
		status = line.options.help ? print_help() : check_and_search(&line);
	mst_tune_line_fini(&line);
	return status;
}

int mst_tune_command(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return print_help();
	if (strcmp(word, "syncswitch") != 0)
		return mst_refuse("tune",
				  "which policy? syncswitch is the one whose share can be found: "
				  "muster tune syncswitch ...");
	return tune(argc - 1, argv + 1);
}
