/* SPDX-License-Identifier: MIT */
/*
 * The directory that the sockets of listeners lie in: $XDG_RUNTIME_DIR/muster, else
 * /tmp/muster-UID.
 *
 * It keeps strangers from the listeners, so it is used only where it certainly does: it belongs to
 * this process's user, has mode 0700, or 0750 and the group that is to be let in, and nobody else
 * could put another in its place. Any other directory is refused with a sentence, and is not
 * changed.
 *
 * A server that is killed leaves its socket behind. The next server removes it if the socket
 * refuses connections and the process whose number is in its name is gone. One sign is not enough:
 * a socket that does not listen yet refuses connections, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/rand.h"
#include "common/transport/shm/shm.h"

#define SOCKET_NAME_LEN sizeof("/4194304-01234567.sock") /* as long as one gets */

int mst_shm_address(const char *path, struct sockaddr_un *out, socklen_t *len)
{
	size_t n = strnlen(path, MST_ADDRESS_LEN);

	if (path[0] != '/' || n < 2 || n >= sizeof(out->sun_path))
		return -EINVAL;
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(out->sun_path, path, n);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	return 0;
}

static const char *runtime_dir(void)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	return dir != NULL && dir[0] != '\0' ? dir : NULL;
}

static int name_it(char out[MST_SHM_PATH_LEN], struct mst_reason *why)
{
	const char *runtime = runtime_dir();
	int n;

	if (runtime != NULL && runtime[0] != '/')
		return mst_reason_fail(
			why, -EINVAL,
			"XDG_RUNTIME_DIR is %.200s, which is no absolute path: set it to a "
			"directory of this user's, or unset it",
			runtime);
	if (runtime != NULL)
		n = snprintf(out, MST_SHM_PATH_LEN, "%s/muster", runtime);
	else
		n = snprintf(out, MST_SHM_PATH_LEN, "/tmp/muster-%u", (unsigned)geteuid());
	if ((size_t)n + SOCKET_NAME_LEN > MST_SHM_PATH_LEN)
		return mst_reason_fail(
			why, -ENAMETOOLONG,
			"XDG_RUNTIME_DIR is %zu bytes long (%.60s...). It may have at most %zu, "
			"because the name of a socket is appended to it: set it to a shorter path",
			strlen(runtime), runtime,
			MST_SHM_PATH_LEN - SOCKET_NAME_LEN - sizeof("/muster") + 1);
	return 0;
}

static const char *fix(void)
{
	return runtime_dir() != NULL ? "set XDG_RUNTIME_DIR to a directory of this user's, or "
				       "unset it"
				     : "set XDG_RUNTIME_DIR to a directory of this user's";
}

static mode_t mode_for(int64_t group)
{
	return group >= 0 ? 0750 : 0700;
}

/* Return: 1 it was made, 0 it was there, or -errno. */
static int make(const char *path, int64_t group, struct mst_reason *why)
{
	if (mkdir(path, 0700) < 0)
		return errno == EEXIST
			       ? 0
			       : mst_reason_fail(why, -errno,
						 "cannot make the directory %s for sockets: %s; %s",
						 path, strerror(errno), fix());
	if (group >= 0 &&
	    (chown(path, (uid_t)-1, (gid_t)group) < 0 || chmod(path, mode_for(group)) < 0)) {
		int rc = mst_reason_fail(why, -errno,
					 "cannot give the directory %s to group %" PRId64
					 " (--shm-group): %s; a server's user must be in the group",
					 path, group, strerror(errno));
		(void)rmdir(path);
		return rc;
	}
	return 1;
}

/* Could another user rename what lies in it? */
static int check_parent(const char *path, struct mst_reason *why)
{
	char parent[MST_SHM_PATH_LEN];
	struct stat st;

	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (stat(parent[0] != '\0' ? parent : "/", &st) < 0)
		return mst_reason_fail(why, -errno, "cannot look at %s: %s; %s", parent,
				       strerror(errno), fix());
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return mst_reason_fail(why, -EPERM,
				       "%s belongs to uid %u, and this server is run by uid %u: %s",
				       parent, (unsigned)st.st_uid, (unsigned)geteuid(), fix());
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (st.st_mode & S_ISVTX) == 0)
		return mst_reason_fail(
			why, -EPERM,
			"%s has mode %04o, so that others could put another directory in "
			"the place of %s: chmod go-w %s, or %s",
			parent, (unsigned)st.st_mode & 07777, path, parent, fix());
	return 0;
}

/* Does the group get as far as the directory? */
static int check_way(const char *path, int64_t group, struct mst_reason *why)
{
	char above[MST_SHM_PATH_LEN];
	struct stat st;
	char *end;

	(void)snprintf(above, sizeof(above), "%s", path);
	while (group >= 0 && (end = strrchr(above, '/')) != NULL && end > above) {
		*end = '\0';
		if (stat(above, &st) == 0 && (st.st_mode & S_IXOTH) == 0 &&
		    ((st.st_mode & S_IXGRP) == 0 || st.st_gid != (gid_t)group))
			return mst_reason_fail(
				why, -EPERM,
				"group %" PRId64 " (--shm-group) cannot get to %s, for %s "
				"has mode %04o and group %u: set XDG_RUNTIME_DIR to a "
				"directory that the group can enter, or unset it",
				group, path, above, (unsigned)st.st_mode & 07777,
				(unsigned)st.st_gid);
	}
	return 0;
}

