/* SPDX-License-Identifier: MIT */
#include "tests/sim/expect.h"

#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "tests/sim/observer.h"
#include "tests/sim/world.h"

#define VERSIONS_MAX (SIM_COMMITS_MAX + 1)

/* The squares of so many elements are summed at a time, in so many lanes. */
#define BLOCK 4096u
#define LANES 16u
#define PARTIALS_MAX 64u

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

struct version {
	bool known;
	float *bits;
	float *kept[EXPECT_VECTORS]; /* beside the parameters; NULL: nobody asks for it */
	float factor, rate;          /* that its mean is multiplied by */
	struct muster_share share[SIM_WORKERS_MAX];
	uint32_t share_count;
};

enum { ROW_LEAF, ROW_RANK, ROW_GROUP, ROW_TOTAL, ROW_TRUST, ROW_SLOPE, ROWS };

static struct {
	const struct sim_plan *plan;
	struct version version[VERSIONS_MAX];
	struct version *of[EXPECT_GENERATIONS_MAX]; /* as they were when it ended */
	float *now[EXPECT_VECTORS];                 /* of the newest version; NULL: there is none */
	float *lr_scale;                            /* NULL: there are no tensors */
	float *row[ROWS];
} expected;

bool expect_keeps(enum expect_vector vector)
{
	const struct sim_plan *p = expected.plan;

	switch (vector) {
	case EXPECT_MOMENTUM:
		return p->owner == MUSTER_SERVERS_OWN && !p->add && (p->lamb || p->momentum != 0);
	case EXPECT_SQUARES:
		return p->lamb;
	case EXPECT_AVERAGE:
		return p->average > 0;
	default:
		return true;
	}
}

void expect_begin(const struct sim_plan *plan)
{
	memset(&expected, 0, sizeof(expected));
	expected.plan = plan;
	MST_ASSERT(plan->commits < VERSIONS_MAX);
	for (int i = 0; i < ROWS; i++)
		expected.row[i] = sim_alloc(plan->elems * sizeof(float));
	for (int i = EXPECT_MOMENTUM; i < EXPECT_VECTORS; i++) {
		if (expect_keeps((enum expect_vector)i))
			expected.now[i] = sim_alloc(plan->elems * sizeof(float));
	}
	if (plan->tensors > 0)
		expected.lr_scale = sim_alloc(plan->elems * sizeof(float));
	for (uint32_t i = 0; i < plan->tensors; i++) {
		struct muster_tensor tensor = sim_plan_tensor(plan, i);
		for (uint64_t e = 0; e < tensor.count; e++)
			expected.lr_scale[tensor.first + e] = tensor.lr_scale;
	}
}

void expect_go_on(const struct sim_plan *plan, uint64_t version)
{
	struct version *v = &expected.version[version];

	MST_ASSERT(plan->commits < VERSIONS_MAX);
	expected.plan = plan;
	memset(v + 1, 0, (VERSIONS_MAX - version - 1) * sizeof(*v));
	v->share_count = 0;
	v->known &= plan->owner == MUSTER_SERVERS_OWN;
	for (int i = EXPECT_MOMENTUM; i < EXPECT_VECTORS && v->known; i++) {
		if (expected.now[i] != NULL)
			memcpy(expected.now[i], v->kept[i], plan->elems * sizeof(float));
	}
}

void expect_keep(uint32_t generation)
{
	MST_ASSERT(generation < EXPECT_GENERATIONS_MAX);
	expected.of[generation] = sim_alloc(sizeof(expected.version));
	memcpy(expected.of[generation], expected.version, sizeof(expected.version));
}

void expect_return(uint32_t generation, uint64_t version)
{
	struct version *v = &expected.version[version];

	memcpy(expected.version, expected.of[generation], sizeof(expected.version));
	memset(v + 1, 0, (VERSIONS_MAX - version - 1) * sizeof(*v));
}

/* ---- values ---- */

static uint64_t scatter(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x7fb5d329728ea185);
	x ^= x >> 27;
	x *= UINT64_C(0x81dadef4bc2dd44d);
	return x ^ x >> 33;
}

/* In [-1, 1), with all the bits a float has; exact in bf16 where the job is. */
float obs_value(uint64_t content, uint64_t i)
{
	uint64_t bits = scatter(content * UINT64_C(0x9e3779b97f4a7c15) + i);

	if (expected.plan->type == MUSTER_BF16)
		return (float)((double)(bits >> 57) / 64.0 - 1.0);
	return (float)((double)(bits >> 40) / 8388608.0 - 1.0);
}

