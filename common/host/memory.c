/* SPDX-License-Identifier: MIT */
#include "common/host/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/host/file.h"

/* A limit of a control group, and the file that tells what of it is used. Version 1 has a second
 * limit, for memory and swap together: it is never below the first, but may be used up sooner.
 * Version 2 limits swap by itself, which takes nothing from memory. memory.high does not kill, but
 * slows down who goes beyond it until nothing goes on. */
struct limit {
	const char *limit, *used;
};

static const struct limit limits_v1[] = {
	{ "memory.limit_in_bytes", "memory.usage_in_bytes" },
	{ "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes" },
};

static const struct limit limits_v2[] = {
	{ "memory.max", "memory.current" },
	{ "memory.high", "memory.current" },
};

#define LIMITS 2u

/* The page cache of the group and of the groups below it. Neither list has shared memory or locked
 * memory. */
static uint64_t read_cache(const char *root, const struct mst_cgroup *c)
{
	char *text = mst_host_file("%s%s%s/memory.stat", root, c->mount, c->group);
	uint64_t cache = 0;

	if (text != NULL && c->v2)
		cache = mst_cgroup_field(text, "inactive_file") +
			mst_cgroup_field(text, "active_file");
	else if (text != NULL)
		cache = mst_cgroup_field(text, "total_inactive_file") +
			mst_cgroup_field(text, "total_active_file");
	free(text);
	return cache;
}

static void look_at_limit(const char *root, const struct mst_cgroup *c, const struct limit *l,
			  struct mst_host_memory *out)
{
	uint64_t limit, used = 0;

	if (!mst_host_figure(root, c, l->limit, &limit) || limit == MST_CGROUP_NONE)
		return;
	(void)mst_host_figure(root, c, l->used, &used);
	uint64_t cache = read_cache(root, c);
	uint64_t taken = used > cache ? used - cache : 0;
	uint64_t left = limit > taken ? limit - taken : 0;
	if (left >= out->free_bytes)
		return;
	out->free_bytes = left;
	out->limit_bytes = limit;
	out->file = l->limit;
	(void)snprintf(out->group, sizeof(out->group), "%s", c->group[0] != '\0' ? c->group : "/");
}

/* In version 1 a group whose use_hierarchy is 0 neither counts nor limits what is below it. */
static bool rules_below(const char *root, const struct mst_cgroup *c)
{
	uint64_t hierarchy = 1;

	return c->v2 || !mst_host_figure(root, c, "memory.use_hierarchy", &hierarchy) ||
	       hierarchy != 0;
}

static void look_at_limits(const char *root, const struct mst_cgroup *c,
			   struct mst_host_memory *out)
{
	const struct limit *limits = c->v2 ? limits_v2 : limits_v1;

	for (unsigned i = 0; i < LIMITS; i++)
		look_at_limit(root, c, &limits[i], out);
}

/* Looks at the group and all its ancestors: each may be the tightest, because of what its other
 * groups use. */
static void look_at_group(const char *root, struct mst_cgroup *c, struct mst_host_memory *out)
{
	look_at_limits(root, c, out);
	while (mst_cgroup_up(c))
		if (rules_below(root, c))
			look_at_limits(root, c, out);
}

static uint64_t host_free(const char *root)
{
	char *text = mst_host_file("%s/proc/meminfo", root);
	const char *line = text != NULL ? strstr(text, "MemAvailable:") : NULL;
	uint64_t kib = line != NULL ? strtoull(line + strlen("MemAvailable:"), NULL, 10) : 0;

	free(text);
	return line != NULL && kib < MST_MEMORY_UNKNOWN / 1024 ? kib * 1024 : MST_MEMORY_UNKNOWN;
}

void mst_host_memory(const char *root, struct mst_host_memory *out)
{
	char *groups = mst_host_file("%s/proc/self/cgroup", root);
	char *mounts = mst_host_file("%s/proc/self/mountinfo", root);
	struct mst_cgroup group[MST_CGROUPS_MAX];
	unsigned count = 0;

	*out = (struct mst_host_memory){ .free_bytes = host_free(root) };
	if (groups != NULL && mounts != NULL)
		count = mst_cgroup_find(groups, mounts, "memory", group);
	for (unsigned i = 0; i < count; i++)
		look_at_group(root, &group[i], out);
	free(groups);
	free(mounts);
}

uint64_t mst_host_memory_share(const struct mst_host_memory *m)
{
	return m->free_bytes == MST_MEMORY_UNKNOWN ? MST_MEMORY_UNKNOWN : m->free_bytes / 4 * 3;
}

const char *mst_host_memory_source(const struct mst_host_memory *m, char *out, size_t len)
{
	char text[32];

	if (m->file == NULL)
		(void)snprintf(out, len, "of what the host has free");
	else
		(void)snprintf(out, len, "of what is free in control group %.160s, %s %s", m->group,
			       m->file, mst_memory_text(m->limit_bytes, text, sizeof(text)));
	mst_text_clean(out); /* the name comes from whoever made the group */
	return out;
}

const char *mst_memory_text(uint64_t bytes, char *out, size_t len)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	size_t i = 0;

	while (value >= 1024 && i + 1 < sizeof(unit) / sizeof(unit[0])) {
		value /= 1024;
		i++;
	}
	(void)mst_text_print(out, len, i == 0 ? "%.0f %s" : "%.1f %s", value, unit[i]);
	return out;
}
