/* SPDX-License-Identifier: MIT */
/* The table of one instruction set; see isa.h. */
#include "common/kernels/isa_parts.h"

#define TEXT(word) #word
#define TEXT_OF(macro) TEXT(macro)

const struct mst_isa MST_ISA_NAME(mst_isa) = {
	.name = TEXT_OF(MST_ISA),
	.index = MST_ISA_NAME(MST_ISA_INDEX),
	.accumulate = MST_ISA_NAME(mst_accumulate),
	.divide = MST_ISA_NAME(mst_divide),
	.blend = MST_ISA_NAME(mst_blend),
	.store = MST_ISA_NAME(mst_store),
	.stream = MST_ISA_NAME(mst_stream),
	.drain = MST_ISA_NAME(mst_drain),
	.copy = MST_ISA_NAME(mst_copy),
	.copy_past = MST_ISA_NAME(mst_copy_past),
	.finite = MST_ISA_NAME(mst_finite),
	.squares = MST_ISA_NAME(mst_squares),
	.evict = MST_ISA_NAME(mst_evict),
};
