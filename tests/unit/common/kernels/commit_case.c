/* SPDX-License-Identifier: MIT */
#include "tests/unit/common/kernels/commit_case.h"

#include <float.h>
#include <stdlib.h>

#include "common/kernels/sum.h"
#include "tests/unit/common/kernels/reference_float.h"

#define UNTOUCHED 0x5a

/* Numbers that round when added, in the main; the others are special or have any bits at all. */
static float element(struct mst_rand *rand, bool tame)
{
	static const uint32_t special[] = {
		0,          0x80000000u, 1,           0x80000001u, 0x007fffffu, 0x807fffffu,
		0x7f800000, 0xff800000u, 0x7fc00000u, 0x7f800001u, 0xffc12345u, 0x7f7fffffu,
	};
	uint32_t bits = (uint32_t)mst_rand_next(rand);
	uint64_t which = tame ? UINT64_MAX : mst_rand_below(rand, 400);

	if (which < sizeof(special) / sizeof(special[0]))
		return float_of(special[which]);
	if (which < 20)
		return float_of(bits);
	if (which < 40)
		return float_of(bits & 0x807fffffu);
	return float_of((bits & 0x83ffffffu) | 0x3c000000u);
}

static void fill(struct mst_rand *rand, const struct commit_case *c, float *value)
{
	for (size_t i = 0; i < c->elems; i++)
		value[i] = element(rand, c->tame);
}

static const struct format *format_of(enum muster_type type)
{
	return type == MUSTER_BF16 ? &bf16 : &f16;
}

/* The leaf's data from wherever in its room, and the same as the reference widens them. */
static void leaf_draw(struct mst_rand *rand, struct commit_case *c, size_t at,
		      enum muster_type type)
{
	size_t shift = mst_rand_below(rand, CASE_SHIFT);
	uint16_t *half = (uint16_t *)c->gradient[at] + shift;

	fill(rand, c, c->wide[at]);
	if (type == MUSTER_F32) {
		c->leaf[at].data = c->gradient[at] + shift;
		memcpy(c->gradient[at] + shift, c->wide[at], c->elems * sizeof(float));
		return;
	}
	c->leaf[at].data = half;
	for (size_t e = 0; e < c->elems; e++) {
		half[e] = pattern_of(format_of(type), c->wide[at][e]);
		c->wide[at][e] = value_of(format_of(type), half[e]);
	}
}

static void leaves_draw(struct mst_rand *rand, struct commit_case *c)
{
	bool many = mst_rand_below(rand, 12) == 0, partials = mst_rand_below(rand, 3) == 0;
	bool scaled = mst_rand_below(rand, 2) == 0, repeats = mst_rand_below(rand, 3) == 0;
	size_t count = 1 + mst_rand_below(rand, many ? CASE_LEAVES : 20);
	uint32_t rank = (uint32_t)mst_rand_below(rand, 3);

	for (size_t i = 0; i < count; i++) {
		bool again = i > 0 && repeats && mst_rand_below(rand, 2) == 0;
		bool partial = !again && partials && mst_rand_below(rand, 2) == 0;

		if (i > 0 && !again)
			rank += mst_rand_below(rand, 5) == 0 ? 3 : 1;
		c->leaf[i] = (struct mst_leaf){ .rank = rank,
						.coefficient = 1,
						.partial = partial };
		if (partial)
			c->leaf[i].coefficient = NAN;
		else if (scaled && mst_rand_below(rand, 4) != 0)
			c->leaf[i].coefficient = (float)mst_rand_unit(rand) * 3;
		leaf_draw(rand, c, i, partial ? MUSTER_F32 : c->commit.tree.type);
	}
	c->commit.tree.leaf_count = count;
}

/* Whole ones and others, powers of two and others. */
static float divisor_draw(struct mst_rand *rand)
{
	switch (mst_rand_below(rand, 4)) {
	case 0:
		return 1;
	case 1:
		return ldexpf(1, (int)mst_rand_below(rand, 12));
	case 2:
		return (float)(1 + mst_rand_below(rand, 200));
	default:
		return 0.01f + (float)mst_rand_unit(rand) * 9;
	}
}

