/* SPDX-License-Identifier: MIT */
#include "tools/plan/print.h"

#include <inttypes.h>
#include <math.h>

#include "tools/figure.h"

#define PLOT_COLUMNS 60u

static struct mst_figure duration(double us)
{
	return mst_figure_duration((uint64_t)(us * 1e3 + 0.5));
}

static struct mst_figure percent(double share)
{
	struct mst_figure f;

	(void)snprintf(f.text, sizeof(f.text), "%.1f %%", 100 * share);
	return f;
}

/* ---- what was read ---- */

static void note(FILE *out, uint64_t count, const char *what)
{
	if (count > 0)
		(void)fprintf(out, "  %" PRIu64 " %s\n", count, what);
}

/* A rank that has no row in so many steps at the beginning, or at the end, may not have been there.
 */
static uint32_t many(const struct mst_arrivals *a)
{
	return a->steps / 10 + 1;
}

static void print_absent(const struct mst_arrivals *a, FILE *out)
{
	for (uint32_t rank = 0; rank < a->ranks; rank++) {
		uint32_t first = a->rank_first[rank], end = a->rank_end[rank];
		if (end == 0)
			(void)fprintf(out, "  rank %" PRIu32 " has no gradient\n", rank);
		if (end > 0 && first > many(a))
			(void)fprintf(
				out, "  rank %" PRIu32 " has no gradient before step %" PRIu64 "\n",
				rank, a->number[first]);
		if (end > 0 && end + many(a) < a->steps)
			(void)fprintf(out,
				      "  rank %" PRIu32 " has no gradient after step %" PRIu64 "\n",
				      rank, a->number[end - 1]);
	}
}

static void print_input(const struct mst_plan_report *r, FILE *out)
{
	const struct mst_arrivals *a = r->arrivals;

	(void)fprintf(out, "%s: %" PRIu32 " steps of %" PRIu32 " ranks%s\n", r->trace, a->steps,
		      a->ranks, a->censored == 0 ? ", no time is missing" : "");
	note(out, a->censored,
	     "times are missing: the rank was at an older gradient, gave up, or never came");
	note(out, a->at_least_cells, "of them are only known to be longer than the step");
	note(out, r->rows->generations > 1 ? r->rows->generations : 0,
	     "generations of servers have steps of their own");
	note(out, a->repeats, "gradients are left out: not the first of their rank on a version");
	note(out, a->open, "steps are left out: none of their gradients was counted");
	note(out, a->gap, "steps between the first and the last have no row");
	note(out, r->rows->untimed, "gradients have no start, and are taken for missing");
	note(out, r->rows->gone_missing, "rows were not recorded, and are taken for missing");
	note(out, r->rows->outside, "rows are outside of --from and --to");
	print_absent(a, out);
}

/* ---- quorums ---- */

/* Several figures may stand for more than is known. */
static struct mst_figure time_of(double us, double at_least)
{
	struct mst_figure f = duration(us), marked;

	(void)snprintf(marked.text, sizeof(marked.text), "%s%.20s", at_least > 0 ? ">" : "",
		       f.text);
	return marked;
}

static const char *remark(const struct mst_advice *advice, uint32_t index)
{
	if (advice->told.kind == MST_CHOICE_UNKNOWN)
		return "";
	if (index == advice->told.index)
		return "  best";
	return mst_advice_ties(advice, index) ? "  alike" : "";
}

static void print_row(const struct mst_advice *advice, uint32_t index, FILE *out)
{
	const struct mst_quorum_row *row = &advice->row[index];
	const struct mst_arrival_figures *k = &row->arrival;
	uint32_t ranks = advice->row[advice->count - 1].quorum;

	(void)fprintf(out, "%6" PRIu32 " %9s %9s %9s %7.3f %7.3f %6.3f-%.3f %7s %9.3f %7.3f%s\n",
		      row->quorum, time_of(k->mean_us, k->at_least).text,
		      time_of(k->p50_us, k->at_least).text, time_of(k->p90_us, k->at_least).text,
		      row->speedup, row->gain, row->interval.gain.low, row->interval.gain.high,
		      percent(1 - (double)row->quorum / ranks).text, row->backup_speedup,
		      row->backup_gain, remark(advice, index));
}

