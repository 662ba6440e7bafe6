/* SPDX-License-Identifier: MIT */
/*
 * What memory gives at most: streams read side by side by loops that only read, and a stream
 * written past the caches. Compiled for each instruction set of the kernels, so that a sum is held
 * against the best reader of its own kind.
 */
#ifndef MST_TESTS_BENCH_CEILING_H
#define MST_TESTS_BENCH_CEILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CEILING_READS_MAX 20
#define CEILING_STEP_BYTES 128 /* lengths are multiples of it */

struct ceiling {
	unsigned reads;
	const char *read[CEILING_READS_MAX];
	char *written;  /* past the caches; NULL: nothing is */
	char *replaced; /* also one of those that are read; NULL: none */
	bool ahead;     /* asks for what it reads ahead of time */
};

/* Goes through bytes [first, first + bytes) of all streams. Return: something made of them. */
typedef uint64_t ceiling_fn(const struct ceiling *c, size_t first, size_t bytes);

/* By a name of mst_kernels_name(). */
ceiling_fn *ceiling_find(const char *isa);

#endif
