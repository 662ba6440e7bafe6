/* SPDX-License-Identifier: MIT */
#include "common/digits/product.h"

#include "common/base/assert.h"
#include "common/digits/product_isa.h"

typedef void product_fn(const struct mst_product_of *p);

#define ADD(name, isa) mst_product_add_##isa,
#define DOT(name, isa) mst_product_dot_##isa,

static product_fn *const add_loop[MST_ISA_COUNT] = { MST_ISAS(ADD, product) };
static product_fn *const dot_loop[MST_ISA_COUNT] = { MST_ISAS(DOT, product) };

void mst_product(float *to, struct mst_matrix a, struct mst_matrix b, bool add)
{
	struct mst_product_of p = {
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
		dot_loop[mst_isa()->index](&p);
	else
		add_loop[mst_isa()->index](&p);
}
