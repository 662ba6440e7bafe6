/* SPDX-License-Identifier: MIT */
/* Giving up the rights of root, and core dumps. */
#ifndef MST_HOST_USER_H
#define MST_HOST_USER_H

#include <sys/types.h>

#include "common/base/reason.h"

#define MST_USER_NAME_LEN 256u

struct mst_user {
	char name[MST_USER_NAME_LEN];
	uid_t uid;
	gid_t gid; /* the user's own group */
};

/* Looks a user up by name. The user root is refused.
 * @why: a sentence.
 * Return: 0 or -errno; -ENOENT: there is no such user. */
int mst_user_find(const char *name, struct mst_user *out, struct mst_reason *why);

/* This process becomes the user, with the user's groups and without capabilities, and can gain no
 * rights by executing a program. Then it looks whether the rights of root can be had back. A
 * process that is the user already only gives up what it may still have.
 * Call this before there are other threads.
 * @why: a sentence.
 * Return: 0, or -errno: the process has to end, because it may have given up a part of its
 * rights; -EPERM also where it is neither root nor the user. */
int mst_user_become(const struct mst_user *user, struct mst_reason *why);

/* From now on this process leaves no core dump, whatever the limits are and whoever collects core
 * dumps, and processes of the same user cannot read its memory (ptrace, /proc/PID/mem).
 * Return: 0 or -errno. */
int mst_process_hide(void);

#endif
