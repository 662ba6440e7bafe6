/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/keep.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/checkpoint/find.h"
#include "common/checkpoint/listing.h"
#include "common/checkpoint/manifest/manifest.h"
#include "common/checkpoint/safe_file.h"

/* A directory while files are removed from it. */
struct keeper {
	const char *dir;
	struct mst_checkpoint_file *file; /* the newest version first */
	bool *stays;                      /* [files]: a manifest that stays lists it, or may */
	uint32_t files;
	uint64_t newest;   /* of the checkpoints that are kept */
	uint32_t complete; /* how many these are */
	bool enough;       /* as many as are to be kept */
	int rc;            /* of the first failure */
	struct mst_reason *why;
};

/* ---- what stays ---- */

static void stays_by_name(struct keeper *k, const char *name)
{
	for (uint32_t i = 0; i < k->files; i++)
		if (strcmp(k->file[i].name, name) == 0)
			k->stays[i] = true;
}

/* Nobody knows what a manifest lists that cannot be read. */
static void stays_by_version(struct keeper *k, uint64_t version)
{
	for (uint32_t i = 0; i < k->files; i++)
		if (k->file[i].version == version && k->file[i].kind == MST_CHECKPOINT_IS_PART)
			k->stays[i] = true;
}

/* Looks at one manifest, and marks it and its parts. Return: whether its checkpoint is complete. */
static bool mark(struct keeper *k, uint32_t manifest)
{
	uint64_t version = k->file[manifest].version;
	struct mst_checkpoint_manifest m;
	struct mst_reason why;

	k->stays[manifest] = true;
	if (mst_checkpoint_manifest_read(k->dir, version, &m, &why) != 0) {
		stays_by_version(k, version);
		return false;
	}
	for (uint32_t i = 0; i < m.parts; i++)
		stays_by_name(k, m.part[i].file);
	bool complete = mst_checkpoint_check(k->dir, &m, &why) == 0;
	mst_checkpoint_manifest_fini(&m);
	return complete;
}

/* Marks what stays: @count complete checkpoints, and damaged ones that are newer than these. */
static void mark_all(struct keeper *k, uint32_t count)
{
	for (uint32_t i = 0; i < k->files && k->complete < count; i++) {
		if (k->file[i].kind != MST_CHECKPOINT_IS_MANIFEST || !mark(k, i))
			continue;
		if (k->complete++ == 0)
			k->newest = k->file[i].version;
	}
	k->enough = k->complete == count;
}

/* ---- what goes ---- */

static bool is_listing(enum mst_checkpoint_kind kind)
{
	return kind == MST_CHECKPOINT_IS_MANIFEST || kind == MST_CHECKPOINT_IS_REFUSED;
}

/* A part or a temporary file that is not newer than the newest checkpoint is nobody's work any
 * more. Manifests go when there are enough newer ones. */
static bool goes(const struct keeper *k, uint32_t file)
{
	const struct mst_checkpoint_file *f = &k->file[file];

	if (k->stays[file] || k->complete == 0)
		return false;
	if (f->kind == MST_CHECKPOINT_IS_MANIFEST)
		return k->enough; /* it is older than these, or it would stay */
	if (f->kind == MST_CHECKPOINT_IS_REFUSED)
		return f->version < k->newest;
	return f->version <= k->newest;
}

static void remove_file(struct keeper *k, const char *name)
{
	char path[MST_CHECKPOINT_PATH];

	(void)snprintf(path, sizeof(path), "%s/%s", k->dir, name);
	if (unlink(path) == 0 || errno == ENOENT || k->rc != 0)
		return;
	k->rc = mst_reason_fail(k->why, -errno,
				"cannot remove %s, which is older than the checkpoints that are "
				"kept: %s",
				path, strerror(errno));
}

/* Return: how many. */
static uint32_t remove_all(struct keeper *k, bool listings)
{
	uint32_t removed = 0;

	for (uint32_t i = 0; i < k->files; i++) {
		if (is_listing(k->file[i].kind) != listings || !goes(k, i))
			continue;
		remove_file(k, k->file[i].name);
		removed++;
	}
	return removed;
}

int mst_checkpoint_keep(const char *dir, uint32_t count, struct mst_reason *why)
{
	struct keeper k = { .dir = dir, .why = why };
	int rc = mst_checkpoint_list(dir, &k.file, &k.files, why);

	if (rc != 0)
		return rc;
	k.stays = calloc((size_t)k.files + 1, sizeof(*k.stays));
	if (k.stays == NULL) {
		free(k.file);
		return mst_reason_fail(why, -ENOMEM, "no memory to list what is old in %s", dir);
	}
	mark_all(&k, count);
	if (remove_all(&k, true) > 0 && k.rc == 0)
		k.rc = mst_checkpoint_sync(dir, why);
	if (k.rc == 0)
		(void)remove_all(&k, false);
	free(k.stays);
	free(k.file);
	return k.rc;
}

/* ---- what is left behind ---- */

static int set_aside(const char *dir, const char *name, struct mst_reason *why)
{
	char from[MST_CHECKPOINT_PATH], to[MST_CHECKPOINT_PATH];

	(void)snprintf(from, sizeof(from), "%s/%s", dir, name);
	(void)snprintf(to, sizeof(to), "%s/%s%s", dir, name, MST_CHECKPOINT_REFUSED);
	if (rename(from, to) == 0)
		return 0;
	return mst_reason_fail(why, -errno, "cannot set %s aside: %s", from, strerror(errno));
}

int mst_checkpoint_set_aside(const char *dir, uint64_t version, struct mst_reason *why)
{
	struct mst_checkpoint_file *file = NULL;
	uint32_t files = 0, renamed = 0;
	int rc = mst_checkpoint_list(dir, &file, &files, why);

	for (uint32_t i = 0; i < files && rc == 0 && file[i].version > version; i++) {
		if (file[i].kind != MST_CHECKPOINT_IS_MANIFEST)
			continue;
		rc = set_aside(dir, file[i].name, why);
		renamed++;
	}
	free(file);
	return rc == 0 && renamed > 0 ? mst_checkpoint_sync(dir, why) : rc;
}
