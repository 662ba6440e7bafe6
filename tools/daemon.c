/* SPDX-License-Identifier: MIT */
#include "tools/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int spawn_program(struct mst_child *child, const struct mst_daemon_cfg *cfg, char *program,
			 int ready_fd)
{
	char workers[16], listen[160], ready[40];
	size_t flags = count_flags(cfg->flags);
	char **argv = calloc(flags + 4, sizeof(argv[0]));

	if (argv == NULL)
		return -ENOMEM;
	(void)snprintf(workers, sizeof(workers), "--workers=%u", cfg->workers);
	(void)snprintf(listen, sizeof(listen), "--listen=%s", cfg->listen);
	(void)snprintf(ready, sizeof(ready), "MUSTER_READY_FD=%d", ready_fd);
	argv[0] = program;
	memcpy(&argv[1], cfg->flags, flags * sizeof(argv[0]));
	argv[flags + 1] = workers;
	argv[flags + 2] = listen;
	struct mst_spawn spawn = {
		.argv = argv,
		.env = (char *const[]){ ready, NULL },
		.keep_fd = ready_fd,
		.stdout_to_stderr = cfg->stdout_to_stderr,
		.mask = cfg->mask,
	};
	int rc = mst_child_start(child, &spawn);
	free(argv);
	return rc;
}

int mst_daemon_start(struct mst_daemon *d, struct mst_child *child,
		     const struct mst_daemon_cfg *cfg, char *why, size_t why_len)
{
	char program[PATH_MAX];
	int ends[2];

	find_program(program, sizeof(program));
	if (pipe2(ends, O_CLOEXEC) < 0) {
		int rc = -errno;

		(void)snprintf(why, why_len, "no pipe to musterd: %s", strerror(errno));
		return rc;
	}
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	int rc = spawn_program(child, cfg, program, ends[1]);
	(void)close(ends[1]);
	if (rc < 0) {
		(void)close(ends[0]);
		(void)snprintf(why, why_len,
			       "cannot start %s: %s; MUSTER_MUSTERD may name the program", program,
			       strerror(-rc));
		return rc;
	}
	*d = (struct mst_daemon){ .ready_fd = ends[0] };
	return 0;
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
