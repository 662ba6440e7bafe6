/* SPDX-License-Identifier: MIT */
/* What the kernel of every row promises (common/kernels/apply.h), whatever it computes: the same
 * bits from each instruction set and in any pieces, and that nothing infinite stays hidden. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rand.h"
#include "common/base/reason.h"
#include "common/kernels/select.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

#define ELEMS 301
#define ROUNDS 40

/* Each row in its branches. */
static const char *const optimizers[] = {
	"sgd:decay=0.1",
	"sgd:momentum=0",
	"sgd:nesterov=1",
	"adagrad",
	"adagrad:decay=0.1",
	"rmsprop",
	"rmsprop:inside=0,start=0,epsilon=1e-8,momentum=0,decay=0.1",
	"adam",
	"adam:beta1=0,beta2=0,decay=0.1",
	"adamw",
	"adamw:decay=0",
	"lars",
	"lars:nesterov=1,decay=0",
	"lars:momentum=0,decay=0.1",
	"lars:momentum=0,decay=0",
	"lamb",
	"lamb:beta1=0,decay=0",
	"add",
	"outer",
	"outer:nesterov=0",
	"outer:momentum=0",
};
#define OPTIMIZERS (sizeof(optimizers) / sizeof(optimizers[0]))

struct step_case {
	struct mst_optimizer o;
	struct mst_figures figures;
	float theta[ELEMS], mean[ELEMS], next[ELEMS], state[MST_STATES_MAX][ELEMS];
};

static float number(struct mst_rand *rand)
{
	return (float)ldexp(mst_rand_normal(rand), (int)mst_rand_below(rand, 20) - 10);
}

/* States may be of squares, which are not negative. */
static void draw(struct mst_rand *rand, const char *optimizer, struct step_case *c)
{
	struct mst_optim_version v = { .version = 1 + mst_rand_below(rand, 50), .lr_scale = 0.5 };
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_optimizer_parse(optimizer, &c->o, &why), 0);
	mst_optimizer_figures(&c->o, &c->figures);
	mst_optimizer_scalars(&c->o, &v, c->figures.scalar);
	for (size_t i = 0; i < ELEMS; i++) {
		c->theta[i] = number(rand);
		c->mean[i] = number(rand);
		for (unsigned k = 0; k < MST_STATES_MAX; k++)
			c->state[k][i] = fabsf(number(rand));
	}
}

/* With the kernel of an instruction set, in pieces of @most elements. */
static void run(struct step_case *c, mst_apply_fn *kernel, size_t most)
{
	for (size_t done = 0, count; done < ELEMS; done += count) {
		count = ELEMS - done < most ? ELEMS - done : most;
		struct mst_apply piece = { .next = c->next + done,
					   .theta = c->theta + done,
					   .mean = c->mean + done,
					   .figures = &c->figures,
					   .count = count };

		for (unsigned k = 0; k < MST_STATES_MAX; k++)
			piece.state[k] = mst_optimizer_keeps(&c->o, k) ? c->state[k] + done : NULL;
		kernel(&piece);
	}
}

static void apply(struct step_case *c, unsigned isa, size_t most)
{
	run(c, c->o.row->apply[isa], most);
}

static bool runs_here(unsigned isa)
{
	const char *const names[] = {
#define NAME(name, isa) [MST_ISA_INDEX_##isa] = #isa,
		MST_ISAS(NAME, name)
	};
	size_t i = 0;

	while (mst_kernels_name(i) != NULL && strcmp(mst_kernels_name(i), names[isa]) != 0)
		i++;
	return mst_kernels_name(i) != NULL;
}

static void every_row_is_among_the_optimizers(void)
{
	const struct mst_optim *row;

	for (unsigned i = 0; (row = mst_optim_row(i)) != NULL; i++) {
		bool found = false;

		for (size_t k = 0; k < OPTIMIZERS; k++) {
			size_t len = strcspn(optimizers[k], ":");

			found |= strlen(row->name) == len &&
				 strncmp(row->name, optimizers[k], len) == 0;
		}
		CU_ASSERT(found);
	}
}

static void every_instruction_set_gives_the_same_bits(void)
{
	static struct step_case start, one, other;
	struct mst_rand rand;

	mst_rand_seed(&rand, 1);
	for (unsigned round = 0; round < ROUNDS * OPTIMIZERS; round++) {
		draw(&rand, optimizers[round % OPTIMIZERS], &start);
		one = start;
		apply(&one, mst_isa()->index, ELEMS);
		for (unsigned isa = 0; isa < MST_ISA_COUNT; isa++) {
			if (!runs_here(isa))
				continue;
			other = start;
			apply(&other, isa, ELEMS);
			CU_ASSERT_EQUAL(memcmp(one.next, other.next, sizeof(one.next)), 0);
			CU_ASSERT_EQUAL(memcmp(one.state, other.state, sizeof(one.state)), 0);
		}
	}
}