static void print_rows(const struct mst_advice *advice, FILE *out)
{
	(void)fprintf(out, "\n%6s %29s %41s %17s\n%6s %9s %9s %9s %7s %7s %12s %7s %9s %7s\n",
		      "wait", "time of a step", "late gradients are given up", "or finished", "for",
		      "mean", "p50", "p90", "steps", "grad.", "95 %", "dropped", "steps", "grad.");
	for (uint32_t i = advice->count; i > 0; i--)
		print_row(advice, i - 1, out);
	(void)fprintf(out,
		      "steps, grad.: steps and counted gradients a second, of those of waiting for "
		      "all;\n95 %%: the interval of grad. in %" PRIu32 " samples of the steps",
		      advice->samples);
	if (advice->block > 1)
		(void)fprintf(out, ", in blocks of %" PRIu32, advice->block);
	(void)fprintf(out, ";\nalike: the trace cannot tell it from the best\n");
}

/* ---- the choice ---- */

/* How late workers are dealt with. */
struct manner {
	const char *policy, *where;
	const struct mst_choice *choice;
	bool forces; /* a quorum under half of the workers takes --force */
};

static void print_quorum(const struct mst_plan_report *r, const struct manner *m, FILE *out)
{
	const struct mst_choice *c = m->choice;
	uint32_t quorum = r->advice->row[c->index].quorum;
	const char *force = m->forces && 2 * (uint64_t)quorum < r->arrivals->ranks ? " --force"
										   : "";
	bool at_least = r->advice->row[r->advice->count - 1].arrival.at_least > 0;

	(void)fprintf(
		out,
		"%s: --policy %s:%" PRIu32 "%s\n"
		"  %s%.3f times as many gradients a second as waiting for all (%.3f to %.3f), "
		"in steps\n  %.3f times as fast; %s of the gradients are dropped.\n"
		"  For as many gradients as in these %" PRIu32 " steps: %s saved of %s; ",
		m->where, m->policy, quorum, force, at_least ? "At least " : "", c->gain,
		c->interval.low, c->interval.high, c->speedup, percent(c->dropped).text,
		r->arrivals->steps, duration(c->saved_us).text,
		duration(r->arrival[r->arrivals->ranks - 1].mean_us * r->arrivals->steps).text);
	(void)fprintf(out, "for as many steps: %s.\n", duration(c->saved_steps_us).text);
}

static void print_unsure(const struct mst_plan_report *r, const struct manner *m, FILE *out)
{
	const struct mst_choice *c = m->choice;

	(void)fprintf(out,
		      "%s: --policy bsp\n  In this trace %s:%" PRIu32
		      " counts %.3f times as many gradients a second (%.3f to %.3f),\n  but ",
		      m->where, m->policy, r->advice->row[c->index].quorum, c->gain,
		      c->interval.low, c->interval.high);
	if (r->arrivals->steps < MST_ADVICE_STEPS_MIN)
		(void)fprintf(out, "%" PRIu32 " steps are too few for any advice.\n",
			      r->arrivals->steps);
	else
		(void)fprintf(out, "the trace is too short to tell it from waiting for all.\n");
}

static void print_unknown(const struct mst_plan_report *r, FILE *out)
{
	double unknown = r->advice->row[r->advice->count - 1].arrival.at_least;

	(void)fprintf(out,
		      "the trace cannot tell whether it pays not to wait for all\n"
		      "  In %s of the steps the last gradient is only known to be later than the "
		      "step.\n  Record some steps under bsp or backup, where every gradient is "
		      "finished.\n",
		      percent(unknown).text);
}

static void print_choice(const struct mst_plan_report *r, const struct manner *m, FILE *out)
{
	const struct mst_choice *c = m->choice;

	switch (c->kind) {
	case MST_CHOICE_ALL:
		(void)fprintf(out, "%s: waiting for all is best: --policy bsp\n", m->where);
		return;
	case MST_CHOICE_UNKNOWN:
		(void)fprintf(out, "%s: ", m->where);
		print_unknown(r, out);
		return;
	case MST_CHOICE_UNSURE:
		print_unsure(r, m, out);
		return;
	case MST_CHOICE_QUORUM:
		print_quorum(r, m, out);
		return;
	}
}

