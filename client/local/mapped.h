/* SPDX-License-Identifier: MIT */
/* Finds out whether all of some memory is mapped, so that this process may read or write it. Asked
 * before anybody relies on it: a device, or a copy that would end the process. */
#ifndef MST_CLIENT_LOCAL_MAPPED_H
#define MST_CLIENT_LOCAL_MAPPED_H

#include <stddef.h>

#include "common/base/reason.h"

enum mst_mapped_use { MST_MAPPED_FOR_READING, MST_MAPPED_FOR_WRITING };

/* What is wrong with it. */
struct mst_mapped {
	int error;
	struct mst_reason why; /* "the bytes from 0x7f... on are not mapped": a clause */
};

/* May the @bytes at @at be used so? @bytes: at least 1. Touches none of them. Return: 0: they may,
 * or the kernel does not tell; -EINVAL: they reach beyond the end of memory; -EFAULT: not all of
 * them are mapped, or they may not be used so. After an error *out says more. */
int mst_mapped_check(const void *at, size_t bytes, enum mst_mapped_use use, struct mst_mapped *out);

#endif
