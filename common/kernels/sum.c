/* SPDX-License-Identifier: MIT */
/*
 * Adds gradients up: once for each element of each gradient of a commit, so these loops are the
 * largest cost of a server. No loop carries anything from one element to the next, and what one
 * writes no other pointer of it reaches; so they vectorise without a change of bits.
 *
 * -0.0 and payloads of NaN pass as the processor hands them on; mst_sum_store() settles the latter.
 */
#include "common/kernels/sum.h"

#include "common/kernels/exact.h"

/* 16-bit gradients are widened so many elements at a time, into a buffer that stays in the first
 * cache, and are added from there. */
#define WIDE_ELEMS 256

static void scale(float *acc, float c, size_t count)
{
	for (size_t i = 0; i < count; i++)
		acc[i] *= c;
}

static void add(float *restrict acc, const float *restrict g, size_t count)
{
	for (size_t i = 0; i < count; i++)
		acc[i] += g[i];
}

static void add_scaled(float *restrict acc, const float *restrict g, float c, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float leaf = c * g[i];

		acc[i] += leaf;
	}
}

static void add_leaf(float *restrict acc, const float *restrict g, float c, size_t count)
{
	if (c == 1.0f)
		add(acc, g, count);
	else
		add_scaled(acc, g, c, count);
}

static void add_leaf_16bit(float *restrict acc, const uint16_t *restrict g, enum muster_type type,
			   float c, size_t count)
{
	float wide[WIDE_ELEMS];

	for (size_t done = 0, part; done < count; done += part) {
		part = count - done < WIDE_ELEMS ? count - done : WIDE_ELEMS;
		mst_sum_load(wide, g + done, type, part);
		add_leaf(acc + done, wide, c, part);
	}
}

void mst_sum_first(float *out, const void *g, enum muster_type type, float c, size_t count)
{
	mst_sum_load(out, g, type, count);
	if (c != 1.0f)
		scale(out, c, count);
}

void mst_sum_add(float *acc, const void *g, enum muster_type type, float c, size_t count)
{
	if (type == MUSTER_F32)
		add_leaf(acc, g, c, count);
	else
		add_leaf_16bit(acc, g, type, c, count);
}

void mst_sum_join(float *acc, const float *part, size_t count)
{
	add(acc, part, count);
}

/* Divides; a multiplication by the reciprocal would round twice. */
void mst_sum_divide(float *acc, float divisor, size_t count)
{
	if (divisor == 1.0f)
		return;
	for (size_t i = 0; i < count; i++)
		acc[i] /= divisor;
}
