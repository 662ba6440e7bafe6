/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/checkpoint/size.h"
#include "common/host/limits.h"

/* "the file needs 4.0 GiB, and 1.2 GiB are free". */
static int no_room(struct mst_safe_file *f, uint64_t free_bytes)
{
	char needs[32], free_text[32];

	return mst_reason_fail(f->why, -ENOSPC,
			       "cannot write %s: the file needs %s, and the disk has %s left for "
			       "it; make room, or choose a directory on another disk",
			       f->path, mst_checkpoint_size(f->bytes, needs),
			       mst_checkpoint_size(free_bytes, free_text));
}

static int free_bytes(const char *dir, uint64_t *out)
{
	struct statvfs fs;

	if (statvfs(dir, &fs) != 0)
		return -errno;
	*out = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

/* A disk may have room and be full all the same: of files, or for this user. */
static int no_room_but_free(struct mst_safe_file *f, const char *what, int error, uint64_t left)
{
	char needs[32], free_text[32];

	return mst_reason_fail(f->why, -error,
			       "cannot %s %s: %s; the file needs %s, and the disk reports %s free: "
			       "look for a quota, or for too many files",
			       what, f->path, strerror(error), mst_checkpoint_size(f->bytes, needs),
			       mst_checkpoint_size(left, free_text));
}

/* The temporary file may have taken some of what was free: its whole size is needed. */
static int failed(struct mst_safe_file *f, const char *what, int error)
{
	uint64_t left = 0;

	if ((error == ENOSPC || error == EDQUOT) && free_bytes(f->dir, &left) == 0)
		return left < f->bytes ? no_room(f, left) : no_room_but_free(f, what, error, left);
	return mst_reason_fail(f->why, -error, "cannot %s %s: %s", what, f->path, strerror(error));
}

static int compose(struct mst_safe_file *f, const char *name)
{
	int len = snprintf(f->path, sizeof(f->path), "%s/%s", f->dir, name);

	if (len > 0 && (size_t)len < sizeof(f->path))
		len = snprintf(f->temporary, sizeof(f->temporary), "%s/%s%s", f->dir, name,
			       MST_CHECKPOINT_TEMPORARY);
	if (len > 0 && (size_t)len < sizeof(f->temporary))
		return 0;
	return mst_reason_fail(f->why, -ENAMETOOLONG,
			       "cannot write to the directory %.80s...: its name is longer than "
			       "%u characters",
			       f->dir, MST_CHECKPOINT_PATH - MST_CHECKPOINT_FILE_LEN);
}

int mst_safe_file_open(struct mst_safe_file *f, const char *dir, const char *name, uint64_t bytes,
		       struct mst_reason *why)
{
	uint64_t left = 0;

	*f = (struct mst_safe_file){ .fd = -1, .bytes = bytes, .dir = dir, .why = why };
	int rc = compose(f, name);
	if (rc != 0)
		return rc;
	rc = free_bytes(dir, &left);
	if (rc != 0)
		return mst_reason_fail(why, rc, "cannot learn how much room the disk of %s has: %s",
				       dir, strerror(-rc));
	if (left < bytes)
		return no_room(f, left);
	rc = mst_limit_file(bytes, why);
	if (rc != 0)
		return mst_reason_fail(why, rc, "cannot write %s: %s", f->path, why->text);
	f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	return f->fd >= 0 ? 0 : failed(f, "create", errno);
}

int mst_safe_file_write(struct mst_safe_file *f, uint64_t at, const void *from, size_t count)
{
	const char *byte = from;
	off_t first = (off_t)at, bytes = (off_t)count;

	while (count > 0) {
		ssize_t got = pwrite(f->fd, byte, count, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return failed(f, "write", got < 0 ? errno : EIO);
		byte += got;
		at += (uint64_t)got;
		count -= (size_t)got;
	}
	/* The kernel begins to write it, so that a file that is written slowly is not brought to
	 * the disk all at once at its end. A file system that cannot does so then. */
	(void)sync_file_range(f->fd, first, bytes, SYNC_FILE_RANGE_WRITE);
	return 0;
}

int mst_checkpoint_sync(const char *dir, struct mst_reason *why)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd >= 0 && fsync(fd) == 0 ? 0 : -errno;

	if (fd >= 0)
		(void)close(fd);
	if (rc == 0)
		return 0;
	return mst_reason_fail(why, rc, "cannot have the names in the directory %s on the disk: %s",
			       dir, strerror(-rc));
}

/* Some disks, over a network, report only when the file is closed that they are full. */
static int close_file(struct mst_safe_file *f)
{
	int fd = f->fd;

	f->fd = -1;
	return close(fd) == 0 || errno == EINTR ? 0 : failed(f, "write", errno);
}

int mst_safe_file_commit(struct mst_safe_file *f)
{
	if (fsync(f->fd) != 0)
		return failed(f, "have on the disk", errno);
	int rc = close_file(f);
	if (rc == 0 && rename(f->temporary, f->path) != 0)
		rc = failed(f, "give its name to", errno);
	if (rc == 0)
		rc = mst_checkpoint_sync(f->dir, f->why);
	return rc;
}

void mst_safe_file_abandon(struct mst_safe_file *f)
{
	if (f->fd >= 0)
		(void)close(f->fd);
	f->fd = -1;
	if (f->temporary[0] != '\0')
		(void)unlink(f->temporary);
}
