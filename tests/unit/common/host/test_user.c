/* SPDX-License-Identifier: MIT */
/* Root's rights are given up for good. Each case gives them up in a child; only root can. */
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/host/user.h"
#include "tests/ut.h"

#define OTHER "nobody"

static struct mst_user user;
static struct mst_reason why;

/* Return: what the child does, from 0 to 255. */
static int in_child(int (*body)(void))
{
	int status;

	(void)fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		_exit(body());
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
		       ? WEXITSTATUS(status)
		       : 255;
}

static void users_are_found_by_name(void)
{
	struct mst_user found;

	CU_ASSERT_EQUAL(mst_user_find("nobody-has-this", &found, &why), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(why.text, "there is no user \"nobody-has-this\" on this host"));
	CU_ASSERT_EQUAL(mst_user_find("", &found, &why), -ENOENT);
	CU_ASSERT_EQUAL(mst_user_find("root", &found, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "the user \"root\" has all rights of root"));
	CU_ASSERT_EQUAL_FATAL(mst_user_find(OTHER, &found, &why), 0);
	CU_ASSERT(found.uid != 0 && strcmp(found.name, OTHER) == 0);
}

static int becomes(void)
{
	return -mst_user_become(&user, &why);
}

/* A permitted capability is in effect as soon as the process says so. */
static bool may_have_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &head, has) != 0 || (has[0].permitted | has[1].permitted) != 0;
}

static int becomes_and_comes_back(void)
{
	if (becomes() != 0)
		return 1;
	if (geteuid() != user.uid || getegid() != user.gid)
		return 2;
	if (setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0)
		return 3;
	if (may_have_capabilities())
		return 4;
	return becomes() == 0 ? 0 : 5; /* it is the user already */
}

static void root_becomes_the_user_for_good(void)
{
	CU_ASSERT_EQUAL(in_child(becomes_and_comes_back), 0);
}

/* Capabilities outlive a change of user where that is asked for. */
static int keeps_capabilities(void)
{
	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && becomes_and_comes_back() == 0 ? 0 : 1;
}

static void capabilities_that_would_be_kept_are_given_up(void)
{
	CU_ASSERT_EQUAL(in_child(keeps_capabilities), 0);
}

/* It looks like the user, and can become root again. */
static int has_root_saved(void)
{
	return setresuid(user.uid, user.uid, 0) == 0 ? becomes() : 0;
}

static int is_another(void)
{
	return setresuid(user.uid - 1, user.uid - 1, user.uid - 1) == 0 ? becomes() : 0;
}

static void who_is_not_root_is_refused(void)
{
	CU_ASSERT_EQUAL(in_child(has_root_saved), EPERM);
	CU_ASSERT_EQUAL(in_child(is_another), EPERM);
}

static int hides(void)
{
	struct rlimit limit;

	if (mst_process_hide() != 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return 1;
	return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0 ? 0 : 2;
}

static void a_process_that_hides_cannot_be_dumped(void)
{
	CU_ASSERT_EQUAL(in_child(hides), 0);
}

static CU_TestInfo anybody[] = {
	{ "users are found by name", users_are_found_by_name },
	{ "a process that hides cannot be dumped", a_process_that_hides_cannot_be_dumped },
	CU_TEST_INFO_NULL,
};

static CU_TestInfo root[] = {
	{ "users are found by name", users_are_found_by_name },
	{ "a process that hides cannot be dumped", a_process_that_hides_cannot_be_dumped },
	{ "root becomes the user for good", root_becomes_the_user_for_good },
	{ "capabilities that would be kept are given up",
	  capabilities_that_would_be_kept_are_given_up },
	{ "who is not root is refused", who_is_not_root_is_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	if (mst_user_find(OTHER, &user, &why) != 0) {
		printf("skipped: %s\n", why.text);
		return UT_SKIP;
	}
	return ut_main("user", geteuid() == 0 ? root : anybody);
}
