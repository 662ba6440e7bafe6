/* SPDX-License-Identifier: MIT */
/*
 * How many processes and threads this process may still start. The kernel counts both alike, as
 * tasks, and limits them twice: those of a control group and of all below it by pids.max, whoever
 * they belong to; those of a user by RLIMIT_NPROC, which holds neither for root nor with
 * CAP_SYS_RESOURCE or CAP_SYS_ADMIN.
 *
 * What is said here is never less than the kernel allows at that moment: a start is refused only if
 * it cannot succeed. So a process of this user that cannot be looked into, or is in another user
 * namespace, where the kernel may count it apart, is not counted.
 */
#ifndef MST_HOST_TASKS_H
#define MST_HOST_TASKS_H

#include <stdint.h>

#include "common/base/reason.h"
#include "common/host/cgroup.h"

#define MST_TASKS_UNLIMITED UINT64_MAX

struct mst_host_tasks {
	uint64_t more; /* MST_TASKS_UNLIMITED: nothing is known to limit them */
	/* What has been tightest: the name of the limit, "pids.max" or "RLIMIT_NPROC"; NULL: none.
	 */
	const char *name;
	uint64_t limit, used;
	char group[MST_CGROUP_PATH]; /* of pids.max: below its mount, "/" or "/a/b" */
};

/* @root: of the file tree to look into, "" or a directory made by a test. @want: the caller only
 * wants to know whether @want more may be started, which is quicker to find out than how many. */
void mst_host_tasks(const char *root, uint64_t want, struct mst_host_tasks *out);

/* May @count more be started? @who: what they are, "8 workers and 1 server". @less: of what there
 * could be fewer, "fewer workers"; NULL: nothing.
 * Return: 0; -EAGAIN: no, and @why has the numbers and what to do. */
int mst_host_tasks_check(const char *who, uint64_t count, const char *less, struct mst_reason *why);

/* Why starting a thread or a process has failed: strerror(), and if a limit is reached also which
 * one, its numbers, and what to do. @error: negative errno.
 * Return: the text of @out. */
const char *mst_host_tasks_failed(int error, struct mst_reason *out);

#endif
