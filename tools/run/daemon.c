/* SPDX-License-Identifier: MIT */
#include "tools/run/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/host/tasks.h"

#define READY_PREFIX "listening on "

/* The directory of the running program, without a slash at its end; "" if it cannot be told. */
static void own_directory(char *out, size_t len)
{
	ssize_t got = readlink("/proc/self/exe", out, len - 1);

	out[got > 0 ? got : 0] = '\0';
	char *slash = strrchr(out, '/');
	if (slash != NULL)
		*slash = '\0';
}

/* MUSTER_MUSTERD; beside this program (installed); in the next directory (build tree); in PATH. */
static void find_program(char *out, size_t len)
{
	static const char *const beside[] = { "musterd", "../server/musterd" };
	const char *named = getenv("MUSTER_MUSTERD");
	char directory[PATH_MAX];

	if (named != NULL && named[0] != '\0') {
		(void)snprintf(out, len, "%s", named);
		return;
	}
	own_directory(directory, sizeof(directory));
	for (unsigned i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		int wanted = snprintf(out, len, "%s/%s", directory, beside[i]);

		if (wanted > 0 && (size_t)wanted < len && access(out, X_OK) == 0)
			return;
	}
	(void)snprintf(out, len, "musterd");
}

static size_t count_flags(char *const *flags)
{
	size_t count = 0;

	while (flags[count] != NULL)
		count++;
	return count;
}

#define MORE_MAX 5u

/* @more: flags that win over those the user typed; ends with NULL, at most MORE_MAX. */
static int spawn_program(struct mst_child *child, const struct mst_daemon_cfg *cfg,
			 char *const *more, int ready_fd)
{
	char program[PATH_MAX], ready[40];
	size_t flags = count_flags(cfg->flags);
	char **argv = calloc(2 + flags + MORE_MAX + 1, sizeof(argv[0]));
	size_t count = 0;

	if (argv == NULL)
		return -ENOMEM;
	find_program(program, sizeof(program));
	(void)snprintf(ready, sizeof(ready), "MUSTER_READY_FD=%d", ready_fd);
	argv[count++] = program;
	if (cfg->quiet)
		argv[count++] =
			"--log-level=warn"; /* unless another is typed: the last one holds */
	memcpy(&argv[count], cfg->flags, flags * sizeof(argv[0]));
	memcpy(&argv[count + flags], more, count_flags(more) * sizeof(argv[0]));
	struct mst_spawn spawn = {
		.argv = argv,
		.env = (char *const[]){ ready_fd >= 0 ? ready : NULL, NULL },
		.keep_fd = ready_fd,
		.stdout_to_stderr = cfg->stdout_to_stderr,
		.mask = cfg->mask,
	};
	int rc = mst_child_start(child, &spawn);
	free(argv);
	return rc;
}

static int not_started(int error, struct mst_reason *why)
{
	char program[PATH_MAX];
	struct mst_reason cause;

	find_program(program, sizeof(program));
	mst_reason_set(why, "cannot start %s: %s%s", program, mst_host_tasks_failed(error, &cause),
		       error == -EAGAIN ? "" : "; MUSTER_MUSTERD may name the program");
	return error;
}

int mst_daemon_start(struct mst_daemon *d, struct mst_child *child,
		     const struct mst_daemon_cfg *cfg, struct mst_reason *why)
{
	char workers[16], listen[160];
	char *more[] = { workers, listen, NULL };
	int ends[2];

	(void)snprintf(workers, sizeof(workers), "--workers=%u", cfg->workers);
	(void)snprintf(listen, sizeof(listen), "--listen=%s", cfg->listen);
	if (pipe2(ends, O_CLOEXEC) < 0) {
		int rc = -errno;

		mst_reason_set(why, "no pipe to musterd: %s", strerror(errno));
		return rc;
	}
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	int rc = spawn_program(child, cfg, more, ends[1]);
	(void)close(ends[1]);
	if (rc < 0) {
		(void)close(ends[0]);
		return not_started(rc, why);
	}
	*d = (struct mst_daemon){ .ready_fd = ends[0] };
	return 0;
}

/* Resets the options of the whole job, which only the leader may have. All others are passed on. */
int mst_daemon_start_follower(struct mst_child *child, const struct mst_daemon_cfg *cfg,
			      const char *leader, struct mst_reason *why)
{
	char join[176], one[] = "--servers=1", even[] = "--partition=even",
			none[] = "--record=", finish[] = "--finish=worker";
	char *more[] = { join, one, even, none, finish, NULL };

	(void)snprintf(join, sizeof(join), "--join=%s", leader);
	int rc = spawn_program(child, cfg, more, -1);
	return rc < 0 ? not_started(rc, why) : 0;
}

/* The first line, if it is whole. Return: 1, 0 not yet, -EPROTO it is another line. */
static int parse_line(struct mst_daemon *d, char *address, size_t len)
{
	const size_t prefix = strlen(READY_PREFIX);
	char *end = memchr(d->line, '\n', d->have);

	if (end == NULL)
		return d->have == sizeof(d->line) ? -EPROTO : 0;
	*end = '\0';
	if (strncmp(d->line, READY_PREFIX, prefix) != 0 || strlen(d->line) - prefix >= len)
		return -EPROTO;
	(void)snprintf(address, len, "%s", d->line + prefix);
	return 1;
}

int mst_daemon_ready(struct mst_daemon *d, char *address, size_t len)
{
	ssize_t got = read(d->ready_fd, d->line + d->have, sizeof(d->line) - d->have);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	d->have += (size_t)got;
	int rc = parse_line(d, address, len);
	if (rc == 0 && got == 0)
		rc = -EPIPE;
	if (rc != 0)
		mst_daemon_fini(d);
	return rc;
}

void mst_daemon_fini(struct mst_daemon *d)
{
	if (d->ready_fd >= 0)
		(void)close(d->ready_fd);
	d->ready_fd = -1;
}
