/* SPDX-License-Identifier: MIT */
/*
 * Programs that log and end, for tests of common/base/log_writer.h and log_end.h. Each is a process
 * of its own, whose standard error is a pipe that is read when the case says so.
 */
#ifndef MST_TESTS_UNIT_COMMON_BASE_LOG_CASE_H
#define MST_TESTS_UNIT_COMMON_BASE_LOG_CASE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* No queue holds as many lines. */
#define MANY 5000u
#define LIMIT_MS 120000
/* How long exit() waits while standard error takes nothing, and so the longest that a reader may
 * stand still. */
#define EXIT_MS 1000
/* What fits into the queue whatever the pipe holds. */
#define SOME 200u

struct log_program {
	pid_t pid;
	int stderr_fd; /* to be read */
	int sign_fd;   /* it is closed when the program has come so far */
	uint64_t began_ns, took_ms;
	char text[1 << 20];
};

/* Starts a program that does @body, then exit(0). Its standard error holds a page. */
void log_program_start(struct log_program *p, void (*body)(void));
/* Its standard error holds what it says, whether or not that is read. */
void log_program_start_roomy(struct log_program *p, void (*body)(void));
/* In the program: it has come so far. */
void log_program_sign(void);
void log_program_await_sign(const struct log_program *p);
/* In the program: waits until its standard error has no reader. */
void log_program_await_no_reader(void);
/* The reader goes. */
void log_program_leave(struct log_program *p);
/* To the end: nobody has it open for writing any more. */
void log_program_read(struct log_program *p);
/* Return: its status, as of waitpid(); one that does not end is killed. */
int log_program_end(struct log_program *p);

/* Says "line 0", "line 1", ... */
void log_say(unsigned count);

/* What the program has said of these: each is there, or counted as dropped in its place. */
struct log_account {
	unsigned written, dropped;
	const char *rest; /* what stands after them */
};
struct log_account log_account_of(const char *text);

#endif
