/* SPDX-License-Identifier: MIT */
/*
 * A musterd whose disk takes nothing until it is let: each fsync() of the process makes a file
 * MUSTER_HELD/N.asks, where N counts them from 1, and goes on when there is a file MUSTER_HELD/N or
 * MUSTER_HELD/all. Without MUSTER_HELD the disk is as it is.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static atomic_int count;

static int is_there(const char *disk, const char *name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", disk, name);
	return access(path, F_OK) == 0;
}

static void ask(const char *disk, int number)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%d.asks", disk, number);
	FILE *asks = fopen(path, "w");
	if (asks != NULL)
		(void)fclose(asks);
}

int __wrap_fsync(int fd)
{
	const char *disk = getenv("MUSTER_HELD");
	int number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
	char name[16];

	if (disk == NULL)
		return __real_fsync(fd);
	(void)snprintf(name, sizeof(name), "%d", number);
	ask(disk, number);
	while (!is_there(disk, name) && !is_there(disk, "all"))
		(void)usleep(1000);
	return __real_fsync(fd);
}