float obs_start_value(uint32_t rank, uint64_t i)
{
	return obs_value(~(uint64_t)rank, i) * 8.0f;
}

/* ---- sums ---- */

void expect_weigh(struct expect_item *item, const struct mst_rule *rule)
{
	uint64_t staleness = item->version - 1 - item->tag;
	double factor = rule->compensate && staleness > 1 ? 1.0 / (double)staleness : 1.0;
	bool alone = rule->quorum == 1 || (rule->quorum <= 0 && !rule->by_micro &&
					   (int64_t)expected.plan->workers <= 1 - rule->quorum);
	bool by_samples = rule->weigh == MST_WEIGH_SAMPLES && rule->divide && !alone;

	item->base = by_samples ? item->samples : 1.0;
	if (item->is_sum)
		item->coefficient = (float)(by_samples ? factor : factor / item->samples);
	else
		item->coefficient = (float)(item->base * factor);
}

/* A sum that begins with its first summand, of each element. */
struct partial {
	bool any;
	float *sum;
};

/* In loops of their own, so that nobody fuses what is rounded twice. */
static void scale_all(float *values, float by)
{
	for (uint64_t i = 0; i < expected.plan->elems; i++)
		values[i] *= by;
}

static void add_all(struct partial *p, const float *values)
{
	for (uint64_t i = 0; i < expected.plan->elems; i++)
		p->sum[i] = p->any ? p->sum[i] + values[i] : values[i];
	p->any = true;
}

static void add_leaf(struct partial *p, const struct expect_item *item)
{
	float *leaf = expected.row[ROW_LEAF];

	for (uint64_t i = 0; i < expected.plan->elems; i++)
		leaf[i] = obs_value(item->content, i);
	if (item->coefficient != 1.0f)
		scale_all(leaf, item->coefficient);
	add_all(p, leaf);
}

/* Return: where the sum is. */
static float *sum_of(struct expect_item *const *items, uint32_t count)
{
	struct partial total = { .sum = expected.row[ROW_TOTAL] };

	for (uint32_t first = 0; first < expected.plan->workers; first += expected.plan->group) {
		struct partial group = { .sum = expected.row[ROW_GROUP] };
		uint32_t end = first + expected.plan->group;
		for (uint32_t rank = first; rank < end; rank++) {
			struct partial own = { .sum = expected.row[ROW_RANK] };
			for (uint32_t k = 0; k < count; k++) {
				if (items[k]->rank == rank)
					add_leaf(&own, items[k]);
			}
			if (own.any)
				add_all(&group, own.sum);
		}
		if (group.any)
			add_all(&total, group.sum);
	}
	return total.sum;
}

/* ---- the norm ---- */

static double squares_of(const float *from, uint64_t count)
{
	double lane[LANES] = { 0 };

	for (uint64_t i = 0; i < count; i++)
		lane[i % LANES] += (double)from[i] * (double)from[i];
	for (unsigned half = LANES / 2; half > 0; half /= 2) {
		for (unsigned k = 0; k < half; k++)
			lane[k] += lane[k + half];
	}
	return lane[0];
}

/* Numbers without a bit in common whose sum is exact, the least first (Shewchuk 1997). */
struct exact {
	double part[PARTIALS_MAX];
	uint32_t count;
};

static void exact_add(struct exact *e, double x)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < e->count; i++) {
		double y = e->part[i];
		double high = fabs(x) < fabs(y) ? y : x, low = high == y ? x : y;
		double sum = high + low, rest = low - (sum - high);
		if (rest != 0)
			e->part[kept++] = rest;
		x = sum;
	}
	MST_ASSERT(kept < PARTIALS_MAX);
	e->part[kept++] = x;
	e->count = kept;
}

/* Rounded once: what is half way between two is decided by what lies below. */
static double exact_value(const struct exact *e)
{
	uint32_t left = e->count;
	double sum = e->part[--left], rest = 0;

	while (left > 0 && rest == 0) {
		double before = sum, next = e->part[--left];
		sum = before + next;
		rest = next - (sum - before);
	}
	if (left == 0 || (rest < 0) != (e->part[left - 1] < 0))
		return sum;
	double further = sum + 2 * rest;
	return 2 * rest == further - sum ? further : sum;
}

