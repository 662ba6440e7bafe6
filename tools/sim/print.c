/* SPDX-License-Identifier: MIT */
#include "tools/sim/print.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/figure.h"
#include "tools/sim/figures.h"
#include "tools/sim/options.h"

#define NAME_WIDTH 18 /* of a policy */
#define ERROR_LEN 24u

/* ---- how a training went ---- */

/* An error or a loss: four digits, or "-" where there is none. Return: @text. */
static const char *error_text(double value, char text[ERROR_LEN])
{
	if (isnan(value))
		(void)snprintf(text, ERROR_LEN, "-");
	else
		(void)snprintf(text, ERROR_LEN, "%.4g", value);
	return text;
}

/* The error at the end of a job; NaN: it did not start, or does not train. */
static double final_error(const struct mst_sim_figures *f)
{
	return f->curve.count > 0 ? mst_sim_curve_end(&f->curve)->error : (double)NAN;
}

static void print_point(const char *policy, const struct mst_sim_point *p, FILE *out)
{
	char error[ERROR_LEN], loss[ERROR_LEN];

	(void)fprintf(out, "%-*s %9s %9" PRIu64 " %12.0f %10s %10s\n", NAME_WIDTH, policy,
		      mst_figure_duration(p->time_ns).text, p->commits, p->samples,
		      error_text(p->error, error), error_text(p->loss, loss));
}

/* The points of all jobs. */
static void print_errors(const struct mst_sim_line *line, const struct mst_sim_figures *f,
			 FILE *out)
{
	(void)fprintf(out, "%-*s %9s %9s %12s %10s %10s\n", NAME_WIDTH, "policy", "time", "commits",
		      "samples", "error", "loss");
	for (uint32_t i = 0; i < line->job_count; i++)
		for (uint32_t k = 0; k < f[i].curve.count; k++)
			print_point(line->job[i].policy, &f[i].curve.point[k], out);
}

/* An empty field: there is none. */
static void csv_number(double value, const char *end, FILE *out)
{
	if (isfinite(value))
		(void)fprintf(out, "%.9g", value);
	(void)fputs(end, out);
}

