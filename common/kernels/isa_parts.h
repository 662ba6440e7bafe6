/* SPDX-License-Identifier: MIT */
/* What isa.c puts into the table of the instruction set that is being compiled; see isa.h. */
#ifndef MST_KERNELS_ISA_PARTS_H
#define MST_KERNELS_ISA_PARTS_H

#include "common/kernels/isa.h"

void MST_ISA_NAME(mst_fold)(const struct mst_fold_step *step, float *sum, size_t first,
			    size_t count);
void MST_ISA_NAME(mst_divide)(float *acc, float divisor, size_t count);
void MST_ISA_NAME(mst_accumulate)(float *m, const float *g, float mu, size_t count);
void MST_ISA_NAME(mst_descend)(float *next, const float *theta, const float *slope, float eta,
			       size_t count);
void MST_ISA_NAME(mst_ascend)(float *next, const float *theta, const float *total, size_t count);
void MST_ISA_NAME(mst_store)(void *out, enum muster_type type, const float *acc, size_t count);
void MST_ISA_NAME(mst_stream)(void *out, enum muster_type type, const float *acc, size_t count);
void MST_ISA_NAME(mst_drain)(void);

#endif
