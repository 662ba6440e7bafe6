/* SPDX-License-Identifier: MIT */
#include "server/core/policy/switch.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/reason.h"

/* A gradient and a difference of parameters need different optimisers, and the optimiser of a job
 * stays: its vectors, such as the momentum, are part of every version. */
static int check_kind(const struct mst_rule *from, const struct mst_rule *to,
		      struct mst_reason *why)
{
	static const char *const kinds[] = { "gradients", "differences of parameters" };

	if (from->deltas == to->deltas)
		return 0;
	mst_reason_set(why,
		       "contributions of this job are %s, and would be %s, which needs another "
		       "optimiser; the optimiser of a job cannot change, so start another job",
		       kinds[from->deltas], kinds[to->deltas]);
	return -EINVAL;
}

/* Where a rank may contribute again, each contribution keeps its slot until the commit, unless the
 * job was started with partial sums for it. */
static int check_room(const struct mst_rule *to, const struct mst_rule_context *ctx,
		      struct mst_reason *why)
{
	if (to->by_micro && mst_rule_planned(to, ctx->workers) > ctx->quorum_max) {
		mst_reason_set(why,
			       "every micro-batch is a contribution under this policy, %" PRIu32
			       " of them in a step with %" PRIu32
			       " workers, and a step of this job can hold %" PRIu32
			       "; start the job with this policy, and it plans memory for more",
			       mst_rule_planned(to, ctx->workers), ctx->workers, ctx->quorum_max);
		return -EINVAL;
	}
	if (!mst_rule_repeats(to) || to->quorum <= 0 || (uint32_t)to->quorum <= ctx->quorum_max)
		return 0;
	mst_reason_set(
		why,
		"a quorum of %" PRId32 " is more than the %" PRIu32
		" contributions that a step of this job can hold, with %" PRIu32
		" workers and %" PRIu32
		" slots for each; start the job with this policy, and it plans memory for more",
		to->quorum, ctx->quorum_max, ctx->workers, ctx->slots);
	return -EINVAL;
}

int mst_switch_check(const struct mst_rule *from, const struct mst_rule *to,
		     const struct mst_rule_context *ctx, struct mst_reason *why)
{
	int rc = check_kind(from, to, why);

	if (rc == 0)
		rc = check_room(to, ctx, why);
	return rc != 0 ? rc : mst_rule_check(to, ctx, why);
}
