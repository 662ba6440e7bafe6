/* SPDX-License-Identifier: MIT */
#include "server/control/job/state_directory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/find.h"

/* Older checkpoints are removed, and those of another job must not be. One that cannot be read is
 * not taken for another job's. */
static int check_jobs(const struct mst_server_options *o, const uint64_t *version, uint32_t count,
		      struct mst_reason *why)
{
	struct mst_checkpoint_manifest m;
	struct mst_reason unread;

	for (uint32_t i = 0; i < count; i++) {
		mst_checkpoint_manifest_init(&m);
		if (mst_checkpoint_manifest_read(o->state, version[i], &m, &unread) != 0)
			continue;
		bool other = strcmp(m.id.job, o->job) != 0;
		if (other)
			mst_reason_set(
				why,
				"%s (--state) has a checkpoint of the job \"%s\", version %" PRIu64
				", and this job is \"%s\"; each job needs a directory of its own",
				o->state, m.id.job, version[i], o->job);
		mst_checkpoint_manifest_fini(&m);
		if (other)
			return -EEXIST;
	}
	return 0;
}

int mst_state_directory_check(const struct mst_server_options *o, uint64_t first,
			      struct mst_reason *why)
{
	uint64_t *version = NULL, newest;
	int count = mst_checkpoint_versions(o->state, &version, why);

	if (count < 0)
		return count;
	newest = count > 0 ? version[0] : 0;
	int rc = check_jobs(o, version, (uint32_t)count, why);
	free(version);
	if (rc != 0 || newest <= first)
		return rc;
	mst_reason_set(why,
		       "there is a checkpoint of version %" PRIu64
		       " in %s (--state), and this job begins with version %" PRIu64
		       ": go on from there with --resume %s, or name another directory",
		       newest, o->state, first, o->state);
	return -EEXIST;
}
