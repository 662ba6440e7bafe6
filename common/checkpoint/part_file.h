/* SPDX-License-Identifier: MIT */
/* A part of a checkpoint, open for reading. */
#ifndef MST_COMMON_CHECKPOINT_PART_FILE_H
#define MST_COMMON_CHECKPOINT_PART_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/checkpoint/manifest/tensors.h"
#include "common/checkpoint/names.h"

struct mst_part_file {
	int fd;
	char path[MST_CHECKPOINT_PATH];
	struct mst_tensor_file header;
};

/* Opens a file and reads its header; everything in it has been checked, but for the data.
 * @out: to be closed after a success.
 * Return: 0; -EBADMSG: it is missing, or damaged; -ENOTSUP; -ENOMEM; or what the system says. @why:
 * a sentence that names the file. */
int mst_part_file_open(const char *dir, const char *name, struct mst_part_file *out,
		       struct mst_reason *why);
void mst_part_file_close(struct mst_part_file *f);
/* Reads exactly so many bytes. */
int mst_part_file_read(const struct mst_part_file *f, uint64_t at, void *into, size_t count,
		       struct mst_reason *why);

/* Is it the part of this number that the manifest means? */
int mst_part_file_belongs(const struct mst_part_file *f, const struct mst_checkpoint_manifest *m,
			  uint32_t part, struct mst_reason *why);

#endif
