/* SPDX-License-Identifier: MIT */
/* Workers as children: the user's program with the environment that tells it which one it is. */
#ifndef MST_TOOLS_WORKER_H
#define MST_TOOLS_WORKER_H

#include "tools/children.h"

struct mst_worker_cfg {
	char *const *program; /* and its arguments; ends with NULL */
	const char *server;   /* MUSTER_SERVER */
	const char *job;      /* MUSTER_JOB */
	uint32_t workers;     /* MUSTER_WORKERS */
	bool stdout_to_stderr;
	const sigset_t *mask;
};

/* Starts rank @rank as @child, with MUSTER_RANK. Return: 0 or why it could not be executed. */
int mst_worker_child_start(struct mst_child *child, uint32_t rank,
			   const struct mst_worker_cfg *cfg);

#endif
