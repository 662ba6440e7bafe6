/* SPDX-License-Identifier: MIT */
#include "tools/run/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/host/tasks.h"
#include "server/options/process.h"
#include "tools/keys.h"

#define LINE_LEN (MST_REASON_LEN + 64u)

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

#define MORE_MAX 8u

/* @more: flags that win over those the user typed; ends with NULL. */
static int spawn_program(struct mst_child *child, const struct mst_daemon_cfg *cfg,
			 char *const more[MORE_MAX + 1], int ready_fd)
{
	char program[PATH_MAX], ready[40], end[40];
	size_t flags = count_flags(cfg->flags), keys = count_flags(mst_keys_flags());
	char **argv = calloc(2 + flags + keys + MORE_MAX + 1, sizeof(argv[0]));
	size_t count = 0;

	if (argv == NULL)
		return -ENOMEM;
	find_program(program, sizeof(program));
	(void)snprintf(ready, sizeof(ready), "MUSTER_READY_FD=%d", ready_fd);
	(void)snprintf(end, sizeof(end), "MUSTER_END_FD=%d", ready_fd);
	argv[count++] = program;
	if (cfg->quiet)
		argv[count++] =
			"--log-level=warn"; /* unless another is typed: the last one holds */
	memcpy(&argv[count], cfg->flags, flags * sizeof(argv[0]));
	count += flags;
	memcpy(&argv[count], mst_keys_flags(), keys * sizeof(argv[0]));
	memcpy(&argv[count + keys], more, count_flags(more) * sizeof(argv[0]));
	struct mst_spawn spawn = {
		.argv = argv,
		.env = (char *const[]){ end, ready_fd >= 0 ? ready : NULL, NULL },
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

#define PATIENCE_LEN 48u

static char *patience_flag(const struct mst_daemon_cfg *cfg, char out[PATIENCE_LEN])
{
	(void)snprintf(out, PATIENCE_LEN, "--server-patience=%" PRIu64 "ms",
		       cfg->server_patience_ns / MST_MS);
	return out;
}

int mst_daemon_start(struct mst_daemon *d, struct mst_child *child,
		     const struct mst_daemon_cfg *cfg, struct mst_reason *why)
{
	char workers[16], listen[160], patience[PATIENCE_LEN];
	char *more[MORE_MAX + 1] = { workers, listen };
	size_t count = 2;
	int ends[2];

	(void)snprintf(workers, sizeof(workers), "--workers=%u", cfg->workers);
	(void)snprintf(listen, sizeof(listen), "--listen=%s", cfg->listen);
	if (cfg->server_patience_ns != 0)
		more[count++] = patience_flag(cfg, patience);
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
	*d = (struct mst_daemon){ .fd = ends[0] };
	return 0;
}

/* Resets the options of the whole job, which only the leader may have, and those that two servers
 * of a host cannot both have. All others are passed on. */
int mst_daemon_start_follower(struct mst_child *child, const struct mst_daemon_cfg *cfg,
			      const char *leader, struct mst_reason *why)
{
	char join[176], one[] = "--servers=1", even[] = "--partition=even",
			none[] = "--record=", finish[] = "--finish=worker",
			port[] = "--data-port=0", tls[] = "--data-tls=auto", patience[PATIENCE_LEN];
	char *more[MORE_MAX + 1] = { join, one, even, none, finish, port, tls };

	(void)snprintf(join, sizeof(join), "--join=%s", leader);
	if (cfg->server_patience_ns != 0)
		more[MORE_MAX - 1] = patience_flag(cfg, patience);
	int rc = spawn_program(child, cfg, more, -1);
	return rc < 0 ? not_started(rc, why) : 0;
}

/* Reads what is there. Return: the bytes; 0: the end; -errno: -EAGAIN: nothing now. */
static ssize_t read_more(struct mst_daemon *d)
{
	ssize_t got = read(d->fd, d->text + d->have, sizeof(d->text) - d->have);

	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	d->have += (size_t)got;
	return got;
}

/* Takes the first line, if it is whole; cuts it to @len. Return: false: it is not. */
static bool take_line(struct mst_daemon *d, char *out, size_t len)
{
	char *end = memchr(d->text, '\n', d->have);

	if (end == NULL)
		return false;
	size_t line = (size_t)(end - d->text);
	(void)snprintf(out, len, "%.*s", (int)line, d->text);
	d->have -= line + 1;
	memmove(d->text, end + 1, d->have);
	return true;
}

/* Return: the rest of @line after @prefix; NULL: it does not begin so. */
static const char *after(const char *line, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(line, prefix, len) == 0 ? line + len : NULL;
}

static int parse_ready(struct mst_daemon *d, char *address, size_t len)
{
	char line[LINE_LEN];

	if (d->have >= strlen(MST_END_MISSING) && after(d->text, MST_END_MISSING) != NULL)
		return 0; /* it ends: mst_daemon_missing() */
	if (!take_line(d, line, sizeof(line)))
		return d->have == sizeof(d->text) ? -EPROTO : 0;
	if (strcmp(line, MST_READY_TAKEN) == 0)
		return -EADDRINUSE;
	const char *at = after(line, MST_READY_LISTENS);
	if (at == NULL || strlen(at) >= len)
		return -EPROTO;
	(void)snprintf(address, len, "%s", at);
	return 1;
}

int mst_daemon_ready(struct mst_daemon *d, char *address, size_t len)
{
	ssize_t got = read_more(d);

	if (got == -EAGAIN)
		return 0;
	int rc = got < 0 ? (int)got : parse_ready(d, address, len);
	if (rc == 0 && got == 0)
		rc = -EPIPE;
	if (rc < 0)
		mst_daemon_fini(d);
	return rc;
}

bool mst_daemon_missing(struct mst_daemon *d, struct mst_reason *out)
{
	char line[LINE_LEN];

	while (d->fd >= 0 && d->have < sizeof(d->text) && read_more(d) > 0)
		;
	while (take_line(d, line, sizeof(line))) {
		const char *what = after(line, MST_END_MISSING);
		if (what == NULL)
			continue;
		mst_reason_set(out, "%s", what);
		mst_text_clean(out->text); /* it may name a file as it was typed */
		return true;
	}
	return false;
}

void mst_daemon_fini(struct mst_daemon *d)
{
	if (d->fd >= 0)
		(void)close(d->fd);
	d->fd = -1;
}
