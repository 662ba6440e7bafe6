/* SPDX-License-Identifier: MIT */
/*
 * Which kernels are used: an instruction set, and the variant of its loops. Left alone these are
 * the best set that the processor has, and a default variant until mst_kernels_tune() has measured
 * a faster one. The environment variable MUSTER_KERNELS names others, as mst_kernels_select() does;
 * then nothing is measured. None changes a bit of a result.
 */
#ifndef MST_KERNELS_SELECT_H
#define MST_KERNELS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MST_KERNELS_TEXT 96

/* The names of those that run here, best first: "avx512", "avx2", "baseline"; "neon". NULL after
 * the last one. */
const char *mst_kernels_name(size_t index);

/*
 * For tests and benchmarks, while no other thread uses the kernels. @text: the name of an
 * instruction set, or with a variant "avx512:tile=64,lines=1,ahead=0,stream=8M": elements in a
 * tile, 64 to 1024 and a power of two; lines a turn, 1, 2 or 4; bytes asked for ahead, up to 64
 * KiB; from how many bytes on results are written past the caches, or none. What is left out is as
 * in the default. Return: 0; -EINVAL if there is no such thing; -ENOTSUP if this processor does not
 * have it.
 */
int mst_kernels_select(const char *text);

/* What is used, as mst_kernels_select() takes it. */
void mst_kernels_text(char text[MST_KERNELS_TEXT]);

/* Whether a whole vector of @bytes is written past the caches, if nobody reads it at once. */
bool mst_kernels_streams(uint64_t bytes);

#endif
