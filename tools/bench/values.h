/* SPDX-License-Identifier: MIT */
/*
 * The values that workers of a benchmark push, and the results that must follow, to the bit. Pure.
 *
 * A gradient differs by rank, by version and by element. It repeats itself after PERIOD elements,
 * a prime, so that no range that is displaced by pages or chunks looks right, and so that filling
 * and checking take little more than touching the memory.
 *
 *	g(rank, version, i) = sign (a(pair, i) + b(pair, rank)),  pair = version / 2,
 *	                      sign = + for even versions, - for odd ones
 *
 * All are whole numbers that every type holds, so sums are exact in any order, and what is expected
 * does not come from the kernels that are measured. Where the servers own, they run sgd with lr 1
 * and no momentum, from zero: the a's of a pair cancel out, and what the b's add up to depends on
 * the sets that were committed but not on i. It is called the drift. There b is a multiple of the
 * quorum, so that a mean is a whole number, too.
 *
 * In bf16 there is not room for many different b's: with many workers some ranks push the same.
 */
#ifndef MST_TOOLS_BENCH_VALUES_H
#define MST_TOOLS_BENCH_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "muster/muster.h"

#define MST_BENCH_PERIOD 4093u

struct mst_bench_values {
	enum muster_type type;
	enum muster_owner owner;
	uint32_t unit;  /* b is a multiple of it */
	uint32_t kinds; /* of b */
};

/* @quorum: contributions in a version. */
void mst_bench_values_init(struct mst_bench_values *v, enum muster_type type,
			   enum muster_owner owner, uint32_t quorum);

/* What rank @rank pushes on @version: type[count] to @out. */
void mst_bench_fill(const struct mst_bench_values *v, uint32_t rank, uint64_t version, void *out,
		    uint64_t count);

/* What a version has to be. */
struct mst_bench_expected {
	uint64_t version;
	const struct muster_share *set; /* who is in it; of version 0 there is nobody */
	uint32_t set_len;
	int64_t drift; /* servers own: of this version */
};

/* By how much the commit of @expected->version by its set moves the drift. */
int64_t mst_bench_drift(const struct mst_bench_values *v,
			const struct mst_bench_expected *expected);

/* Return: how many of @result[0..count) are not as expected, to the bit. */
uint64_t mst_bench_wrong(const struct mst_bench_values *v,
			 const struct mst_bench_expected *expected, const void *result,
			 uint64_t count);

#endif
