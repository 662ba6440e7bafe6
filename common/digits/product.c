/* SPDX-License-Identifier: MIT */
/*
 * Written once, for all processors. The compiler uses the vectors that each of them has, but
 * changes no sum: it may neither fuse (-ffp-contract=off, cmake/muster.cmake) nor reorder.
 */
#include "common/digits/product.h"

#include <string.h>

#include "common/base/assert.h"

/* Rows of b that are gone through together; they change no sum. More would not fit in registers. */
#define ADD_ROWS 4u
#define DOT_ROWS 2u

/* gcc keeps vectors that are longer than the processor's in memory, so the lanes are in fours. */
typedef float four __attribute__((vector_size(4 * sizeof(float)), aligned(4), may_alias));
#define LANES MST_PRODUCT_LANES
#define FOURS (LANES / 4)

/* to[rows][columns] = [to +] the sum over inner of a(row, k) b(k, column). */
struct product_of {
	float *to;
	const float *a, *b;
	uint32_t rows, inner, columns;
	uint64_t a_row, a_inner; /* elements from one to the next of a */
	bool add;
};

/* ---- sums of rows: b is [inner][columns] ---- */

/* to[i] = (((to[i] + c[0] row 0) + c[1] row 1) + ...); the rows lie one after the other. */
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

static void add_all(const struct product_of *p)
{
	for (uint32_t r = 0; r < p->rows; r++) {
		float *to = p->to + (uint64_t)r * p->columns;
		const float *a = p->a + r * p->a_row, *b = p->b;
		uint32_t k = 0;

		if (!p->add)
			memset(to, 0, p->columns * sizeof(float));
		for (; k + ADD_ROWS <= p->inner;
		     k += ADD_ROWS, b += (uint64_t)ADD_ROWS * p->columns) {
			float c[ADD_ROWS];
			for (uint32_t i = 0; i < ADD_ROWS; i++)
				c[i] = a[(k + i) * p->a_inner];
			add_rows(to, b, c, p->columns);
		}
		for (; k < p->inner; k++, b += p->columns)
			add_row(to, b, a[k * p->a_inner], p->columns);
	}
}

/* ---- products of rows: b is [columns][inner], and a is [rows][inner] ---- */

static float total(const float *lane, const float *a, const float *b, uint32_t rest)
{
	float sum = lane[0];

	for (uint32_t i = 1; i < LANES; i++)
		sum += lane[i];
	for (uint32_t i = 0; i < rest; i++)
		sum += a[i] * b[i];
	return sum;
}

/* The products of a with DOT_ROWS rows of b, which lie one after the other. */
static void dot_rows(const float *a, const float *b, uint32_t width, float *product)
{
	four sum[DOT_ROWS][FOURS] = { { { 0 } } };
	uint32_t k = 0;

	for (; k + LANES <= width; k += LANES) {
		for (uint32_t i = 0; i < FOURS; i++) {
			four of_a = *(const four *)(a + k + 4 * i);
			for (uint32_t row = 0; row < DOT_ROWS; row++) {
				const float *of_b = b + (uint64_t)row * width + k + 4 * i;
				sum[row][i] += of_a * *(const four *)of_b;
			}
		}
	}
	for (uint32_t row = 0; row < DOT_ROWS; row++)
		product[row] = total((const float *)sum[row], a + k, b + (uint64_t)row * width + k,
				     width - k);
}

static float dot_row(const float *a, const float *b, uint32_t width)
{
	four sum[FOURS] = { { 0 } };
	uint32_t k = 0;

	for (; k + LANES <= width; k += LANES)
		for (uint32_t i = 0; i < FOURS; i++)
			sum[i] += *(const four *)(a + k + 4 * i) * *(const four *)(b + k + 4 * i);
	return total((const float *)sum, a + k, b + k, width - k);
}

static void store(float *to, const float *product, uint32_t count, bool add)
{
	for (uint32_t i = 0; i < count; i++)
		to[i] = add ? to[i] + product[i] : product[i];
}

static void dot_all(const struct product_of *p)
{
	for (uint32_t r = 0; r < p->rows; r++) {
		float *to = p->to + (uint64_t)r * p->columns;
		const float *a = p->a + r * p->a_row, *b = p->b;
		float product[DOT_ROWS];
		uint32_t c = 0;

		for (; c + DOT_ROWS <= p->columns;
		     c += DOT_ROWS, b += (uint64_t)DOT_ROWS * p->inner) {
			dot_rows(a, b, p->inner, product);
			store(to + c, product, DOT_ROWS, p->add);
		}
		for (; c < p->columns; c++, b += p->inner) {
			product[0] = dot_row(a, b, p->inner);
			store(to + c, product, 1, p->add);
		}
	}
}

void mst_product(float *to, struct mst_matrix a, struct mst_matrix b, bool add)
{
	struct product_of p = {
		.to = to,
		.a = a.at,
		.b = b.at,
		.rows = a.transposed ? a.columns : a.rows,
		.inner = a.transposed ? a.rows : a.columns,
		.columns = b.transposed ? b.rows : b.columns,
		.a_row = a.transposed ? 1 : a.columns,
		.a_inner = a.transposed ? a.columns : 1,
		.add = add,
	};

	MST_ASSERT(p.inner == (b.transposed ? b.columns : b.rows));
	MST_ASSERT(!(a.transposed && b.transposed));
	if (b.transposed)
		dot_all(&p);
	else
		add_all(&p);
}
