/* SPDX-License-Identifier: MIT */
/* The arithmetic of a commit, one operation at a time. */
#include "common/kernels/sum.h"

#include "common/kernels/isa.h"

size_t mst_type_bytes(enum muster_type type)
{
	return type == MUSTER_F32 ? sizeof(float) : sizeof(uint16_t);
}

static void accumulate_one(float *sum, const struct mst_sum_step *step, size_t count)
{
	if (count > 0)
		mst_isa()->accumulate(step, mst_variant(), sum, 0, count);
}

void mst_sum_first(float *out, const void *g, enum muster_type type, float c, size_t count)
{
	struct mst_sum_step step = {
		.type = type, .scaled = c != 1.0f, .count = 1, .source = { g }, .coefficient = { c }
	};

	accumulate_one(out, &step, count);
}

void mst_sum_add(float *acc, const void *g, enum muster_type type, float c, size_t count)
{
	struct mst_sum_step step = { .type = type,
				     .begun = true,
				     .scaled = c != 1.0f,
				     .count = 1,
				     .source = { g },
				     .coefficient = { c } };

	accumulate_one(acc, &step, count);
}

void mst_sum_join(float *acc, const float *part, size_t count)
{
	mst_sum_add(acc, part, MUSTER_F32, 1.0f, count);
}

void mst_sum_load(float *out, const void *in, enum muster_type type, size_t count)
{
	mst_sum_first(out, in, type, 1.0f, count);
}

void mst_sum_divide(float *acc, float divisor, size_t count)
{
	if (divisor != 1.0f)
		mst_isa()->divide(acc, divisor, count);
}

void mst_sum_store(void *out, enum muster_type type, const float *acc, size_t count)
{
	mst_isa()->store(out, type, acc, count);
}
