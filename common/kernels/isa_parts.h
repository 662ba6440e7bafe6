/* SPDX-License-Identifier: MIT */
/* What isa.c puts into the table of the instruction set that is being compiled; see isa.h. */
#ifndef MST_KERNELS_ISA_PARTS_H
#define MST_KERNELS_ISA_PARTS_H

#include "common/kernels/isa.h"

void MST_ISA_NAME(mst_accumulate)(const struct mst_sum_step *step, const struct mst_variant *how,
				  float *sum, size_t first, size_t count);
void MST_ISA_NAME(mst_divide)(float *acc, float divisor, size_t count);
void MST_ISA_NAME(mst_blend)(float *average, const float *value, float rest, size_t count);
bool MST_ISA_NAME(mst_store)(void *out, enum muster_type type, const float *acc, size_t count);
bool MST_ISA_NAME(mst_stream)(void *out, enum muster_type type, const float *acc, size_t count);
void MST_ISA_NAME(mst_drain)(void);
bool MST_ISA_NAME(mst_copy)(void *to, const void *from, enum muster_type type, size_t count);
bool MST_ISA_NAME(mst_copy_past)(void *to, const void *from, enum muster_type type, size_t count);
bool MST_ISA_NAME(mst_finite)(const void *from, enum muster_type type, size_t count);
double MST_ISA_NAME(mst_squares)(const float *from, size_t count);
bool MST_ISA_NAME(mst_evict)(const void *from, size_t bytes);

#endif
