/* SPDX-License-Identifier: MIT */
#include "client/examples/digits/blas.h"

#include <cblas.h>

#include "common/base/assert.h"

static enum CBLAS_TRANSPOSE turned(struct mst_matrix m)
{
	return m.transposed ? CblasTrans : CblasNoTrans;
}

/* With a factor of 0 for what @to has, it is not read. */
static void multiply(float *to, struct mst_matrix a, struct mst_matrix b, bool add)
{
	uint32_t rows = a.transposed ? a.columns : a.rows;
	uint32_t inner = a.transposed ? a.rows : a.columns;
	uint32_t columns = b.transposed ? b.rows : b.columns;

	MST_ASSERT(inner == (b.transposed ? b.columns : b.rows));
	cblas_sgemm(CblasRowMajor, turned(a), turned(b), (blasint)rows, (blasint)columns,
		    (blasint)inner, 1, a.at, (blasint)a.columns, b.at, (blasint)b.columns,
		    add ? 1 : 0, to, (blasint)columns);
}

/* A job has a worker for each processor, more or less, so threads of OpenBLAS' own would be in each
 * other's way. Its serial build has none; but which build is loaded is the host's choice. */
mst_product_fn *blas_product(void)
{
	openblas_set_num_threads(1);
	return multiply;
}
