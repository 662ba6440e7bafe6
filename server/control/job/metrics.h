/* SPDX-License-Identifier: MIT */
/*
 * What workers have reported by name: the newest value of each, for the status. Only the first
 * names of a job are kept, since a worker may invent any number of them.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_JOB_METRICS_H
#define MST_SERVER_CONTROL_JOB_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"

struct mst_metrics {
	uint32_t count;
	struct mst_status_metric row[MST_STATUS_METRICS];
	bool overflowed; /* a further name was dropped, and that was logged */
	bool changed;    /* since all who watch the job have been told */
};

/* What is wrong with a value that a worker has reported; NULL: nothing is. */
const char *mst_metrics_wrong(const struct mst_metric *said);
/* A worker has reported a value, with which nothing is wrong. */
void mst_metrics_take(struct mst_metrics *m, uint32_t rank, const struct mst_metric *said);
/* Writes them to the status. */
void mst_metrics_tell(const struct mst_metrics *m, struct mst_status *out);

#endif
