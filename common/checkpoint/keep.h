/* SPDX-License-Identifier: MIT */
/* Removes old checkpoints, and sets refused ones aside. Only the holder of the lock (lock.h) may
 * call these. */
#ifndef MST_COMMON_CHECKPOINT_KEEP_H
#define MST_COMMON_CHECKPOINT_KEEP_H

#include <stdint.h>

#include "common/base/reason.h"

/* Keeps the newest @count checkpoints whose parts are there (mst_checkpoint_check()), and removes
 * what is older than the oldest of them: manifests first, then, when that is on the disk, parts. So
 * whenever the process ends, a checkpoint is whole, or is not listed any more. Files of parts that
 * are older than the newest checkpoint and belong to none that is kept, and temporary files among
 * them, are removed too: their writers have been killed. A file whose name is not one of ours
 * stays. To be called after a manifest has been written.
 * Return: 0, or -errno with @why: something could not be removed, and the rest has been. */
int mst_checkpoint_keep(const char *dir, uint32_t count, struct mst_reason *why);

/* A job that goes on from @version leaves newer checkpoints behind, which were refused. This gives
 * their manifests the ending ".refused", so that the next start does not find them, and so that
 * they do not count as newer than what the job writes now. Their parts are removed by
 * mst_checkpoint_keep() once a newer version has been written.
 * Return: 0, or -errno with @why. */
int mst_checkpoint_set_aside(const char *dir, uint64_t version, struct mst_reason *why);

#endif
