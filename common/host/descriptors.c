/* SPDX-License-Identifier: MIT */
#include "common/host/descriptors.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>

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
