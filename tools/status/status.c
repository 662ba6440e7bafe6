/* SPDX-License-Identifier: MIT */
/* muster status: how a job is, and who is late, by how much, how often. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/config/option.h"
#include "common/transport/transport.h"
#include "common/wire/counted.h"
#include "tools/address.h"
#include "tools/command.h"
#include "tools/figure.h"
#include "tools/report.h"
#include "tools/secure.h"
#include "tools/status/options.h"
#include "tools/straggler.h"
#include "tools/watch.h"

static int print_help(void)
{
	(void)puts("usage: muster status [options] [HOST:PORT]\n\n"
		   "Asks the server at HOST:PORT (or MUSTER_SERVER, or " MST_ADDRESS_DEFAULT ")\n"
		   "how its job is: who is late, by how much, how often.\n"
		   "muster-status(1) says what each column counts.\n\nOptions:");
	mst_options_help(mst_status_table, stdout);
	return MST_EXIT_DONE;
}

static void print_job(const struct mst_status *job, const char *address)
{
	(void)printf("job %s at %s is %s%s%s: policy %s, %u of %u workers live, version %" PRIu64
		     "%s, %.0f samples, loss %s\n",
		     job->job, address, mst_report_job_state(job->state),
		     job->why[0] != '\0' ? ", " : "", job->why, mst_report_policy(job).text,
		     job->live, job->workers, job->version, mst_report_goal(job).text, job->samples,
		     mst_figure_loss(job->loss).text);
	(void)printf("access: %s\n", mst_report_access_means(job->access));
	if (job->step_mean_ns > 0)
		(void)printf("step: mean %s, p50 %s, p99 %s, max %s, recently %s%s\n",
			     mst_figure_duration(job->step_mean_ns).text,
			     mst_figure_duration(job->step_p50_ns).text,
			     mst_figure_duration(job->step_p99_ns).text,
			     mst_figure_duration(job->step_max_ns).text,
			     mst_figure_duration(job->recent_step_ns).text,
			     mst_report_saved(job).text);
}

/* The parts of the vector; where there is one server, it has all of it. */
static void print_servers(const struct mst_status *job)
{
	if (job->server_count < 2)
		return;
	(void)printf("server  %-8s %21s  %-9s listener\n", "state", "elements", "network");
	for (uint32_t i = 0; i < job->server_count; i++) {
		const struct mst_status_server *s = &job->server[i];
		char part[48] = "", places[MST_ADDRESS_LEN];
		if (s->count > 0)
			(void)snprintf(part, sizeof(part), "%" PRIu64 " to %" PRIu64, s->first,
				       s->first + s->count - 1);
		(void)printf("%6u  %-8s %21s  %-9s %s\n", i, mst_report_server_state(s->state),
			     part, i > 0 ? mst_report_network(&s->link).text : "",
			     mst_networks_places(s->listener, places));
	}
}

/* Prints the recent figures of a running job, or else those of the whole job. */
static void print_rank(const struct mst_status_rank *row, bool whole)
{
	struct mst_gradients g = mst_straggler_gradients(row, whole);
	struct mst_late_share late = mst_report_late(row);

	(void)printf("%4u  %-7s %9" PRIu64 " %20s %7s %8s %9" PRIu64 " %12s %9s %9s", row->rank,
		     mst_report_rank_now(row), row->counted,
		     mst_counted_of(row->samples_counted, row->samples_pushed).text,
		     mst_figure_share(g.missed, g.came).text,
		     mst_figure_share(late.late, late.pushed).text, row->given_up,
		     mst_figure_staleness(row).text, mst_figure_duration(g.ready_ns).text,
		     mst_figure_duration(g.behind_ns).text);
	if (!whole)
		(void)printf(" %5" PRIu64 " %9s %9s %9s", row->behind_by,
			     mst_figure_ago(row->handed_in_ns).text,
			     mst_figure_ago(row->heard_ns).text,
			     row->busy_ns > 0 ? mst_figure_duration(row->busy_ns).text : "-");
	(void)printf("  %s\n", mst_report_network(&row->link).text);
}

