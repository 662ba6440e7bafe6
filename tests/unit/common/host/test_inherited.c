/* SPDX-License-Identifier: MIT */
/* What a process inherits: standard files that are closed, blocked signals, limits. Each case runs
 * in a child, whose exit status is the number of its first mistake. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/host/descriptors.h"
#include "common/host/inherited.h"
#include "common/host/limits.h"
#include "tests/ut.h"

#define NONE_CLOSED 0u
#define ALL_CLOSED 7u

static int in_child(int (*run)(unsigned), unsigned closed)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		while ((status = open("/dev/null", O_RDWR)) >= 0 && status < 3)
			;
		for (int fd = 0; fd < 3; fd++)
			if ((closed >> fd & 1u) != 0)
				(void)close(fd);
		_exit(run(closed));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : 99;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Are just those closed? */
static bool are_closed(unsigned closed)
{
	unsigned found = 0;

	for (int fd = 0; fd < 3; fd++)
		found |= is_open(fd) ? 0 : 1u << fd;
	return found == closed;
}

/* ---- standard files ---- */

static int lifts(unsigned closed)
{
	int pair[2], flags;

	if (pipe(pair) != 0)
		return 1;
	for (int i = 0; i < 2; i++) {
		pair[i] = mst_descriptor_lift(pair[i]);
		flags = fcntl(pair[i], F_GETFD);
		if (pair[i] < 3 || flags < 0)
			return 2;
	}
	if (write(pair[1], "x", 1) != 1 || read(pair[0], &flags, 1) != 1)
		return 3;
	errno = EMFILE;
	if (mst_descriptor_lift(-1) != -1 || errno != EMFILE)
		return 4;
	return are_closed(closed) ? 0 : 5;
}

/* No descriptor is left where it would have to go. */
static int lifts_no_more(unsigned closed)
{
	const struct rlimit few = { 3, 3 };
	int low = open("/dev/null", O_RDONLY);

	if (setrlimit(RLIMIT_NOFILE, &few) != 0 || low != 0)
		return 1;
	if (mst_descriptor_lift(low) != -1 || (errno != EMFILE && errno != EINVAL))
		return 2;
	return are_closed(closed) ? 0 : 3;
}

static int holds(unsigned closed)
{
	struct mst_descriptors_held held;

	mst_descriptors_hold(&held);
	int fd = dup(STDIN_FILENO);
	if (!are_closed(NONE_CLOSED) || fd < 3)
		return 1;
	mst_descriptors_release(&held);
	return are_closed(closed) && is_open(fd) ? 0 : 2;
}

static int settles(unsigned closed)
{
	struct mst_reason why;
	struct stat null, file;

	if (mst_inherited_settle(&why) != 0 || !are_closed(NONE_CLOSED))
		return 1;
	if (stat("/dev/null", &null) != 0)
		return 2;
	for (int fd = 0; fd < 3; fd++)
		if ((closed >> fd & 1u) != 0 &&
		    (fstat(fd, &file) != 0 || file.st_rdev != null.st_rdev ||
		     (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0))
			return 3;
	return 0;
}

static void nothing_of_ours_gets_a_standard_number(void)
{
	for (unsigned closed = NONE_CLOSED; closed <= ALL_CLOSED; closed++) {
		CU_ASSERT_EQUAL(in_child(lifts, closed), 0);
		CU_ASSERT_EQUAL(in_child(holds, closed), 0);
	}
	CU_ASSERT_EQUAL(in_child(lifts_no_more, 1), 0);
}

static void a_program_opens_what_is_closed(void)
{
	for (unsigned closed = NONE_CLOSED; closed <= ALL_CLOSED; closed++)
		CU_ASSERT_EQUAL(in_child(settles, closed), 0);
}

/* ---- signals ---- */

static int heeds_signals(unsigned unused)
{
	struct mst_reason why;
	struct sigaction found;
	sigset_t all;

	(void)unused;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_DFL);
	if (mst_inherited_settle(&why) != 0 || sigprocmask(SIG_SETMASK, NULL, &all) != 0)
		return 1;
	if (sigismember(&all, SIGTERM) || sigismember(&all, SIGINT) || sigismember(&all, SIGXFSZ))
		return 2;
	if (sigaction(SIGHUP, NULL, &found) != 0 || found.sa_handler != SIG_IGN)
		return 3; /* nohup means it */
	if (sigaction(SIGXFSZ, NULL, &found) != 0 || found.sa_handler != SIG_IGN)
		return 4;
	mst_inherited_hand_on();
	return sigaction(SIGXFSZ, NULL, &found) == 0 && found.sa_handler == SIG_DFL ? 0 : 5;
}

static void blocked_signals_are_heeded_and_ignored_ones_stay_so(void)
{
	CU_ASSERT_EQUAL(in_child(heeds_signals, NONE_CLOSED), 0);
}

/* ---- limits ---- */

/* Both are lowered, so that nobody who is not root can raise it again. */
static bool limit_to(int resource, rlim_t value)
{
	const struct rlimit limit = { value, value };

	return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}

static bool says(const struct mst_reason *why, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strstr(why->text, *words) == NULL)
			return false;
	return true;
}

