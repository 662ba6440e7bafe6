/* SPDX-License-Identifier: MIT */
/*
 * musterd as a child: where its program is, how it is started, and the lines by which it says where
 * it listens and, at its end, what is missing (server/options/process.h).
 */
#ifndef MST_TOOLS_RUN_DAEMON_H
#define MST_TOOLS_RUN_DAEMON_H

#include <stddef.h>

#include "common/base/reason.h"
#include "tools/run/children.h"

struct mst_daemon_cfg {
	char *const *flags; /* as the user typed them; ends with NULL */
	bool quiet;         /* it logs warnings and errors only, unless the flags say otherwise */
	const char *listen; /* HOST:PORT; port 0: any */
	uint32_t workers;
	uint64_t server_patience_ns; /* that the run has chosen; 0: as the flags say, or none */
	bool stdout_to_stderr;
	const sigset_t *mask;
};

/* A follower of the job, beside a leader that listens at @leader: nothing is heard of it but its
 * exit. As mst_daemon_start(); `listen` is not looked at. */
int mst_daemon_start_follower(struct mst_child *child, const struct mst_daemon_cfg *cfg,
			      const char *leader, struct mst_reason *why);

struct mst_daemon {
	int fd; /* -1: nothing more to hear */
	size_t have;
	char text[4096]; /* lines that have come */
};

/* Starts it as @child. Return: 0, or why it could not be executed (said in @why). */
int mst_daemon_start(struct mst_daemon *d, struct mst_child *child,
		     const struct mst_daemon_cfg *cfg, struct mst_reason *why);

/* Reads the first line. Never blocks. Return: 1 it listens on @address; 0 not yet; -EADDRINUSE: the
 * port is taken; -EPIPE it closed the descriptor without a word, -EPROTO it said something else. */
int mst_daemon_ready(struct mst_daemon *d, char *address, size_t len);

/* To be called when it has ended: what it has said is missing, a clause at each call. Never blocks.
 * Return: false: nothing more. */
bool mst_daemon_missing(struct mst_daemon *d, struct mst_reason *out);

void mst_daemon_fini(struct mst_daemon *d);

#endif
