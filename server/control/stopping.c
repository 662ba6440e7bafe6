/* SPDX-License-Identifier: MIT */
#include "server/control/stopping.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"

/* How long a leader waits at most for its ledger to end the job, unless --stop-timeout says so. The
 * ledger waits for no worker, but for the servers that make the newest version. Service managers
 * commonly kill a process 30 s after they have asked it to end. */
#define LEDGER_NS (20 * MST_SECOND)
#define UNSAVED_NS MST_SECOND /* where nothing is to be saved */
/* So long a wait is no surprise to anybody. */
#define TELL_NS MST_SECOND
/* How long a follower waits for its leader to end the job, which is stopped too if all are, unless
 * --stop-timeout says so; and for its last message to be sent. */
#define PART_NS (5 * MST_SECOND)
#define LAST_WORDS_NS (200 * MST_MS)

static bool saves(const struct mst_stopping *s)
{
	return s->checkpointing->archive != NULL;
}

static uint64_t timeout_ns(const struct mst_stopping *s, uint64_t usual_ns)
{
	uint64_t asked_ns = s->job->o->stop_timeout_ns;

	return asked_ns != 0 ? asked_ns : usual_ns;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

/* ---- a leader ---- */

static void tell_wait(struct mst_stopping *s, uint64_t now_ns)
{
	if (!saves(s) || now_ns < s->tell_ns || now_ns >= s->until_ns)
		return;
	s->tell_ns = MST_NEVER;
	mst_warn(
		"job \"%s\": this server waits until all servers have made the newest version, for "
		"%.3g s more at most",
		s->job->o->job, seconds(s->until_ns - now_ns));
}

static void give_up(struct mst_stopping *s, uint64_t now_ns)
{
	s->until_ns = 0;
	if (saves(s))
		mst_error("job \"%s\": the newest version is not saved: not all servers have made "
			  "it in %.3g s (--stop-timeout)",
			  s->job->o->job, seconds(timeout_ns(s, LEDGER_NS)));
	mst_workers_stop(s->workers, s->why, now_ns);
}

void mst_stopping_step(struct mst_stopping *s, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_STOP };

	if (s->due && s->job->server != NULL)
		s->due = !mst_requests_event(&s->job->requests, &ev);
	if (s->until_ns == 0)
		return;
	tell_wait(s, now_ns);
	if (now_ns >= s->until_ns)
		give_up(s, now_ns);
}

/* A job that does not run has no version, and its workers are told at once. */
void mst_stopping_begin(struct mst_stopping *s, const char *why, uint64_t now_ns)
{
	bool runs = s->job->state == MST_JOB_RUNNING;

	snprintf(s->why, sizeof(s->why), "%s", why);
	s->due = s->job->server != NULL && !mst_job_is_over(s->job);
	s->job->stopped = true;
	s->tell_ns = now_ns + TELL_NS;
	if (mst_job_is_over(s->job))
		mst_checkpointing_stops(s->checkpointing, s->ended_at, now_ns);
	if (runs)
		s->until_ns = now_ns + (saves(s) ? timeout_ns(s, LEDGER_NS) : UNSAVED_NS);
	mst_stopping_step(s, now_ns);
	if (!runs)
		mst_workers_stop(s->workers, s->why, now_ns);
}

/* The job may have ended for another reason, just before. */
void mst_stopping_finished(struct mst_stopping *s, const struct mst_notice *notice, uint64_t now_ns)
{
	s->ended_at = notice->finish.version;
	s->until_ns = 0;
	if (notice->finish.why == MST_FINISH_STOPPED)
		mst_workers_stop(s->workers, s->why, now_ns);
	else
		mst_workers_finished(s->workers, notice, now_ns);
	if (s->job->stopped)
		mst_checkpointing_stops(s->checkpointing, s->ended_at, now_ns);
}

/* ---- a follower ---- */

static void part(struct mst_stopping *s, uint64_t now_ns)
{
	mst_following_stop(s->following, s->why, now_ns);
	mst_workers_stop(s->workers, s->why, now_ns);
}

void mst_stopping_begin_follower(struct mst_stopping *s, const char *why, uint64_t now_ns)
{
	snprintf(s->why, sizeof(s->why), "%s", why);
	if (!saves(s) || s->job->server == NULL) {
		part(s, now_ns);
		return;
	}
	s->part_ns = now_ns + timeout_ns(s, PART_NS);
	mst_warn("job \"%s\": this server ends when its leader has saved the job; or in %.3g s "
		 "(--stop-timeout), if the leader goes on",
		 s->job->o->job, seconds(timeout_ns(s, PART_NS)));
}

/* A leader that has ended the job may still save, however long its disk takes, and says when it has
 * done so. */
void mst_stopping_step_follower(struct mst_stopping *s, uint64_t now_ns)
{
	bool ends = mst_following_hears_end(s->following);
	bool due = now_ns >= s->part_ns && !ends && !mst_checkpointing_is_busy(s->checkpointing);

	if (now_ns >= s->last_words_ns)
		s->last_words_ns = 0;
	if (s->part_ns == 0 || !(due || mst_job_is_over(s->job)))
		return;
	s->part_ns = 0;
	s->last_words_ns = now_ns + LAST_WORDS_NS;
	part(s, now_ns);
}

bool mst_stopping_waits(const struct mst_stopping *s)
{
	return s->until_ns != 0 || s->part_ns != 0 || s->last_words_ns != 0;
}