/* Factors that leave a figure as it is, and those that make it 0, among others. */
static float factor_draw(struct mst_rand *rand)
{
	uint64_t which = mst_rand_below(rand, 4);

	return which < 2 ? (float)which : (float)mst_rand_unit(rand) * 2;
}

/* Tensors of any length. The last one may end beyond the elements. */
static void scales_draw(struct mst_rand *rand, struct mst_commit *commit, struct commit_case *c)
{
	size_t count = 0, end = 0;

	if (!c->optim->scales || mst_rand_below(rand, 2) == 0)
		return;
	while (end < c->elems) {
		bool last = count == CASE_SCALES - 1 || mst_rand_below(rand, 8) == 0;

		end += last ? c->elems
			    : 1 + mst_rand_below(rand, mst_rand_below(rand, 2) ? 9 : 300);
		c->scale[count++] = (struct mst_scale){ end, factor_draw(rand), factor_draw(rand),
							factor_draw(rand) };
	}
	commit->scale = c->scale;
	commit->scales = count;
	commit->decay = c->optim->decay;
}

/* In place, or from a vector that stays as it is. */
static void average_draw(struct mst_rand *rand, struct mst_commit *commit, struct commit_case *c)
{
	if (mst_rand_below(rand, 2) == 0)
		return;
	commit->average = c->average + mst_rand_below(rand, CASE_SHIFT);
	commit->average_rest = (float)mst_rand_unit(rand);
	if (mst_rand_below(rand, 2) == 0)
		commit->average_before = c->average_before;
}

static void update_draw(struct mst_rand *rand, struct mst_commit *commit, struct commit_case *c)
{
	/* What updated() knows; the other rows are the affair of kernels_numpy.py. */
	static const char *const known[] = { "sgd", "add", "none" };
	float *theta = c->theta + mst_rand_below(rand, CASE_SHIFT);

	c->optim = mst_optim_find(known[mst_rand_below(rand, 3)]);
	if (c->optim == NULL)
		return;
	commit->apply = c->optim->apply;
	commit->theta = theta;
	commit->next = commit->result_type == MUSTER_F32 ? commit->out : theta;
	scales_draw(rand, commit, c);
	average_draw(rand, commit, c);
	if (c->optim->scalars == NULL)
		return;
	commit->figures.scalar[MST_SCALAR_RATE] = (float)mst_rand_unit(rand);
	if (mst_rand_below(rand, 2) == 0)
		commit->figures.parameter[MST_SGD_DECAY] = (float)mst_rand_unit(rand);
	if (mst_rand_below(rand, 2) == 0)
		return;
	commit->figures.parameter[MST_SGD_NESTEROV] = (float)mst_rand_below(rand, 2);
	commit->figures.parameter[MST_SGD_MOMENTUM] = (float)mst_rand_unit(rand);
	commit->state[0] = c->momentum + mst_rand_below(rand, CASE_SHIFT);
}

void commit_case_draw(struct mst_rand *rand, struct commit_case *c)
{
	struct mst_commit *commit = &c->commit;

	*commit = (struct mst_commit){
		.tree = { .type = (enum muster_type)mst_rand_below(rand, 3),
			  .group = 1 + (uint32_t)mst_rand_below(rand, 10),
			  .leaf = c->leaf },
		.divisor = divisor_draw(rand),
		.result_type = (enum muster_type)mst_rand_below(rand, 3),
		.streams = mst_rand_below(rand, 2) == 0,
	};
	c->elems = 1 + mst_rand_below(rand, CASE_ELEMS);
	commit->out = (char *)c->out +
		      mst_rand_below(rand, CASE_SHIFT) * mst_type_bytes(commit->result_type);
	leaves_draw(rand, c);
	update_draw(rand, commit, c);
	fill(rand, c, c->theta_before);
	fill(rand, c, c->momentum_before);
	fill(rand, c, c->average_before);
	commit_case_reset(c);
}