/* The norm of the elements from @at up to @end. Blocks are those of the whole vector. */
static double norm_of(const float *vector, uint64_t at, uint64_t end)
{
	struct exact total = { .count = 0 };

	while (at < end) {
		uint64_t count = BLOCK - at % BLOCK;
		count = count < end - at ? count : end - at;
		exact_add(&total, squares_of(vector + at, count));
		at += count;
	}
	return sqrt(exact_value(&total));
}

static float factor_of(const float *mean)
{
	double norm = norm_of(mean, 0, expected.plan->elems);

	return norm > expected.plan->clip ? (float)(expected.plan->clip / norm) : 1.0f;
}

/* What norms of the tensor, before the step, make of its rate: You, Gitman and Ginsburg, algorithm
 * 1, with the norm of the mean; or You et al., algorithm 2, with that of the direction. */
static float trust_of(const float *theta, const float *slopes, uint64_t first, uint64_t end)
{
	double size = norm_of(theta, first, end), slope = norm_of(slopes, first, end);

	if (size == 0 || slope == 0)
		return 1.0f;
	if (expected.plan->lamb)
		return (float)(size / slope);
	return (float)(SIM_LARS_TRUST * size / (slope + SIM_LARS_DECAY * size + SIM_LARS_EPSILON));
}

/* By element. */
static void trust_all(const float *theta, const float *slopes, float *trust)
{
	const struct sim_plan *p = expected.plan;
	uint32_t tensors = p->tensors > 0 ? p->tensors : 1;

	for (uint32_t t = 0; t < tensors; t++) {
		struct muster_tensor tensor = { .count = p->elems };
		if (p->tensors > 0)
			tensor = sim_plan_tensor(p, t);
		uint64_t end = tensor.first + tensor.count;
		float ratio = trust_of(theta, slopes, tensor.first, end);
		for (uint64_t i = tensor.first; i < end; i++)
			trust[i] = ratio;
	}
}

/* ---- how far the parameters have moved ---- */

/* Since @read: the square, of differences that are rounded; 0 for a version and itself. */
static double distance_of(const float *now, const float *read)
{
	float *moved = expected.row[ROW_SLOPE];
	struct exact total = { .count = 0 };

	for (uint64_t i = 0; i < expected.plan->elems; i++)
		moved[i] = now[i] - read[i];
	for (uint64_t at = 0; at < expected.plan->elems; at += BLOCK) {
		uint64_t left = expected.plan->elems - at;
		exact_add(&total, squares_of(moved + at, left < BLOCK ? left : BLOCK));
	}
	return exact_value(&total);
}

/* The rate is at most C / square. */
static double bounded(double scale, const struct version *before, const struct version *read)
{
	const struct sim_plan *p = expected.plan;
	double square = before != read ? distance_of(before->bits, read->bits) : 0;
	double most = square > 0 ? p->distance / square / p->lr : scale;

	return most < scale ? most : scale;
}

/* ---- versions ---- */

/* You et al., algorithm 2: the sums become those of @version, and the mean g the direction. */
static void adam_all(uint64_t version, const float *theta, float *g)
{
	float *momentum = expected.now[EXPECT_MOMENTUM], *squares = expected.now[EXPECT_SQUARES];
	double steps = (double)version;
	float first = (float)((1 - SIM_LAMB_BETA1) / (1 - pow(SIM_LAMB_BETA1, steps)));
	float second = (float)sqrt((1 - SIM_LAMB_BETA2) / (1 - pow(SIM_LAMB_BETA2, steps)));

	for (uint64_t i = 0; i < expected.plan->elems; i++) {
		volatile float kept = (float)SIM_LAMB_BETA1 * momentum[i];
		volatile float gathered = kept + g[i];
		volatile float left = (float)SIM_LAMB_BETA2 * squares[i];
		volatile float square = g[i] * g[i];
		volatile float sum = left + square;
		volatile float root = sqrtf(sum);
		volatile float unbiased = root * second;
		volatile float divisor = unbiased + (float)SIM_LAMB_EPSILON;
		volatile float quotient = gathered / divisor;
		volatile float adam = first * quotient;
		volatile float shrink = (float)SIM_LAMB_DECAY * theta[i];
		momentum[i] = gathered;
		squares[i] = sum;
		g[i] = adam + shrink;
	}
}

static float updated_by_lars(float before, float g, float *momentum, float rate)
{
	volatile float shrink = (float)SIM_LARS_DECAY * before;
	volatile float slope = g + shrink;
	volatile float down = rate * slope;

	if (expected.plan->momentum != 0) {
		volatile float kept = (float)expected.plan->momentum * *momentum;
		volatile float m = kept + down;
		*momentum = m;
		down = m;
	}
	volatile float after = before - down;
	return after;
}

