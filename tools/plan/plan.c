/* SPDX-License-Identifier: MIT */
/* muster plan: which policy would have served best, by the arrival times of a trace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/reason.h"
#include "tools/command.h"
#include "tools/plan/options.h"
#include "tools/plan/print.h"
#include "tools/report.h"

#define WHY_LEN 400u

static int print_help(void)
{
	(void)puts("usage: muster plan --trace FILE [options]\n\n"
		   "Reads when gradients arrived, and says for how many of them each step should\n"
		   "wait, what that would bring, how sure this is, and who is always slow.\n\n"
		   "Options:");
	mst_options_help(mst_plan_table, stdout);
	return MST_EXIT_DONE;
}

/* ---- from the file to the figures ---- */

static int read_rows(const struct mst_plan_options *o, struct mst_arrival_rows *out)
{
	struct mst_rows_cfg cfg = { .from = o->from,
				    .to = o->to != 0 ? o->to : UINT64_MAX,
				    .pair = (enum mst_rows_pair)o->pair };
	FILE *f = fopen(o->trace, "re");
	struct mst_reason why;

	if (f == NULL) {
		int error = -errno;
		mst_error("cannot open %s: %s", o->trace, strerror(errno));
		return error;
	}
	int rc = mst_rows_read(f, &cfg, out, &why);
	(void)fclose(f);
	if (rc != 0)
		mst_error("%s: %s", o->trace, why.text);
	return rc;
}

/* The k-th arrival for every k. */
static int count_arrivals(const struct mst_arrivals *a, struct mst_arrival_figures **out)
{
	struct mst_arrival_figures *all = calloc(a->ranks, sizeof(*all));
	double *scratch = calloc(a->steps, sizeof(*scratch));
	int rc = all != NULL && scratch != NULL ? 0 : -ENOMEM;

	for (uint32_t k = 1; rc == 0 && k <= a->ranks; k++)
		mst_arrival_figures_of(a, k, scratch, &all[k - 1]);
	free(scratch);
	if (rc != 0)
		free(all);
	else
		*out = all;
	return rc;
}

/* ---- what is told ---- */

static bool is_stdout(const char *path)
{
	return path != NULL && strcmp(path, "-") == 0;
}

static int write_csv(const struct mst_plan_report *r, const char *path)
{
	bool to_stdout = is_stdout(path);
	FILE *out = to_stdout ? stdout : fopen(path, "we");

	if (out != NULL)
		mst_plan_print_csv(r, out);
	int rc = out == NULL || fflush(out) == EOF || ferror(out) ? -errno : 0;
	if (out != NULL && !to_stdout && fclose(out) == EOF && rc == 0)
		rc = -errno;
	if (rc != 0 && to_stdout)
		mst_exit_told();
	if (rc != 0)
		mst_error("cannot write the figures to %s: %s",
			  to_stdout ? "standard output" : path, strerror(-rc));
	return rc;
}

static int write_json(const struct mst_plan_report *r, const char *path)
{
	json_t *doc = mst_plan_json(r);
	int rc = mst_report_write(doc, path);

	json_decref(doc);
	return rc;
}

/* Return: the exit status. */
static int tell(const struct mst_plan_report *r, const struct mst_plan_options *o)
{
	int rc = 0;

	if (!is_stdout(o->json) && !is_stdout(o->csv)) {
		mst_plan_print(r, stdout);
		if (o->plot)
			mst_plan_plot(r, stdout);
	}
	if (o->csv != NULL)
		rc = write_csv(r, o->csv);
	if (o->json != NULL && write_json(r, o->json) != 0)
		rc = -EIO;
	return rc == 0 ? MST_EXIT_DONE : MST_EXIT_INCOMPLETE;
}

/* Return: the exit status. */
static int advise(const struct mst_plan_options *o, struct mst_plan_report *r,
		  const struct mst_arrivals *arrivals)
{
	struct mst_arrival_figures *arrival = NULL;
	struct mst_advice advice = { 0 };
	const struct mst_bootstrap_cfg samples = { .seed = o->seed };
	int rc = mst_plan_advise(arrivals, &samples, &advice);

	if (rc == 0)
		rc = count_arrivals(arrivals, &arrival);
	r->arrivals = arrivals;
	r->advice = &advice;
	r->arrival = arrival;
	int status = MST_EXIT_FAILED;
	if (rc == 0)
		status = tell(r, o);
	else
		mst_error("no memory for the figures of %u steps of %u ranks", arrivals->steps,
			  arrivals->ranks);
	free(arrival);
	mst_advice_fini(&advice);
	return status;
}

static int plan(const struct mst_plan_options *o)
{
	struct mst_arrival_rows rows = { 0 };
	struct mst_arrivals arrivals = { 0 };
	struct mst_plan_report report = { .trace = o->trace, .rows = &rows };
	struct mst_reason why;
	int rc = read_rows(o, &rows);

	if (rc == 0) {
		rc = mst_arrivals_new(&rows, &arrivals, &why);
		if (rc != 0)
			mst_error("%s: %s", o->trace, why.text);
	}
	int status = rc == 0 ? advise(o, &report, &arrivals) : MST_EXIT_FAILED;
	mst_arrivals_free(&arrivals);
	mst_rows_free(&rows);
	return status;
}

static int check_and_plan(const struct mst_plan_options *o)
{
	struct mst_reason why;

	if (o->help)
		return print_help();
	if (o->trace == NULL || o->trace[0] == '\0')
		return mst_refuse("plan", "which trace? --trace FILE says it");
	if (o->to != 0 && o->from > o->to)
		return mst_refuse("plan", "--from is behind --to: no step is left");
	if (is_stdout(o->json) && is_stdout(o->csv))
		return mst_refuse("plan", "--csv and --json cannot both be standard output");
	if (mst_report_check("json", o->json, &why) != 0 ||
	    mst_report_check("csv", o->csv, &why) != 0)
		return mst_refuse("plan", "%s", why.text);
	return plan(o);
}

int mst_plan_command(int argc, char **argv)
{
	struct mst_plan_options options;
	struct mst_options parsed;
	int operand;

	if (mst_options_init(&parsed, mst_plan_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = mst_options_argv(&parsed, argc, argv, &operand);
	if (rc == 0 && operand < argc) {
		mst_reason_set(&parsed.why, "what is \"%.60s\"? the file follows --trace",
			       argv[operand]);
		rc = -EINVAL;
	}
	int exit_status = rc < 0 ? mst_refuse("plan", "%s", parsed.why.text)
				 : check_and_plan(&options);
	mst_options_free(&parsed);
	return exit_status;
}
