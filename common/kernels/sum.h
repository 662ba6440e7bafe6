/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of a commit, to the bit (PROTOCOL 5). Free functions over one chunk; no state.
 *
 * Partial sums are f32. A leaf is c x g rounded to f32 (no multiplication iff c == 1), then added;
 * never a fused multiply-add, never flushed to zero. 16-bit inputs are widened exactly. Pointers of
 * one call do not overlap unless said; lengths are elements and may be 0.
 */
#ifndef MST_KERNELS_SUM_H
#define MST_KERNELS_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "muster/muster.h"

size_t mst_type_bytes(enum muster_type type);

/* out[i] = leaf(c, g[i]) */
void mst_sum_first(float *out, const void *g, enum muster_type type, float c, size_t count);
/* acc[i] = acc[i] + leaf(c, g[i]) */
void mst_sum_add(float *acc, const void *g, enum muster_type type, float c, size_t count);
/* acc[i] = acc[i] + part[i] */
void mst_sum_join(float *acc, const float *part, size_t count);
/* acc[i] = acc[i] / divisor; nothing iff divisor == 1 */
void mst_sum_divide(float *acc, float divisor, size_t count);

/* out[i] = acc[i] rounded once, to nearest even, to `type`; a NaN becomes the canonical quiet NaN.
 * out may be acc where type is f32. */
void mst_sum_store(void *out, enum muster_type type, const float *acc, size_t count);
/* out[i] = in[i] widened exactly to f32. */
void mst_sum_load(float *out, const void *in, enum muster_type type, size_t count);

#endif
