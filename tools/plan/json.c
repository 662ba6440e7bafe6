/* SPDX-License-Identifier: MIT */
/* A plan as JSON. Times are in microseconds, as in the trace. */
#include <math.h>

#include "tools/plan/print.h"

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

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rows",
			 (json_int_t)rows->lines, "outside", (json_int_t)rows->outside, "untimed",
			 (json_int_t)rows->untimed, "not_recorded", (json_int_t)rows->gone_missing,
			 "missing", (json_int_t)a->censored, "at_least",
			 (json_int_t)a->at_least_cells, "repeats", (json_int_t)a->repeats,
			 "open_steps", (json_int_t)a->open, "absent_steps", (json_int_t)a->gap);
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

static json_t *slow_json(const struct mst_slow_rank *s)
{
	return json_pack("{s:I, s:I, s:I, s:f, s:b, s:f, s:b}", "rank", (json_int_t)s->rank, "slow",
			 (json_int_t)s->slow, "slowest", (json_int_t)s->slowest, "ratio", s->ratio,
			 "at_least", s->at_least, "chance", s->chance, "persistent", s->persistent);
}

static json_t *ranks_json(const struct mst_plan_report *r)
{
	json_t *out = json_array();
	int failed = out == NULL;

	for (uint32_t rank = 0; rank < r->arrivals->ranks && !failed; rank++)
		failed = json_array_append_new(out, slow_json(&r->advice->slow[rank]));
	if (failed) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *mst_plan_json(const struct mst_plan_report *r)
{
	return json_pack("{s:s, s:I, s:I, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "trace",
			 r->trace, "steps", (json_int_t)r->arrivals->steps, "ranks",
			 (json_int_t)r->arrivals->ranks, "recording", r->rows->recorded, "samples",
			 (json_int_t)r->advice->samples, "input", input_json(r), "arrivals",
			 arrivals_json(r), "quorums", rows_json(r), "told",
			 choice_json(r, &r->advice->told, "ksync"), "untold",
			 choice_json(r, &r->advice->untold, "backup"), "mean_us_without_stragglers",
			 r->advice->without_us, "slow_ranks", ranks_json(r));
}
