/* SPDX-License-Identifier: MIT */
/*
 * The course of a run, its middle: the control connection. musterd says how the job is, and whether
 * a worker that died early could have been done without.
 */
#include <errno.h>
#include <inttypes.h>

#include "common/base/log.h"
#include "tools/course_state.h"

#define ASK_EVERY_NS (250 * MST_MS)

/* One ask at a time: see mst_watch_ask(); and a musterd that hung shall not find a heap of them. */
void mst_course_ask(struct mst_course *c)
{
	c->next_ask_ns = mst_now_ns() + ASK_EVERY_NS;
	if (mst_watch_asking(c->watch))
		return;
	c->suspect_asked = c->suspect != NULL;
	if (mst_watch_ask(c->watch, true) < 0)
		c->next_ask_ns = MST_NEVER; /* what has come can be read still; reading ends it */
}

/* Under way, the policy decides what a loss means: it is named, and no more. */
void mst_course_name_loss(struct mst_course *c, const struct mst_child *worker)
{
	char fate[64];

	if (worker->status == 0)
		return;
	mst_child_fate(worker, fate, sizeof(fate));
	mst_progress_clear(&c->progress);
	mst_warn("%s %s at version %" PRIu64 "; the policy decides how the job goes on",
		 worker->name, fate, mst_course_known(c)->job.version);
}

/* Of those who died early, one that failed is to blame rather than one that just ended. */
static const struct mst_child *to_blame(struct mst_course *c)
{
	for (uint32_t rank = 0; rank < c->workers; rank++) {
		const struct mst_child *worker = &mst_course_workers(c)[rank];

		if (!worker->alive && worker->status != 0)
			return worker;
	}
	return c->suspect;
}

/* Before the start a dead worker or server can never join, and the others would wait in vain. */
void mst_course_blame(struct mst_course *c)
{
	const struct mst_child *child = to_blame(c);
	bool worker = child < mst_course_members(c);
	char fate[64];

	mst_child_fate(child, fate, sizeof(fate));
	mst_course_fail(c, 0, "%s %s before the job had started%s", child->name, fate,
			worker && child->status == 0 ? ": does its program join by muster_open()?"
						     : "");
}

static void judge_suspect(struct mst_course *c, const struct mst_snapshot *s)
{
	if (c->suspect == NULL)
		return;
	if (!c->suspect_asked) {
		mst_course_ask(c); /* this answer is older than the death */
	} else if (s->job.state == MST_JOB_GATHERING) {
		mst_course_blame(c);
	} else {
		if (c->suspect < mst_course_members(c))
			mst_course_name_loss(c, c->suspect);
		c->suspect = NULL;
	}
}

static void take_snapshot(struct mst_course *c)
{
	const struct mst_snapshot *s = mst_course_known(c);
	uint64_t now = mst_now_ns();

	if (c->phase != MST_COURSE_RUNNING)
		return;
	if (mst_snapshot_ended(s)) {
		mst_course_end(c, now + c->options->grace_ns);
		return;
	}
	judge_suspect(c, s);
	if (c->phase == MST_COURSE_RUNNING)
		mst_progress_show(&c->progress, s, now);
}

static void lose_watch(struct mst_course *c, int error)
{
	c->watching = false;
	c->next_ask_ns = MST_NEVER;
	if (c->phase != MST_COURSE_RUNNING)
		return;
	if (error != -EPIPE && error != -ECONNRESET) {
		mst_course_fail(c, 0, "%s", mst_watch_error(c->watch));
		return;
	}
	c->deadline_ns = mst_now_ns() + MST_COURSE_SILENT_NS;
	c->deadline_why = "musterd has closed the control connection, but runs on";
}

void mst_course_take_status(struct mst_course *c)
{
	while (c->watching) {
		int rc = mst_watch_read(c->watch);

		if (rc == 0)
			return;
		if (rc < 0)
			lose_watch(c, rc);
		else
			take_snapshot(c);
	}
}

void mst_course_suspect(struct mst_course *c, const struct mst_child *worker)
{
	if (c->suspect != NULL)
		return;
	c->suspect = worker;
	c->suspect_asked = false;
	c->suspect_ns = mst_now_ns() + MST_COURSE_SILENT_NS;
	mst_course_ask(c);
}
