/* SPDX-License-Identifier: MIT */
#include "common/host/tasks.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text.h"
#include "common/host/file.h"
#include "common/host/process.h"

/* ---- control groups ---- */

static void take_if_tighter(struct mst_host_tasks *out, const char *name, uint64_t limit,
			    uint64_t used)
{
	uint64_t left = limit > used ? limit - used : 0;

	if (left >= out->more)
		return;
	out->more = left;
	out->name = name;
	out->limit = limit;
	out->used = used;
}

/* The topmost group has no such files, so it is skipped. */
static void look_at_group(const char *root, const struct mst_cgroup *c, struct mst_host_tasks *out)
{
	uint64_t limit, used, before = out->more;

	if (!mst_host_figure(root, c, "pids.max", &limit) || limit == MST_CGROUP_NONE ||
	    !mst_host_figure(root, c, "pids.current", &used))
		return;
	take_if_tighter(out, "pids.max", limit, used);
	if (out->more < before)
		(void)snprintf(out->group, sizeof(out->group), "%s",
			       c->group[0] != '\0' ? c->group : "/");
}

static void look_at_groups(const char *root, struct mst_host_tasks *out)
{
	char *groups = mst_host_file("%s/proc/self/cgroup", root);
	char *mounts = mst_host_file("%s/proc/self/mountinfo", root);
	struct mst_cgroup group[MST_CGROUPS_MAX];
	unsigned count = 0;

	if (groups != NULL && mounts != NULL)
		count = mst_cgroup_find(groups, mounts, "pids", group);
	for (unsigned i = 0; i < count; i++) {
		do
			look_at_group(root, &group[i], out);
		while (mst_cgroup_up(&group[i]));
	}
	free(groups);
	free(mounts);
}

/* ---- the user's ---- */

#define CAP_SYS_ADMIN_BIT 21
#define CAP_SYS_RESOURCE_BIT 24

static bool is_exempt(const struct mst_process *self)
{
	uint64_t exempts = UINT64_C(1) << CAP_SYS_ADMIN_BIT | UINT64_C(1) << CAP_SYS_RESOURCE_BIT;

	return self->uid == 0 || (self->capabilities & exempts) != 0;
}

static bool read_process(const char *root, const char *name, struct mst_process *out)
{
	char *text = mst_host_file("%s/proc/%s/status", root, name);
	bool got = text != NULL && mst_process_read(text, out);

	free(text);
	return got;
}

#define NAMESPACE_LEN 64u

/* Reads "user:[4026531837]"; "": it is not known. */
static void read_namespace(const char *root, const char *name, char out[NAMESPACE_LEN])
{
	char path[MST_HOST_PATH];

	(void)snprintf(path, sizeof(path), "%s/proc/%s/ns/user", root, name);
	ssize_t got = readlink(path, out, NAMESPACE_LEN - 1);
	out[got > 0 ? got : 0] = '\0';
}

static uint64_t threads_of(const char *root, const char *name, uint64_t uid, const char *namespace)
{
	char other[NAMESPACE_LEN];
	struct mst_process p;

	if (name[0] < '0' || name[0] > '9' || !read_process(root, name, &p) || p.uid != uid)
		return 0;
	read_namespace(root, name, other);
	return other[0] != '\0' && strcmp(other, namespace) == 0 ? p.threads : 0;
}

static uint64_t count_tasks(const char *root, uint64_t uid)
{
	char path[MST_HOST_PATH], namespace[NAMESPACE_LEN];
	const struct dirent *entry;
	uint64_t count = 0;

	(void)snprintf(path, sizeof(path), "%s/proc", root);
	DIR *folder = opendir(path);
	if (folder == NULL)
		return 0;
	read_namespace(root, "self", namespace);
	while ((entry = readdir(folder)) != NULL)
		count += threads_of(root, entry->d_name, uid, namespace);
	(void)closedir(folder);
	return count;
}

/* Is there room even if all tasks of the host belong to this user? Then it is not necessary to look
 * at each process. */
static bool has_room(const char *root, uint64_t limit, uint64_t want)
{
	char *text = mst_host_file("%s/proc/loadavg", root);
	uint64_t all = text != NULL ? mst_process_all(text) : MST_PROCESS_UNLIMITED;

	free(text);
	return all <= limit && limit - all >= want;
}

static void look_at_user(const char *root, uint64_t want, struct mst_host_tasks *out)
{
	char *text = mst_host_file("%s/proc/self/limits", root);
	uint64_t limit = text != NULL ? mst_process_limit(text, "Max processes")
				      : MST_PROCESS_UNLIMITED;
	struct mst_process self;

	free(text);
	if (limit == MST_PROCESS_UNLIMITED || !read_process(root, "self", &self) ||
	    is_exempt(&self) || has_room(root, limit, want))
		return;
	take_if_tighter(out, "RLIMIT_NPROC", limit, count_tasks(root, self.uid));
}

void mst_host_tasks(const char *root, uint64_t want, struct mst_host_tasks *out)
{
	*out = (struct mst_host_tasks){ .more = MST_TASKS_UNLIMITED };
	look_at_groups(root, out);
	look_at_user(root, want, out);
}

/* ---- for people ---- */

static const char *tell_limit(const struct mst_host_tasks *t, char *out, size_t len)
{
	if (strcmp(t->name, "pids.max") == 0)
		(void)snprintf(out, len,
			       "control group %.160s has %" PRIu64 ", and its pids.max is %" PRIu64
			       ": raise that (TasksMax= of a systemd unit, --pids-limit of a "
			       "container)",
			       t->group, t->used, t->limit);
	else
		(void)snprintf(out, len,
			       "this user has %" PRIu64 ", and RLIMIT_NPROC is %" PRIu64
			       ": raise that (ulimit -u, nproc in /etc/security/limits.conf, "
			       "LimitNPROC= of a systemd unit, --ulimit nproc= of a container)",
			       t->used, t->limit);
	mst_text_clean(out); /* the name comes from whoever made the group */
	return out;
}

int mst_host_tasks_check(const char *who, uint64_t count, const char *less, struct mst_reason *why)
{
	struct mst_host_tasks t;
	char limit[400];

	mst_host_tasks("", count, &t);
	if (count <= t.more)
		return 0;
	mst_reason_set(why,
		       "no room for %s: they take %" PRIu64 " processes and threads, and %" PRIu64
		       " more are allowed; %s%s%s",
		       who, count, t.more, tell_limit(&t, limit, sizeof(limit)),
		       less != NULL ? ", or take " : "", less != NULL ? less : "");
	return -EAGAIN;
}

const char *mst_host_tasks_failed(int error, struct mst_reason *out)
{
	struct mst_host_tasks t = { .more = MST_TASKS_UNLIMITED };
	char limit[400];

	if (error == -EAGAIN)
		mst_host_tasks("", MST_TASKS_UNLIMITED, &t);
	if (t.more == 0)
		mst_reason_set(out, "%s: of processes and threads %s", strerror(-error),
			       tell_limit(&t, limit, sizeof(limit)));
	else if (error == -EAGAIN)
		mst_reason_set(out,
			       "%s: a limit of processes and threads is reached, of this user "
			       "(ulimit -u), its control groups (pids.max) or the host "
			       "(kernel.threads-max)",
			       strerror(-error));
	else
		mst_reason_set(out, "%s", strerror(-error));
	return out->text;
}
