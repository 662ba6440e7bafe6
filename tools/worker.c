/* SPDX-License-Identifier: MIT */
#include "tools/worker.h"

#include <stdio.h>

int mst_worker_child_start(struct mst_child *child, uint32_t rank, const struct mst_worker_cfg *cfg)
{
	char server[192], job[96], own[32], all[32];
	struct mst_spawn spawn = {
		.argv = cfg->program,
		.env = (char *const[]){ server, job, own, all, NULL },
		.keep_fd = -1,
		.stdout_to_stderr = cfg->stdout_to_stderr,
		.mask = cfg->mask,
	};

	(void)snprintf(server, sizeof(server), "MUSTER_SERVER=%s", cfg->server);
	(void)snprintf(job, sizeof(job), "MUSTER_JOB=%s", cfg->job);
	(void)snprintf(own, sizeof(own), "MUSTER_RANK=%u", rank);
	(void)snprintf(all, sizeof(all), "MUSTER_WORKERS=%u", cfg->workers);
	return mst_child_start(child, &spawn);
}