static void pieces_give_the_same_bits(void)
{
	static struct step_case start, one, other;
	struct mst_rand rand;

	mst_rand_seed(&rand, 2);
	for (unsigned round = 0; round < ROUNDS * OPTIMIZERS; round++) {
		draw(&rand, optimizers[round % OPTIMIZERS], &start);
		one = other = start;
		apply(&one, mst_isa()->index, ELEMS);
		apply(&other, mst_isa()->index, 1 + mst_rand_below(&rand, 50));
		CU_ASSERT_EQUAL(memcmp(one.next, other.next, sizeof(one.next)), 0);
		CU_ASSERT_EQUAL(memcmp(one.state, other.state, sizeof(one.state)), 0);
	}
}

/* Holds for optimisers whose direction is not the mean itself. */
static void a_direction_writes_no_state_and_has_the_same_bits(void)
{
	static struct step_case start, one, other;
	struct mst_rand rand;
	unsigned found = 0;

	mst_rand_seed(&rand, 4);
	for (unsigned round = 0; round < ROUNDS * OPTIMIZERS; round++) {
		draw(&rand, optimizers[round % OPTIMIZERS], &start);
		for (unsigned isa = 0; isa < MST_ISA_COUNT; isa++) {
			if (start.o.row->direction[isa] == NULL || !runs_here(isa))
				continue;
			one = other = start;
			run(&one, start.o.row->direction[mst_isa()->index], ELEMS);
			run(&other, start.o.row->direction[isa], 1 + mst_rand_below(&rand, 50));
			CU_ASSERT_EQUAL(memcmp(one.next, other.next, sizeof(one.next)), 0);
			CU_ASSERT_EQUAL(memcmp(start.state, other.state, sizeof(one.state)), 0);
			found++;
		}
	}
	CU_ASSERT(found > 0);
}

/* A step is the parameters less the rate times the direction. */
static void a_step_goes_along_its_direction(void)
{
	static struct step_case one, other;
	struct mst_rand rand;

	mst_rand_seed(&rand, 5);
	for (unsigned round = 0; round < ROUNDS; round++) {
		draw(&rand, "lamb", &one);
		other = one;
		apply(&one, mst_isa()->index, ELEMS);
		run(&other, other.o.row->direction[mst_isa()->index], ELEMS);
		for (size_t i = 0; i < ELEMS; i++) {
			float down = other.figures.scalar[MST_SCALAR_RATE] * other.next[i];

			CU_ASSERT_EQUAL(one.next[i], one.theta[i] - down);
		}
	}
}

/* Means whose square overflows, and what the states then hold, among ordinary numbers. */
static void spoil(struct mst_rand *rand, struct step_case *c)
{
	static const float spoilt[] = { 1e30f, -3e38f, INFINITY, -INFINITY, NAN };

	for (size_t i = 0; i < ELEMS; i += 1 + mst_rand_below(rand, 20))
		c->mean[i] = spoilt[mst_rand_below(rand, sizeof(spoilt) / sizeof(spoilt[0]))];
	for (size_t i = 0; i < ELEMS; i += 1 + mst_rand_below(rand, 20))
		c->state[mst_rand_below(rand, MST_STATES_MAX)][i] = mst_rand_below(rand, 2) == 0
									    ? INFINITY
									    : NAN;
}

static bool is_spoilt(const struct step_case *c, size_t i)
{
	bool finite = isfinite(c->mean[i]);

	for (unsigned k = 0; k < MST_STATES_MAX; k++)
		finite &= !mst_optimizer_keeps(&c->o, k) || isfinite(c->state[k][i]);
	return !finite;
}

static void what_is_not_finite_in_mean_or_state_is_not_in_the_parameters(void)
{
	static struct step_case c, before;
	struct mst_rand rand;
	unsigned hidden = 0, found = 0;

	mst_rand_seed(&rand, 3);
	for (unsigned round = 0; round < ROUNDS * OPTIMIZERS; round++) {
		draw(&rand, optimizers[round % OPTIMIZERS], &c);
		spoil(&rand, &c);
		before = c;
		apply(&c, mst_isa()->index, ELEMS);
		for (size_t i = 0; i < ELEMS; i++) {
			bool spoilt = is_spoilt(&before, i) || is_spoilt(&c, i);

			hidden += spoilt && isfinite(c.next[i]);
			found += spoilt;
		}
	}
	CU_ASSERT_EQUAL(hidden, 0);
	CU_ASSERT(found > 1000);
}

static CU_TestInfo cases[] = {
	{ "every row is among the optimizers of this test", every_row_is_among_the_optimizers },
	{ "every instruction set gives the same bits", every_instruction_set_gives_the_same_bits },
	{ "pieces give the same bits", pieces_give_the_same_bits },
	{ "a direction writes no state, and has the same bits",
	  a_direction_writes_no_state_and_has_the_same_bits },
	{ "a step goes along its direction", a_step_goes_along_its_direction },
	{ "what is not finite in mean or state is not finite in the parameters",
	  what_is_not_finite_in_mean_or_state_is_not_in_the_parameters },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("optim steps", cases);
}
