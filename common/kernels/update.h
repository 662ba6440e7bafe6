/* SPDX-License-Identifier: MIT */
/*
 * The servers' optimisers over one chunk. Each product and sum is rounded to f32, never fused
 * (PROTOCOL 5).
 */
#ifndef MST_KERNELS_UPDATE_H
#define MST_KERNELS_UPDATE_H

#include <stddef.h>

/* m = mu m + g; next = theta - eta m. mu == 0: m is not touched (may be NULL), and
 * next = theta - eta g. next may be theta. */
void mst_update_sgd(float *next, const float *theta, const float *g, float *m, float mu, float eta,
		    size_t count);

/* next = theta + total. next may be theta. */
void mst_update_add(float *next, const float *theta, const float *total, size_t count);

#endif
