/* SPDX-License-Identifier: MIT */
/*
 * The names of the files in a directory of checkpoints:
 *
 *   v0000000123-3f2a9c01.part0-of-3.safetensors   a part; after '-': the begin of the save id
 *   v0000000123.json                              a manifest
 *   v0000000123.json.refused                      one that is set aside (keep.h)
 *   ....tmp                                       either of the first two while it is written
 *
 * Internal to common/checkpoint. Pure.
 */
#ifndef MST_COMMON_CHECKPOINT_NAMES_H
#define MST_COMMON_CHECKPOINT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/checkpoint/manifest/manifest.h"

#define MST_CHECKPOINT_TEMPORARY ".tmp"
#define MST_CHECKPOINT_REFUSED ".refused"
#define MST_CHECKPOINT_PATH 4352u /* a directory, and one of these files */

enum mst_checkpoint_kind {
	MST_CHECKPOINT_IS_MANIFEST,
	MST_CHECKPOINT_IS_REFUSED,
	MST_CHECKPOINT_IS_PART,
	MST_CHECKPOINT_IS_TEMPORARY,
};

void mst_checkpoint_manifest_name(uint64_t version, char out[MST_CHECKPOINT_FILE_LEN]);
void mst_checkpoint_part_name(const struct mst_checkpoint_id *id, uint32_t part, uint32_t parts,
			      char out[MST_CHECKPOINT_FILE_LEN]);
/* Return: false: the name is not one of ours. */
bool mst_checkpoint_name_parse(const char *name, enum mst_checkpoint_kind *kind, uint64_t *version);
/* Is it a save id: 32 hexadecimal digits? */
bool mst_checkpoint_is_save(const char *save);
/* Is it the name of a part? Such a name has no slash. */
bool mst_checkpoint_is_part_name(const char *name);

#endif
