/* SPDX-License-Identifier: MIT */
/* muster run: a server and its workers on this host, from the first process to the last. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "server/core/rule.h"
#include "tools/command.h"
#include "tools/course.h"
#include "tools/report.h"
#include "tools/run_options.h"
#include "tools/summary.h"

static int print_help(void)
{
	(void)puts("usage: muster run -n W [options] -- PROGRAM [ARGUMENT]...\n\n"
		   "Starts a server and W workers that execute PROGRAM on this host, shows how the "
		   "job goes,\nand sums it up at the end.\n\nOptions of the run:");
	mst_options_help(mst_run_own_table(), stdout);
	(void)puts("\nOptions of the server, handed on to musterd:");
	mst_options_help(mst_run_server_table(), stdout);
	(void)puts("\nPolicies:");
	for (unsigned i = 0; mst_rule_help(i) != NULL; i++)
		(void)printf("  %s\n", mst_rule_help(i));
	return MST_EXIT_DONE;
}

static int refuse(const char *why)
{
	mst_error("%s", why);
	mst_error("see muster run --help");
	return MST_EXIT_USAGE;
}

/* What only the run can find wrong, and what musterd would, sooner. */
static int check(const struct mst_run_line *line, char *why, size_t why_len)
{
	if (line->options.server.workers == 0) {
		(void)snprintf(why, why_len, "how many workers? -n W says it");
		return -EINVAL;
	}
	if (line->program[0] == NULL) {
		(void)snprintf(why, why_len,
			       "no program for the workers: muster run -n %u -- PROGRAM",
			       line->options.server.workers);
		return -EINVAL;
	}
	if (!mst_report_may_write(line->options.json)) {
		(void)snprintf(why, why_len, "option --json: cannot write %s: %s",
			       line->options.json, strerror(errno));
		return -EINVAL;
	}
	return mst_server_options_check(&line->options.server, why, why_len);
}

static int write_json(const struct mst_ending *ending, const char *path)
{
	json_t *doc = mst_summary_json(ending);

	if (doc == NULL) {
		mst_error("no memory for the figures as JSON");
		return -ENOMEM;
	}
	int rc = mst_report_write(doc, path);
	json_decref(doc);
	return rc;
}

/* Return: the exit status. */
static int conclude(const struct mst_ending *ending, const struct mst_run_options *options)
{
	int status = mst_ending_status(ending);

	if (!options->quiet)
		mst_summary_print(ending, stderr);
	if (options->json != NULL && write_json(ending, options->json) < 0 &&
	    status == MST_EXIT_DONE)
		status = MST_EXIT_FAILED;
	return status;
}

static int run(const struct mst_run_line *line)
{
	struct mst_signals signals;
	struct mst_course *course;
	struct mst_ending ending;
	int rc = mst_signals_open(&signals);

	if (rc == 0) {
		struct mst_course_cfg cfg = { .line = line, .signals = &signals };
		rc = mst_course_new(&cfg, &course);
		if (rc < 0)
			mst_signals_close(&signals);
	}
	if (rc < 0) {
		mst_error("cannot begin: %s", strerror(-rc));
		return MST_EXIT_FAILED;
	}
	mst_course_run(course, &ending);
	int status = conclude(&ending, &line->options);
	mst_course_free(course);
	mst_signals_close(&signals);
	return status;
}

static int run_line(struct mst_run_line *line)
{
	char why[512];

	if (line->options.help)
		return print_help();
	if (line->options.server.version) {
		(void)puts("muster " MST_VERSION);
		return MST_EXIT_DONE;
	}
	if (line->options.server.print_config) {
		struct mst_options server = { .table = mst_server_table,
					      .fields = &line->options.server };

		mst_options_print(&server, stdout);
		return MST_EXIT_DONE;
	}
	if (check(line, why, sizeof(why)) < 0)
		return refuse(why);
	mst_log_open("muster", line->options.quiet ? MST_LOG_WARN : MST_LOG_INFO);
	return run(line);
}

int mst_run_command(int argc, char **argv)
{
	struct mst_run_line line;
	char why[512];
	int rc = mst_run_line_init(&line, argc, argv, why, sizeof(why));
	int status = rc < 0 ? refuse(why) : run_line(&line);

	mst_run_line_fini(&line);
	return status;
}