static void csv_errors(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
{
	(void)fputs("policy,simulated_s,commits,samples,error,loss\n", out);
	for (uint32_t i = 0; i < line->job_count; i++) {
		for (uint32_t k = 0; k < f[i].curve.count; k++) {
			const struct mst_sim_point *p = &f[i].curve.point[k];
			(void)fprintf(out, "\"%s\",%.9f,%" PRIu64 ",%.15g,", line->job[i].policy,
				      (double)p->time_ns / 1e9, p->commits, p->samples);
			csv_number(p->error, ",", out);
			csv_number(p->loss, "\n", out);
		}
	}
}

static json_t *json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_point(const struct mst_sim_point *p)
{
	return json_pack("{s:f, s:I, s:f, s:o, s:o}", "simulated_s", (double)p->time_ns / 1e9,
			 "commits", (json_int_t)p->commits, "samples", p->samples, "error",
			 json_number(p->error), "loss", json_number(p->loss));
}

/* The errors of one job; NULL: no memory. */
static json_t *json_errors(const struct mst_sim_figures *f)
{
	json_t *list = json_array();
	bool whole = true;

	for (uint32_t k = 0; k < f->curve.count; k++)
		whole &= json_array_append_new(list, json_point(&f->curve.point[k])) == 0;
	if (whole)
		return list;
	json_decref(list);
	return NULL;
}

/* ---- how a job ended ---- */

const char *mst_sim_end(const struct mst_sim_figures *f)
{
	if (!f->ended)
		return "nothing";
	switch (f->why) {
	case MST_FINISH_COMMITS:
		return "commits";
	case MST_FINISH_SAMPLES:
		return "samples";
	case MST_FINISH_TOO_FEW:
		return "too few workers";
	case MST_FINISH_LOSS:
		return "a loss";
	case MST_FINISH_SPOILT:
		return "a version that is infinite or not a number";
	default:
		return "other";
	}
}

/* ---- figures as text ---- */

struct sim_text {
	char text[32];
};

static double ms(double ns)
{
	return ns / 1e6;
}

static struct mst_figure duration(double ns)
{
	return mst_figure_duration((uint64_t)(ns + 0.5));
}

static struct sim_text percent(double share)
{
	struct sim_text t = { .text = "-" };

	if (!isnan(share))
		(void)snprintf(t.text, sizeof(t.text), "%.1f %%", 100 * share);
	return t;
}

static double quantile(const struct mst_hist *h, double share)
{
	return (double)mst_hist_quantile(h, share);
}

static double largest(const struct mst_hist *h)
{
	return h->count > 0 ? (double)h->max : 0;
}

static double arrival_mean(const struct mst_sim_arrival *a)
{
	return a->count > 0 ? a->sum_ns / (double)a->count : 0;
}

/* ---- tables for people ---- */

/* The last column, of a job that trains. */
static void print_error(const struct mst_sim_cfg *job, const char *text, FILE *out)
{
	if (job->problem != NULL)
		(void)fprintf(out, " %10s", text);
	(void)fputc('\n', out);
}

static void print_step(const struct mst_sim_cfg *job, const struct mst_sim_figures *f,
		       const struct mst_sim_figures *base, FILE *out)
{
	struct mst_sim_rank total = mst_sim_figures_total(f);
	const struct mst_hist *s = &f->step;
	char error[ERROR_LEN];

	(void)fprintf(out, "%-*s %9" PRIu64 " %8s %8s %8s %8s %8s %7.2f %5.0f %5.0f", NAME_WIDTH,
		      job->policy, f->commits, duration(mst_hist_mean(s)).text,
		      duration(quantile(s, 0.5)).text, duration(quantile(s, 0.9)).text,
		      duration(quantile(s, 0.99)).text, duration(largest(s)).text,
		      mst_hist_mean(&f->staleness), quantile(&f->staleness, 0.99),
		      largest(&f->staleness));
	(void)fprintf(out, " %9s %7s %8s", percent(mst_sim_wasted_gradients(&total)).text,
		      percent(mst_sim_wasted_time(&total)).text,
		      f == base ? "-" : percent(mst_sim_saved(f, base)).text);
	print_error(job, error_text(final_error(f), error), out);
}

static void print_steps(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
{
	(void)fprintf(out, "%-*s %9s %-44s %-19s %-17s %8s", NAME_WIDTH, "", "", "time of a step",
		      "staleness", "wasted share of", "saved");
	print_error(line->job, "", out);
	(void)fprintf(out, "%-*s %9s %8s %8s %8s %8s %8s %7s %5s %5s %9s %7s %8s", NAME_WIDTH,
		      "policy", "commits", "mean", "p50", "p90", "p99", "max", "mean", "p99", "max",
		      "gradients", "time", "vs first");
	print_error(line->job, "error", out);
	for (uint32_t i = 0; i < line->job_count; i++)
		print_step(&line->job[i], &f[i], f, out);
}

/* With many workers, the arrivals shown are about equally far apart on a logarithmic scale from
 * both ends: the first and the last are the interesting ones. */
static bool is_shown(uint32_t k, uint32_t workers)
{
	uint32_t from_end = workers - k + 1;
	uint32_t near = k < from_end ? k : from_end;

	return workers <= 32 || (near & (near - 1)) == 0;
}

static void print_arrivals(const struct mst_sim_line *line, const struct mst_sim_figures *f,
			   FILE *out)
{
	(void)fprintf(out, "%6s", "k");
	for (uint32_t i = 0; i < line->job_count; i++)
		(void)fprintf(out, " %*s", NAME_WIDTH, line->job[i].policy);
	(void)fputc('\n', out);
	for (uint32_t k = 1; k <= f->workers; k++) {
		if (!is_shown(k, f->workers))
			continue;
		(void)fprintf(out, "%6" PRIu32, k);
		for (uint32_t i = 0; i < line->job_count; i++) {
			const struct mst_sim_arrival *a = &f[i].arrival[k - 1];
			(void)fprintf(out, " %*s", NAME_WIDTH,
				      a->count > 0 ? duration(arrival_mean(a)).text : "-");
		}
		(void)fputc('\n', out);
	}
}

static void print_rank(const char *policy, const char *rank, const struct mst_sim_rank *r,
		       FILE *out)
{
	(void)fprintf(out,
		      "%-*s %6s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %6" PRIu64
		      " %16s %11s\n",
		      NAME_WIDTH, policy, rank, r->counted, r->late, r->stale, r->given_up, r->lost,
		      percent(mst_sim_wasted_gradients(r)).text,
		      percent(mst_sim_wasted_time(r)).text);
}

static void print_ranks(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
{
	(void)fprintf(out, "%-*s %6s %9s %9s %9s %9s %6s %16s %11s\n", NAME_WIDTH, "policy", "rank",
		      "counted", "late", "stale", "given up", "lost", "wasted gradients",
		      "wasted time");
	for (uint32_t i = 0; i < line->job_count; i++) {
		struct mst_sim_rank total = mst_sim_figures_total(&f[i]);
		for (uint32_t rank = 0; rank < f[i].workers; rank++) {
			char number[16];
			(void)snprintf(number, sizeof(number), "%" PRIu32, rank);
			print_rank(line->job[i].policy, number, &f[i].rank[rank], out);
		}
		print_rank(line->job[i].policy, "all", &total, out);
	}
}

/* Calls in a second of processor time: what else runs on the host is not measured. */
static double calls_per_s(uint64_t calls, uint64_t cpu_ns)
{
	return cpu_ns > 0 ? (double)calls / ((double)cpu_ns / 1e9) : 0;
}

static struct sim_text rate(double gb_s)
{
	struct sim_text t = { .text = "unlimited" };

	if (gb_s > 0)
		(void)snprintf(t.text, sizeof(t.text), "%g", gb_s);
	return t;
}

static void print_head(const struct mst_sim_line *line, FILE *out)
{
	const struct mst_sim_options *o = &line->options;

	(void)fprintf(out, "# %" PRIu32 " workers, delay", o->server.workers);
	for (uint32_t i = 0; i < o->delay.count; i++)
		(void)fprintf(out, " %s", o->delay.item[i]);
	(void)fprintf(out, ", checks %s, micro %" PRIu32 ", seed %" PRIu64 "\n", o->checks,
		      o->micro, o->seed);
	if (o->latency_ns > 0 || o->bytes > 0 || o->server.servers > 1)
		(void)fprintf(out,
			      "# servers %" PRIu32 ", latency %s, %" PRIu64
			      " bytes, GB/s of a worker %s, of a server %s\n",
			      o->server.servers, mst_figure_duration(o->latency_ns).text, o->bytes,
			      rate(o->worker_rate).text, rate(o->server_rate).text);
	if (o->train != NULL)
		(void)fprintf(
			out, "# train %s, %" PRIu64 " parameters, optimizer %s, schedule %s\n",
			o->train, line->problem->elems, o->server.optimizer, o->server.lr_schedule);
	for (uint32_t i = 0; i < line->switches.count; i++)
		(void)fprintf(out, "# switch %s\n", line->switches.text[i]);
}

static void print_foot(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
{
	uint64_t calls = 0, wall_ns = 0, cpu_ns = 0;

	for (uint32_t i = 0; i < line->job_count; i++) {
		calls += f[i].calls;
		wall_ns += f[i].wall_ns;
		cpu_ns += f[i].cpu_ns;
	}
	(void)fprintf(out, "# calls %" PRIu64 ", wall_s %.3f, calls_per_s %.0f\n", calls,
		      (double)wall_ns / 1e9, calls_per_s(calls, cpu_ns));
}

void mst_sim_print(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
{
	print_head(line, out);
	if (line->options.table == MST_SIM_ARRIVALS)
		print_arrivals(line, f, out);
	else if (line->options.table == MST_SIM_RANKS)
		print_ranks(line, f, out);
	else if (line->options.table == MST_SIM_ERRORS)
		print_errors(line, f, out);
	else
		print_steps(line, f, out);
	print_foot(line, f, out);
}

/* ---- CSV ---- */

static void csv_steps(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
{
	bool trains = line->problem != NULL;

	(void)fputs("policy,commits,samples,simulated_s,mean_step_ms,p50_step_ms,p90_step_ms,"
		    "p99_step_ms,max_step_ms,mean_staleness,p99_staleness,max_staleness,"
		    "wasted_gradients,wasted_time,saved,ended_by",
		    out);
	(void)fputs(trains ? ",error\n" : "\n", out);
	for (uint32_t i = 0; i < line->job_count; i++) {
		struct mst_sim_rank total = mst_sim_figures_total(&f[i]);
		const struct mst_hist *s = &f[i].step;
		(void)fprintf(out,
			      "\"%s\",%" PRIu64 ",%.15g,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,"
			      "%.0f,%.0f,%.6f,%.6f,",
			      line->job[i].policy, f[i].commits, total.samples,
			      (double)mst_sim_figures_elapsed_ns(&f[i]) / 1e9, ms(mst_hist_mean(s)),
			      ms(quantile(s, 0.5)), ms(quantile(s, 0.9)), ms(quantile(s, 0.99)),
			      ms(largest(s)), mst_hist_mean(&f[i].staleness),
			      quantile(&f[i].staleness, 0.99), largest(&f[i].staleness),
			      mst_sim_wasted_gradients(&total), mst_sim_wasted_time(&total));
		double saved = mst_sim_saved(&f[i], f);
		if (!isnan(saved)) /* an empty field: there is none */
			(void)fprintf(out, "%.6f", saved);
		(void)fprintf(out, ",%s", mst_sim_end(&f[i]));
		if (trains)
			(void)fprintf(out, ",%.9g", final_error(&f[i]));
		(void)fputc('\n', out);
	}
}

static void csv_arrivals(const struct mst_sim_line *line, const struct mst_sim_figures *f,
			 FILE *out)
{
	(void)fputs("policy,k,steps,mean_ms\n", out);
	for (uint32_t i = 0; i < line->job_count; i++)
		for (uint32_t k = 1; k <= f[i].workers && f[i].arrival[k - 1].count > 0; k++)
			(void)fprintf(out, "\"%s\",%" PRIu32 ",%" PRIu64 ",%.6f\n",
				      line->job[i].policy, k, f[i].arrival[k - 1].count,
				      ms(arrival_mean(&f[i].arrival[k - 1])));
}

static void csv_ranks(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
{
	(void)fputs("policy,rank,counted,samples,late,stale,given_up,lost,useful_s,wasted_s\n",
		    out);
	for (uint32_t i = 0; i < line->job_count; i++) {
		for (uint32_t rank = 0; rank < f[i].workers; rank++) {
			const struct mst_sim_rank *r = &f[i].rank[rank];
			(void)fprintf(out,
				      "\"%s\",%" PRIu32 ",%" PRIu64 ",%.15g,%" PRIu64 ",%" PRIu64
				      ",%" PRIu64 ",%" PRIu64 ",%.6f,%.6f\n",
				      line->job[i].policy, rank, r->counted, r->samples, r->late,
				      r->stale, r->given_up, r->lost, (double)r->useful_ns / 1e9,
				      (double)r->wasted_ns / 1e9);
		}
	}
}

void mst_sim_print_csv(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
{
	if (line->options.table == MST_SIM_ARRIVALS)
		csv_arrivals(line, f, out);
	else if (line->options.table == MST_SIM_RANKS)
		csv_ranks(line, f, out);
	else if (line->options.table == MST_SIM_ERRORS)
		csv_errors(line, f, out);
	else
		csv_steps(line, f, out);
}

/* ---- JSON ---- */

static json_t *json_times(const struct mst_hist *h)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", ms(mst_hist_mean(h)), "p50",
			 ms(quantile(h, 0.5)), "p90", ms(quantile(h, 0.9)), "p99",
			 ms(quantile(h, 0.99)), "max", ms(largest(h)));
}

static json_t *json_staleness(const struct mst_hist *h)
{
	return json_pack("{s:f, s:I, s:I}", "mean", mst_hist_mean(h), "p99",
			 (json_int_t)mst_hist_quantile(h, 0.99), "max", (json_int_t)largest(h));
}

static json_t *json_rank(const struct mst_sim_rank *r)
{
	return json_pack("{s:I, s:f, s:I, s:I, s:I, s:I, s:f, s:f}", "counted",
			 (json_int_t)r->counted, "samples", r->samples, "late", (json_int_t)r->late,
			 "stale", (json_int_t)r->stale, "given_up", (json_int_t)r->given_up, "lost",
			 (json_int_t)r->lost, "useful_s", (double)r->useful_ns / 1e9, "wasted_s",
			 (double)r->wasted_ns / 1e9);
}

/* A list that lacks a member is no list. */
static json_t *finished(json_t *list, bool whole)
{
	if (whole)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *json_ranks(const struct mst_sim_figures *f)
{
	json_t *list = json_array();
	bool whole = true;

	for (uint32_t rank = 0; rank < f->workers; rank++)
		whole &= json_array_append_new(list, json_rank(&f->rank[rank])) == 0;
	return finished(list, whole);
}

static json_t *json_arrivals(const struct mst_sim_figures *f)
{
	json_t *list = json_array();
	bool whole = true;

	for (uint32_t k = 1; k <= f->workers && f->arrival[k - 1].count > 0; k++) {
		const struct mst_sim_arrival *a = &f->arrival[k - 1];
		whole &= json_array_append_new(list,
					       json_pack("{s:I, s:I, s:f}", "k", (json_int_t)k,
							 "steps", (json_int_t)a->count, "mean_ms",
							 ms(arrival_mean(a)))) == 0;
	}
	return finished(list, whole);
}

static json_t *json_job(const struct mst_sim_cfg *job, const struct mst_sim_figures *f,
			const struct mst_sim_figures *base)
{
	struct mst_sim_rank total = mst_sim_figures_total(f);
	double saved = mst_sim_saved(f, base);

	/* The errors are left out where nothing is trained. */
	return json_pack("{s:s, s:I, s:f, s:f, s:s, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:I, "
			 "s:f, s:f, s:o*}",
			 "policy", job->policy, "commits", (json_int_t)f->commits, "samples",
			 total.samples, "simulated_s", (double)mst_sim_figures_elapsed_ns(f) / 1e9,
			 "ended_by", mst_sim_end(f), "step_ms", json_times(&f->step), "staleness",
			 json_staleness(&f->staleness), "arrivals", json_arrivals(f), "total",
			 json_rank(&total), "wasted_gradients", mst_sim_wasted_gradients(&total),
			 "wasted_time", mst_sim_wasted_time(&total), "saved",
			 isnan(saved) ? json_null() : json_real(saved), "ranks", json_ranks(f),
			 "calls", (json_int_t)f->calls, "calls_per_s",
			 calls_per_s(f->calls, f->cpu_ns), "wall_s", (double)f->wall_ns / 1e9,
			 "errors", job->problem != NULL ? json_errors(f) : NULL);
}

json_t *mst_sim_json(const struct mst_sim_line *line, const struct mst_sim_figures *f)
{
	json_t *jobs = json_array();
	bool whole = true;

	for (uint32_t i = 0; i < line->job_count; i++)
		whole &= json_array_append_new(jobs, json_job(&line->job[i], &f[i], f)) == 0;
	return json_pack("{s:I, s:I, s:o}", "workers", (json_int_t)line->options.server.workers,
			 "seed", (json_int_t)line->options.seed, "jobs", finished(jobs, whole));
}
