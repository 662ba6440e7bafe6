/* SPDX-License-Identifier: MIT */
#include "tests/ut.h"

#include <math.h>

#include "client/examples/digits/blas.h"
#include "common/base/rand.h"
#include "common/digits/mlp.h"

#define ROWS 8u
#define INPUTS 784u
#define HIDDEN 100u
#define OUTPUTS 10u
#define ELEMS ((INPUTS + 1) * HIDDEN + (HIDDEN + 1) * OUTPUTS)

static float a[INPUTS * HIDDEN], b[INPUTS * HIDDEN], by_blas[ELEMS], plainly[ELEMS];

static void fill(float *to, size_t count, uint64_t seed)
{
	struct mst_rand chance;

	mst_rand_seed(&chance, seed);
	for (size_t i = 0; i < count; i++)
		to[i] = (float)mst_rand_normal(&chance);
}

/* Each sum has @inner products of numbers near 1, and the order of a sum moves its last bits. */
static void hold(size_t count, uint32_t inner)
{
	double worst = 0;

	for (size_t i = 0; i < count; i++) {
		double apart = fabs((double)by_blas[i] - (double)plainly[i]);
		worst = apart <= worst ? worst : apart; /* a NaN is worse */
	}
	CU_ASSERT(worst < 1e-5 * sqrt(inner));
}

/* @turned: 1 for the transpose of x, 2 for that of y. */
static void multiply(uint32_t rows, uint32_t inner, uint32_t columns, unsigned turned)
{
	struct mst_matrix x = { a, turned == 1 ? inner : rows, turned == 1 ? rows : inner,
				turned == 1 };
	struct mst_matrix y = { b, turned == 2 ? columns : inner, turned == 2 ? inner : columns,
				turned == 2 };
	size_t count = (size_t)rows * columns;

	for (size_t i = 0; i < count; i++)
		by_blas[i] = NAN; /* is not read */
	blas_product()(by_blas, x, y, false);
	mst_product(plainly, x, y, false);
	hold(count, inner);
	blas_product()(by_blas, x, y, true);
	mst_product(plainly, x, y, true);
	hold(count, inner);
}

static void each_form_agrees_with_the_plain_product(void)
{
	const uint32_t side[] = { 1, 7, 16, 33 };

	for (unsigned i = 0; i < 4 * 4 * 4; i++)
		for (unsigned turned = 0; turned < 3; turned++)
			multiply(side[i % 4], side[i / 4 % 4], side[i / 16], turned);
	multiply(ROWS, INPUTS, HIDDEN, 2);
	multiply(HIDDEN, ROWS, INPUTS, 1);
}

static unsigned calls;

static void counted(float *to, struct mst_matrix x, struct mst_matrix y, bool add)
{
	calls++;
	blas_product()(to, x, y, add);
}

static double gradient(mst_product_fn *product, const float *parameters, float *to)
{
	struct mst_mlp net;

	CU_ASSERT_EQUAL_FATAL(
		mst_mlp_init(&net, &(struct mst_mlp_shape){ INPUTS, HIDDEN, OUTPUTS }, ROWS), 0);
	net.product = product;
	fill(net.x, (size_t)ROWS * INPUTS, 3);
	double loss = mst_mlp_gradient(&net, parameters, ROWS, to, false);
	mst_mlp_fini(&net);
	return loss;
}

static void a_network_takes_its_product_and_the_gradients_agree(void)
{
	static float parameters[ELEMS];

	mst_mlp_start(&(struct mst_mlp_shape){ INPUTS, HIDDEN, OUTPUTS }, 1, parameters);
	double loss = gradient(counted, parameters, by_blas);
	CU_ASSERT_EQUAL(calls, 5);
	CU_ASSERT_DOUBLE_EQUAL(loss, gradient(mst_product, parameters, plainly), 1e-3);
	hold(ELEMS, INPUTS);
}

static CU_TestInfo cases[] = {
	{ "each form agrees with the plain product", each_form_agrees_with_the_plain_product },
	{ "a network takes its product, and the gradients agree",
	  a_network_takes_its_product_and_the_gradients_agree },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	fill(a, INPUTS * HIDDEN, 1);
	fill(b, INPUTS * HIDDEN, 2);
	return ut_main("digits: blas", cases);
}
