/* SPDX-License-Identifier: MIT */
/*
 * Structs of the public header that begin with their size, so that they may grow: the options, a
 * contribution, the hooks, an outcome. A program may have been compiled with an older header than
 * the library, or with a newer one.
 *
 * A change that lets such a struct grow appends the new fields after all of its old bytes, padding
 * included, gives each field a default of zero that means what the library did before, and leaves
 * no padding at the new end.
 */
#ifndef MST_CLIENT_LOCAL_SIZED_H
#define MST_CLIENT_LOCAL_SIZED_H

#include <stddef.h>

#include "common/base/reason.h"

/* Larger than any of these structs will be: a size beyond it is memory that nobody has set. */
#define MST_SIZED_MAX 4096u

struct mst_sized {
	const char *name;    /* of the argument, for sentences: "options" */
	const char *initial; /* the macro that sets the size: "MUSTER_OPTIONS" */
	size_t bytes;        /* of the struct as this library knows it */
};

/* Can this library deal with the size that @theirs begins with? Return: 0; -EINVAL: no, and @why
 * has a sentence. */
int mst_sized_check(const struct mst_sized *s, const void *theirs, struct mst_reason *why);

/* Reads a struct of the caller's. @ours: holds the defaults before, and keeps those of the fields
 * that the caller's struct lacks; its size is always that of this library. -EINVAL also where
 * fields that this library does not know are set. */
int mst_sized_read(const struct mst_sized *s, const void *theirs, void *ours,
		   struct mst_reason *why);

/* Writes a struct of ours to the caller, whose size has been checked and stays: as much as there is
 * space for; fields that this library does not know become zero. */
void mst_sized_write(const struct mst_sized *s, const void *ours, void *theirs);

#endif
