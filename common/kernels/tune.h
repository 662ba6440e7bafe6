/* SPDX-License-Identifier: MIT */
/*
 * Chooses the variant of the kernels by measuring: what one processor gains by takes a quarter from
 * another.
 */
#ifndef MST_KERNELS_TUNE_H
#define MST_KERNELS_TUNE_H

#include <stdint.h>

#include "muster/muster.h"

/*
 * Times commits of @sources vectors of @type on memory that no cache holds, and uses the fastest
 * variant from then on. Variants take turns, and each is judged by its best time; one has to be
 * faster than the default by 3 % to be preferred, so that a busy machine does not choose at random.
 * @bytes: what a commit of the job reads and writes.
 *
 * Where that fits into the last cache, where MUSTER_KERNELS names a variant, and where the
 * processor cannot take memory out of its caches, it does nothing. Call it before a job's threads
 * begin: while no other uses the kernels. It takes about 8 ms on an idle machine, and 2 MiB while
 * it runs; without memory it does nothing. Return: nanoseconds that it took; 0: nothing was
 * measured.
 */
uint64_t mst_kernels_tune(enum muster_type type, enum muster_type result_type, uint32_t sources,
			  uint64_t bytes);

#endif
