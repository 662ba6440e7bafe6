/* SPDX-License-Identifier: MIT */
/* The loops of a product, once for each instruction set: MST_ISA is its name. */
#ifndef MST_DIGITS_PRODUCT_ISA_H
#define MST_DIGITS_PRODUCT_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include "common/kernels/isa.h"

/* to[rows][columns] = [to +] the sum over inner of a(row, k) b(k, column). */
struct mst_product_of {
	float *to;
	const float *a, *b;
	uint32_t rows, inner, columns;
	uint64_t a_row, a_inner; /* elements from one to the next of a */
	bool add;
};

/* add: b is [inner][columns]; dot: b is [columns][inner], and a is [rows][inner]. */
#define MST_PRODUCT_LOOPS(name, isa)                                                               \
	void mst_product_add_##isa(const struct mst_product_of *p);                                \
	void mst_product_dot_##isa(const struct mst_product_of *p);
MST_ISAS(MST_PRODUCT_LOOPS, product)

#endif
