/* SPDX-License-Identifier: MIT */
#include "tools/tune/print.h"

#include <inttypes.h>

#include "tools/command.h"
#include "tools/figure.h"

static void print_share(const struct mst_search *s, const struct mst_tune_share *t, FILE *out)
{
	const char *verdict = t == &s->tried[0] ? "the measure" : t->kept ? "kept" : "not kept";

	(void)fprintf(out, "%-24s %5" PRIu32, t->policy, t->trials);
	if (t->whole)
		(void)fprintf(out, " %12.6g %12.3g %9s  %s\n", t->spread.mean, t->spread.deviation,
			      mst_figure_duration(t->mean_ns).text, verdict);
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
}

void mst_tune_print(const struct mst_search *s, FILE *out)
{
	print_table(s, out);
	print_answer(s, out);
	(void)fflush(out);
}
