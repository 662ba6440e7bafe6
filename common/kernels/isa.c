/* SPDX-License-Identifier: MIT */
/* The table of one instruction set; see isa.h. */
#include "common/kernels/isa_parts.h"

#define TEXT(word) #word
#define TEXT_OF(macro) TEXT(macro)

const struct mst_isa MST_ISA_NAME(mst_isa) = {
	.name = TEXT_OF(MST_ISA),
	.fold = MST_ISA_NAME(mst_fold),
	.divide = MST_ISA_NAME(mst_divide),
	.accumulate = MST_ISA_NAME(mst_accumulate),
	.descend = MST_ISA_NAME(mst_descend),
	.ascend = MST_ISA_NAME(mst_ascend),
	.store = MST_ISA_NAME(mst_store),
	.stream = MST_ISA_NAME(mst_stream),
	.drain = MST_ISA_NAME(mst_drain),
};
