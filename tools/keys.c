/* SPDX-License-Identifier: MIT */
#include "tools/keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/transport/tls/authority.h"
#include "common/transport/transport.h"
#include "tools/secure.h"

#define DAYS 3650u /* longer than any run */
#define DIR_LEN 256u
#define PATH_LEN (DIR_LEN + 32u)
#define FILES 3u
#define PREFIX "muster-keys-"

static struct {
	char dir[DIR_LEN]; /* "": there is none */
	int lock;          /* its descriptor, by which it is locked while this process lives */
	char server[FILES][PATH_LEN];
	char flag[FILES][PATH_LEN + 16u];
	char *flags[FILES + 1];
} keys;

/* ---- directories ---- */

/* Takes the lock of a directory of this user whose run has ended without removing it, as by
 * SIGKILL. Return: a descriptor that has the lock; -1: the run lives, or it is something else. */
static int lock_stale(int place, const char *name)
{
	struct stat status;
	int fd = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* Removes what is in the directory @fd, which has no directories in it, and closes @fd. */
static void empty(int fd)
{
	const struct dirent *entry;
	DIR *dir = fdopendir(fd);

	if (dir == NULL) {
		(void)close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			(void)unlinkat(fd, entry->d_name, 0);
	(void)closedir(dir);
}

/* Removes what runs of this user have left that were killed. The lock is let go last, so that a run
 * which has just made its directory either has the lock or finds the directory gone. */
static void remove_stale(const char *place)
{
	DIR *dir = opendir(place);
	const struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		int lock = lock_stale(dirfd(dir), entry->d_name);
		if (lock < 0)
			continue;
		int fd = fcntl(lock, F_DUPFD_CLOEXEC, 0);
		if (fd >= 0)
			empty(fd);
		(void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
		(void)close(lock);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

/* The kernel lets go of the lock when this process ends, however it does. Return: 0; -EAGAIN: the
 * directory was taken for one that nobody has; or -errno. */
static int lock_own(void)
{
	struct stat status;

	keys.lock = open(keys.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (keys.lock < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	int rc = flock(keys.lock, LOCK_EX) != 0 || fstat(keys.lock, &status) != 0 ? -errno : 0;
	if (rc == 0 && status.st_nlink == 0)
		rc = -EAGAIN;
	if (rc == 0)
		return 0;
	(void)close(keys.lock);
	return rc;
}

static int try_directory(const char *place)
{
	int len = snprintf(keys.dir, sizeof(keys.dir), "%s/" PREFIX "XXXXXX", place);

	if (len < 0 || (size_t)len >= sizeof(keys.dir))
		return -ENAMETOOLONG;
	if (mkdtemp(keys.dir) == NULL)
		return -errno;
	return lock_own();
}

static int make_directory(struct mst_reason *why)
{
	const char *place = getenv("TMPDIR");
	int rc;

	if (place == NULL || place[0] != '/')
		place = "/tmp";
	remove_stale(place);
	do {
		rc = try_directory(place);
	} while (rc == -EAGAIN);
	if (rc == 0)
		return 0;
	(void)rmdir(keys.dir);
	keys.dir[0] = '\0';
	return mst_reason_fail(why, rc,
			       "--data-tls on makes certificates for this run, and there is no "
			       "place for them in %.120s: %s (TMPDIR names another)",
			       place, strerror(-rc));
}

/* ---- who is told of them ---- */

static void name_files(const char *role, char out[FILES][PATH_LEN])
{
	(void)snprintf(out[0], PATH_LEN, "%s/ca.pem", keys.dir);
	(void)snprintf(out[1], PATH_LEN, "%s/%s.pem", keys.dir, role);
	(void)snprintf(out[2], PATH_LEN, "%s/%s.key", keys.dir, role);
}

/* The server's certificate is told by flags, since all that is started inherits the environment. */
static void tell_server(struct mst_server_options *o)
{
	static const char *const option[FILES] = { "--tls-ca", "--tls-cert", "--tls-key" };

	name_files("server", keys.server);
	for (uint32_t i = 0; i < FILES; i++) {
		(void)snprintf(keys.flag[i], sizeof(keys.flag[i]), "%s=%s", option[i],
			       keys.server[i]);
		keys.flags[i] = keys.flag[i];
	}
	o->tls = (struct mst_tls_files){ keys.server[0], keys.server[1], keys.server[2] };
}

static int tell_rest(struct mst_reason *why)
{
	static const char *const variable[FILES] = { "MUSTER_TLS_CA", "MUSTER_TLS_CERT",
						     "MUSTER_TLS_KEY" };
	char path[FILES][PATH_LEN];

	name_files("operator", path);
	struct mst_tls_files own = { path[0], path[1], path[2] };
	if (mst_secure_open(&own) != 0)
		return mst_reason_fail(why, -EINVAL, "cannot use the certificates in %s", keys.dir);
	name_files("worker", path);
	for (uint32_t i = 0; i < FILES; i++)
		if (setenv(variable[i], path[i], 1) != 0)
			return mst_reason_fail(why, -errno, "no memory for the environment");
	return 0;
}

int mst_keys_make(struct mst_server_options *o, struct mst_reason *why)
{
	struct mst_authority_cfg cfg = { .dir = keys.dir, .name = "run", .days = DAYS };

	if (o->fabric.data_tls != MST_DATA_TLS_ON || !mst_server_options_may_encrypt(o))
		return 0;
	int rc = make_directory(why);
	if (rc == 0)
		rc = mst_authority_new(&cfg, why);
	if (rc != 0)
		return rc;
	tell_server(o);
	return tell_rest(why);
}

char *const *mst_keys_flags(void)
{
	return keys.flags;
}

void mst_keys_remove(void)
{
	if (keys.dir[0] == '\0')
		return;
	int fd = fcntl(keys.lock, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		empty(fd);
	(void)rmdir(keys.dir);
	(void)close(keys.lock);
	keys.dir[0] = '\0';
}
