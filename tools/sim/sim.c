/* SPDX-License-Identifier: MIT */
/* muster sim: what a job would do under a policy, simulated with the ledger of the server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/host/limits.h"
#include "tools/command.h"
#include "tools/report.h"
#include "tools/sim/options.h"
#include "tools/sim/print.h"
#include "tools/sim/world.h"

static int print_help(void)
{
	(void)puts("usage: muster sim -n W --delay SPEC [--policy POLICY]... [options]\n\n"
		   "Simulates a job under each of the policies: the ledger of the server decides, "
		   "the time that\ngradients take comes from a model or from a trace. "
		   "muster-sim(1) says what each column counts.\n");
	mst_options_help(mst_sim_table, stdout);
	mst_sim_problem_help(stdout);
	return MST_EXIT_DONE;
}

/* A job that did not come to its commits or samples is told of, though the simulation has done
 * what it was asked for. Return: the exit status. */
static int judge(const struct mst_sim_cfg *job, const struct mst_sim_figures *f)
{
	if (f->ended && !mst_finish_failed(f->why))
		return MST_EXIT_DONE;
	if (f->ended)
		mst_error("%s: the job failed after %llu commits: %s", job->policy,
			  (unsigned long long)f->commits, mst_sim_end(f));
	else
		mst_error("%s: the job hangs after %llu commits: nothing can happen any more",
			  job->policy, (unsigned long long)f->commits);
	return MST_EXIT_FAILED;
}

/* Return: the exit status. */
static int simulate(const struct mst_sim_cfg *job, struct mst_sim_figures *f)
{
	struct mst_reason why;
	uint64_t begin_ns = mst_now_ns(), cpu_ns = mst_thread_ns();
	int rc = mst_sim_figures_init(f, job->ledger.workers);

	mst_reason_set(&why, "no memory for %u workers", job->ledger.workers);
	if (rc == 0)
		rc = mst_sim_run(job, f, &why);
	f->wall_ns = mst_now_ns() - begin_ns;
	f->cpu_ns = mst_thread_ns() - cpu_ns;
	if (rc == 0)
		return judge(job, f);
	mst_error("%s: %s", job->policy, why.text);
	return MST_EXIT_FAILED;
}

static int write_csv(const struct mst_sim_line *line, const struct mst_sim_figures *f)
{
	const char *path = line->options.csv;
	bool to_stdout = strcmp(path, "-") == 0;
	FILE *out = to_stdout ? stdout : fopen(path, "we");

	if (out != NULL)
		mst_sim_print_csv(line, f, out);
	int rc = out == NULL || fflush(out) == EOF || ferror(out) ? -errno : 0;
	if (out != NULL && !to_stdout && fclose(out) == EOF && rc == 0)
		rc = -errno;
	if (rc != 0 && to_stdout)
		mst_exit_told();
	if (rc != 0)
		mst_error("cannot write the table to %s: %s", to_stdout ? "standard output" : path,
			  mst_limit_failed(rc, 0, &(struct mst_reason){ 0 }));
	return rc;
}

static int write_json(const struct mst_sim_line *line, const struct mst_sim_figures *f)
{
	json_t *doc = mst_sim_json(line, f);
	int rc = mst_report_write(doc, line->options.json);

	json_decref(doc);
	return rc;
}

static bool is_stdout(const char *path)
{
	return path != NULL && strcmp(path, "-") == 0;
}

/* Return: 0 or a negative errno. */
static int report(const struct mst_sim_line *line, const struct mst_sim_figures *f)
{
	const struct mst_sim_options *o = &line->options;
	int rc = 0;

	if (!o->quiet && !is_stdout(o->csv))
		mst_sim_print(line, f, is_stdout(o->json) ? stderr : stdout);
	if (o->csv != NULL)
		rc = write_csv(line, f);
	if (o->json != NULL && write_json(line, f) != 0)
		rc = -EIO;
	return rc;
}

static int run(const struct mst_sim_line *line)
{
	struct mst_sim_figures *f = calloc(line->job_count, sizeof(*f));
	int status = MST_EXIT_DONE;

	if (f == NULL) {
		mst_error("no memory for the figures of %u jobs", line->job_count);
		return MST_EXIT_FAILED;
	}
	for (uint32_t i = 0; i < line->job_count; i++) {
		int own = simulate(&line->job[i], &f[i]);
		status = own != MST_EXIT_DONE ? own : status;
	}
	if (report(line, f) != 0)
		status = mst_exit_incomplete(status);
	for (uint32_t i = 0; i < line->job_count; i++)
		mst_sim_figures_fini(&f[i]);
	free(f);
	return status;
}

int mst_sim_command(int argc, char **argv)
{
	static struct mst_sim_line line; /* too large for a stack */
	struct mst_reason why;

	int rc = mst_sim_line_init(&line, argc, argv, &why);
	int status = rc < 0 ? mst_refuse("sim", "%s", why.text) : MST_EXIT_DONE;
	if (rc == 0)
		status = line.options.help ? print_help() : run(&line);
	mst_sim_line_fini(&line);
	return status;
}
