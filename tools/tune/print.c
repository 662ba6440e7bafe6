/* SPDX-License-Identifier: MIT */
#include "tools/tune/print.h"

#include <inttypes.h>

#include "tools/command.h"
#include "tools/figure.h"

static void print_share(const struct mst_search *s, const struct mst_tune_share *t, FILE *out)
{
	const char *verdict = t == &s->tried[0] ? "the measure" : t->kept ? "kept" : "not kept";
	bool unsure = t != &s->tried[0] && t->whole && !t->noise.sure;

	(void)fprintf(out, "%-24s %5" PRIu32, t->policy, t->trials);
	if (t->whole)
		(void)fprintf(out, " %12.6g %12.3g %9s  %s%s\n", t->spread.mean,
			      t->spread.deviation, mst_figure_duration(t->mean_ns).text, verdict,
			      unsure ? ", perhaps by chance" : "");
	else
		(void)fprintf(out, " %12s %12s %9s  not finished\n", "-", "-", "-");
}

static void print_table(const struct mst_search *s, FILE *out)
{
	(void)fprintf(out, "%-24s %5s %12.12s %12s %9s\n", "policy", "runs",
		      s->line->options.metric, "deviation", "time");
	for (uint32_t i = 0; i < s->count; i++)
		print_share(s, &s->tried[i], out);
}

static void print_chance(const struct mst_search *s, FILE *out)
{
	uint32_t runs, unsure = mst_search_unsure(s, &runs);

	if (unsure == 0)
		return;
	(void)fprintf(out, "by chance, perhaps: %" PRIu32 " of %" PRIu32 " decisions", unsure,
		      s->count - 1);
	if (runs == 0)
		(void)fprintf(out, ", as one run of each says nothing of chance\n");
	else
		(void)fprintf(out, "; %s%" PRIu32 " runs of each would tell\n",
			      runs >= MST_NOISE_RUNS_MAX ? "more than " : "", runs);
}

static void print_answer(const struct mst_search *s, FILE *out)
{
	const struct mst_tune_share *answer = mst_search_answer(s);
	const struct mst_bisection *b = &s->bisection;
	bool done = s->status == MST_EXIT_DONE;

	if (answer == NULL)
		return;
	(void)fprintf(out, "wanted: %s of %s %.6g, which is bsp's %.6g and %g\n",
		      s->line->options.metric, b->lower ? "at most" : "at least", b->wanted,
		      s->tried[0].spread.mean, s->line->options.tolerance);
	if (answer == &s->tried[0])
		(void)fprintf(out, "no smaller share that was tried is enough\n");
	else if (b->low <= 0)
		(void)fprintf(out, "every share that was tried is enough: async may be, too\n");
	(void)fprintf(out, "%s: --policy %s --samples %.10g\n", done ? "use" : "so far",
		      answer->policy, s->samples);
	print_chance(s, out);
}

void mst_tune_print(const struct mst_search *s, FILE *out)
{
	print_table(s, out);
	print_answer(s, out);
	(void)fflush(out);
}

/* ---- JSON ---- */

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static json_t *trials_json(const struct mst_tune_share *t)
{
	json_t *out = json_array();
	int failed = 0;

	for (uint32_t i = 0; i < t->trials; i++) {
		const struct mst_trial *trial = &t->trial[i];
		failed |= json_array_append_new(
			out, json_pack("{s:I, s:f, s:I, s:f}", "seed", (json_int_t)trial->seed,
				       "value", trial->value, "version", (json_int_t)trial->version,
				       "wall_s", seconds(trial->wall_ns)));
	}
	if (failed != 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}

/* Null: no number is known, or needed. */
static json_t *runs_json(uint32_t runs)
{
	return runs > 0 ? json_integer(runs) : json_null();
}

/* The means of a share are null while its runs have not all ended. */
static json_t *share_json(const struct mst_tune_share *t)
{
	bool judged = t->whole && t->share < 1;

	return json_pack("{s:f, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "share", t->share,
			 "policy", t->policy, "mean",
			 t->whole ? json_real(t->spread.mean) : json_null(), "deviation",
			 t->whole ? json_real(t->spread.deviation) : json_null(), "mean_wall_s",
			 t->whole ? json_real(seconds(t->mean_ns)) : json_null(), "kept",
			 t->whole ? json_boolean(t->kept) : json_null(), "sure",
			 judged ? json_boolean(t->noise.sure) : json_null(), "runs_to_tell",
			 judged ? runs_json(t->noise.runs) : json_null(), "runs", trials_json(t));
}

static const char *state(const struct mst_search *s)
{
	if (s->status > 128)
		return "interrupted";
	return s->status == MST_EXIT_DONE ? "done" : "failed";
}

json_t *mst_tune_json(const struct mst_search *s)
{
	const struct mst_tune_options *o = &s->line->options;
	const struct mst_tune_share *answer = mst_search_answer(s);
	json_t *tried = json_array();
	int failed = 0;

	for (uint32_t i = 0; i < s->count; i++)
		failed |= json_array_append_new(tried, share_json(&s->tried[i]));
	if (failed != 0) {
		json_decref(tried);
		return NULL;
	}
	uint32_t runs, unsure = mst_search_unsure(s, &runs);
	return json_pack("{s:s, s:s, s:s, s:b, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "state",
			 state(s), "why", s->why.text, "metric", o->metric, "lower", o->lower,
			 "tolerance", o->tolerance, "samples", s->samples, "wanted",
			 answer != NULL ? json_real(s->bisection.wanted) : json_null(), "share",
			 answer != NULL ? json_real(answer->share) : json_null(), "policy",
			 answer != NULL ? json_string(answer->policy) : json_null(), "sure",
			 answer != NULL ? json_boolean(unsure == 0) : json_null(), "runs_to_tell",
			 runs_json(runs), "tried", tried);
}