static float updated(float before, float g, float *momentum, float rate)
{
	const struct sim_plan *p = expected.plan;

	if (p->lars)
		return updated_by_lars(before, g, momentum, rate);
	if (p->add) {
		volatile float sum = before + g;
		return sum;
	}
	if (p->momentum != 0 && !p->lamb) {
		volatile float kept = (float)p->momentum * *momentum;
		volatile float m = kept + g;
		*momentum = m;
		g = m;
	}
	volatile float step = rate * g;
	volatile float after = before - step;
	return after;
}

/* TensorFlow's average with num_updates: young versions have more of it. */
static void average_all(uint64_t version, const float *theta)
{
	double young = (1.0 + (double)version) / (10.0 + (double)version);
	volatile float rest = (float)(expected.plan->average < young ? expected.plan->average
								     : young);
	volatile float share = 1.0f - rest;
	float *average = expected.now[EXPECT_AVERAGE];

	for (uint64_t i = 0; i < expected.plan->elems; i++) {
		volatile float left = rest * average[i];
		volatile float added = share * theta[i];
		average[i] = left + added;
	}
}

/* What a version leaves for the next. */
static void keep_all(struct version *v)
{
	size_t bytes = expected.plan->elems * sizeof(float);

	for (int i = EXPECT_MOMENTUM; i < EXPECT_VECTORS; i++) {
		bool asked = expected.plan->saves.wanted || i == EXPECT_AVERAGE;
		if (!asked || expected.now[i] == NULL)
			continue;
		v->kept[i] = sim_alloc(bytes);
		memcpy(v->kept[i], expected.now[i], bytes);
	}
}

void expect_start(uint32_t rank)
{
	struct version *v = &expected.version[0];

	v->known = true;
	v->bits = sim_alloc(expected.plan->elems * sizeof(float));
	for (uint64_t i = 0; i < expected.plan->elems; i++)
		v->bits[i] = obs_start_value(rank, i);
	if (expected.plan->average > 0)
		memcpy(expected.now[EXPECT_AVERAGE], v->bits, expected.plan->elems * sizeof(float));
	keep_all(v);
}

/* The rate of each element. */
static float rate_of(const struct version *v, uint64_t i)
{
	volatile float scaled = v->rate;

	if (expected.plan->tensors > 0)
		scaled = v->rate * expected.lr_scale[i];
	if (sim_plan_trusts(expected.plan))
		scaled = scaled * expected.row[ROW_TRUST][i];
	return scaled;
}

static void sum_all(struct version *v, struct expect_item *const *items, uint32_t count,
		    float divisor)
{
	const struct sim_plan *p = expected.plan;
	float *g = sum_of(items, count), none = 0, *momentum = expected.now[EXPECT_MOMENTUM];
	uint64_t version = (uint64_t)(v - expected.version);

	for (uint64_t i = 0; i < p->elems && divisor != 1.0f; i++) {
		volatile float mean = g[i] / divisor;
		g[i] = mean;
	}
	v->factor = p->clip != 0 ? factor_of(g) : 1.0f;
	if (v->factor != 1.0f)
		scale_all(g, v->factor);
	v->bits = sim_alloc(p->elems * sizeof(float));
	if (p->lamb)
		adam_all(version, (v - 1)->bits, g);
	if (sim_plan_trusts(p))
		trust_all((v - 1)->bits, g, expected.row[ROW_TRUST]);
	for (uint64_t i = 0; i < p->elems; i++) {
		float *kept = momentum != NULL ? &momentum[i] : &none;
		v->bits[i] = g[i];
		if (p->owner == MUSTER_SERVERS_OWN)
			v->bits[i] = updated((v - 1)->bits[i], g[i], kept, rate_of(v, i));
	}
	if (p->average > 0)
		average_all(version, v->bits);
	keep_all(v);
}

static void share_all(struct version *v, struct expect_item *const *items, uint32_t count)
{
	for (uint32_t rank = 0; rank < expected.plan->workers; rank++) {
		struct muster_share share = { .rank = rank };
		for (uint32_t k = 0; k < count; k++) {
			if (items[k]->rank != rank)
				continue;
			share.count++;
			share.weight += items[k]->samples;
		}
		if (share.count > 0)
			v->share[v->share_count++] = share;
	}
}

/* The sum of the base weights of a rank, in order. */
static double base_of(struct expect_item *const *items, uint32_t count, uint32_t rank)
{
	double base = 0;

	for (uint32_t k = 0; k < count; k++)
		base += items[k]->rank == rank ? items[k]->base : 0;
	return base;
}

