/* SPDX-License-Identifier: MIT */
#include "server/core/policy/adaptive/quorum_time.h"

#include <math.h>
#include <string.h>

#define C MST_QUORUM_CLASSES
/* All samples together weigh as much as this many at most, because the times of workers change. */
#define SAMPLES_MAX 16.0
/* At each commit this part of a sample's weight is kept. So times that are not sampled any more
 * soon count little beside new ones. */
#define KEPT 0.9
/* The weight of a time that is not known, where a new sample weighs 1. A time whose samples weigh
 * no more than this is not known. */
#define GUESS 1e-3
/* Rounds of the alternating projections, which stop earlier where nothing moves any more. */
#define ROUNDS 60
#define STILL 1e-6

/* ---- quorums ---- */

uint32_t mst_quorum_classes(uint32_t workers)
{
	return workers < C ? workers : C;
}

uint32_t mst_quorum_of_class(uint32_t workers, uint32_t at)
{
	return workers <= C ? at + 1 : (uint32_t)((uint64_t)(at + 1) * workers / C);
}

uint32_t mst_quorum_class(uint32_t workers, uint32_t quorum)
{
	uint32_t last = mst_quorum_classes(workers) - 1, at = 0;

	while (at < last && mst_quorum_of_class(workers, at) < quorum)
		at++;
	return at;
}

/* ---- samples ---- */

void mst_quorum_time_add(struct mst_quorum_time *t, uint32_t workers,
			 const struct mst_arrival *arrival)
{
	uint32_t k = mst_quorum_class(workers, arrival->number);

	if (mst_quorum_of_class(workers, k) != arrival->number)
		return;
	struct mst_quorum_cell *cell = &t->cell[mst_quorum_class(workers, arrival->before)][k];
	cell->weight = fmin(cell->weight + 1, SAMPLES_MAX);
	cell->mean_s += (arrival->after_s - cell->mean_s) / cell->weight;
}

void mst_quorum_time_age(struct mst_quorum_time *t)
{
	for (uint32_t h = 0; h < C; h++)
		for (uint32_t k = 0; k < C; k++)
			t->cell[h][k].weight *= KEPT;
}

/* ---- the nearest monotone table ---- */

struct table {
	double x[C][C], weight[C][C];
	uint32_t size;
};

/* A row of a table, or a column read backwards: it is to grow. */
struct pooled {
	double value[C], weight[C];
	uint32_t end[C]; /* of blocks that have one value */
	uint32_t blocks;
};

static void merge_last(struct pooled *l)
{
	uint32_t a = l->blocks - 2, b = l->blocks - 1;
	double weight = l->weight[a] + l->weight[b];

	l->value[a] = (l->value[a] * l->weight[a] + l->value[b] * l->weight[b]) / weight;
	l->weight[a] = weight;
	l->end[a] = l->end[b];
	l->blocks--;
}

/* Pools adjacent violators. */
static void pool(double *value, const double *weight, uint32_t size)
{
	struct pooled l = { .blocks = 0 };

	for (uint32_t i = 0; i < size; i++) {
		l.value[l.blocks] = value[i];
		l.weight[l.blocks] = weight[i];
		l.end[l.blocks++] = i + 1;
		while (l.blocks > 1 && l.value[l.blocks - 2] > l.value[l.blocks - 1])
			merge_last(&l);
	}
	for (uint32_t block = 0, i = 0; block < l.blocks; block++)
		for (; i < l.end[block]; i++)
			value[i] = l.value[block];
}

static void pool_rows(struct table *t)
{
	for (uint32_t h = 0; h < t->size; h++)
		pool(t->x[h], t->weight[h], t->size);
}

static void pool_columns(struct table *t)
{
	double value[C], weight[C];

	for (uint32_t k = 0; k < t->size; k++) {
		for (uint32_t h = 0; h < t->size; h++) {
			value[t->size - 1 - h] = t->x[h][k];
			weight[t->size - 1 - h] = t->weight[h][k];
		}
		pool(value, weight, t->size);
		for (uint32_t h = 0; h < t->size; h++)
			t->x[h][k] = value[t->size - 1 - h];
	}
}

/* One half of a round: the projection of the table plus what the last such half took from it. */
static double project(struct table *t, double taken[C][C], void (*onto)(struct table *t))
{
	double before[C][C], old[C][C], moved = 0;

	memcpy(old, t->x, sizeof(old));
	for (uint32_t h = 0; h < t->size; h++)
		for (uint32_t k = 0; k < t->size; k++)
			t->x[h][k] += taken[h][k];
	memcpy(before, t->x, sizeof(before));
	onto(t);
	for (uint32_t h = 0; h < t->size; h++) {
		for (uint32_t k = 0; k < t->size; k++) {
			taken[h][k] = before[h][k] - t->x[h][k];
			moved = fmax(moved, fabs(t->x[h][k] - old[h][k]));
		}
	}
	return moved;
}

/* Dykstra's algorithm. */
static void make_monotone(struct table *t)
{
	double rows[C][C] = { { 0 } }, columns[C][C] = { { 0 } };
	double least = STILL * t->x[0][t->size - 1];

	for (int round = 0; round < ROUNDS; round++) {
		double moved = project(t, rows, pool_rows);
		moved = fmax(moved, project(t, columns, pool_columns));
		if (moved <= least)
			return;
	}
}

/* ---- the estimate ---- */

static void fill_cell(struct table *t, const struct mst_quorum_time *from, uint32_t h, uint32_t k)
{
	const struct mst_quorum_cell *cell = &from->cell[h][k];
	double less = k > 0 ? t->x[h][k - 1] : 0;
	double below = h + 1 < t->size ? t->x[h + 1][k] : 0;

	t->x[h][k] = cell->weight > GUESS ? cell->mean_s : fmax(less, below);
	t->weight[h][k] = fmax(cell->weight, GUESS);
}

bool mst_quorum_time_estimate(const struct mst_quorum_time *t, uint32_t workers, uint32_t before,
			      struct mst_quorum_waits *out)
{
	struct table table = { .size = mst_quorum_classes(workers) };
	double samples = 0;

	for (uint32_t h = table.size; h-- > 0;) {
		for (uint32_t k = 0; k < table.size; k++) {
			fill_cell(&table, t, h, k);
			samples += t->cell[h][k].weight;
		}
	}
	if (samples <= GUESS)
		return false;
	make_monotone(&table);
	memcpy(out->after_s, table.x[mst_quorum_class(workers, before)], sizeof(out->after_s));
	return true;
}
