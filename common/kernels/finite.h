/* SPDX-License-Identifier: MIT */
/*
 * Looks for elements that are infinite or not a number, at the speed of memory: on the way, where
 * data are copied anyway, or in place.
 */
#ifndef MST_KERNELS_FINITE_H
#define MST_KERNELS_FINITE_H

#include <stdbool.h>
#include <stddef.h>

#include "muster/muster.h"

/*
 * to = from, bit for bit; the two may overlap. Pointers need the alignment of their elements.
 * @streams: written past the caches, which it would only empty: worth it where all that is copied
 *           is much larger than they are.
 * When it returns, other threads that are told may read the copy. Does not allocate. Return:
 * whether all elements are finite. All of them have been copied either way.
 */
bool mst_copy_finite(void *to, const void *from, enum muster_type type, size_t count, bool streams);

/* Return: the index of the first element that is infinite or NaN; count: all are finite. Reads
 * each element once, and stops at the end of the 16 KiB that hold the element it returns. */
size_t mst_first_nonfinite(const void *from, enum muster_type type, size_t count);

#endif
