/* SPDX-License-Identifier: MIT */
/* The calls of blas.h in a build without OpenBLAS. */
#include "client/examples/digits/blas.h"

#include <stddef.h>

mst_product_fn *blas_product(void)
{
	return NULL;
}
