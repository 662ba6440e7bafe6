/* SPDX-License-Identifier: MIT */
/* Products by OpenBLAS, where its serial build was there: blas.c, or no_blas.c elsewhere. Here, and
 * not in common/digits, as the programs that are installed link that and need no OpenBLAS. */
#ifndef DIGITS_BLAS_H
#define DIGITS_BLAS_H

#include "common/digits/product.h"

/* A product like mst_product, whose bits depend on the processor; OpenBLAS keeps to the thread that
 * calls it. NULL: not built in. */
mst_product_fn *blas_product(void);

#endif
