/* SPDX-License-Identifier: MIT */
/*
 * Takes steps of an optimiser down seeded gradients, as a job of one worker would, and prints the
 * numbers for optim_reference.py.
 *
 * usage: optim_steps OPTIMIZER STEPS SEED
 *
 * Prints `figures`, the parameters of the row in its order, then `theta`; for each step then a
 * line `mean` and a line `next`. All numbers are in the form of %a.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rand.h"
#include "common/base/reason.h"
#include "tests/unit/common/optim/optim_case.h"

#define ELEMS 67 /* odd, so that vector loops have a rest */

static void print(const char *name, const float *value)
{
	printf("%s", name);
	for (size_t i = 0; i < ELEMS; i++)
		printf(" %a", (double)value[i]);
	printf("\n");
}

/* Fills with sizes between 1/1000 and 1, of both signs; the same elements are always large. */
static void fill(struct mst_rand *rand, float *value)
{
	for (size_t i = 0; i < ELEMS; i++) {
		double size = i % 3 == 0 ? 1e-3 : i % 3 == 1 ? 0.05 : 1;

		value[i] = (float)(size * mst_rand_normal(rand));
	}
}

static float trust_of(const struct mst_optimizer *o, const struct mst_apply *apply)
{
	struct mst_squares squares = { 0 };
	float direction[ELEMS];
	struct mst_apply block = *apply;

	block.next = direction;
	mst_optimizer_add_block(o, &block, &squares);
	return mst_optimizer_trust(o, &squares, apply->figures->parameter[o->row->decay]);
}

static void run(const struct mst_optimizer *o, unsigned long steps, struct mst_rand *rand)
{
	static float theta[ELEMS], next[ELEMS], mean[ELEMS], state[MST_STATES_MAX][ELEMS];
	struct mst_figures figures;
	struct mst_apply apply = {
		.next = next, .theta = theta, .mean = mean, .figures = &figures, .count = ELEMS
	};

	fill(rand, theta);
	print("theta", theta);
	mst_optimizer_figures(o, &figures);
	for (unsigned i = 0; i < MST_STATES_MAX; i++)
		apply.state[i] = mst_optimizer_keeps(o, i) ? state[i] : NULL;
	for (unsigned long version = 1; version <= steps; version++) {
		struct mst_optim_version v = { .version = version, .lr_scale = 1 };

		mst_optimizer_scalars(o, &v, figures.scalar);
		fill(rand, mean);
		print("mean", mean);
		if (mst_optimizer_trusts(o)) /* the vector is one tensor */
			figures.scalar[MST_SCALAR_RATE] *= trust_of(o, &apply);
		optim_case_apply(o->row->name, &apply);
		memcpy(theta, next, sizeof(theta));
		print("next", theta);
	}
}

int main(int argc, char **argv)
{
	struct mst_optimizer o;
	struct mst_rand rand;
	struct mst_reason why;

	if (argc != 4 || mst_optimizer_parse(argv[1], &o, &why) != 0) {
		fprintf(stderr, "%s\n",
			argc == 4 ? why.text : "usage: optim_steps OPTIMIZER STEPS SEED");
		return EXIT_FAILURE;
	}
	printf("figures");
	for (uint32_t i = 0; i < mst_optim_parameters(o.row); i++)
		printf(" %s=%.17g", o.row->parameter[i].name, o.parameter[i]);
	printf("\n");
	mst_rand_seed(&rand, strtoull(argv[3], NULL, 10));
	run(&o, strtoul(argv[2], NULL, 10), &rand);
	return EXIT_SUCCESS;
}
