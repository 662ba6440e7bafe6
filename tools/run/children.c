/* SPDX-License-Identifier: MIT */
#include "tools/run/children.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/host/inherited.h"

/* What a shell says of a program it could not execute. */
#define CANNOT_EXECUTE 127

/* In the child: asks the kernel to kill it when its parent dies. If the parent has died before, the
 * child has another parent by now, and exits. */
static int tie_to_parent(pid_t parent)
{
	if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != parent)
		_exit(CANNOT_EXECUTE);
	return 0;
}

/* In the child. Its input is empty: it is not in the terminal's foreground group, and reading from
 * the terminal would stop it. */
static int set_descriptors(const struct mst_spawn *spawn)
{
	int null = open("/dev/null", O_RDONLY);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		return -errno;
	if (null != STDIN_FILENO)
		close(null);
	if (spawn->stdout_to_stderr && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	if (spawn->keep_fd >= 0 && fcntl(spawn->keep_fd, F_SETFD, 0) < 0)
		return -errno;
	return 0;
}

static int set_environment(char *const *env)
{
	for (; *env != NULL; env++)
		if (putenv(*env) != 0)
			return -ENOMEM;
	return 0;
}

/* In the child. Returns only if it could not become the program. */
static int become(const struct mst_spawn *spawn, pid_t parent)
{
	int rc = tie_to_parent(parent);

	if (rc == 0)
		rc = set_descriptors(spawn);
	if (rc == 0)
		rc = set_environment(spawn->env);
	if (rc < 0)
		return rc;
	(void)sigprocmask(SIG_SETMASK, spawn->mask, NULL);
	mst_inherited_hand_on();
	execvp(spawn->argv[0], spawn->argv);
	return -errno;
}

_Noreturn static void child_main(const struct mst_spawn *spawn, pid_t parent, int report_fd)
{
	int error = become(spawn, parent);
	ssize_t written = write(report_fd, &error, sizeof(error));

	(void)written; /* if the parent is gone nobody wants to know */
	_exit(CANNOT_EXECUTE);
}

/* The report's write end closes by itself when the program is executed: nothing to read means that
 * all went well, and that the child leads its group by now. */
static int read_report(int fd)
{
	int error = 0;
	ssize_t got;

	do
		got = read(fd, &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(error) ? error : 0;
}

int mst_child_start(struct mst_child *c, const struct mst_spawn *spawn)
{
	pid_t parent = getpid();
	int report[2];

	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		child_main(spawn, parent, report[1]);
	int error = pid < 0 ? -errno : 0;
	(void)close(report[1]);
	if (pid > 0)
		error = read_report(report[0]);
	(void)close(report[0]);
	if (error < 0) {
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
		return error;
	}
	c->pid = pid;
	c->alive = true;
	c->stopped = false;
	c->status = 0;
	return 0;
}

void mst_child_signal(const struct mst_child *c, int signo)
{
	if (c->alive)
		(void)kill(-c->pid, signo);
}

void mst_child_ending(const struct mst_child *c, char *out, size_t len)
{
	if (c->alive)
		(void)snprintf(out, len, "is running");
	else if (c->status >= 0)
		(void)snprintf(out, len, "exited with status %d", c->status);
	else
		(void)snprintf(out, len, "was killed by signal %d (%s)", -c->status,
			       strsignal(-c->status));
}

static struct mst_child *find(struct mst_child *child, uint32_t count, pid_t pid)
{
	for (uint32_t i = 0; i < count; i++)
		if (child[i].pid == pid && child[i].alive)
			return &child[i];
	return NULL;
}

static bool has_ended(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
	       info->si_code == CLD_DUMPED;
}

static uint64_t cpu_ns(const struct rusage *used)
{
	uint64_t s = (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec);
	uint64_t us = (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);

	return s * MST_SECOND + us * 1000;
}

/* Takes the news that waitid() has shown, and with an end what is left of the group: as long as its
 * leader is not reaped the group's number can be nobody else's. */
static void take(struct mst_child *c, const siginfo_t *info)
{
	siginfo_t again;

	if (!has_ended(info)) {
		(void)waitid(P_PID, (id_t)info->si_pid, &again, WSTOPPED | WCONTINUED | WNOHANG);
		if (c != NULL)
			c->stopped = info->si_code == CLD_STOPPED;
		return;
	}
	if (c != NULL)
		(void)kill(-info->si_pid, SIGKILL);
	struct rusage used = { 0 };
	(void)wait4(info->si_pid, NULL, 0, &used);
	if (c != NULL) {
		c->cpu_ns = cpu_ns(&used);
		c->rss_bytes = (uint64_t)used.ru_maxrss << 10;
		c->alive = false;
		c->status = info->si_code == CLD_EXITED ? info->si_status : -info->si_status;
	}
}

struct mst_child *mst_children_reap(struct mst_child *child, uint32_t count)
{
	for (;;) {
		siginfo_t info = { 0 };
		int rc = waitid(P_ALL, 0, &info,
				WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT);

		if (rc < 0 || info.si_pid == 0)
			return NULL;
		/* A child that is not one of ours: this process has inherited it. */
		struct mst_child *c = find(child, count, info.si_pid);
		take(c, &info);
		if (c != NULL && !c->alive)
			return c;
	}
}

void mst_children_signal(const struct mst_child *child, uint32_t count, int signo)
{
	for (uint32_t i = 0; i < count; i++)
		mst_child_signal(&child[i], signo);
}

uint32_t mst_children_alive(const struct mst_child *child, uint32_t count)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < count; i++)
		alive += child[i].alive;
	return alive;
}
