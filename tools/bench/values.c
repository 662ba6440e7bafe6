/* SPDX-License-Identifier: MIT */
#include "tools/bench/values.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/kernels/element.h"
#include "common/kernels/sum.h"

#define PERIOD MST_BENCH_PERIOD
#define A_RANGE 32u /* a lies in [-16, 16) */
#define KINDS_MAX 251u

/* Up to here every whole number is a number of the type. */
static uint32_t whole_max(enum muster_type type)
{
	if (type == MUSTER_F32)
		return 1u << 24;
	return type == MUSTER_F16 ? 1u << 11 : 1u << 8;
}

void mst_bench_values_init(struct mst_bench_values *v, enum muster_type type,
			   enum muster_owner owner, uint32_t quorum)
{
	uint32_t unit = owner == MUSTER_SERVERS_OWN ? quorum : 1;
	uint32_t kinds = (whole_max(type) - A_RANGE / 2) / unit + 1;

	*v = (struct mst_bench_values){
		.type = type,
		.owner = owner,
		.unit = unit,
		.kinds = kinds < KINDS_MAX ? kinds : KINDS_MAX,
	};
}

/* Any two numbers give one that looks like neither (the finish of MurmurHash3). */
static uint32_t mix(uint32_t x, uint32_t y)
{
	uint32_t z = x * 0x9e3779b9u + y * 0x85ebca6bu;

	z = (z ^ z >> 16) * 0x85ebca6bu;
	z = (z ^ z >> 13) * 0xc2b2ae35u;
	return z ^ z >> 16;
}

static int32_t a_of(uint32_t pair, uint32_t i)
{
	return (int32_t)(mix(pair, i) % A_RANGE) - (int32_t)(A_RANGE / 2);
}

static int32_t b_of(const struct mst_bench_values *v, uint32_t pair, uint32_t rank)
{
	return (int32_t)(v->unit * ((rank + mix(pair, UINT32_MAX) % v->kinds) % v->kinds));
}

static int32_t sign_of(uint64_t version)
{
	return version % 2 == 0 ? 1 : -1;
}

/* The pattern is compared byte by byte, so it is never longer than what it is compared with. */
static size_t pattern_len(uint64_t count)
{
	return count < PERIOD ? (size_t)count : PERIOD;
}

/* By the plain way, not the one that is measured. */
static void narrow(void *out, enum muster_type type, const float *wide, size_t count)
{
	uint16_t *half = out;

	for (size_t i = 0; i < count; i++) {
		if (type == MUSTER_F32)
			((float *)out)[i] = wide[i];
		else
			half[i] = type == MUSTER_BF16 ? mst_element_to_bf16(wide[i])
						      : mst_element_to_f16(wide[i]);
	}
}

void mst_bench_fill(const struct mst_bench_values *v, uint32_t rank, uint64_t version, void *out,
		    uint64_t count)
{
	float wide[PERIOD] = { 0 }, pattern[PERIOD];
	size_t len = pattern_len(count), each = mst_type_bytes(v->type);
	uint32_t pair = (uint32_t)(version / 2);
	int32_t b = b_of(v, pair, rank), sign = sign_of(version);

	for (uint32_t i = 0; i < len; i++)
		wide[i] = (float)(sign * (a_of(pair, i) + b));
	narrow(pattern, v->type, wide, len);
	for (uint64_t done = 0; done < count; done += len) {
		uint64_t left = count - done;

		memcpy((char *)out + done * each, pattern, (left < len ? left : len) * each);
	}
}

/* The sum of what the set pushed on the version before. */
static int64_t sum_of_b(const struct mst_bench_values *v, const struct mst_bench_expected *expected)
{
	uint32_t pair = (uint32_t)((expected->version - 1) / 2);
	int64_t sum = 0;

	for (uint32_t i = 0; i < expected->set_len; i++)
		sum += (int64_t)b_of(v, pair, expected->set[i].rank) * expected->set[i].count;
	return sum;
}

static uint32_t contributions(const struct mst_bench_expected *expected)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < expected->set_len; i++)
		count += expected->set[i].count;
	return count;
}

int64_t mst_bench_drift(const struct mst_bench_values *v, const struct mst_bench_expected *expected)
{
	if (expected->version == 0 || expected->set_len == 0)
		return 0;
	return sign_of(expected->version - 1) * sum_of_b(v, expected) / contributions(expected);
}

/* Workers own: the mean of what was pushed on the version before. */
static void expect_mean(const struct mst_bench_values *v, const struct mst_bench_expected *expected,
			float *out, size_t len)
{
	uint64_t before = expected->version - 1;
	uint32_t pair = (uint32_t)(before / 2), n = contributions(expected);
	int64_t b = sum_of_b(v, expected);

	for (uint32_t i = 0; i < len; i++) {
		int64_t sum = sign_of(before) * ((int64_t)n * a_of(pair, i) + b);

		out[i] = (float)sum / (float)n;
	}
}

/* Servers own: where all steps so far have led to. */
static void expect_state(const struct mst_bench_expected *expected, float *out, size_t len)
{
	bool half = expected->version % 2 == 1; /* way through a pair */
	uint32_t pair = (uint32_t)((expected->version - half) / 2);

	for (uint32_t i = 0; i < len; i++)
		out[i] = (float)(-(half ? a_of(pair, i) : 0) - expected->drift);
}

static uint64_t count_wrong(const char *want, const char *have, size_t count, size_t each)
{
	uint64_t wrong = 0;

	if (memcmp(want, have, count * each) == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		wrong += memcmp(want + i * each, have + i * each, each) != 0;
	return wrong;
}

uint64_t mst_bench_wrong(const struct mst_bench_values *v,
			 const struct mst_bench_expected *expected, const void *result,
			 uint64_t count)
{
	float wide[PERIOD] = { 0 }, pattern[PERIOD];
	size_t len = pattern_len(count), each = mst_type_bytes(v->type);
	uint64_t wrong = 0;

	if (v->owner == MUSTER_SERVERS_OWN)
		expect_state(expected, wide, len);
	else if (expected->set_len > 0)
		expect_mean(v, expected, wide, len);
	else
		return count; /* a mean of nobody */
	narrow(pattern, v->type, wide, len);
	for (uint64_t done = 0; done < count; done += len) {
		uint64_t left = count - done;

		wrong += count_wrong((const char *)pattern, (const char *)result + done * each,
				     left < len ? (size_t)left : len, each);
	}
	return wrong;
}