static void print_snapshot(const struct mst_job_snapshot *s, const char *address)
{
	struct mst_named_straggler straggler = mst_straggler_find(s);
	char reason[512];

	print_job(&s->job, address);
	mst_report_generation(&s->job, stdout);
	mst_report_policies(&s->job, stdout);
	mst_report_metrics(&s->job, stdout);
	mst_report_state(&s->job, stdout);
	print_servers(&s->job);
	(void)printf("%4s  %-7s %9s %20s %7s %8s %9s %12s %9s %9s", "rank", "state", "counted",
		     "samples", "missed", "late", "given up", "staleness", "ready", "behind");
	if (!straggler.whole)
		(void)printf(" %5s %9s %9s %9s", "lag", "handed in", "heard", "busy");
	(void)printf("  network\n");
	for (uint32_t i = 0; i < s->row_count; i++)
		print_rank(&s->row[i], straggler.whole);
	mst_report_norms(s, stdout);
	struct mst_late_share mean = mst_report_late_mean(s);
	if (mean.late > 0)
		(void)printf("a fair share of late gradients would be %s of each rank's\n",
			     mst_figure_share(mean.late, mean.pushed).text);
	mst_straggler_reason(&straggler, reason, sizeof(reason));
	(void)printf("%s\n", reason);
}

/* The figures of `muster run`, of a job that may still go on. */
static json_t *snapshot_json(const struct mst_job_snapshot *s)
{
	struct mst_named_straggler straggler = mst_straggler_find(s);
	json_t *out = mst_report_job(&s->job);
	json_t *ranks = json_array(), *servers = json_array();
	char reason[512];
	int failed = 0;

	for (uint32_t i = 0; i < s->row_count; i++)
		failed |= json_array_append_new(ranks, mst_report_rank(&s->row[i]));
	mst_straggler_reason(&straggler, reason, sizeof(reason));
	failed |= json_object_set_new(out, "straggler", json_string(reason));
	failed |= json_object_set_new(out, "fair_late_share",
				      mst_report_share(mst_report_late_mean(s)));
	for (uint32_t i = 0; i < s->job.server_count; i++)
		failed |= json_array_append_new(servers, mst_report_server(&s->job.server[i]));
	failed |= json_object_set_new(out, "servers", servers);
	failed |= json_object_set_new(out, "ranks", ranks);
	if (failed != 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static int show(const struct mst_job_snapshot *s, const char *address, const char *json)
{
	if (json == NULL || strcmp(json, "-") != 0)
		print_snapshot(s, address);
	if (json == NULL)
		return 0;
	json_t *doc = snapshot_json(s);
	int rc = mst_report_write(doc, json);
	json_decref(doc);
	return rc;
}

/* @shown: were all figures written?
 * Return: 0: there is a status; or -errno. */
static int ask_and_show(const char *address, const struct mst_status_options *options, bool *shown)
{
	uint64_t deadline = mst_now_ns() + options->timeout_ns;
	struct mst_watch *watch;
	struct mst_reason why;
	int rc = mst_watch_open(address, options->timeout_ns, &watch, &why);

	if (rc < 0) {
		mst_error("%s", why.text);
		return rc;
	}
	rc = mst_watch_ask(watch, false);
	if (rc == 0)
		rc = mst_watch_await(watch, deadline);
	if (rc < 0)
		mst_error("%s: %s", address, mst_watch_error(watch));
	if (rc > 0)
		*shown = show(mst_watch_snapshot(watch), address, options->json) == 0;
	mst_watch_close(watch);
	return rc < 0 ? rc : 0;
}

static int status(const struct mst_status_options *options, const char *typed)
{
	char address[MST_SERVER_ADDRESS_LEN];
	struct mst_reason why;
	bool shown = true;

	if (options->help)
		return print_help();
	if (mst_report_check("json", options->json, &why) != 0)
		return mst_refuse("status", "%s", why.text);
	if (mst_address_choose("status", typed, address) != 0 ||
	    mst_secure_open(&options->tls) != 0)
		return MST_EXIT_USAGE;
	int exit_status = mst_secure_exit(ask_and_show(address, options, &shown));
	return shown ? exit_status : mst_exit_incomplete(exit_status);
}

/* Options may stand before the address and after it. @address: NULL: none was typed. */
static int read_line(struct mst_options *parsed, int argc, char **argv, const char **address)
{
	int operand;
	int rc = mst_options_argv(parsed, argc, argv, &operand);

	*address = NULL;
	if (rc < 0 || operand == argc)
		return rc;
	*address = argv[operand];
	argc -= operand, argv += operand;
	rc = mst_options_argv(parsed, argc, argv, &operand);
	if (rc == 0 && operand < argc) {
		mst_reason_set(&parsed->why, "one address at a time: not %.60s and %.60s", *address,
			       argv[operand]);
		rc = -EINVAL;
	}
	return rc;
}

int mst_status_command(int argc, char **argv)
{
	struct mst_status_options options;
	struct mst_options parsed;
	const char *address;

	if (mst_options_init(&parsed, mst_status_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = read_line(&parsed, argc, argv, &address);
	int exit_status = rc < 0 ? mst_refuse("status", "%s", parsed.why.text)
				 : status(&options, address);
	mst_options_free(&parsed);
	return exit_status;
}
