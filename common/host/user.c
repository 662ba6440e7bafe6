/* SPDX-License-Identifier: MIT */
#include "common/host/user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int mst_user_find(const char *name, struct mst_user *out, struct mst_reason *why)
{
	errno = 0;
	const struct passwd *found = getpwnam(name);

	if (found == NULL || strlen(found->pw_name) >= sizeof(out->name)) {
		mst_reason_set(why,
			       "there is no user \"%.60s\" on this host (getent passwd shows them)",
			       name);
		return -ENOENT;
	}
	if (found->pw_uid == 0) {
		mst_reason_set(why, "the user \"%.60s\" has all rights of root: name another",
			       name);
		return -EINVAL;
	}
	*out = (struct mst_user){ .uid = found->pw_uid, .gid = found->pw_gid };
	(void)snprintf(out->name, sizeof(out->name), "%s", found->pw_name);
	return 0;
}

static int failed(const char *what, const struct mst_user *user, struct mst_reason *why)
{
	int rc = errno != 0 ? -errno : -EPERM;

	mst_reason_set(why, "cannot become the user %.60s (uid %u): %s: %s", user->name,
		       (unsigned)user->uid, what, strerror(-rc));
	return rc;
}

static bool is_user(const struct mst_user *user)
{
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) == 0 && real == user->uid &&
	       effective == user->uid && saved == user->uid;
}

static bool is_in_group(const struct mst_user *user)
{
	gid_t real, effective, saved;

	return getresgid(&real, &effective, &saved) == 0 && real == user->gid &&
	       effective == user->gid && saved == user->gid;
}

/* The C library has no call for capabilities. */
static bool give_up_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return syscall(SYS_capset, &head, none) == 0;
}

static bool has_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, has) != 0)
		return true;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		if ((has[i].effective | has[i].permitted | has[i].inheritable) != 0)
			return true;
	return false;
}

/* Groups first: they need rights that are lost with the user id. */
static const char *change(const struct mst_user *user)
{
	if (initgroups(user->name, user->gid) != 0)
		return "setting its groups";
	if (setresgid(user->gid, user->gid, user->gid) != 0)
		return "setting its group";
	if (setresuid(user->uid, user->uid, user->uid) != 0)
		return "setting its user id";
	return NULL;
}

/* Each of these calls has to fail. */
static bool can_come_back(void)
{
	return setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0 || setegid(0) == 0 ||
	       setgroups(0, NULL) == 0;
}

int mst_user_become(const struct mst_user *user, struct mst_reason *why)
{
	if (geteuid() != 0 && !is_user(user)) {
		mst_reason_set(why,
			       "only root can become the user %.60s, and this process is run by "
			       "uid %u: start it as root, or as %.60s",
			       user->name, (unsigned)geteuid(), user->name);
		return -EPERM;
	}
	errno = 0;
	bool changes = !is_user(user);
	const char *failure = changes ? change(user) : NULL;
	if (failure != NULL)
		return failed(failure, user, why);
	if (!give_up_capabilities())
		return failed("giving up capabilities", user, why);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return failed("giving up new rights", user, why);
	errno = 0;
	if (!is_user(user) || (changes && !is_in_group(user)) || has_capabilities() ||
	    can_come_back()) {
		errno = EPERM;
		return failed("the rights of root can still be had", user, why);
	}
	return 0;
}

int mst_process_hide(void)
{
	const struct rlimit none = { 0, 0 };

	/* The limit alone does not keep a core dump from a program that collects them; the flag
	 * does. The limit is what people see in /proc/PID/limits. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return -errno;
	return setrlimit(RLIMIT_CORE, &none) == 0 ? 0 : -errno;
}
