/* SPDX-License-Identifier: MIT */
#include "tools/plan/advice.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tools/plan/blocks.h"
#include "tools/plan/replaced.h"

/* Quorums are all compared down to so many below all ranks, then each further by this factor. */
#define NEAR 16u
#define FURTHER 1.2

/* ---- which quorums ---- */

static double mean_arrival(const struct mst_arrivals *a, uint32_t k)
{
	double sum = 0;

	for (uint32_t step = 0; step < a->steps; step++)
		sum += a->sorted[(size_t)step * a->ranks + k - 1];
	return sum / a->steps;
}

/* The quorum that counts most gradients a second; of equal ones the larger. */
static uint32_t best_quorum(const struct mst_arrivals *a)
{
	double least = INFINITY;
	uint32_t best = a->ranks;

	for (uint32_t k = a->ranks; k > 0; k--) {
		double per_gradient = mean_arrival(a, k) / k;
		if (per_gradient < least) {
			least = per_gradient;
			best = k;
		}
	}
	return best;
}

/* Puts @quorum after others that are larger, unless there is one that is not. */
static void add_quorum(struct mst_advice *out, uint32_t quorum)
{
	if (out->count > 0 && out->row[out->count - 1].quorum <= quorum)
		return;
	out->row[out->count++] = (struct mst_quorum_row){ .quorum = quorum };
}

static void choose_quorums(const struct mst_arrivals *a, struct mst_advice *out)
{
	uint32_t best = best_quorum(a), fewer = 0;

	out->count = 0;
	while (fewer < a->ranks) {
		uint32_t quorum = a->ranks - fewer;
		if (quorum < best)
			add_quorum(out, best);
		add_quorum(out, quorum);
		fewer = fewer < NEAR || a->ranks <= MST_QUORUMS_ALL
				? fewer + 1
				: (uint32_t)ceil(fewer * FURTHER);
	}
	add_quorum(out, best);
	for (uint32_t i = 0, j = out->count - 1; i < j; i++, j--) {
		struct mst_quorum_row kept = out->row[i];
		out->row[i] = out->row[j];
		out->row[j] = kept;
	}
}

/* ---- figures ---- */

static double ratio(double a, double b)
{
	return b > 0 ? a / b : INFINITY;
}

static void fill_backup(const struct mst_arrivals *a, struct mst_quorum_row *row,
			struct mst_replay_scratch *scratch)
{
	struct mst_replay r;

	mst_replay_backup(a, row->quorum, NULL, scratch, &r);
	row->backup_us = r.us / r.steps;
	row->backup_speedup = ratio(mst_replay_all(a, NULL), row->backup_us);
	row->backup_gain = row->backup_speedup * r.counted / (r.steps * a->ranks);
	row->backup_dropped = r.late / (r.counted + r.late);
}

static int fill_rows(const struct mst_arrivals *a, struct mst_advice *out)
{
	double *column = calloc(a->steps, sizeof(*column));
	double all_us = mean_arrival(a, a->ranks);
	struct mst_replay_scratch scratch;
	int rc = mst_replay_scratch_init(&scratch, a->ranks);

	if (column == NULL)
		rc = -ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < out->count; i++) {
		struct mst_quorum_row *row = &out->row[i];
		mst_arrival_figures_of(a, row->quorum, column, &row->arrival);
		row->speedup = ratio(all_us, row->arrival.mean_us);
		row->gain = row->speedup * row->quorum / a->ranks;
		fill_backup(a, row, &scratch);
	}
	mst_replay_scratch_fini(&scratch);
	free(column);
	return rc;
}

/* ---- the choice ---- */

/* Nobody waits for gradients that are there when the step begins. */
static bool is_known(const struct mst_quorum_row *row)
{
	return row->arrival.at_least <= MST_UNKNOWN_SHARE && row->arrival.mean_us > 0;
}

static void choose(const struct mst_arrivals *a, const struct mst_advice *advice,
		   struct mst_choice *c)
{
	double all_us = advice->row[advice->count - 1].arrival.mean_us * a->steps;

	if (c->index != advice->count - 1 && c->interval.low > 1 &&
	    a->steps >= MST_ADVICE_STEPS_MIN)
		c->kind = MST_CHOICE_QUORUM;
	else if (!is_known(&advice->row[advice->count - 1]))
		c->kind = MST_CHOICE_UNKNOWN;
	else
		c->kind = c->index == advice->count - 1 ? MST_CHOICE_ALL : MST_CHOICE_UNSURE;
	c->saved_us = all_us * (1 - 1 / c->gain);
	c->saved_steps_us = all_us * (1 - 1 / c->speedup);
}

