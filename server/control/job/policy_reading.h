/* SPDX-License-Identifier: MIT */
/*
 * Whether a job can take another policy than the one that its server was started with: one that an
 * operator asks for while it runs, or one that was in force before its servers were lost. It is
 * read with the other options of the job, and checked against the figures of the job, which stay.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_JOB_POLICY_READING_H
#define MST_SERVER_CONTROL_JOB_POLICY_READING_H

#include "server/control/job/job.h"

/* The figures of the job must be fixed.
 * @why: a sentence.
 * Return: 0; -EINVAL: there is no such policy, or the job cannot change to it. */
int mst_job_read_policy(const struct mst_job *j, const struct mst_policy_change *change,
			struct mst_policy *out, struct mst_reason *why);

#endif
