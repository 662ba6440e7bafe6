/* SPDX-License-Identifier: MIT */
#include "server/control/operator/straggling.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/reason.h"

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

static double ms(uint64_t ns)
{
	return (double)ns / (double)MST_MS;
}

/* What the rank is. */
static void describe(const struct mst_straggler *of, uint64_t fast_ns, struct mst_reason *out)
{
	switch (of->kind) {
	case MST_STRAGGLER_SLOW:
		mst_reason_set(out,
			       "is slow: its gradients take %.3g times as long as those of the "
			       "fast ranks, which take %.3g ms",
			       of->ratio, ms(fast_ns));
		return;
	case MST_STRAGGLER_STALLED:
		mst_reason_set(out,
			       "has been at its gradient for %.3g times as long as those of the "
			       "fast ranks take, which is %.3g ms",
			       of->ratio, ms(fast_ns));
		return;
	case MST_STRAGGLER_LATE:
		mst_reason_set(out, "is late: more of its gradients miss their step than of other "
				    "ranks'");
		return;
	case MST_STRAGGLER_NONE:
		mst_reason_set(out, "is no straggler any more");
		return;
	}
}

void mst_straggling_noted(const struct mst_base *base, const struct mst_notice *notice)
{
	struct mst_straggler of = notice->straggler.of;
	struct mst_reason what;

	if (!of.now || !of.sure)
		of.kind = MST_STRAGGLER_NONE;
	describe(&of, notice->straggler.fast_ns, &what);
	mst_info("job \"%s\": rank %" PRIu32 " %s; it has been a straggler for %.3g s in all, and "
		 "steps have waited %.3g s for it",
		 base->job.o->job, notice->who.rank, what.text, seconds(of.total_ns),
		 seconds(of.waited_ns));
}
