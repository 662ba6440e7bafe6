/* SPDX-License-Identifier: MIT */
/*
 * Reads signals from a descriptor: signals that end a run, and news of children. So no handler runs
 * at a wrong moment.
 */
#ifndef MST_TOOLS_SIGNALS_H
#define MST_TOOLS_SIGNALS_H

#include <signal.h>

struct mst_signals {
	int fd;
	sigset_t before; /* what was blocked before, for children */
};

/* Takes SIGCHLD, SIGINT, SIGTERM and, unless it is ignored, SIGHUP: nohup means it. SIGINT is taken
 * even where a shell has it ignored, as shells do with what they start in the background: a run
 * that is told to end shall end, and its children, which inherit that, too.
 * Return: 0 or -errno. */
int mst_signals_open(struct mst_signals *s);
void mst_signals_close(struct mst_signals *s);

/* The next signal, or 0 if there is none. Never blocks. */
int mst_signals_next(struct mst_signals *s);

#endif