static void print_choices(const struct mst_plan_report *r, FILE *out)
{
	const struct manner told = { "ksync",
				     "where late workers can be told (they call muster_check())",
				     &r->advice->told, false };
	const struct manner untold = { "backup", "where they cannot", &r->advice->untold, true };
	enum mst_choice_kind kind = told.choice->kind;

	if (kind != untold.choice->kind || (kind != MST_CHOICE_ALL && kind != MST_CHOICE_UNKNOWN)) {
		print_choice(r, &told, out);
		print_choice(r, &untold, out);
	} else if (kind == MST_CHOICE_ALL) {
		(void)fprintf(out, "waiting for all is best: --policy bsp\n");
	} else {
		print_unknown(r, out);
	}
}

/* ---- stragglers ---- */

static void print_when(const struct mst_plan_report *r, const struct mst_slow_rank *s, FILE *out)
{
	const struct mst_arrivals *a = r->arrivals;

	if (s->slow == a->steps)
		return;
	if (s->periods > 1)
		(void)fprintf(out, " in %" PRIu32 " periods", s->periods);
	(void)fprintf(out, ", from step %" PRIu64 " to %" PRIu64, a->number[s->first],
		      a->number[s->last]);
}

static void print_slow(const struct mst_plan_report *r, const struct mst_slow_rank *s, FILE *out)
{
	if (s->slow == 0) {
		(void)fprintf(out,
			      "rank %" PRIu32 " gives most of its gradients up: how slow it is "
			      "nobody knows\n",
			      s->rank);
		return;
	}
	(void)fprintf(out, "rank %" PRIu32 " is slow in %s%" PRIu32 " of %" PRIu32 " steps",
		      s->rank, s->persistent ? "most steps: in " : "", s->slow, r->arrivals->steps);
	print_when(r, s, out);
	(void)fprintf(out,
		      ";\n  it takes %s%.2f times as long as the fast ranks, and %s were waited "
		      "for it\n",
		      s->at_least ? "at least " : "", s->ratio, duration(s->cost_us).text);
}

/* To start fewer workers pays only if the others then count more gradients a second. */
static void print_fewer(const struct mst_plan_report *r, FILE *out)
{
	const struct mst_slow *slow = &r->advice->slow;
	uint32_t ranks = r->arrivals->ranks, others = ranks - slow->stragglers;
	double gain = r->arrival[ranks - 1].mean_us / slow->without_us * others / ranks;

	if (slow->persistent == slow->stragglers && slow->without_us > 0 && gain > 1)
		(void)fprintf(out,
			      "  Or start the job with %" PRIu32
			      " workers: they count %.3f times as many gradients a second.\n",
			      others, gain);
}

static void print_replace(const struct mst_plan_report *r, FILE *out)
{
	const struct mst_advice *advice = r->advice;
	const struct mst_arrival_figures *all = &r->arrival[r->arrivals->ranks - 1];
	bool several = advice->slow.stragglers > 1;

	(void)fprintf(out,
		      "  Replace %s%s: with ranks like the fast ones in %s place, waiting for all "
		      "takes %s\n  a step instead of %s%s: steps are %.3f times as fast (%.3f to "
		      "%.3f).\n",
		      several ? "them" : "it", several ? " all" : "", several ? "their" : "its",
		      duration(advice->replaced_us).text, all->at_least > 0 ? "at least " : "",
		      duration(all->mean_us).text, advice->replaced_speedup, advice->replaced.low,
		      advice->replaced.high);
}

static void print_stragglers(const struct mst_plan_report *r, FILE *out)
{
	for (uint32_t rank = 0; rank < r->arrivals->ranks; rank++)
		if (r->advice->slow.rank[rank].straggler)
			print_slow(r, &r->advice->slow.rank[rank], out);
	print_replace(r, out);
	print_fewer(r, out);
}

static void print_wandering(const struct mst_plan_report *r, FILE *out)
{
	const struct mst_arrivals *a = r->arrivals;
	const struct mst_slow_rank *slow = r->advice->slow.rank;
	uint32_t once = 0, most = 0;

	for (uint32_t rank = 0; rank < a->ranks; rank++) {
		once += slow[rank].slowest > 0;
		if (slow[rank].slowest > slow[most].slowest)
			most = rank;
	}
	if (once == 0)
		(void)fprintf(out, "no rank is persistently slow\n");
	else
		(void)fprintf(out,
			      "no rank is persistently slow: %" PRIu32 " of %" PRIu32
			      " ranks are the slowest of a step at least once,\n  rank %" PRIu32
			      " most often, in %" PRIu32 " of %" PRIu32 " steps\n",
			      once, a->ranks, most, slow[most].slowest, a->steps);
}

