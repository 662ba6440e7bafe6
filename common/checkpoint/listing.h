/* SPDX-License-Identifier: MIT */
/* Lists the files of muster in a directory of checkpoints. Internal to common/checkpoint. */
#ifndef MST_COMMON_CHECKPOINT_LISTING_H
#define MST_COMMON_CHECKPOINT_LISTING_H

#include <stdint.h>

#include "common/base/reason.h"
#include "common/checkpoint/names.h"

struct mst_checkpoint_file {
	char name[MST_CHECKPOINT_FILE_LEN];
	enum mst_checkpoint_kind kind;
	uint64_t version;
};

/* All files of the directory whose names are ours, the newest version first; the caller frees them.
 * Return: 0; -ENOENT: there is no such directory; or -errno. @why is a sentence. */
int mst_checkpoint_list(const char *dir, struct mst_checkpoint_file **out, uint32_t *count,
			struct mst_reason *why);

#endif