static uint32_t ranks_of(struct expect_item *const *items, uint32_t count)
{
	uint32_t ranks = 0;

	for (uint32_t rank = 0; rank < expected.plan->workers; rank++) {
		uint32_t k = 0;
		while (k < count && items[k]->rank != rank)
			k++;
		ranks += k < count;
	}
	return ranks;
}

static double scale_of(struct expect_item *const *items, uint32_t count,
		       const struct mst_rule *rule)
{
	double samples = 0;

	for (uint32_t k = 0; k < count; k++)
		samples += items[k]->samples;
	if (rule->batch > 0)
		return samples / (rule->batch * expected.plan->workers);
	uint32_t parts = rule->by_micro ? ranks_of(items, count) : count;
	return rule->linear ? (double)parts / expected.plan->workers : 1.0;
}

const char *expect_commit(uint64_t version, struct expect_item *const *items, uint32_t count,
			  const struct mst_rule *rule, const struct expect_figures *told)
{
	const struct sim_plan *p = expected.plan;
	struct version *v = &expected.version[version];
	double base = 0;

	if (version >= VERSIONS_MAX)
		return "there are more versions than the job was to have";
	v->known = p->owner == MUSTER_WORKERS_OWN || (v - 1)->known;
	for (uint32_t k = 0; k < count; k++)
		v->known &= !items[k]->spoiled;
	for (uint32_t rank = 0; rank < p->workers; rank++)
		base += base_of(items, count, rank);
	double scale = scale_of(items, count, rule);
	float own_divisor = rule->divide ? (float)base : 1.0f;
	float own_rate = p->owner == MUSTER_SERVERS_OWN ? (float)(p->lr * scale) : 0.0f;
	if (p->distance > 0)
		v->known &= count > 0 && expected.version[items[0]->tag].known;
	v->rate = own_rate;
	if (p->distance > 0 && v->known)
		v->rate = (float)(p->lr * bounded(scale, v - 1, &expected.version[items[0]->tag]));
	share_all(v, items, count);
	if (told->divisor != own_divisor)
		return "the divisor is wrong";
	if (!p->add && told->rate != own_rate)
		return "the rate is wrong";
	if (v->known)
		sum_all(v, items, count, told->divisor);
	return NULL;
}

const char *expect_apply(uint64_t version, float factor, float rate)
{
	const struct version *v = &expected.version[version];

	if (version >= VERSIONS_MAX || !v->known)
		return NULL;
	if (v->factor != factor)
		return "the factor of its mean is wrong";
	return expected.plan->distance > 0 && v->rate != rate
		       ? "its rate is not what the distance allows"
		       : NULL;
}

void expect_spoil(uint64_t version, uint64_t newest)
{
	uint64_t last = expected.plan->owner == MUSTER_WORKERS_OWN ? version : newest;

	for (; version <= last && version < VERSIONS_MAX; version++)
		expected.version[version].known = false;
}

/* ---- what is read ---- */

int64_t expect_differs(uint64_t version, const void *bits)
{
	const struct version *v = &expected.version[version];

	if (version >= VERSIONS_MAX || !v->known)
		return -1;
	for (uint64_t i = 0; i < expected.plan->elems; i++) {
		float there;
		memcpy(&there, (const float *)bits + i, sizeof(there));
		if (memcmp(&there, &v->bits[i], sizeof(there)) != 0)
			return (int64_t)i;
	}
	return -1;
}

int64_t expect_kept_differs(uint64_t version, enum expect_vector vector, uint64_t first,
			    const float *bits, uint64_t count)
{
	const struct version *v = &expected.version[version];

	if (version >= VERSIONS_MAX || !v->known)
		return -1;
	const float *all = vector == EXPECT_PARAMETERS ? v->bits : v->kept[vector];
	for (uint64_t i = 0; i < count; i++) {
		if (memcmp(&bits[i], &all[first + i], sizeof(*bits)) != 0)
			return (int64_t)i;
	}
	return -1;
}

bool expect_knows(uint64_t version)
{
	return version < VERSIONS_MAX && expected.version[version].known;
}

uint32_t expect_set(uint64_t version, struct muster_share *out)
{
	const struct version *v = &expected.version[version];

	if (version >= VERSIONS_MAX)
		return 0;
	memcpy(out, v->share, v->share_count * sizeof(*out));
	return v->share_count;
}
