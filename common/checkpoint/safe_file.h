/* SPDX-License-Identifier: MIT */
/*
 * A file that is written under a temporary name and gets its own name when it is complete and on
 * the disk. Whatever fails, and whenever the process ends, the file of this name is the old one or
 * the new one. Internal to common/checkpoint.
 *
 * Every function that fails has written a sentence to @why, and returns -errno.
 */
#ifndef MST_COMMON_CHECKPOINT_SAFE_FILE_H
#define MST_COMMON_CHECKPOINT_SAFE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/checkpoint/names.h"

struct mst_safe_file {
	int fd;
	uint64_t bytes; /* that it will have */
	const char *dir;
	char path[MST_CHECKPOINT_PATH], temporary[MST_CHECKPOINT_PATH];
	struct mst_reason *why;
};

/* Makes sure that the disk has room for @bytes, and creates the temporary file. @dir, @why: must
 * stay until the file is committed or abandoned. */
int mst_safe_file_open(struct mst_safe_file *f, const char *dir, const char *name, uint64_t bytes,
		       struct mst_reason *why);
int mst_safe_file_write(struct mst_safe_file *f, uint64_t at, const void *from, size_t count);
/* Gives the file its name. After a failure the temporary file is still to be abandoned. */
int mst_safe_file_commit(struct mst_safe_file *f);
/* Removes the temporary file, if it is there. */
void mst_safe_file_abandon(struct mst_safe_file *f);

/* Writes the names in a directory to the disk. */
int mst_checkpoint_sync(const char *dir, struct mst_reason *why);

#endif
