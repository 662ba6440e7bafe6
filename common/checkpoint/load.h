/* SPDX-License-Identifier: MIT */
/* Reads vectors back from the parts of a checkpoint, however many parts it was written in. */
#ifndef MST_COMMON_CHECKPOINT_LOAD_H
#define MST_COMMON_CHECKPOINT_LOAD_H

#include <stdint.h>

#include "common/base/reason.h"
#include "common/checkpoint/manifest/manifest.h"

/* The elements [first, first + count) of a group, and the memory that they are written to. */
struct mst_checkpoint_loading {
	const char *group;
	enum mst_dtype type; /* must be that of the file */
	uint64_t first, count;
	void *into; /* type[count] */
};

/* Fills @what->into. Every tensor that has one of the elements is read whole, in blocks of
 * MST_CHECKPOINT_BLOCK bytes, and its checksum compared. After a failure the memory is in part
 * written, and must not be used.
 * @m: from mst_checkpoint_find().
 * Return: 0; -ENOENT: the checkpoint has no such group; -EINVAL: the range or the type is not the
 * group's; -EBADMSG: the data of a tensor, or a file, are not what was written; -ENOMEM; or what
 * the system says. @why is a sentence. */
int mst_checkpoint_load(const char *dir, const struct mst_checkpoint_manifest *m,
			const struct mst_checkpoint_loading *what, struct mst_reason *why);

/* Does the checkpoint have this group? */
const struct mst_checkpoint_group *mst_checkpoint_group(const struct mst_checkpoint_manifest *m,
							const char *name);

/* Reads all tensors of all parts and compares their checksums, and that the bytes of each are as
 * many as its header says. Return: as mst_checkpoint_load(). */
int mst_checkpoint_verify(const char *dir, const struct mst_checkpoint_manifest *m,
			  struct mst_reason *why);

#endif
