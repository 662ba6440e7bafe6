/* SPDX-License-Identifier: MIT */
/*
 * Sums, divides and applies a few seeded sets with the kernels, and prints what went in and what
 * came out as bit patterns, for kernels_numpy.py to compute once more. Two builds with different
 * compilers must print the same.
 *
 * usage: kernels_case SEED CASES
 *
 * A case is the lines `case TYPE GROUP ELEMS`, `leaf RANK COEFFICIENT PATTERN...` for each leaf,
 * then `divisor`, `theta`, `m`, `mu`, `eta`, and the results `f32`, `bf16`, `f16` (of the mean),
 * `sgd`, `momentum` and `add`, each with its patterns; then once more for sgd with all of its
 * figures `m2`, `figures`, `eta2`, `sgd2` and `momentum2`; the same of adagrad; for each row of two
 * states (rmsprop, adam, adamw) `ROW.figures`, `ROW.scalars`, `ROW.0` and `ROW.1`, its states, and
 * the results `ROW.next`, `ROW.0.after` and `ROW.1.after`; then a `vector`, and the `squares` of
 * three blocks of it, summed.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/exact_sum.h"
#include "common/base/rand.h"
#include "common/kernels/sum.h"
#include "common/kernels/tree.h"
#include "tests/unit/common/optim/optim_case.h"

#define ELEMS 67 /* odd, so that vector loops have a rest */
#define LEAVES 48

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static void print_patterns(const char *name, const void *data, size_t bytes, size_t count)
{
	printf("%s", name);
	for (size_t i = 0; i < count; i++) {
		uint32_t pattern = 0;

		memcpy(&pattern, (const char *)data + i * bytes, bytes);
		printf(" %" PRIx32, pattern);
	}
	printf("\n");
}

/* As any result leaves the kernels: NaN made canonical. */
static void print_floats(const char *name, const float *value, size_t count)
{
	float stored[ELEMS];

	mst_sum_store(stored, MUSTER_F32, value, count);
	print_patterns(name, stored, sizeof(float), count);
}

