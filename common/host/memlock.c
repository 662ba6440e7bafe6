/* SPDX-License-Identifier: MIT */
#include "common/host/memlock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/host/file.h"
#include "common/host/process.h"

#define CAP_IPC_LOCK_BIT 14 /* of linux/capability.h */

/* Capabilities count for locked memory in the first user namespace only. */
static bool is_in_first_namespace(const char *root)
{
	char *text = mst_host_file("%s/proc/self/uid_map", root);
	uint32_t inside, outside, count;
	bool first = text != NULL &&
		     sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) ==
			     3 &&
		     inside == 0 && outside == 0 && count == UINT32_MAX;

	free(text);
	return first;
}

static uint64_t bytes_of(rlim_t limit)
{
	return limit == RLIM_INFINITY ? MST_MEMLOCK_UNLIMITED : limit;
}

void mst_host_memlock(const char *root, struct mst_memlock *out)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct mst_process p = { 0 };
	char *status = mst_host_file("%s/proc/thread-self/status", root);

	if (status != NULL)
		(void)mst_process_read(status, &p);
	free(status);
	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	*out = (struct mst_memlock){
		.soft_bytes = bytes_of(limit.rlim_cur),
		.hard_bytes = bytes_of(limit.rlim_max),
		.pinned_bytes = p.pinned_bytes,
		.exempt = (p.capabilities >> CAP_IPC_LOCK_BIT & 1u) != 0 &&
			  is_in_first_namespace(root),
	};
}

bool mst_memlock_forbids(const struct mst_memlock *m, uint64_t bytes)
{
	return !m->exempt && (bytes > m->soft_bytes || m->pinned_bytes > m->soft_bytes - bytes);
}

void mst_host_memlock_raise(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_MEMLOCK, &limit);
}
