/* SPDX-License-Identifier: MIT */
/*
 * Which instruction set the kernels use. Left alone they take the best one that the processor has,
 * or the one named in the environment variable MUSTER_KERNELS. None changes a bit of a result.
 */
#ifndef MST_KERNELS_SELECT_H
#define MST_KERNELS_SELECT_H

#include <stddef.h>

/* The names of those that run here, best first: "avx512", "avx2", "baseline"; "neon". NULL behind
 * the last one. */
const char *mst_kernels_name(size_t index);

/* For tests and benchmarks, while no other thread uses the kernels. Return: 0; -EINVAL if there is
 * none of this name; -ENOTSUP if this processor does not have it. */
int mst_kernels_select(const char *name);

#endif
