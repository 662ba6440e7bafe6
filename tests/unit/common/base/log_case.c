/* SPDX-License-Identifier: MIT */
#include "tests/unit/common/base/log_case.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/log_writer.h"
#include "tests/ut.h"

static int sign_fd; /* in the program: its end */

/* @pipe_bytes: what its standard error holds. */
static void log_program_start_with(struct log_program *p, void (*body)(void), int pipe_bytes)
{
	int err[2], sign[2];

	CU_ASSERT_FATAL(pipe2(err, O_CLOEXEC) == 0 && pipe2(sign, O_CLOEXEC) == 0);
	(void)fcntl(err[1], F_SETPIPE_SZ, pipe_bytes);
	(void)fflush(stdout);
	p->began_ns = mst_now_ns();
	p->pid = fork();
	CU_ASSERT_FATAL(p->pid >= 0);
	if (p->pid == 0) {
		dup2(err[1], STDERR_FILENO);
		close(err[0]);
		close(err[1]);
		close(sign[0]);
		sign_fd = sign[1];
		mst_log_open("m", MST_LOG_INFO);
		if (mst_log_start() != 0)
			_exit(9);
		body();
		exit(0);
	}
	close(err[1]);
	close(sign[1]);
	p->stderr_fd = err[0];
	p->sign_fd = sign[0];
}

void log_program_start(struct log_program *p, void (*body)(void))
{
	log_program_start_with(p, body, 4096);
}

void log_program_start_roomy(struct log_program *p, void (*body)(void))
{
	log_program_start_with(p, body, 65536);
}

void log_program_sign(void)
{
	close(sign_fd);
}

void log_program_await_no_reader(void)
{
	struct pollfd fd = { .fd = STDERR_FILENO };

	(void)poll(&fd, 1, LIMIT_MS);
}

void log_program_leave(struct log_program *p)
{
	close(p->stderr_fd);
	p->stderr_fd = dup(p->sign_fd); /* for log_program_end() to close */
}

void log_program_await_sign(const struct log_program *p)
{
	struct pollfd fd = { .fd = p->sign_fd, .events = POLLIN };

	CU_ASSERT_EQUAL(poll(&fd, 1, LIMIT_MS), 1);
}

void log_program_read(struct log_program *p)
{
	size_t used = 0;
	ssize_t got = 1;
	struct pollfd fd = { .fd = p->stderr_fd, .events = POLLIN };

	/* One that hangs is killed by log_program_end(). */
	while (got > 0 && used < sizeof(p->text) - 1 && poll(&fd, 1, LIMIT_MS) == 1) {
		got = read(p->stderr_fd, p->text + used, sizeof(p->text) - 1 - used);
		used += got > 0 ? (size_t)got : 0;
	}
	p->text[used] = '\0';
	p->took_ms = (mst_now_ns() - p->began_ns) / MST_MS;
}

int log_program_end(struct log_program *p)
{
	uint64_t until = mst_now_ns() + LIMIT_MS * MST_MS;
	int status = 0;

	while (waitpid(p->pid, &status, WNOHANG) == 0) {
		if (mst_now_ns() > until)
			kill(p->pid, SIGKILL);
		mst_sleep_ns(MST_MS);
	}
	close(p->stderr_fd);
	close(p->sign_fd);
	return status;
}

struct log_account log_account_of(const char *text)
{
	struct log_account a = { .rest = text };
	unsigned number;

	for (const char *end; (end = strchr(a.rest, '\n')) != NULL; a.rest = end + 1) {
		if (sscanf(a.rest, "%*s info m: line %u", &number) == 1 &&
		    number == a.written + a.dropped)
			a.written++;
		else if (sscanf(a.rest, "%*s warn m: %u line", &number) == 1)
			a.dropped += number;
		else
			break;
	}
	return a;
}

void log_say(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		mst_info("line %u", i);
}