static void poison(struct mst_rand *rand, void *vector, enum muster_type type, size_t e)
{
	static const float value[] = { INFINITY, -INFINITY, NAN, FLT_MAX };
	float drawn = value[mst_rand_below(rand, 4)];

	if (type == MUSTER_F32)
		((float *)vector)[e] = drawn;
	else
		((uint16_t *)vector)[e] = pattern_of(format_of(type), drawn);
}

void commit_case_poison(struct mst_rand *rand, struct commit_case *c)
{
	size_t e = mst_rand_below(rand, c->elems);
	size_t at = mst_rand_below(rand, c->commit.tree.leaf_count + 2);

	if (at < c->commit.tree.leaf_count)
		poison(rand, (void *)c->leaf[at].data,
		       c->leaf[at].partial ? MUSTER_F32 : c->commit.tree.type, e);
	else
		poison(rand, at == c->commit.tree.leaf_count ? c->theta_before : c->momentum_before,
		       MUSTER_F32, e);
}

void commit_case_reset(struct commit_case *c)
{
	const struct mst_commit *commit = &c->commit;

	memset(c->out, UNTOUCHED, sizeof(c->out));
	memset(c->theta, UNTOUCHED, sizeof(c->theta));
	memset(c->momentum, UNTOUCHED, sizeof(c->momentum));
	memset(c->average, UNTOUCHED, sizeof(c->average));
	if (commit->theta != NULL)
		memcpy((float *)commit->theta, c->theta_before, c->elems * sizeof(float));
	if (commit->state[0] != NULL)
		memcpy(commit->state[0], c->momentum_before, c->elems * sizeof(float));
	if (commit->average != NULL && commit->average_before == NULL)
		memcpy(commit->average, c->average_before, c->elems * sizeof(float));
}

static float leaf_value(const struct commit_case *c, size_t at, size_t e)
{
	const struct mst_leaf *leaf = &c->leaf[at];

	if (leaf->partial || leaf->coefficient == 1)
		return c->wide[at][e];
	return rounded_product(leaf->coefficient, c->wide[at][e]);
}

static float joined(bool begun, float sum, float part)
{
	return begun ? rounded_sum(sum, part) : part;
}

static float total_of(const struct commit_case *c, size_t e)
{
	const struct mst_leaf *leaf = c->leaf;
	size_t count = c->commit.tree.leaf_count, at = 0;
	float total = 0;

	for (bool begun = false; at < count; begun = true) {
		uint32_t group = leaf[at].rank / c->commit.tree.group;
		float group_sum = 0;

		for (bool group_begun = false;
		     at < count && leaf[at].rank / c->commit.tree.group == group;
		     group_begun = true) {
			uint32_t rank = leaf[at].rank;
			float rank_sum = leaf_value(c, at++, e);

			while (at < count && leaf[at].rank == rank)
				rank_sum = rounded_sum(rank_sum, leaf_value(c, at++, e));
			group_sum = joined(group_begun, group_sum, rank_sum);
		}
		total = joined(begun, total, group_sum);
	}
	return total;
}

static struct mst_scale scale_of(const struct commit_case *c, size_t e)
{
	const struct mst_scale *scale = c->commit.scale;

	while (scale != NULL && scale->end <= e)
		scale++;
	return scale != NULL ? *scale : (struct mst_scale){ 0, 1, 1, 1 };
}

