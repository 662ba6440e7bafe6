/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/listing.h"
#include "common/checkpoint/manifest/manifest_fields.h"
#include "common/checkpoint/names.h"
#include "common/checkpoint/part_file.h"

int mst_checkpoint_versions(const char *dir, uint64_t **out, struct mst_reason *why)
{
	struct mst_checkpoint_file *file = NULL;
	uint32_t files = 0;
	int found = 0;
	int rc = mst_checkpoint_list(dir, &file, &files, why);

	if (rc != 0)
		return rc;
	uint64_t *version = malloc(((size_t)files + 1) * sizeof(*version));
	if (version == NULL) {
		free(file);
		return mst_reason_fail(why, -ENOMEM, "no memory to list the directory %s", dir);
	}
	for (uint32_t i = 0; i < files; i++)
		if (file[i].kind == MST_CHECKPOINT_IS_MANIFEST)
			version[found++] = file[i].version;
	free(file);
	*out = version;
	return found;
}

int mst_checkpoint_check(const char *dir, const struct mst_checkpoint_manifest *m,
			 struct mst_reason *why)
{
	struct mst_part_file file;

	for (uint32_t i = 0; i < m->parts; i++) {
		int rc = mst_part_file_open(dir, m->part[i].file, &file, why);
		if (rc != 0)
			return rc;
		rc = mst_part_file_belongs(&file, m, i, why);
		mst_part_file_close(&file);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* ---- what the caller wants ---- */

static int check_job(const struct mst_checkpoint_manifest *m, const char *job,
		     struct mst_reason *why)
{
	if (job == NULL || strcmp(job, m->id.job) == 0)
		return 0;
	return mst_reason_fail(why, -EINVAL,
			       "it is of the job \"%s\", and this job is \"%.200s\"; each job "
			       "needs a directory of its own",
			       m->id.job, job);
}

static int check_model(const struct mst_checkpoint_manifest *m,
		       const struct mst_checkpoint_model *wanted, struct mst_reason *why)
{
	if (wanted == NULL)
		return 0;
	if (m->id.elems != wanted->elems)
		return mst_reason_fail(why, -EINVAL,
				       "its vector has %" PRIu64
				       " elements, and that of this job has %" PRIu64,
				       m->id.elems, wanted->elems);
	if (m->type != wanted->type || m->result_type != wanted->result_type)
		return mst_reason_fail(
			why, -EINVAL,
			"its gradients are %s and its results %s, and in this job "
			"they are %s and %s",
			mst_manifest_type(m->type), mst_manifest_type(m->result_type),
			mst_manifest_type(wanted->type), mst_manifest_type(wanted->result_type));
	if (m->owner != wanted->owner)
		return mst_reason_fail(
			why, -EINVAL, "its %s own the parameters, and in this job the %s do",
			mst_manifest_owner(m->owner), mst_manifest_owner(wanted->owner));
	return 0;
}

/* Takes the checkpoint of one version, if it is in order. Return: 0, or why not. */
static int take(const char *dir, uint64_t version, const struct mst_checkpoint_wanted *wanted,
		struct mst_checkpoint_manifest *out, struct mst_reason *why)
{
	struct mst_checkpoint_manifest m;
	int rc = mst_checkpoint_manifest_read(dir, version, &m, why);

	if (rc != 0)
		return rc;
	rc = check_job(&m, wanted->job, why);
	if (rc == 0)
		rc = check_model(&m, wanted->model, why);
	if (rc != 0)
		(void)mst_reason_fail(why, rc,
				      "the checkpoint of version %" PRIu64 " in %s cannot be "
				      "used: %s",
				      version, dir, why->text);
	else
		rc = mst_checkpoint_check(dir, &m, why);
	if (rc == 0)
		*out = m;
	else
		mst_checkpoint_manifest_fini(&m);
	return rc;
}

bool mst_checkpoint_is_damage(int rc)
{
	return rc == -EBADMSG || rc == -EINVAL || rc == -ENOTSUP || rc == -ENOENT || rc == -EIO;
}

int mst_checkpoint_unread(int rc, const char *dir, uint64_t version, const char *clause,
			  struct mst_reason *why)
{
	char name[MST_CHECKPOINT_FILE_LEN];

	mst_checkpoint_manifest_name(version, name);
	return mst_reason_fail(why, rc,
			       "%s; so nobody knows whether the checkpoint of version "
			       "%" PRIu64 " is in order, and no older one is taken: fix that, "
			       "and start again; or move %.120s/%s away, to go on from an older "
			       "one",
			       clause, version, dir, name);
}

/* ---- from the newest on ---- */

static int none_left(const char *dir, const struct mst_checkpoint_wanted *wanted, uint32_t refused,
		     const char *first, struct mst_reason *why)
{
	if (refused == 1)
		return mst_reason_fail(why, -EBADMSG, "no checkpoint in %s can be used: %s", dir,
				       first);
	if (refused > 1)
		return mst_reason_fail(why, -EBADMSG,
				       "none of the %" PRIu32 " checkpoints in %s can be used; "
				       "the newest: %s",
				       refused, dir, first);
	if (wanted->before > 0)
		return mst_reason_fail(why, -ENOENT,
				       "there is no checkpoint in %s before version %" PRIu64, dir,
				       wanted->before);
	return mst_reason_fail(why, -ENOENT, "there is no checkpoint in %s", dir);
}

static int find(const char *dir, const struct mst_checkpoint_wanted *wanted,
		const uint64_t *version, uint32_t count, struct mst_checkpoint_manifest *out,
		struct mst_reason *why)
{
	struct mst_reason first = { "" };
	uint32_t refused = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (wanted->before > 0 && version[i] >= wanted->before)
			continue;
		int rc = take(dir, version[i], wanted, out, why);
		if (rc == 0)
			return 0;
		if (!mst_checkpoint_is_damage(rc))
			return mst_checkpoint_unread(rc, dir, version[i], why->text, why);
		if (wanted->refused != NULL)
			wanted->refused(wanted->arg, version[i], why->text);
		if (refused++ == 0)
			first = *why;
	}
	return none_left(dir, wanted, refused, first.text, why);
}

int mst_checkpoint_find(const char *dir, const struct mst_checkpoint_wanted *wanted,
			struct mst_checkpoint_manifest *out, struct mst_reason *why)
{
	uint64_t *version = NULL;
	int count = mst_checkpoint_versions(dir, &version, why);

	if (count < 0)
		return count;
	int rc = find(dir, wanted, version, (uint32_t)count, out, why);
	free(version);
	return rc;
}
