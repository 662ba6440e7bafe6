/* SPDX-License-Identifier: MIT */
/*
 * What a commit computes, from the gradients in the slots to the bytes of the version, in one pass
 * over memory. It is the tree sum, the division, the optimiser's step where servers own the
 * parameters, and the rounding to the result's type (PROTOCOL 5). To the bit it is what the
 * functions of sum.h and tree.h and the optimiser's kernel give one after the other; the payload of
 * a NaN that stays in a state, or in a `next` that is not the result, is the processor's.
 */
#ifndef MST_KERNELS_COMMIT_H
#define MST_KERNELS_COMMIT_H

#include <stddef.h>

#include "common/kernels/apply.h"
#include "common/kernels/tree.h"

/* Pointers are to whole ranges: [first, first + count) is cut by the call. */
struct mst_commit {
	struct mst_tree tree;
	float divisor; /* 1: nothing is divided */
	enum muster_type result_type;
	void *out; /* result_type[]; apart from all leaves */
	/* The result is written past the caches, which it would only empty: worth it where it is
	 * much larger than they are. Best with `out` at the start of a cache line. */
	bool streams;
	/* The optimiser's kernel, by instruction set; NULL: the version is the mean itself, and
	 * what follows is not read. */
	mst_apply_fn *const *apply;
	/* Parameters of the version before, and of this one. Where results have 16 bits, both may
	 * be the same memory; else next is `out`. */
	const float *theta;
	float *next;
	float *state[MST_STATES_MAX]; /* after the version; NULL: not kept */
	/* The states before it, where they are to stay as they are; NULL: `state` has them. */
	const float *before[MST_STATES_MAX];
	struct mst_figures figures;
	/* A moving average of the parameters, after the version; NULL: none is kept, and what
	 * follows is not read. It is rest x average + (1 - rest) x parameters, each rounded. */
	float *average;
	const float *average_before; /* as `before` */
	float average_rest;          /* what is left of the average before: from 0 to 1 */
	/* Tensors have scales of their own: `scales` of them, in order, the last one ends where the
	 * vector ends, or beyond it. Each product is rounded to f32. NULL: there are none, and what
	 * follows is not read. */
	const struct mst_scale *scale;
	size_t scales;
	unsigned decay; /* the parameter that is the weight decay */
};

/* Elements [first, first + count) of the version; when it returns, other threads that are told may
 * read them. Any threads may do parts that do not overlap. Does not allocate; uses 28 KiB of
 * stack. Return: whether all that these elements became is finite: the result in its type, the
 * parameters and the states. All of it has been written either way. */
bool mst_commit_range(const struct mst_commit *commit, size_t first, size_t count);

#endif
