/* SPDX-License-Identifier: MIT */
/*
 * Control groups, read from text: where the group of this process is mounted, and what its files
 * say. Pure: nothing here opens a file.
 *
 * A process is in one group of each hierarchy. /proc/self/cgroup names the group, by a path that
 * begins at the root of the process's cgroup namespace; /proc/self/mountinfo says which part of a
 * hierarchy is mounted where. A host may have version 1, with a hierarchy for each controller,
 * version 2, with one for all, or both (hybrid). A limit of any ancestor holds for the group.
 */
#ifndef MST_HOST_CGROUP_H
#define MST_HOST_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define MST_CGROUP_PATH 1024u
#define MST_CGROUPS_MAX 2u         /* one hierarchy of each version */
#define MST_CGROUP_NONE UINT64_MAX /* there is no limit */

struct mst_cgroup {
	bool v2;
	char mount[MST_CGROUP_PATH]; /* the directory where the hierarchy is mounted */
	char group[MST_CGROUP_PATH]; /* below it: "" or "/a/b", without a component ".." */
};

/* The groups of a process that may have files of @controller ("memory", "pids"). @groups and
 * @mounts: the text of /proc/self/cgroup and of /proc/self/mountinfo. A hierarchy that is not
 * mounted, or whose mount shows no ancestor of the group, is left out. Return: how many. */
unsigned mst_cgroup_find(const char *groups, const char *mounts, const char *controller,
			 struct mst_cgroup out[MST_CGROUPS_MAX]);

/* Goes to the parent. Return: false: the group was the topmost that is mounted, and stays. */
bool mst_cgroup_up(struct mst_cgroup *c);

/* The text of a file that holds one limit or figure. "max", and what version 1 writes where nothing
 * is limited (2^63 less a page), are MST_CGROUP_NONE. Return: false: it is no number. */
bool mst_cgroup_number(const char *text, uint64_t *out);

/* The figure of the line "@key FIGURE" in the text of a memory.stat; 0: there is no such line. */
uint64_t mst_cgroup_field(const char *text, const char *key);

#endif
