/* SPDX-License-Identifier: MIT */
#include "server/control/leaving.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"

/* How long the leader may take to end the job, unless --stop-timeout says so. */
#define LEADER_NS (5 * MST_SECOND)
/* How long the last message may take. */
#define LAST_WORDS_NS (200 * MST_MS)

static void leave(struct mst_leaving *l, uint64_t now_ns)
{
	mst_following_stop(l->following, l->why, now_ns);
	mst_base_stop(l->base, l->why, now_ns);
}

void mst_leaving_begin(struct mst_leaving *l, const char *why, uint64_t now_ns)
{
	uint64_t most_ns = mst_server_options_stop_timeout(l->base->job.o, LEADER_NS);

	snprintf(l->why, sizeof(l->why), "%s", why);
	if (l->base->checkpointing.archive == NULL || l->base->job.server == NULL) {
		leave(l, now_ns);
		return;
	}
	l->leave_ns = now_ns + most_ns;
	mst_warn("job \"%s\": this server ends when its leader has saved the job; or in %.3g s "
		 "(--stop-timeout), if the leader goes on",
		 l->base->job.o->job, (double)most_ns / (double)MST_SECOND);
}

/* A leader that has ended the job may still save, however long its disk takes, and says when it has
 * done so. */
void mst_leaving_step(struct mst_leaving *l, uint64_t now_ns)
{
	bool ends = mst_following_hears_end(l->following);
	bool due = now_ns >= l->leave_ns && !ends &&
		   !mst_checkpointing_is_busy(&l->base->checkpointing);

	if (now_ns >= l->last_words_ns)
		l->last_words_ns = 0;
	if (l->leave_ns == 0 || !(due || mst_job_is_over(&l->base->job)))
		return;
	l->leave_ns = 0;
	l->last_words_ns = now_ns + LAST_WORDS_NS;
	leave(l, now_ns);
}

bool mst_leaving_waits(const struct mst_leaving *l)
{
	return l->leave_ns != 0 || l->last_words_ns != 0;
}
