/* SPDX-License-Identifier: MIT */
/* muster run: a server and its workers on this host, from the first process to the last. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/log_writer.h"
#include "server/core/policy/policy.h"
#include "tools/command.h"
#include "tools/keys.h"
#include "tools/report.h"
#include "tools/run/options.h"
#include "tools/run/summary.h"
#include "tools/run/supervisor.h"
#include "tools/secure.h"

static int print_help(void)
{
	(void)puts("usage: muster run -n W [options] -- PROGRAM [ARGUMENT]...\n\n"
		   "Starts a server and W workers that execute PROGRAM on this host, shows how the "
		   "job goes,\nand sums it up at the end.\n\nOptions of the run:");
	mst_passthrough_help(&mst_run_passthrough, "musterd");
	(void)puts("\nPolicies:");
	for (unsigned i = 0; mst_policy_help(i) != NULL; i++)
		(void)printf("  %s\n", mst_policy_help(i));
	(void)puts("\nOptimisers:");
	mst_optim_help(stdout);
	(void)puts("\nSchedules of the rate, by samples:");
	mst_schedule_help(stdout);
	return MST_EXIT_DONE;
}

/* What only the run can find wrong, and what musterd would, sooner. */
static int check(struct mst_run_line *line, struct mst_reason *why)
{
	if (line->options.server.workers == 0) {
		mst_reason_set(why, "how many workers? -n W says it");
		return -EINVAL;
	}
	if (line->program[0] == NULL || line->program[0][0] == '\0') {
		mst_reason_set(why, "no program for the workers: muster run -n %u -- PROGRAM",
			       line->options.server.workers);
		return -EINVAL;
	}
	if (mst_report_check("json", line->options.json, why) != 0)
		return -EINVAL;
	int rc = mst_keys_make(&line->options.server, why);
	return rc != 0 ? rc : mst_server_options_check(&line->options.server, why);
}

static void write_json(struct mst_ending *ending, const char *path)
{
	json_t *doc = mst_summary_json(ending);

	int rc = mst_report_write(doc, path);
	if (rc < 0)
		mst_ending_miss(ending, "the figures as JSON in %s: %s",
				strcmp(path, "-") == 0 ? "standard output" : path, strerror(-rc));
	json_decref(doc);
}

/* ---- the last words ---- */

/* How long the reader of standard error has to take them, from a signal on. */
#define LAST_WORDS_NS MST_SECOND
#define LOOK_NS (50 * MST_MS)

/* Every process of the run has ended, so that nothing depends on this one. As any program does, it
 * waits until a terminal that was stopped, or a pager, has taken what it says; but not longer than
 * a moment once it has been told to end. */
struct last_words {
	struct mst_signals *signals;
	uint64_t until_ns; /* MST_NEVER: no signal has come */
};

static void heed_signal(struct last_words *w, int signo)
{
	if (signo != 0 && signo != SIGCHLD && w->until_ns == MST_NEVER)
		w->until_ns = mst_now_ns() + LAST_WORDS_NS;
}

/* Return: false: the time is over. */
static bool wait_for_reader(struct last_words *w)
{
	bool waits = !mst_log_flush(LOOK_NS);

	heed_signal(w, mst_signals_next(w->signals));
	return !waits || mst_now_ns() < w->until_ns;
}

/* What a stream of the C library writes a line with. */
static ssize_t say(void *cookie, const char *text, size_t len)
{
	struct last_words *w = cookie;
	size_t said = len < MST_LOG_LINE_MAX ? len : MST_LOG_LINE_MAX;

	while (!mst_log_offer(text, said)) {
		if (!wait_for_reader(w))
			return 0; /* an error, as of a disk that is full */
	}
	return (ssize_t)said;
}

static void sum_up(const struct mst_ending *ending, struct last_words *w)
{
	char line[MST_LOG_LINE_MAX];
	FILE *out = fopencookie(w, "w", (cookie_io_functions_t){ .write = say });

	if (out == NULL) {
		mst_error("no memory for the summary");
		return;
	}
	(void)setvbuf(out, line, _IOLBF, sizeof(line));
	mst_summary_print(ending, out);
	(void)fclose(out);
}

/* Return: the exit status. */
static int conclude(struct mst_ending *ending, const struct mst_run_options *options,
		    struct mst_signals *signals)
{
	struct last_words w = { .signals = signals, .until_ns = MST_NEVER };

	if (options->json != NULL)
		write_json(ending, options->json);
	heed_signal(&w, ending->signo);
	if (!options->quiet)
		sum_up(ending, &w);
	while (mst_log_waits() && wait_for_reader(&w))
		;
	if (!options->quiet && mst_log_lost())
		mst_ending_miss(ending, "the summary");
	return mst_ending_status(ending);
}

static int run(const struct mst_run_line *line)
{
	struct mst_signals signals;
	struct mst_supervisor *supervisor;
	struct mst_ending ending;
	int rc = mst_signals_open(&signals);

	if (rc == 0) {
		struct mst_supervisor_cfg cfg = { .line = line, .signals = &signals };
		rc = mst_supervisor_new(&cfg, &supervisor);
		if (rc < 0)
			mst_signals_close(&signals);
	}
	if (rc < 0) {
		mst_error("cannot begin: %s", strerror(-rc));
		return MST_EXIT_FAILED;
	}
	mst_supervisor_run(supervisor, &ending);
	int status = conclude(&ending, &line->options, &signals);
	mst_supervisor_free(supervisor);
	mst_signals_close(&signals);
	return status;
}

static int run_line(struct mst_run_line *line)
{
	struct mst_reason why;

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
	if (check(line, &why) < 0)
		return mst_refuse("run", "%s", why.text);
	mst_log_open("muster", line->options.quiet ? MST_LOG_WARN : MST_LOG_INFO);
	return run(line);
}

int mst_run_command(int argc, char **argv)
{
	struct mst_run_line line;
	struct mst_reason why;

	mst_secure_forget();
	int rc = mst_run_line_init(&line, argc, argv, &why);
	int status = rc < 0 ? mst_refuse("run", "%s", why.text) : run_line(&line);

	mst_run_line_fini(&line);
	mst_keys_remove();
	return status;
}
