/* SPDX-License-Identifier: MIT */
/*
 * Which tensors a part has: what the job's table makes of each vector, under names that are all
 * different, and the same in every part. Internal to common/checkpoint. Pure.
 */
#ifndef MST_COMMON_CHECKPOINT_LAYOUT_H
#define MST_COMMON_CHECKPOINT_LAYOUT_H

#include "common/base/reason.h"
#include "common/checkpoint/manifest/tensors.h"
#include "common/checkpoint/part.h"

/* Vectors with long elements come first, so that each element lies at a multiple of its length.
 * @out: without checksums; to be freed by mst_tensor_file_fini().
 * Return: 0, -ENOMEM, or -EINVAL: the arguments do not fit each other; @why is a sentence. */
int mst_checkpoint_layout(const struct mst_checkpoint_writing *w, struct mst_tensor_file *out,
			  struct mst_reason *why);

#endif