static int choose_told(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
		       struct mst_advice *out)
{
	struct mst_quorum_interval interval[MST_QUORUMS_MAX];
	struct mst_quorum_figures figures[MST_QUORUMS_MAX];
	uint32_t best = out->count - 1;

	for (uint32_t i = best; i > 0; i--)
		if (is_known(&out->row[i - 1]) && out->row[i - 1].gain > out->row[best].gain)
			best = i - 1;
	for (uint32_t i = 0; i < out->count; i++)
		figures[i] = (struct mst_quorum_figures){ out->row[i].quorum, out->row[i].speedup,
							  out->row[i].gain };
	int samples = mst_bootstrap_quorums(a, cfg, figures, out->count, best, interval);
	if (samples < 0)
		return samples;
	out->samples = (uint32_t)samples;
	for (uint32_t i = 0; i < out->count; i++)
		out->row[i].interval = interval[i];
	const struct mst_quorum_row *row = &out->row[best];
	out->told = (struct mst_choice){ .index = best,
					 .speedup = row->speedup,
					 .gain = row->gain,
					 .dropped = 1 - (double)row->quorum / a->ranks,
					 .interval = row->interval.gain };
	choose(a, out, &out->told);
	return 0;
}

static int choose_untold(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			 struct mst_advice *out)
{
	uint32_t best = out->count - 1;

	for (uint32_t i = best; i > 0; i--)
		if (is_known(&out->row[i - 1]) &&
		    out->row[i - 1].backup_gain > out->row[best].backup_gain)
			best = i - 1;
	const struct mst_quorum_row *row = &out->row[best];
	out->untold = (struct mst_choice){ .index = best,
					   .speedup = row->backup_speedup,
					   .gain = row->backup_gain,
					   .dropped = row->backup_dropped,
					   .interval = { 1, 1 } };
	const struct mst_quorum_figures figures = { row->quorum, row->backup_speedup,
						    row->backup_gain };
	int rc = 0;
	if (best != out->count - 1)
		rc = mst_bootstrap_backup(a, cfg, &figures, &out->untold.interval);
	if (rc >= 0)
		choose(a, out, &out->untold);
	return rc < 0 ? rc : 0;
}

/* With other ranks no step is longer, so less than 1 is no truth. */
static int judge_replaced(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			  struct mst_advice *out, double *longest)
{
	int rc = mst_replaced_fill(a, &out->slow, cfg->seed, longest);

	for (uint32_t step = 0; rc == 0 && step < a->steps; step++)
		out->replaced_us += longest[step] / a->steps;
	out->replaced_speedup = ratio(mean_arrival(a, a->ranks), out->replaced_us);
	if (rc == 0)
		rc = mst_bootstrap_replaced(a, cfg, longest, out->replaced_speedup, &out->replaced);
	out->replaced.low = fmin(fmax(out->replaced.low, 1), out->replaced_speedup);
	return rc < 0 ? rc : 0;
}

static int judge_slow(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
		      struct mst_advice *out)
{
	double *longest = calloc(a->steps, sizeof(*longest));
	int rc = longest != NULL ? mst_slow_find(a, &out->slow) : -ENOMEM;

	if (rc == 0)
		rc = judge_replaced(a, cfg, out, longest);
	free(longest);
	return rc;
}

int mst_plan_advise(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *samples,
		    struct mst_advice *out)
{
	struct mst_bootstrap_cfg cfg = *samples;

	if (cfg.block == 0)
		cfg.block = mst_blocks_length(a);
	*out = (struct mst_advice){ .block = cfg.block };
	int rc = out->block > 0 ? 0 : -ENOMEM;

	choose_quorums(a, out);
	if (rc == 0)
		rc = fill_rows(a, out);
	if (rc == 0)
		rc = choose_told(a, &cfg, out);
	if (rc == 0)
		rc = choose_untold(a, &cfg, out);
	if (rc == 0)
		rc = judge_slow(a, &cfg, out);
	if (rc != 0)
		mst_advice_fini(out);
	return rc;
}

void mst_advice_fini(struct mst_advice *advice)
{
	mst_slow_free(&advice->slow);
}

bool mst_advice_ties(const struct mst_advice *advice, uint32_t index)
{
	return index != advice->told.index && advice->row[index].interval.behind.high >= 1;
}
