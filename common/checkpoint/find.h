/* SPDX-License-Identifier: MIT */
/* Finds the newest checkpoint of a directory that can be relied on. */
#ifndef MST_COMMON_CHECKPOINT_FIND_H
#define MST_COMMON_CHECKPOINT_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/checkpoint/manifest/manifest.h"

/* What a caller looks for. Zeroed: any. */
struct mst_checkpoint_wanted {
	const char *job;                          /* NULL: any */
	const struct mst_checkpoint_model *model; /* NULL: any */
	uint64_t before;                          /* only versions below this one; 0: any */
	/* Called with a sentence about every newer checkpoint that was refused, by the thread that
	 * looks. NULL: nobody is told. */
	void (*refused)(void *arg, uint64_t version, const char *why);
	void *arg;
};

/* Goes through the manifests of @dir from the newest version on, and takes the first that holds:
 * its own checksum, and every part present, as long as the manifest says, with the right header,
 * of the same save, and all of them covering the vector. The data of the tensors are not read:
 * mst_checkpoint_load() and mst_checkpoint_verify() do that, and if they fail, the caller looks
 * once more, with `before` the version that failed.
 * @out: initialised; filled on success only, then to be freed by the caller with fini.
 * Return: 0; -ENOENT: there is no checkpoint at all, or no such directory; -EBADMSG: there are
 * some, and each was refused: @why has the reason of the newest, and how many others there are;
 * what the system says of @dir; or, as mst_checkpoint_unread() says it, why one of them cannot be
 * looked at (-EACCES, -ESTALE, -ENOMEM, ...). An older one is not taken then. */
int mst_checkpoint_find(const char *dir, const struct mst_checkpoint_wanted *wanted,
			struct mst_checkpoint_manifest *out, struct mst_reason *why);

/* Does it say that a file of a checkpoint is damaged, missing, of a later format, or on a place of
 * the disk that cannot be read (-EIO)? Then an older checkpoint may be taken. Any other failure
 * says nothing of the checkpoint, and another attempt may find it in order. */
bool mst_checkpoint_is_damage(int rc);
/* The sentence about such a failure, with what to do. @clause: what has failed; it may lie in @why.
 * Return: @rc. */
int mst_checkpoint_unread(int rc, const char *dir, uint64_t version, const char *clause,
			  struct mst_reason *why);

/* Looks at the parts of a manifest as mst_checkpoint_find() does.
 * Return: 0; -EBADMSG: @why names the file and what is wrong with it; -ENOMEM; or what the system
 * says. */
int mst_checkpoint_check(const char *dir, const struct mst_checkpoint_manifest *m,
			 struct mst_reason *why);

/* The versions that have a manifest, whether it holds or not, the newest first; the caller frees
 * it. Return: how many, or -errno with @why. */
int mst_checkpoint_versions(const char *dir, uint64_t **out, struct mst_reason *why);

#endif
