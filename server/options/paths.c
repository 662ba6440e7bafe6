/* SPDX-License-Identifier: MIT */
#include "server/options/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum path_kind {
	KIND_NONE, /* nothing is there */
	KIND_DIRECTORY,
	KIND_OTHER,
	KIND_UNKNOWN, /* whoever uses the path says why */
};

static enum path_kind kind_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? KIND_DIRECTORY : KIND_OTHER;
	return errno == ENOENT || errno == ENOTDIR ? KIND_NONE : KIND_UNKNOWN;
}

/* The directory in which @path is, or would be. */
static void parent_of(const char *path, char out[PATH_MAX])
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	while (len > 1 && path[len - 1] == '/')
		len--;
	(void)snprintf(out, PATH_MAX, "%.*s", len > 0 ? (int)len : 1, len > 0 ? path : ".");
}

static int parent_check(const char *option, const char *path, struct mst_reason *why)
{
	char parent[PATH_MAX];

	parent_of(path, parent);
	enum path_kind kind = kind_of(parent);
	if (kind == KIND_DIRECTORY || kind == KIND_UNKNOWN)
		return 0;
	return mst_reason_fail(why, -EINVAL,
			       "option --%s: %s cannot be made, because %s is %s; create that "
			       "directory first, or name another path",
			       option, path, parent,
			       kind == KIND_NONE ? "not there" : "not a directory");
}

static int record_check(const char *path, struct mst_reason *why)
{
	if (kind_of(path) == KIND_DIRECTORY)
		return mst_reason_fail(why, -EINVAL,
				       "option --record: %s is a directory; name a file in it, as "
				       "in --record %s/run.csv",
				       path, path);
	return parent_check("record", path, why);
}

static int state_check(const char *path, struct mst_reason *why)
{
	enum path_kind kind = kind_of(path);

	if (kind == KIND_OTHER)
		return mst_reason_fail(why, -EINVAL,
				       "option --state: %s is not a directory; name one, which is "
				       "created if it is not there",
				       path);
	return kind == KIND_NONE ? parent_check("state", path, why) : 0;
}

static int resume_check(const char *path, bool or_begin, struct mst_reason *why)
{
	enum path_kind kind = kind_of(path);

	if (kind == KIND_OTHER)
		return mst_reason_fail(why, -EINVAL,
				       "option --resume: %s is not a directory; name the one that "
				       "--state named",
				       path);
	if (kind == KIND_NONE && !or_begin)
		return mst_reason_fail(
			why, -EINVAL,
			"option --resume: there is no directory %s: fix --resume, or "
			"give --or-begin if the job is to begin with version 0",
			path);
	return 0;
}

bool mst_server_paths_same(const char *a, const char *b)
{
	struct stat one, other;

	if (strcmp(a, b) == 0)
		return true;
	return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

int mst_server_paths_check(const struct mst_server_options *o, struct mst_reason *why)
{
	int rc = 0;

	if (o->record != NULL && o->record[0] != '\0')
		rc = record_check(o->record, why);
	if (rc == 0 && o->state != NULL)
		rc = state_check(o->state, why);
	if (rc == 0 && o->resume != NULL)
		rc = resume_check(o->resume, o->or_begin, why);
	return rc;
}