static float ordinary(struct mst_rand *rand)
{
	uint32_t bits = (uint32_t)mst_rand_next(rand);
	float value;

	bits = (bits & 0x83ffffffu) | 0x3c000000u;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Ordinary numbers in the main; every eighth has any pattern: subnormal, infinite, NaN. */
static void fill(struct mst_rand *rand, void *out, enum muster_type type)
{
	float value[ELEMS];
	size_t bytes = mst_type_bytes(type);

	for (size_t i = 0; i < ELEMS; i++)
		value[i] = ordinary(rand);
	mst_sum_store(out, type, value, ELEMS);
	for (size_t i = 0; i < ELEMS; i += 8) {
		uint32_t any = (uint32_t)mst_rand_next(rand);

		memcpy((char *)out + i * bytes, &any, bytes);
	}
}

static size_t draw_leaves(struct mst_rand *rand, enum muster_type type, struct mst_leaf *leaf,
			  float (*data)[ELEMS])
{
	size_t count = 1 + mst_rand_below(rand, LEAVES);
	uint32_t rank = 0;

	for (size_t i = 0; i < count; i++) {
		bool scaled = mst_rand_below(rand, 2) == 0;

		rank += (uint32_t)mst_rand_below(rand, 3);
		fill(rand, data[i], type);
		leaf[i] = (struct mst_leaf){
			.rank = rank,
			.coefficient = scaled ? (float)mst_rand_unit(rand) : 1,
			.data = data[i],
		};
		printf("leaf %" PRIu32 " %" PRIx32, rank, bits_of(leaf[i].coefficient));
		print_patterns("", data[i], mst_type_bytes(type), ELEMS);
	}
	return count;
}

static void print_mean(float *total, float divisor)
{
	uint16_t narrow[ELEMS];

	mst_sum_divide(total, divisor, ELEMS);
	print_floats("f32", total, ELEMS);
	mst_sum_store(narrow, MUSTER_BF16, total, ELEMS);
	print_patterns("bf16", narrow, sizeof(narrow[0]), ELEMS);
	mst_sum_store(narrow, MUSTER_F16, total, ELEMS);
	print_patterns("f16", narrow, sizeof(narrow[0]), ELEMS);
}

/* A vector whose numbers are of any size, and its squares' sum. */
static void print_norm(struct mst_rand *rand)
{
	struct mst_exact_sum sum = { { 0 } };
	float value[ELEMS];

	for (size_t i = 0; i < ELEMS; i++) {
		uint32_t any = (uint32_t)mst_rand_next(rand);

		memcpy(&value[i], &any, sizeof(any));
		if (!isfinite(value[i]))
			value[i] = 1;
	}
	print_patterns("vector", value, sizeof(float), ELEMS);
	/* In three blocks, the last first. */
	mst_exact_add(&sum, mst_isa()->squares(value + 40, ELEMS - 40));
	mst_exact_add(&sum, mst_isa()->squares(value, 17));
	mst_exact_add(&sum, mst_isa()->squares(value + 17, 23));
	printf("squares %a\n", mst_exact_value(&sum));
}

/* With decay, and with Nesterov's momentum or without. */
static void print_sgd(struct mst_rand *rand, const float *theta, const float *g, float *m)
{
	bool nesterov = mst_rand_below(rand, 2) == 0;
	struct mst_figures f = { .parameter = { [MST_SGD_MOMENTUM] = (float)mst_rand_unit(rand),
						[MST_SGD_NESTEROV] = nesterov,
						[MST_SGD_DECAY] = (float)mst_rand_unit(rand) },
				 .scalar = { [MST_SCALAR_RATE] = (float)mst_rand_unit(rand) } };
	float next[ELEMS];

	print_patterns("m2", m, sizeof(float), ELEMS);
	print_patterns("figures", f.parameter, sizeof(float), MST_PARAMETERS_MAX);
	print_patterns("eta2", f.scalar, sizeof(float), 1);
	optim_case_apply("sgd", &(struct mst_apply){ .next = next,
						     .theta = theta,
						     .mean = g,
						     .state = { [MST_SGD_STATE_MOMENTUM] = m },
						     .figures = &f,
						     .count = ELEMS });
	print_floats("sgd2", next, ELEMS);
	print_floats("momentum2", m, ELEMS);
}

/* With a sum of squares that some steps have left behind, and with decay or without. */
static void print_adagrad(struct mst_rand *rand, const float *theta, const float *g)
{
	struct mst_figures f = { .parameter = { [MST_ADAGRAD_EPSILON] = 1e-10f },
				 .scalar = { [MST_SCALAR_RATE] = (float)mst_rand_unit(rand) } };
	float next[ELEMS], squares[ELEMS];

	if (mst_rand_below(rand, 2) == 0)
		f.parameter[MST_ADAGRAD_DECAY] = (float)mst_rand_unit(rand);
	for (size_t i = 0; i < ELEMS; i++)
		squares[i] = (float)mst_rand_below(rand, 3) * (float)mst_rand_unit(rand);
	print_patterns("squares3", squares, sizeof(float), ELEMS);
	print_patterns("figures3", f.parameter, sizeof(float), MST_PARAMETERS_MAX);
	print_patterns("eta3", f.scalar, sizeof(float), 1);
	optim_case_apply("adagrad",
			 &(struct mst_apply){ .next = next,
					      .theta = theta,
					      .mean = g,
					      .state = { [MST_ADAGRAD_STATE_SQUARES] = squares },
					      .figures = &f,
					      .count = ELEMS });
	print_floats("adagrad", next, ELEMS);
	print_floats("sum3", squares, ELEMS);
}

static void print_part(const char *row, const char *part, const float *value, size_t count)
{
	char name[40];

	snprintf(name, sizeof(name), "%s.%s", row, part);
	print_floats(name, value, count);
}

/* A row whose figures are all at most 1, and that keeps two states at most, which are not
 * negative. */
static void print_two_states(struct mst_rand *rand, const char *row, unsigned decay,
			     const struct mst_apply *from)
{
	struct mst_figures f;
	float next[ELEMS], state[2][ELEMS];
	struct mst_apply apply = *from;

	for (unsigned i = 0; i < MST_PARAMETERS_MAX; i++)
		f.parameter[i] = (float)mst_rand_unit(rand);
	if (mst_rand_below(rand, 2) == 0)
		f.parameter[decay] = 0;
	for (unsigned i = 0; i < MST_SCALARS_MAX; i++)
		f.scalar[i] = (float)mst_rand_unit(rand);
	for (size_t i = 0; i < ELEMS; i++)
		for (unsigned k = 0; k < 2; k++)
			state[k][i] = (float)mst_rand_below(rand, 3) * (float)mst_rand_unit(rand);
	print_part(row, "figures", f.parameter, MST_PARAMETERS_MAX);
	print_part(row, "scalars", f.scalar, MST_SCALARS_MAX);
	print_part(row, "0", state[0], ELEMS);
	print_part(row, "1", state[1], ELEMS);
	apply.next = next;
	apply.state[0] = state[0];
	apply.state[1] = state[1];
	apply.figures = &f;
	optim_case_apply(row, &apply);
	print_part(row, "next", next, ELEMS);
	print_part(row, "0.after", state[0], ELEMS);
	print_part(row, "1.after", state[1], ELEMS);
}

static void print_updates(struct mst_rand *rand, const float *g)
{
	float theta[ELEMS], next[ELEMS], m[ELEMS], eta = (float)mst_rand_unit(rand);
	float mu = mst_rand_below(rand, 3) == 0 ? 0 : (float)mst_rand_unit(rand);

	fill(rand, theta, MUSTER_F32);
	fill(rand, m, MUSTER_F32);
	print_patterns("theta", theta, sizeof(float), ELEMS);
	print_patterns("m", m, sizeof(float), ELEMS);
	print_patterns("mu", &mu, sizeof(float), 1);
	print_patterns("eta", &eta, sizeof(float), 1);
	optim_case_step_sgd(next, theta, g, m, mu, eta, ELEMS);
	print_floats("sgd", next, ELEMS);
	print_floats("momentum", m, ELEMS);
	optim_case_step_add(next, theta, g, ELEMS);
	print_floats("add", next, ELEMS);
	print_sgd(rand, theta, g, m);
	print_adagrad(rand, theta, g);
	struct mst_apply apply = { .theta = theta, .mean = g, .count = ELEMS };

	print_two_states(rand, "rmsprop", MST_RMSPROP_DECAY, &apply);
	print_two_states(rand, "adam", MST_ADAM_DECAY, &apply);
	print_two_states(rand, "adamw", MST_ADAM_DECAY, &apply);
	print_two_states(rand, "lars", MST_LARS_DECAY, &apply);
	print_two_states(rand, "lamb", MST_ADAM_DECAY, &apply);
	print_norm(rand);
}

static void run_case(struct mst_rand *rand)
{
	static float data[LEAVES][ELEMS];
	struct mst_leaf leaf[LEAVES];
	struct mst_tree tree = { .leaf = leaf };
	float total[ELEMS], scratch[2 * ELEMS];
	float divisor = (float)(1 + mst_rand_below(rand, 200));

	tree.type = (enum muster_type)mst_rand_below(rand, 3);
	tree.group = 1 + (uint32_t)mst_rand_below(rand, 9);
	printf("case %d %" PRIu32 " %d\n", (int)tree.type, tree.group, ELEMS);
	tree.leaf_count = draw_leaves(rand, tree.type, leaf, data);
	print_patterns("divisor", &divisor, sizeof(float), 1);
	mst_tree_sum(&tree, 0, ELEMS, total, scratch);
	print_mean(total, divisor);
	print_updates(rand, total);
}

int main(int argc, char **argv)
{
	struct mst_rand rand;

	if (argc != 3) {
		fprintf(stderr, "usage: %s SEED CASES\n", argv[0]);
		return EXIT_FAILURE;
	}
	mst_rand_seed(&rand, strtoull(argv[1], NULL, 10));
	for (unsigned long left = strtoul(argv[2], NULL, 10); left > 0; left--)
		run_case(&rand);
	return EXIT_SUCCESS;
}
