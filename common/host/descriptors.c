/* SPDX-License-Identifier: MIT */
#include "common/host/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/host/file.h"

void mst_host_descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t mst_host_descriptors_max(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

int mst_descriptor_lift(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int lifted = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;

	(void)close(fd);
	errno = error;
	return lifted;
}

/* Opens /dev/null as @fd if that is closed. Lower numbers are open, and open() gives the lowest
 * number that is free. Return: it was closed. */
static bool fill(int fd, int flags)
{
	if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
		return false;
	int got = open("/dev/null", O_RDWR | flags);

	if (got > fd) /* another thread was quicker */
		(void)close(got);
	return got == fd;
}

void mst_descriptors_open_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		(void)fill(fd, 0);
}

void mst_descriptors_hold(struct mst_descriptors_held *out)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		out->is_held[fd] = fill(fd, O_CLOEXEC);
}

void mst_descriptors_release(const struct mst_descriptors_held *held)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (held->is_held[fd])
			(void)close(fd);
}

uint64_t mst_host_descriptors_open(const char *root)
{
	char path[MST_HOST_PATH];
	uint64_t count = 0;
	struct dirent *entry;

	(void)snprintf(path, sizeof(path), "%s/proc/self/fd", root);
	DIR *folder = opendir(path);
	if (folder == NULL)
		return 3;
	while ((entry = readdir(folder)) != NULL)
		count += entry->d_name[0] != '.';
	(void)closedir(folder);
	return count > 0 ? count - 1 : 0; /* one was the folder's own */
}
