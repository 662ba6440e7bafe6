/* SPDX-License-Identifier: MIT */
#include "tests/ut.h"

#include <math.h>
#include <string.h>

#include "common/base/rand.h"
#include "common/digits/product.h"

#define SIDE_MAX 40u

static float a[SIDE_MAX * SIDE_MAX], b[SIDE_MAX * SIDE_MAX];

static void fill(void)
{
	struct mst_rand chance;

	mst_rand_seed(&chance, 3);
	for (unsigned i = 0; i < SIDE_MAX * SIDE_MAX; i++) {
		a[i] = (float)mst_rand_normal(&chance);
		b[i] = (float)mst_rand_normal(&chance);
	}
}

static double at(struct mst_matrix m, uint32_t row, uint32_t column)
{
	return (double)(m.transposed ? m.at[column * m.columns + row]
				     : m.at[row * m.columns + column]);
}

/* Holds a product against a sum in double. */
static void hold(uint32_t rows, uint32_t inner, uint32_t columns, unsigned turned, bool add)
{
	struct mst_matrix x = { a, turned == 1 ? inner : rows, turned == 1 ? rows : inner,
				turned == 1 };
	struct mst_matrix y = { b, turned == 2 ? columns : inner, turned == 2 ? inner : columns,
				turned == 2 };
	float to[SIDE_MAX * SIDE_MAX];
	double worst = 0;

	for (unsigned i = 0; i < SIDE_MAX * SIDE_MAX; i++)
		to[i] = 7;
	mst_product(to, x, y, add);
	for (uint32_t row = 0; row < rows; row++) {
		for (uint32_t column = 0; column < columns; column++) {
			double sum = add ? 7 : 0;
			for (uint32_t k = 0; k < inner; k++)
				sum += at(x, row, k) * at(y, k, column);
			worst = fmax(worst, fabs(sum - (double)to[row * columns + column]));
		}
	}
	CU_ASSERT(worst < 2e-5);
	CU_ASSERT_EQUAL(to[rows * columns], 7);
}

static void each_form_is_the_product(void)
{
	const uint32_t side[] = { 1, 3, 4, 16, 17, 39 };

	for (unsigned i = 0; i < 6 * 6 * 6; i++)
		for (unsigned turned = 0; turned < 3; turned++)
			for (int add = 0; add < 2; add++)
				hold(side[i % 6], side[i / 6 % 6], side[i / 36], turned, add != 0);
}

/* Element by element, each sum in the order that product.h states. */
static float in_order(struct mst_matrix x, struct mst_matrix y, uint32_t row, uint32_t column)
{
	uint32_t lanes = y.transposed ? MST_PRODUCT_LANES : 1, inner = x.columns;
	uint32_t whole = inner - inner % lanes;
	float lane[MST_PRODUCT_LANES] = { 0 };

	for (uint32_t k = 0; k < whole; k++)
		lane[k % lanes] += (float)at(x, row, k) * (float)at(y, k, column);
	float sum = lane[0];
	for (uint32_t i = 1; i < lanes; i++)
		sum += lane[i];
	for (uint32_t k = whole; k < inner; k++)
		sum += (float)at(x, row, k) * (float)at(y, k, column);
	return sum;
}

static void sums_are_in_the_order_that_is_stated(void)
{
	struct mst_matrix x = { a, 39, 37, false };
	struct mst_matrix y[2] = { { b, 37, 35, false }, { b, 35, 37, true } };
	float to[39 * 35];

	for (unsigned form = 0; form < 2; form++) {
		mst_product(to, x, y[form], false);
		for (uint32_t i = 0; i < 39 * 35; i++) {
			float sum = in_order(x, y[form], i / 35, i % 35);
			CU_ASSERT_EQUAL(memcmp(&to[i], &sum, sizeof(sum)), 0);
		}
	}
}

static CU_TestInfo cases[] = {
	{ "each form is the product", each_form_is_the_product },
	{ "sums are in the order that is stated, to the bit",
	  sums_are_in_the_order_that_is_stated },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	fill();
	return ut_main("digits: product", cases);
}