static int check(const char *path, int64_t group, struct mst_reason *why)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return mst_reason_fail(why, -errno, "cannot look at %s: %s; %s", path,
				       strerror(errno), fix());
	if (!S_ISDIR(st.st_mode))
		return mst_reason_fail(
			why, -ENOTDIR,
			"%s is no directory, and sockets of this server belong in one of "
			"that name: remove it, or %s",
			path, fix());
	if (st.st_uid != geteuid())
		return mst_reason_fail(
			why, -EPERM,
			"the directory %s belongs to uid %u, and this server is run by uid "
			"%u: remove it, or %s",
			path, (unsigned)st.st_uid, (unsigned)geteuid(), fix());
	if (group >= 0 && (st.st_mode & 07777) == mode_for(group) && st.st_gid != (gid_t)group)
		return mst_reason_fail(
			why, -EPERM,
			"the directory %s is of group %u, and --shm-group says %" PRId64
			": chgrp %" PRId64 " %s, or %s",
			path, (unsigned)st.st_gid, group, group, path, fix());
	if ((st.st_mode & 07777) != mode_for(group))
		return mst_reason_fail(
			why, -EPERM,
			"the directory %s has mode %04o, and must have %04o %s: chmod %o "
			"%s, or %s",
			path, (unsigned)st.st_mode & 07777, (unsigned)mode_for(group),
			group >= 0 ? "with --shm-group" : "without --shm-group",
			(unsigned)mode_for(group), path, fix());
	return 0;
}

/* ---- what killed servers have left ---- */

/* Return: the PID in a name PID-NONCE.sock; 0: @name has another form. */
static pid_t owner_of(const char *name)
{
	unsigned nonce;
	int pid, end = 0;

	if (sscanf(name, "%d-%8x.sock%n", &pid, &nonce, &end) != 2 || end == 0 || name[end] != '\0')
		return 0;
	return pid > 0 ? pid : 0;
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

static bool refuses(const char *path)
{
	struct sockaddr_un at;
	socklen_t len;
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool refused = s >= 0 && mst_shm_address(path, &at, &len) == 0 &&
		       connect(s, (struct sockaddr *)&at, len) < 0 && errno == ECONNREFUSED;

	mst_shm_close(&s);
	return refused;
}

static void sweep_one(const char *directory, const char *name)
{
	char path[MST_SHM_PATH_LEN + NAME_MAX];
	pid_t owner = owner_of(name);
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (owner != 0 && is_gone(owner) && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    refuses(path))
		(void)unlink(path);
}

static void sweep(const char *directory)
{
	DIR *dir = opendir(directory);
	const struct dirent *e;

	if (dir == NULL)
		return;
	while ((e = readdir(dir)) != NULL)
		sweep_one(directory, e->d_name);
	closedir(dir);
}

int mst_shm_directory(int64_t group, char out[MST_SHM_PATH_LEN], struct mst_reason *why)
{
	int rc = name_it(out, why);

	if (rc == 0)
		rc = check_parent(out, why);
	if (rc == 0)
		rc = check_way(out, group, why);
	if (rc == 0)
		rc = make(out, group, why);
	if (rc >= 0)
		rc = check(out, group, why);
	if (rc < 0)
		return rc;
	sweep(out);
	return 0;
}

/* ---- a socket in it ---- */

static int admit_group(const char *path, int64_t group)
{
	if (group >= 0 && chown(path, (uid_t)-1, (gid_t)group) < 0)
		return -errno;
	return chmod(path, group >= 0 ? 0660 : 0600) < 0 ? -errno : 0;
}

static int listen_as(int socket, const char *path, int64_t group)
{
	struct sockaddr_un at;
	socklen_t len;
	int rc = mst_shm_address(path, &at, &len);

	if (rc == 0 && bind(socket, (struct sockaddr *)&at, len) < 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	rc = admit_group(path, group);
	if (rc == 0 && listen(socket, SOMAXCONN) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlink(path);
	return rc;
}

int mst_shm_listen(int socket, int64_t group, char path[MST_SHM_PATH_LEN], struct mst_reason *why)
{
	char directory[MST_SHM_PATH_LEN];
	uint32_t nonce;
	int rc = mst_shm_directory(group, directory, why);

	if (rc == 0)
		rc = mst_rand_secret(&nonce, sizeof(nonce));
	if (rc < 0)
		return rc;
	int n = snprintf(path, MST_SHM_PATH_LEN, "%s/%d-%08x.sock", directory, (int)getpid(),
			 nonce);
	MST_ASSERT(n > 0 && (size_t)n < MST_SHM_PATH_LEN); /* name_it() has left room */
	rc = listen_as(socket, path, group);
	if (rc < 0)
		return mst_reason_fail(why, rc, "cannot make a socket in the directory %s: %s; %s",
				       directory, strerror(-rc), fix());
	return 0;
}

bool mst_shm_may_call(int socket, int64_t group)
{
	gid_t groups[1024];
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	if (peer.uid == geteuid() || peer.uid == 0)
		return true;
	if (group < 0 || peer.gid == (gid_t)group)
		return group >= 0;
	len = sizeof(groups);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return true; /* more than fit, or an old kernel: the file's mode has let it in */
	for (size_t i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == (gid_t)group)
			return true;
	return false;
}
