/* SPDX-License-Identifier: MIT */
/*
 * Child processes: started so that none can outlive its parent, and reaped so that none is lost.
 *
 * Each child leads a process group of its own: what it starts gets its signals too, and a Ctrl-C
 * on the terminal reaches the parent alone, which passes it on once. When a child ends, what is
 * left of its group is killed. When the parent dies, even by SIGKILL, the kernel kills them all.
 *
 * Threads: the one that starts a child must live as long as the child: the kernel watches it.
 */
#ifndef MST_TOOLS_RUN_CHILDREN_H
#define MST_TOOLS_RUN_CHILDREN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mst_child {
	char name[16]; /* "musterd", "rank 3" */
	pid_t pid;     /* 0: not started */
	bool alive;
	bool stopped;       /* alive, but halted by SIGSTOP or its like */
	int status;         /* ended: its exit status, or minus the signal that killed it */
	uint64_t cpu_ns;    /* ended: the processor time it used */
	uint64_t rss_bytes; /* ended: the most memory it had resident */
};

struct mst_spawn {
	char *const *argv;     /* the program is looked for in PATH if it has no slash */
	char *const *env;      /* "NAME=value" added to this process's, ends with NULL */
	int keep_fd;           /* a descriptor the child inherits; -1: none */
	bool stdout_to_stderr; /* this process's standard output carries something else */
	const sigset_t *mask;  /* the signals the child has blocked */
};

/* Starts @c, whose name is set. Return: 0, or why it could not be executed: -ENOENT, -EACCES... */
int mst_child_start(struct mst_child *c, const struct mst_spawn *spawn);

/* Signals the child and its group; nothing happens if it is not alive. */
void mst_child_signal(const struct mst_child *c, int signo);

/* "exited with status 3", "was killed by signal 9 (Killed)". */
void mst_child_ending(const struct mst_child *c, char *out, size_t len);

/* Reaps one that has ended among @count children and notes stops on the way.
 * Return: it, or NULL when no more have ended. Never blocks. */
struct mst_child *mst_children_reap(struct mst_child *child, uint32_t count);

void mst_children_signal(const struct mst_child *child, uint32_t count, int signo);
uint32_t mst_children_alive(const struct mst_child *child, uint32_t count);

#endif