/* Return: the element before it is rounded; *kept is what the momentum becomes. */
static float updated(const struct commit_case *c, float mean, size_t e, float *kept)
{
	const struct mst_commit *commit = &c->commit;
	const float *parameter = commit->figures.parameter;
	float theta = c->theta_before[e], mu = parameter[MST_SGD_MOMENTUM], slope = mean;
	struct mst_scale scale = scale_of(c, e);
	float rate = rounded_product(commit->figures.scalar[MST_SCALAR_RATE], scale.rate);
	float decay = rounded_product(parameter[MST_SGD_DECAY], scale.decay);

	rate = rounded_product(rate, scale.trust);

	if (c->optim == NULL)
		return mean;
	if (c->optim->scalars == NULL)
		return rounded_sum(theta, mean);
	if (decay != 0)
		slope = rounded_sum(mean, rounded_product(decay, theta));
	if (commit->state[0] != NULL) {
		*kept = rounded_sum(rounded_product(mu, c->momentum_before[e]), slope);
		slope = parameter[MST_SGD_NESTEROV] == 0
				? *kept
				: rounded_sum(slope, rounded_product(mu, *kept));
	}
	return rounded_sum(theta, -rounded_product(rate, slope));
}

static bool average_is_right(const struct commit_case *c, size_t e, float value)
{
	float rest = c->commit.average_rest, share = rounded_sum(1, -rest);

	return same(c->commit.average[e], rounded_sum(rounded_product(rest, c->average_before[e]),
						      rounded_product(share, value)));
}

static bool stored_right(const struct mst_commit *commit, size_t e, float value)
{
	if (commit->result_type == MUSTER_F32) {
		float stored = ((const float *)commit->out)[e];

		return bits_of(stored) == (isnan(value) ? 0x7fc00000u : bits_of(value));
	}
	return ((const uint16_t *)commit->out)[e] ==
	       pattern_of(format_of(commit->result_type), value);
}

static bool element_is_right(const struct commit_case *c, size_t e)
{
	const struct mst_commit *commit = &c->commit;
	float mean = total_of(c, e), kept = 0, value;

	if (commit->divisor != 1)
		mean = rounded_quotient(mean, commit->divisor);
	value = updated(c, mean, e, &kept);
	if (commit->state[0] != NULL && !same(commit->state[0][e], kept))
		return false;
	if (c->optim != NULL && commit->result_type != MUSTER_F32 && !same(commit->next[e], value))
		return false;
	if (commit->average != NULL && !average_is_right(c, e, value))
		return false;
	return stored_right(commit, e, value);
}

/* Bytes of a room that were written outside of a vector in it; no vector: in all of it. */
static size_t strayed(const float *room, const void *vector, size_t bytes)
{
	const unsigned char *byte = (const void *)room, *begin = vector;
	size_t wrong = 0;

	for (size_t i = 0; i < CASE_ROOM * sizeof(float); i++) {
		bool inside = begin != NULL && byte + i >= begin && byte + i < begin + bytes;

		wrong += !inside && byte[i] != UNTOUCHED;
	}
	return wrong;
}

size_t commit_case_wrong(const struct commit_case *c)
{
	const struct mst_commit *commit = &c->commit;
	size_t wrong = strayed(c->out, commit->out, c->elems * mst_type_bytes(commit->result_type));

	wrong += strayed(c->theta, commit->theta, c->elems * sizeof(float));
	wrong += strayed(c->momentum, commit->state[0], c->elems * sizeof(float));
	wrong += strayed(c->average, commit->average, c->elems * sizeof(float));
	for (size_t e = 0; e < c->elems; e++)
		wrong += !element_is_right(c, e);
	return wrong;
}

static bool is_finite_at(const void *vector, enum muster_type type, size_t e)
{
	if (type == MUSTER_F32)
		return isfinite(((const float *)vector)[e]);
	return isfinite(value_of(format_of(type), ((const uint16_t *)vector)[e]));
}

bool commit_case_finite(const struct commit_case *c, size_t first, size_t count)
{
	const struct mst_commit *commit = &c->commit;
	bool finite = true;

	for (size_t e = first; e < first + count; e++) {
		finite = finite && is_finite_at(commit->out, commit->result_type, e);
		if (c->optim != NULL)
			finite = finite && isfinite(commit->next[e]);
		if (commit->state[0] != NULL)
			finite = finite && isfinite(commit->state[0][e]);
	}
	return finite;
}
