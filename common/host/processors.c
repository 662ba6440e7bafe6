/* SPDX-License-Identifier: MIT */
#include "common/host/processors.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/host/cgroup.h"
#include "common/host/file.h"

/* If the kernel does not say, there is no bound. */
static uint64_t affinity(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint64_t)CPU_COUNT(&set)
							    : UINT64_MAX;
}

/* "QUOTA PERIOD" in microseconds, or "max PERIOD". */
static bool read_v2(const char *root, const struct mst_cgroup *c, uint64_t *quota, uint64_t *period)
{
	char *text = mst_host_file("%s%s%s/cpu.max", root, c->mount, c->group);
	bool found = text != NULL && sscanf(text, "%" SCNu64 " %" SCNu64, quota, period) == 2;

	free(text);
	return found;
}

/* A quota of -1, which is none, is no number for mst_host_figure(). */
static bool read_v1(const char *root, const struct mst_cgroup *c, uint64_t *quota, uint64_t *period)
{
	return mst_host_figure(root, c, "cpu.cfs_quota_us", quota) &&
	       mst_host_figure(root, c, "cpu.cfs_period_us", period);
}

static uint64_t quota_of(const char *root, const struct mst_cgroup *c)
{
	uint64_t quota, period;
	bool found = c->v2 ? read_v2(root, c, &quota, &period) : read_v1(root, c, &quota, &period);

	if (!found || period == 0 || quota == MST_CGROUP_NONE)
		return UINT64_MAX;
	return quota / period + (quota % period != 0);
}

/* The quota of each ancestor holds for the group, too. */
static uint64_t least_quota(const char *root)
{
	char *groups = mst_host_file("%s/proc/self/cgroup", root);
	char *mounts = mst_host_file("%s/proc/self/mountinfo", root);
	struct mst_cgroup group[MST_CGROUPS_MAX];
	uint64_t least = UINT64_MAX;
	unsigned count = 0;

	if (groups != NULL && mounts != NULL)
		count = mst_cgroup_find(groups, mounts, "cpu", group);
	for (unsigned i = 0; i < count; i++) {
		do {
			uint64_t one = quota_of(root, &group[i]);
			least = one < least ? one : least;
		} while (mst_cgroup_up(&group[i]));
	}
	free(groups);
	free(mounts);
	return least;
}

uint32_t mst_host_processors(const char *root)
{
	uint64_t quota = least_quota(root), allowed = affinity();
	uint64_t least = quota < allowed ? quota : allowed;

	if (least == 0)
		return 1;
	return least < UINT32_MAX ? (uint32_t)least : UINT32_MAX;
}
