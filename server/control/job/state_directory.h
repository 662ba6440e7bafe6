/* SPDX-License-Identifier: MIT */
/*
 * The directory in which a job saves its checkpoints (--state). The newest version in it is the one
 * that counts, and older ones are removed. So each job needs a directory of its own, and must not
 * begin below what is there.
 */
#ifndef MST_SERVER_CONTROL_JOB_STATE_DIRECTORY_H
#define MST_SERVER_CONTROL_JOB_STATE_DIRECTORY_H

#include "common/base/reason.h"
#include "server/options/options.h"

/* May the job of these options, which begins with the version @first, save in its directory? Reads
 * files, and blocks meanwhile.
 * @why: a sentence.
 * Return: 0; -EEXIST: there are checkpoints of another job, or of a later version; or -errno: the
 * directory cannot be read. */
int mst_state_directory_check(const struct mst_server_options *o, uint64_t first,
			      struct mst_reason *why);

#endif