static int names_the_length_of_files(unsigned unused)
{
	const char *const words[] = { "File too large",
				      "at most 64.0 KiB",
				      "RLIMIT_FSIZE",
				      "1.0 MiB are needed",
				      "ulimit -f",
				      "LimitFSIZE",
				      "PropagateResourceLimits",
				      NULL };
	struct mst_reason why;

	(void)unused;
	if (mst_limit_file(UINT64_C(1) << 40, &why) != 0)
		return 1;
	if (!limit_to(RLIMIT_FSIZE, 65536) || mst_limit_file(65536, &why) != 0)
		return 2;
	if (mst_limit_file((uint64_t)1 << 20, &why) != -EFBIG || !says(&why, words))
		return 3;
	return says((mst_limit_failed(-EFBIG, 0, &why), &why), (const char *[]){ words[2], NULL })
		       ? 0
		       : 4;
}

static int names_address_space_and_descriptors(unsigned unused)
{
	const char *const space[] = { strerror(ENOMEM), "64.0 TiB (RLIMIT_AS), has ", "ulimit -v",
				      "LimitAS", NULL };
	const char *const files[] = { strerror(EMFILE), "RLIMIT_NOFILE", "up to number at most 63",
				      "LimitNOFILE", NULL };
	struct mst_reason why;

	(void)unused;
	(void)mst_limit_failed(-ENOMEM, 0, &why);
	if (strcmp(why.text, strerror(ENOMEM)) != 0)
		return 1;
	if (!limit_to(RLIMIT_AS, (rlim_t)1 << 46) || !limit_to(RLIMIT_NOFILE, 64))
		return 2;
	(void)mst_limit_failed(-ENOMEM, 0, &why);
	if (!says(&why, space))
		return 3;
	(void)mst_limit_failed(-EMFILE, 0, &why);
	if (!says(&why, files))
		return 4;
	(void)mst_limit_failed(-EIO, 0, &why);
	return strcmp(why.text, strerror(EIO)) == 0 ? 0 : 5;
}

static int names_a_refused_call(unsigned unused)
{
	struct mst_reason why;

	(void)unused;
	(void)mst_limit_refused("memfd_create", -EPERM, &why);
	if (!says(&why, (const char *[]){ "memfd_create: ", strerror(EPERM), "seccomp", NULL }))
		return 1;
	(void)mst_limit_refused("memfd_create", -EIO, &why);
	return strstr(why.text, "seccomp") == NULL && strstr(why.text, strerror(EIO)) != NULL ? 0
											      : 2;
}

static void a_limit_is_told_with_its_value_and_what_to_do(void)
{
	CU_ASSERT_EQUAL(in_child(names_the_length_of_files, NONE_CLOSED), 0);
	CU_ASSERT_EQUAL(in_child(names_a_refused_call, NONE_CLOSED), 0);
	CU_ASSERT_EQUAL(in_child(names_address_space_and_descriptors, NONE_CLOSED), 0);
}

static size_t stack_of_threads(void)
{
	pthread_attr_t attr;
	size_t bytes = 0;

	if (pthread_getattr_default_np(&attr) == 0)
		(void)pthread_attr_getstacksize(&attr, &bytes);
	(void)pthread_attr_destroy(&attr);
	return bytes;
}

/* The hard limit is higher. */
static int raises_the_stack(unsigned unused)
{
	struct rlimit limit;
	struct mst_reason why;
	pthread_attr_t attr;

	(void)unused;
	if (getrlimit(RLIMIT_STACK, &limit) != 0 || pthread_attr_init(&attr) != 0)
		return 1;
	(void)pthread_attr_setstacksize(&attr, 65536);
	(void)pthread_setattr_default_np(&attr); /* as under such a limit */
	limit.rlim_cur = 65536;
	if (setrlimit(RLIMIT_STACK, &limit) != 0 || mst_limit_stack(&why) != 0)
		return 2;
	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur < 1u << 20)
		return 3;
	return stack_of_threads() >= 1u << 20 ? 0 : 4;
}

/* Where nobody may raise it: who is root gives that up. */
static int names_the_stack(unsigned unused)
{
	const char *const words[] = { "a stack of at most 64.0 KiB (RLIMIT_STACK)",
				      "1.0 MiB are needed", "ulimit -s", "LimitSTACK", NULL };
	struct mst_reason why;

	(void)unused;
	if (!limit_to(RLIMIT_STACK, 65536) || (geteuid() == 0 && setuid(54321) != 0))
		return 1;
	return mst_limit_stack(&why) == -ENOMEM && says(&why, words) ? 0 : 2;
}

static void a_small_stack_is_raised_or_told(void)
{
	CU_ASSERT_EQUAL(in_child(raises_the_stack, NONE_CLOSED), 0);
	CU_ASSERT_EQUAL(in_child(names_the_stack, NONE_CLOSED), 0);
}

static CU_TestInfo cases[] = {
	{ "nothing of ours gets the number of a standard file",
	  nothing_of_ours_gets_a_standard_number },
	{ "a program opens standard files that are closed", a_program_opens_what_is_closed },
	{ "blocked signals are heeded, and ignored ones stay so",
	  blocked_signals_are_heeded_and_ignored_ones_stay_so },
	{ "a limit is told, with its value and what to do",
	  a_limit_is_told_with_its_value_and_what_to_do },
	{ "a small stack is raised, or told", a_small_stack_is_raised_or_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("what is inherited", cases);
}
