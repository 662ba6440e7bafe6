/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/checkpoint/manifest/json.h"
#include "common/checkpoint/names.h"

#define LOCK_NAME ".lock"
#define PID_LEN 24u

struct mst_checkpoint_lock {
	int fd;
};

/* ---- the directory ---- */

static int create(const char *dir, struct mst_reason *why)
{
	if (mkdir(dir, 0777) == 0 || errno == EEXIST)
		return 0;
	if (errno == ENOENT)
		return mst_reason_fail(why, -ENOENT,
				       "cannot create the directory %s: the directory above it "
				       "does not exist; create it first",
				       dir);
	return mst_reason_fail(why, -errno, "cannot create the directory %s: %s", dir,
			       strerror(errno));
}

int mst_checkpoint_directory(const char *dir, struct mst_reason *why)
{
	struct stat st;

	if (strlen(dir) + MST_CHECKPOINT_FILE_LEN > MST_CHECKPOINT_PATH || dir[0] == '\0')
		return mst_reason_fail(
			why, -EINVAL,
			"\"%.80s\" cannot be a directory of checkpoints: its name is "
			"empty or too long",
			dir);
	int rc = create(dir, why);
	if (rc != 0)
		return rc;
	if (stat(dir, &st) != 0)
		return mst_reason_fail(why, -errno, "cannot look at the directory %s: %s", dir,
				       strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return mst_reason_fail(why, -ENOTDIR, "%s is not a directory", dir);
	if (access(dir, R_OK | W_OK | X_OK) != 0)
		return mst_reason_fail(why, -errno,
				       "cannot write to the directory %s: %s; give it to the user "
				       "that runs the server, or choose another one",
				       dir, strerror(errno));
	return 0;
}

/* ---- the lock ---- */

/* The process that has the lock wrote its pid. */
static int held(int fd, const char *path, struct mst_reason *why)
{
	char text[PID_LEN] = "", holder[PID_LEN + 16] = "another process";
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t pid;

	if (got > 0 && mst_json_digits(text, text + got, &pid) != NULL)
		(void)snprintf(holder, sizeof(holder), "process %.*s",
			       (int)strspn(text, "0123456789"), text);
	return mst_reason_fail(why, -EBUSY,
			       "%s is locked by %s, which writes its checkpoints there; end it "
			       "first, or choose another directory",
			       path, holder);
}

/* If the pid is missing, only the sentence for the next server lacks it. */
static void write_pid(int fd)
{
	char text[PID_LEN];
	int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	bool written = ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) == len;

	(void)written;
}

static int take(int fd, const char *path, struct mst_reason *why)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		write_pid(fd);
		return 0;
	}
	if (errno == EWOULDBLOCK)
		return held(fd, path, why);
	return mst_reason_fail(why, -errno, "cannot lock %s: %s", path, strerror(errno));
}

int mst_checkpoint_lock(const char *dir, struct mst_checkpoint_lock **out, struct mst_reason *why)
{
	char path[MST_CHECKPOINT_PATH];
	int rc = mst_checkpoint_directory(dir, why);

	if (rc != 0)
		return rc;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, LOCK_NAME);
	struct mst_checkpoint_lock *lock = malloc(sizeof(*lock));
	if (lock == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory to lock %s", path);
	lock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (lock->fd >= 0)
		rc = take(lock->fd, path, why);
	else
		rc = mst_reason_fail(why, -errno, "cannot create %s: %s", path, strerror(errno));
	if (rc == 0) {
		*out = lock;
		return 0;
	}
	if (lock->fd >= 0)
		(void)close(lock->fd);
	free(lock);
	return rc;
}

void mst_checkpoint_unlock(struct mst_checkpoint_lock *lock)
{
	if (lock == NULL)
		return;
	(void)close(lock->fd);
	free(lock);
}
