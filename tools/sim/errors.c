/* SPDX-License-Identifier: MIT */
#include "tools/sim/errors.h"

#include <inttypes.h>
#include <math.h>

#include "tools/figure.h"

#define NAME_WIDTH 18 /* of a policy */

const char *mst_sim_error_text(double value, char text[MST_SIM_ERROR_LEN])
{
	if (isnan(value))
		(void)snprintf(text, MST_SIM_ERROR_LEN, "-");
	else
		(void)snprintf(text, MST_SIM_ERROR_LEN, "%.4g", value);
	return text;
}

double mst_sim_final_error(const struct mst_sim_figures *f)
{
	return f->curve.count > 0 ? mst_sim_curve_end(&f->curve)->error : (double)NAN;
}

/* ---- tables ---- */

static void print_point(const char *policy, const struct mst_sim_point *p, FILE *out)
{
	char error[MST_SIM_ERROR_LEN], loss[MST_SIM_ERROR_LEN];

	(void)fprintf(out, "%-*s %9s %9" PRIu64 " %12.0f %10s %10s\n", NAME_WIDTH, policy,
		      mst_figure_duration(p->time_ns).text, p->commits, p->samples,
		      mst_sim_error_text(p->error, error), mst_sim_error_text(p->loss, loss));
}

void mst_sim_print_errors(const struct mst_sim_line *line, const struct mst_sim_figures *f,
			  FILE *out)
{
	(void)fprintf(out, "%-*s %9s %9s %12s %10s %10s\n", NAME_WIDTH, "policy", "time", "commits",
		      "samples", "error", "loss");
	for (uint32_t i = 0; i < line->job_count; i++)
		for (uint32_t k = 0; k < f[i].curve.count; k++)
			print_point(line->job[i].policy, &f[i].curve.point[k], out);
}

/* ---- CSV ---- */

/* An empty field: there is none. */
static void csv_number(double value, const char *end, FILE *out)
{
	if (isfinite(value))
		(void)fprintf(out, "%.9g", value);
	(void)fputs(end, out);
}

void mst_sim_csv_errors(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out)
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

/* ---- JSON ---- */

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

json_t *mst_sim_json_errors(const struct mst_sim_figures *f)
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
