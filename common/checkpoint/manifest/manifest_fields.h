/* SPDX-License-Identifier: MIT */
/* Declarations that the composer and the parser of manifests share. Internal to
 * common/checkpoint. */
#ifndef MST_COMMON_CHECKPOINT_MANIFEST_MANIFEST_FIELDS_H
#define MST_COMMON_CHECKPOINT_MANIFEST_MANIFEST_FIELDS_H

#include <stddef.h>

#include "common/checkpoint/manifest/manifest.h"

#define MST_MANIFEST_FORMAT "muster-checkpoint"
/* The last lines of a manifest. The checksum is that of all that stands before them. */
#define MST_MANIFEST_END_BEGIN "  \"crc32c\": \""
#define MST_MANIFEST_END_END "\"\n}\n"

/* "f32"; "servers". */
const char *mst_manifest_type(enum muster_type type);
const char *mst_manifest_owner(enum muster_owner owner);
#define MST_MANIFEST_TYPES 3u
#define MST_MANIFEST_OWNERS 2u

/* Do the figures of a manifest agree with each other? Return: NULL, or a clause that says what does
 * not. */
const char *mst_manifest_wrong(const struct mst_checkpoint_manifest *m);

#endif
