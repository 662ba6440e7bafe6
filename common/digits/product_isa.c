/* SPDX-License-Identifier: MIT */
#include "common/digits/product_isa.h"

#include <string.h>

#define LANES 16u
#define ROWS 4u /* of b that are gone through together */

/* LANES sums that go on side by side: of the elements k with the same k % LANES. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* ---- sums of rows ---- */

/* to[i] = (((to[i] + c[0] row 0) + c[1] row 1) + ...), ROWS rows that lie one behind the other. */
static void add_rows(float *restrict to, const float *restrict row, const float *restrict c,
		     uint32_t width)
{
	const float *row1 = row + width, *row2 = row1 + width, *row3 = row2 + width;

	for (uint32_t i = 0; i < width; i++) {
		float sum = to[i] + c[0] * row[i];

		sum = sum + c[1] * row1[i];
		sum = sum + c[2] * row2[i];
		to[i] = sum + c[3] * row3[i];
	}
}

static void add_row(float *restrict to, const float *restrict row, float c, uint32_t width)
{
	for (uint32_t i = 0; i < width; i++)
		to[i] = to[i] + c * row[i];
}

void MST_ISA_NAME(mst_product_add)(const struct mst_product_of *p)
{
	for (uint32_t r = 0; r < p->rows; r++) {
		float *to = p->to + (uint64_t)r * p->columns;
		const float *a = p->a + r * p->a_row, *b = p->b;
		uint32_t k = 0;

		if (!p->add)
			memset(to, 0, p->columns * sizeof(float));
		for (; k + ROWS <= p->inner; k += ROWS, b += (uint64_t)ROWS * p->columns) {
			float c[ROWS];
			for (uint32_t i = 0; i < ROWS; i++)
				c[i] = a[(k + i) * p->a_inner];
			add_rows(to, b, c, p->columns);
		}
		for (; k < p->inner; k++, b += p->columns)
			add_row(to, b, a[k * p->a_inner], p->columns);
	}
}

/* ---- products of rows ---- */

static float total(const float *lane, const float *a, const float *b, uint32_t rest)
{
	float sum = lane[0];

	for (uint32_t i = 1; i < LANES; i++)
		sum += lane[i];
	for (uint32_t i = 0; i < rest; i++)
		sum += a[i] * b[i];
	return sum;
}

/* The products of a with ROWS rows of b, which lie one behind the other. */
static void dot_rows(const float *a, const float *b, uint32_t width, float *product)
{
	lanes sum[ROWS] = { { 0 } };
	uint32_t k = 0;

	for (; k + LANES <= width; k += LANES) {
		lanes of_a = *(const lanes *)(a + k);
		for (uint32_t i = 0; i < ROWS; i++)
			sum[i] += of_a * *(const lanes *)(b + (uint64_t)i * width + k);
	}
	for (uint32_t i = 0; i < ROWS; i++)
		product[i] = total((const float *)&sum[i], a + k, b + (uint64_t)i * width + k,
				   width - k);
}

static float dot_row(const float *a, const float *b, uint32_t width)
{
	lanes sum = { 0 };
	uint32_t k = 0;

	for (; k + LANES <= width; k += LANES)
		sum += *(const lanes *)(a + k) * *(const lanes *)(b + k);
	return total((const float *)&sum, a + k, b + k, width - k);
}

static void store(float *to, const float *product, uint32_t count, bool add)
{
	for (uint32_t i = 0; i < count; i++)
		to[i] = add ? to[i] + product[i] : product[i];
}

void MST_ISA_NAME(mst_product_dot)(const struct mst_product_of *p)
{
	for (uint32_t r = 0; r < p->rows; r++) {
		float *to = p->to + (uint64_t)r * p->columns;
		const float *a = p->a + r * p->a_row, *b = p->b;
		float product[ROWS];
		uint32_t c = 0;

		for (; c + ROWS <= p->columns; c += ROWS, b += (uint64_t)ROWS * p->inner) {
			dot_rows(a, b, p->inner, product);
			store(to + c, product, ROWS, p->add);
		}
		for (; c < p->columns; c++, b += p->inner) {
			product[0] = dot_row(a, b, p->inner);
			store(to + c, product, 1, p->add);
		}
	}
}
