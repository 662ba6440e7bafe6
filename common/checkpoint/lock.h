/* SPDX-License-Identifier: MIT */
/* The lock of a directory of checkpoints: only one leader writes there. */
#ifndef MST_COMMON_CHECKPOINT_LOCK_H
#define MST_COMMON_CHECKPOINT_LOCK_H

#include "common/base/reason.h"

struct mst_checkpoint_lock;

/* Makes sure that @dir is a directory in which this process can create files; creates it if it does
 * not exist, but not the directories above it. The parts of one job call this, and no lock is
 * taken.
 * Return: 0 or -errno; @why is a sentence. */
int mst_checkpoint_directory(const char *dir, struct mst_reason *why);

/* The same, and takes the lock DIR/.lock. The kernel gives the lock back when the process ends,
 * however it ends; a process that it forks before exec shares it.
 * Return: 0; -EBUSY: another process has the lock, and @why names its pid; or -errno. */
int mst_checkpoint_lock(const char *dir, struct mst_checkpoint_lock **out, struct mst_reason *why);
void mst_checkpoint_unlock(struct mst_checkpoint_lock *lock); /* accepts NULL */

#endif
