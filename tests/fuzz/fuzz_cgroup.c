/* SPDX-License-Identifier: MIT */
/*
 * An input is the text of /proc/self/cgroup, an empty line, the text of /proc/self/mountinfo, and
 * perhaps another and that of a memory.stat. Whatever it says, the groups found lie below their
 * mount, each ancestor once, and a figure is read or refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/host/cgroup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text after the first empty line, which is cut off. */
static char *cut(char *text)
{
	char *end = strstr(text, "\n\n");

	if (end == NULL)
		return text + strlen(text);
	end[1] = '\0';
	return end + 2;
}

static bool climbs_out(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/..")) != NULL; at += 3)
		if (at[3] == '/' || at[3] == '\0')
			return true;
	return false;
}

static void look(struct mst_cgroup *c)
{
	size_t before = strlen(c->group) + 1;

	MST_ASSERT(c->mount[0] == '/' && strlen(c->mount) < sizeof(c->mount));
	MST_ASSERT(c->group[0] == '/' || c->group[0] == '\0');
	MST_ASSERT(!climbs_out(c->group));
	do {
		MST_ASSERT(strlen(c->group) < before);
		before = strlen(c->group);
	} while (mst_cgroup_up(c));
	MST_ASSERT(c->group[0] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const controller[] = { "memory", "pids" };
	struct mst_cgroup found[MST_CGROUPS_MAX];
	char *groups = strndup((const char *)data, size);
	uint64_t value = 0;

	MST_ASSERT(groups != NULL);
	char *mounts = cut(groups), *stat = cut(mounts);
	for (unsigned i = 0; i < 2; i++) {
		unsigned count = mst_cgroup_find(groups, mounts, controller[i], found);
		MST_ASSERT(count <= MST_CGROUPS_MAX);
		for (unsigned k = 0; k < count; k++)
			look(&found[k]);
	}
	(void)mst_cgroup_field(stat, "inactive_file");
	if (mst_cgroup_number(stat, &value))
		MST_ASSERT((stat[0] >= '0' && stat[0] <= '9') || value == MST_CGROUP_NONE);
	free(groups);
	return 0;
}
