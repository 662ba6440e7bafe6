/* SPDX-License-Identifier: MIT */
/* May this process write all of some memory? Asked before anybody relies on it: a device, or a copy
 * that would end the process. */
#ifndef MST_CLIENT_WRITABLE_H
#define MST_CLIENT_WRITABLE_H

#include <stddef.h>

/* What is wrong with it. */
struct mst_writable {
	int error;
	char why[160]; /* "the bytes from 0x7f... on are not mapped": the end of a sentence */
};

/* 0; -EINVAL it reaches beyond the end of memory; -EFAULT not all of it is mapped, or may be
 * written; both with *out. @bytes: 1 at least. 0, too, where the kernel does not tell. Writes
 * nothing there. */
int mst_writable_check(const void *at, size_t bytes, struct mst_writable *out);

#endif
