/* SPDX-License-Identifier: MIT */
/*
 * Products of matrices of f32, for a network that is small. Every sum is taken in an order that
 * depends on the extents alone, and nothing is fused, so that each instruction set gives the same
 * bits: what is learnt can be repeated on another processor.
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
void mst_product(float *to, struct mst_matrix a, struct mst_matrix b, bool add);

#endif
