/* SPDX-License-Identifier: MIT */
/*
 * Limits of this process that a file, a mapping or a thread may meet, for sentences: which limit it
 * is, its value, what is needed, and what to do. Descriptors, locked memory, and how many tasks
 * there may be, have files of their own beside this one.
 */
#ifndef MST_HOST_LIMITS_H
#define MST_HOST_LIMITS_H

#include <stdint.h>

#include "common/base/reason.h"

/* May this process make a file, or shared memory, of @bytes? To be asked before: the kernel does
 * not only refuse what is longer than RLIMIT_FSIZE, it also sends SIGXFSZ, which ends a process.
 * Return: 0; -EFBIG: no, and @why has the figures and what to do. */
int mst_limit_file(uint64_t bytes, struct mst_reason *why);

/* Has this process a stack that is large enough for the programs of muster? The soft limit is
 * raised if it is too low, and the stacks of threads that are started later are made large enough.
 * Return: 0; -ENOMEM: no, and @why has the figures and what to do. */
int mst_limit_stack(struct mst_reason *why);

/* Why a call that needs memory, a file or a descriptor has failed: strerror(), and if this process
 * has a limit that the error can be due to, which one, its value, and what to do. @error: negative
 * errno. @bytes: what was wanted; 0: unknown.
 * Return: the text of @out. */
const char *mst_limit_failed(int error, uint64_t bytes, struct mst_reason *out);

/* Why the system call @name has failed: the name, strerror(), and for an error by which filters of
 * system calls refuse one, that there may be such a filter; else as mst_limit_failed().
 * Return: the text of @out. */
const char *mst_limit_refused(const char *name, int error, struct mst_reason *out);

#endif
