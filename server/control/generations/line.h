/* SPDX-License-Identifier: MIT */
/*
 * The generations that a job has come from, where servers own (PROTOCOL 11): with which version
 * each of them has begun. Each begins with a checkpoint, and so may leave versions out that the
 * generation before has made. Manifests keep the line, so that each worker that comes back is told
 * which of its versions are void.
 *
 * Pure.
 */
#ifndef MST_SERVER_CONTROL_GENERATIONS_LINE_H
#define MST_SERVER_CONTROL_GENERATIONS_LINE_H

#include <stdint.h>

#include "common/checkpoint/manifest/values.h"
#include "server/core/ledger/event.h"

/* A worker that was away for more generations than this, each of which began with a later version
 * than the one before, is told of fewer void versions than there are. */
#define MST_JOB_LINE_MAX 64u

/* The oldest first: numbers rise, and so do the versions. */
struct mst_job_line {
	uint32_t count;
	struct mst_job_line_row {
		uint64_t number, id; /* of a generation */
		uint64_t began;      /* with this version */
	} row[MST_JOB_LINE_MAX];
};

/* A generation has begun, which is newer than all before. */
void mst_job_line_add(struct mst_job_line *l, const struct mst_job_line_row *row);
/* The newest version that a worker had with an outcome and that is of this line. It is @of->version
 * at most. */
uint64_t mst_job_line_stands(const struct mst_job_line *l, const struct mst_claimed *of);

/* Adds the line to the values of a manifest. Return: 0 or -ENOMEM. */
int mst_job_line_write(const struct mst_job_line *l, struct mst_values *values);
/* The reverse. A manifest whose values have none, or one that cannot be, leaves it empty. */
void mst_job_line_read(struct mst_job_line *l, const struct mst_values *values);

#endif
