/* SPDX-License-Identifier: MIT */
/*
 * What memory gives at most: streams read side by side by loops that only read, and a stream that
 * is written. Compiled for each instruction set of the kernels, so that a sum is held against the
 * best reader of its own kind, and in the variants that the kernels have: which of them is the best
 * differs between processors just as much.
 */
#ifndef MST_TESTS_BENCH_CEILING_H
#define MST_TESTS_BENCH_CEILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CEILING_READS_MAX 20
#define CEILING_REPLACED_MAX 4
#define CEILING_STEP_BYTES 256 /* lengths are multiples of it */

struct ceiling_variant {
	unsigned lines; /* of each stream in turn: 1, 2, 4 */
	unsigned ahead; /* bytes by which they are asked for early; 0: they are not */
	bool past;      /* written past the caches */
};

/* The best of them is the ceiling. */
#define CEILING_VARIANTS 12
extern const struct ceiling_variant ceiling_variants[CEILING_VARIANTS];

struct ceiling {
	unsigned reads;
	const char *read[CEILING_READS_MAX];
	char *written; /* NULL: nothing is */
	unsigned replaces;
	char *replaced[CEILING_REPLACED_MAX]; /* also some of those that are read */
	const struct ceiling_variant *how;
};

/* Goes through bytes [first, first + bytes) of all streams. Return: something made of them. */
typedef uint64_t ceiling_fn(const struct ceiling *c, size_t first, size_t bytes);

/* By a name of mst_kernels_name(). */
ceiling_fn *ceiling_find(const char *isa);

#endif