void mst_plan_print(const struct mst_plan_report *r, FILE *out)
{
	print_input(r, out);
	print_rows(r->advice, out);
	(void)fputc('\n', out);
	print_choices(r, out);
	if (r->advice->slow.stragglers > 0)
		print_stragglers(r, out);
	else
		print_wandering(r, out);
}

/* ---- to look at ---- */

void mst_plan_plot(const struct mst_plan_report *r, FILE *out)
{
	const struct mst_advice *advice = r->advice;
	double most = advice->row[advice->count - 1].arrival.p90_us;

	if (advice->row[advice->count - 1].arrival.mean_us > most)
		most = advice->row[advice->count - 1].arrival.mean_us;
	(void)fprintf(out, "\n%6s %9s  # up to the mean, - up to p90\n", "k-th", "mean");
	for (uint32_t i = 0; i < advice->count; i++) {
		const struct mst_arrival_figures *k = &advice->row[i].arrival;
		unsigned mean = (unsigned)(k->mean_us / most * PLOT_COLUMNS + 0.5);
		unsigned p90 = (unsigned)(k->p90_us / most * PLOT_COLUMNS + 0.5);
		(void)fprintf(out, "%6" PRIu32 " %9s  ", advice->row[i].quorum,
			      time_of(k->mean_us, k->at_least).text);
		for (unsigned column = 0; column < mean || column < p90; column++)
			(void)fputc(column < mean ? '#' : '-', out);
		(void)fputc('\n', out);
	}
}

void mst_plan_print_csv(const struct mst_plan_report *r, FILE *out)
{
	uint32_t ranks = r->arrivals->ranks;
	double all = r->arrival[ranks - 1].mean_us;

	(void)fprintf(out, "k,mean_us,p50_us,p90_us,at_least,steps,gradients,dropped\n");
	for (uint32_t k = 1; k <= ranks; k++) {
		const struct mst_arrival_figures *f = &r->arrival[k - 1];
		double speedup = f->mean_us > 0 ? all / f->mean_us : 0;
		(void)fprintf(out, "%" PRIu32 ",%.3f,%.3f,%.3f,%.6f,%.6f,%.6f,%.6f\n", k,
			      f->mean_us, f->p50_us, f->p90_us, f->at_least, speedup,
			      speedup * k / ranks, 1 - (double)k / ranks);
	}
}

/* A plan as JSON. Times are in microseconds, as in the trace. */

/* JSON has no infinity: what would be made any number of times a second is null. */
static json_t *real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *interval_json(const struct mst_interval *i)
{
	return json_pack("[o, o]", real_or_null(i->low), real_or_null(i->high));
}

static json_t *input_json(const struct mst_plan_report *r)
{
	const struct mst_arrivals *a = r->arrivals;
	const struct mst_arrival_rows *rows = r->rows;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rows",
			 (json_int_t)rows->lines, "outside", (json_int_t)rows->outside, "untimed",
			 (json_int_t)rows->untimed, "not_recorded", (json_int_t)rows->gone_missing,
			 "missing", (json_int_t)a->censored, "at_least",
			 (json_int_t)a->at_least_cells, "repeats", (json_int_t)a->repeats,
			 "open_steps", (json_int_t)a->open, "absent_steps", (json_int_t)a->gap,
			 "generations", (json_int_t)rows->generations);
}

static json_t *arrival_json(const struct mst_arrival_figures *k)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "mean_us", k->mean_us, "p50_us", k->p50_us,
			 "p90_us", k->p90_us, "at_least", k->at_least);
}

static json_t *arrivals_json(const struct mst_plan_report *r)
{
	json_t *out = json_array();
	int failed = out == NULL;

	for (uint32_t k = 0; k < r->arrivals->ranks && !failed; k++)
		failed = json_array_append_new(out, arrival_json(&r->arrival[k]));
	if (failed) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *row_json(const struct mst_advice *advice, uint32_t index, uint32_t ranks)
{
	const struct mst_quorum_row *row = &advice->row[index];
	json_t *backup = json_pack("{s:f, s:o, s:o, s:f}", "mean_us", row->backup_us, "steps",
				   real_or_null(row->backup_speedup), "gradients",
				   real_or_null(row->backup_gain), "dropped", row->backup_dropped);

	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:f, s:b, s:f, s:o}", "quorum",
			 (json_int_t)row->quorum, "step", arrival_json(&row->arrival), "steps",
			 real_or_null(row->speedup), "steps_interval",
			 interval_json(&row->interval.speedup), "gradients",
			 real_or_null(row->gain), "gradients_interval",
			 interval_json(&row->interval.gain), "dropped",
			 1 - (double)row->quorum / ranks, "alike", mst_advice_ties(advice, index),
			 "best_share", row->interval.best, "backup", backup);
}

