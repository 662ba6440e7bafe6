/* SPDX-License-Identifier: MIT */
#include "common/host/cgroup.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A part of a text. */
struct slice {
	const char *at;
	size_t len;
};

/* Version 1 writes a huge number for "no limit", which depends on the page size. No host has so
 * much. */
#define NO_LIMIT (UINT64_C(1) << 62)

/* Removes everything up to the first @end from @rest, and @end itself.
 * Return: what stood before @end. */
static struct slice cut(struct slice *rest, char end)
{
	const char *found = rest->len > 0 ? memchr(rest->at, end, rest->len) : NULL;
	size_t len = found != NULL ? (size_t)(found - rest->at) : rest->len;
	struct slice first = { rest->at, len };

	rest->at += found != NULL ? len + 1 : len;
	rest->len -= found != NULL ? len + 1 : len;
	return first;
}

static bool equals(struct slice s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* Is @word in a list that is separated by commas? */
static bool lists(struct slice list, const char *word)
{
	while (list.len > 0)
		if (equals(cut(&list, ','), word))
			return true;
	return false;
}

static bool is_octal(const char *at)
{
	return at[0] >= '0' && at[0] <= '3' && at[1] >= '0' && at[1] <= '7' && at[2] >= '0' &&
	       at[2] <= '7';
}

/* Copies a path; the kernel writes blanks and the like as \040. Return: false: it is too long, or
 * none. */
static bool copy_path(struct slice from, char out[MST_CGROUP_PATH])
{
	size_t used = 0;

	for (size_t i = 0; i < from.len && used + 1 < MST_CGROUP_PATH; used++) {
		if (from.at[i] == '\\' && from.len - i >= 4 && is_octal(from.at + i + 1)) {
			out[used] = (char)((from.at[i + 1] - '0') * 64 +
					   (from.at[i + 2] - '0') * 8 + (from.at[i + 3] - '0'));
			i += 4;
		} else {
			out[used] = from.at[i++];
		}
	}
	out[used] = '\0';
	return from.len > 0 && out[0] == '/' && strlen(out) == used && used + 1 < MST_CGROUP_PATH;
}

/* How many components ".." a path begins with: it lies this number of levels above the root of the
 * namespace. */
static size_t ups(const char *path)
{
	size_t count = 0;

	for (; strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0'); path += 3)
		count++;
	return count;
}

static bool holds_up(const char *path)
{
	for (; path != NULL && *path != '\0'; path = strchr(path + 1, '/'))
		if (ups(path) > 0)
			return true;
	return false;
}

/* Where the group lies below a mount of its hierarchy that shows it from @root on. NULL: the mount
 * does not show the group, nor an ancestor. A mount made outside the namespace may begin above the
 * namespace's root ("/.."); the names in between are hidden, so that its topmost group, which is an
 * ancestor, is all that can be looked at. */
static const char *below(const char *root, const char *group)
{
	size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	size_t above = ups(root);

	if (strncmp(root, group, len) == 0 && (group[len] == '/' || group[len] == '\0') &&
	    !holds_up(group + len))
		return strcmp(group + len, "/") == 0 ? "" : group + len;
	if (above > 0 && 3 * above == strlen(root) && above >= ups(group))
		return "";
	return NULL;
}

/* Finds the group in the hierarchy of @controller; NULL: the hierarchy of version 2. */
static bool find_group(const char *groups, const char *controller, char out[MST_CGROUP_PATH])
{
	struct slice rest = { groups, strlen(groups) };

	while (rest.len > 0) {
		struct slice line = cut(&rest, '\n');
		struct slice number = cut(&line, ':'), list = cut(&line, ':');
		bool wanted = controller != NULL ? lists(list, controller)
						 : equals(number, "0") && list.len == 0;
		if (wanted)
			return copy_path(line, out);
	}
	return false;
}

struct mount {
	struct slice root, point, type, options;
};

/* "31 23 0:28 ROOT POINT rw,relatime shared:7 - TYPE SOURCE OPTIONS" */
static bool read_mount(struct slice line, struct mount *out)
{
	for (int i = 0; i < 3; i++)
		(void)cut(&line, ' ');
	out->root = cut(&line, ' ');
	out->point = cut(&line, ' ');
	while (line.len > 0 && !equals(cut(&line, ' '), "-"))
		;
	out->type = cut(&line, ' ');
	(void)cut(&line, ' ');
	out->options = line;
	return out->type.len > 0;
}

/* Finds the mount that shows most ancestors of the group; of equal ones the last, which covers the
 * others. */
static bool find_mount(const char *mounts, const char *controller, const char *group,
		       struct mst_cgroup *out)
{
	struct slice rest = { mounts, strlen(mounts) };
	const char *best = NULL;
	struct mount m;

	while (rest.len > 0) {
		char root[MST_CGROUP_PATH], point[MST_CGROUP_PATH];
		if (!read_mount(cut(&rest, '\n'), &m) ||
		    !equals(m.type, controller != NULL ? "cgroup" : "cgroup2") ||
		    (controller != NULL && !lists(m.options, controller)) ||
		    !copy_path(m.root, root) || !copy_path(m.point, point))
			continue;
		const char *at = below(root, group);
		if (at == NULL || (best != NULL && strlen(at) < strlen(best)))
			continue;
		best = at;
		(void)snprintf(out->mount, sizeof(out->mount), "%s", point);
	}
	if (best == NULL)
		return false;
	(void)snprintf(out->group, sizeof(out->group), "%s", best);
	out->v2 = controller == NULL;
	return true;
}

unsigned mst_cgroup_find(const char *groups, const char *mounts, const char *controller,
			 struct mst_cgroup out[MST_CGROUPS_MAX])
{
	const char *hierarchy[] = { controller, NULL };
	char group[MST_CGROUP_PATH];
	unsigned count = 0;

	for (unsigned i = 0; i < 2; i++)
		count += find_group(groups, hierarchy[i], group) &&
			 find_mount(mounts, hierarchy[i], group, &out[count]);
	return count;
}

bool mst_cgroup_up(struct mst_cgroup *c)
{
	char *slash = strrchr(c->group, '/');

	if (slash == NULL)
		return false;
	*slash = '\0';
	return true;
}

/* Reads digits. A number too large for 64 bits becomes the largest one. */
static bool read_digits(struct slice s, uint64_t *out)
{
	uint64_t value = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
		uint64_t digit = (uint64_t)(s.at[i] - '0');
		value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
	}
	*out = value;
	return s.len > 0;
}

bool mst_cgroup_number(const char *text, uint64_t *out)
{
	struct slice rest = { text, strlen(text) };
	struct slice line = cut(&rest, '\n');

	if (equals(line, "max")) {
		*out = MST_CGROUP_NONE;
		return true;
	}
	if (!read_digits(line, out))
		return false;
	if (*out >= NO_LIMIT)
		*out = MST_CGROUP_NONE;
	return true;
}

uint64_t mst_cgroup_field(const char *text, const char *key)
{
	struct slice rest = { text, strlen(text) };
	uint64_t value;

	while (rest.len > 0) {
		struct slice line = cut(&rest, '\n');
		if (equals(cut(&line, ' '), key))
			return read_digits(line, &value) ? value : 0;
	}
	return 0;
}
