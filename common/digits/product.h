/* SPDX-License-Identifier: MIT */
/*
 * Products of matrices of f32, for a network that is small. Every sum is taken in an order that
 * depends on the extents alone, and nothing is fused, so that each processor gives the same bits:
 * what is learnt can be repeated elsewhere.
 */
#ifndef MST_DIGITS_PRODUCT_H
#define MST_DIGITS_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* A matrix as it lies in memory, row by row, and whether its transpose is meant. */
struct mst_matrix {
	const float *at;
	uint32_t rows, columns;
	bool transposed;
};

/* to = a b, or with @add to += a b. Only one of the two may be transposed. @to overlaps neither. */
typedef void mst_product_fn(float *to, struct mst_matrix a, struct mst_matrix b, bool add);

/* In plain C. The order of a sum: where b is not transposed, what @to has (or 0) and then the
 * products in turn. Where it is, MST_PRODUCT_LANES sums side by side, of the products whose numbers
 * have the same remainder; then these sums in turn, the last products that do not fill all lanes,
 * and @to. */
#define MST_PRODUCT_LANES 16u
mst_product_fn mst_product;

#endif