static json_t *rows_json(const struct mst_plan_report *r)
{
	json_t *out = json_array();
	int failed = out == NULL;

	for (uint32_t i = 0; i < r->advice->count && !failed; i++)
		failed = json_array_append_new(out, row_json(r->advice, i, r->arrivals->ranks));
	if (failed) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *choice_json(const struct mst_plan_report *r, const struct mst_choice *c,
			   const char *name)
{
	static const char *const kinds[] = { [MST_CHOICE_ALL] = "all",
					     [MST_CHOICE_UNSURE] = "unsure",
					     [MST_CHOICE_UNKNOWN] = "unknown",
					     [MST_CHOICE_QUORUM] = "quorum" };
	uint32_t quorum = r->advice->row[c->index].quorum;
	json_t *policy;

	if (c->kind == MST_CHOICE_UNKNOWN)
		policy = json_null();
	else if (c->kind == MST_CHOICE_QUORUM)
		policy = json_sprintf("%s:%u", name, quorum);
	else
		policy = json_string("bsp");

	return json_pack("{s:s, s:o, s:I, s:o, s:o, s:o, s:f, s:o, s:o}", "choice", kinds[c->kind],
			 "policy", policy, "quorum", (json_int_t)quorum, "steps",
			 real_or_null(c->speedup), "gradients", real_or_null(c->gain),
			 "gradients_interval", interval_json(&c->interval), "dropped", c->dropped,
			 "saved_us", real_or_null(c->saved_us), "saved_steps_us",
			 real_or_null(c->saved_steps_us));
}

/* Steps are told by their numbers in the file; a rank without a period has none. */
static json_t *slow_json(const struct mst_plan_report *r, const struct mst_slow_rank *s)
{
	const uint64_t *number = r->arrivals->number;
	json_t *first = s->slow > 0 ? json_integer((json_int_t)number[s->first]) : json_null();
	json_t *last = s->slow > 0 ? json_integer((json_int_t)number[s->last]) : json_null();

	return json_pack("{s:I, s:I, s:I, s:o, s:o, s:I, s:f, s:f, s:b, s:b, s:b}", "rank",
			 (json_int_t)s->rank, "slow", (json_int_t)s->slow, "periods",
			 (json_int_t)s->periods, "first_step", first, "last_step", last, "slowest",
			 (json_int_t)s->slowest, "ratio", s->ratio, "cost_us", s->cost_us,
			 "at_least", s->at_least, "straggler", s->straggler, "persistent",
			 s->persistent);
}

static json_t *ranks_json(const struct mst_plan_report *r)
{
	json_t *out = json_array();
	int failed = out == NULL;

	for (uint32_t rank = 0; rank < r->arrivals->ranks && !failed; rank++)
		failed = json_array_append_new(out, slow_json(r, &r->advice->slow.rank[rank]));
	if (failed) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *replaced_json(const struct mst_advice *advice)
{
	return json_pack("{s:f, s:o, s:o}", "mean_us", advice->replaced_us, "steps",
			 real_or_null(advice->replaced_speedup), "steps_interval",
			 interval_json(&advice->replaced));
}

json_t *mst_plan_json(const struct mst_plan_report *r)
{
	const struct mst_advice *advice = r->advice;

	return json_pack("{s:s, s:I, s:I, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o}",
			 "trace", r->trace, "steps", (json_int_t)r->arrivals->steps, "ranks",
			 (json_int_t)r->arrivals->ranks, "recording", r->rows->recorded, "samples",
			 (json_int_t)advice->samples, "block", (json_int_t)advice->block, "input",
			 input_json(r), "arrivals", arrivals_json(r), "quorums", rows_json(r),
			 "told", choice_json(r, &advice->told, "ksync"), "untold",
			 choice_json(r, &advice->untold, "backup"), "mean_us_without_stragglers",
			 advice->slow.without_us, "replaced", replaced_json(advice), "slow_ranks",
			 ranks_json(r));
}
