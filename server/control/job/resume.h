/* SPDX-License-Identifier: MIT */
/*
 * The checkpoint that a job goes on from. The leader finds it when it starts; followers are told
 * its version. Each server reads its own part of the vectors, from whatever files have it.
 */
#ifndef MST_SERVER_CONTROL_JOB_RESUME_H
#define MST_SERVER_CONTROL_JOB_RESUME_H

#include <stdbool.h>
#include <stddef.h>

#include "common/checkpoint/manifest/manifest.h"
#include "common/wire/message.h"
#include "server/core/ledger/ledger.h"
#include "server/data/saving.h"
#include "server/options/options.h"
#include "server/plan/plan.h"

/* Names in a checkpoint. */
#define MST_GROUP_PARAMETERS "parameters"
#define MST_GROUP_AVERAGE "average"

struct mst_resume {
	const char *dir; /* NULL: the job begins anew, and nothing follows */
	struct mst_checkpoint_manifest manifest;
	struct mst_kept kept;
};

/* At the leader: finds the newest checkpoint of --resume that holds. Newer ones that do not are
 * logged. Blocks. @terms: in: what the options say; out: what they leave out of the optimiser is
 * that of the checkpoint.
 * @why: a sentence.
 * Return: 0; -EINVAL: the job cannot go on from it as the options are; or -errno. */
int mst_resume_find(struct mst_resume *r, const struct mst_server_options *o,
		    struct mst_terms *terms, struct mst_reason *why);
/* At a follower: reads the manifest of the version that the leader names. Blocks. Return: as
 * mst_resume_find(). */
int mst_resume_follow(struct mst_resume *r, const struct mst_server_options *o,
		      const struct mst_appoint *appoint, struct mst_reason *why);
void mst_resume_fini(struct mst_resume *r); /* accepts zeroed memory */

static inline bool mst_resume_is_set(const struct mst_resume *r)
{
	return r->dir != NULL;
}

/* The last change of policy, as the checkpoint has it; number 0: there was none. */
struct mst_in_force mst_resume_in_force(const struct mst_resume *r);
/* Does the job go on under that policy, and not under that of the command line? */
bool mst_resume_overrides(const struct mst_resume *r, const struct mst_server_options *o);

/* Lets an adaptive policy go on where it was, if the checkpoint was written under one of the same
 * kind that follows the same loss; any other begins anew, and the log warns of it. */
void mst_resume_policy(const struct mst_resume *r, const struct mst_server_options *o,
		       struct mst_policy *policy);

/* Is it a checkpoint of a vector like this?
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_resume_check(const struct mst_resume *r, const struct mst_hello *hello,
		     struct mst_reason *why);

/* What a server loads: its range, and where to. */
struct mst_resume_range {
	uint64_t first, count;
	enum muster_type result_type;
	const struct mst_optimizer *optimizer; /* its row is NULL where workers own */
	struct mst_resumed into;
};
/* Reads the vectors of the range. Blocks for as long as the disk takes. Any thread.
 * @why: a sentence.
 * Return: 0 or -errno. */
int mst_resume_load(const struct mst_resume *r, const struct mst_resume_range *range,
		    struct mst_reason *why);

#endif
