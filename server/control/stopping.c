/* SPDX-License-Identifier: MIT */
#include "server/control/stopping.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/control/members/finishing.h"

/* How long a leader waits at most for its ledger to end the job, unless --stop-timeout says so. The
 * ledger waits for no worker, but for the servers that make the newest version. Service managers
 * commonly kill a process 30 s after they have asked it to end. */
#define LEDGER_NS (20 * MST_SECOND)
#define UNSAVED_NS MST_SECOND /* where nothing is to be saved */
/* A wait of this length needs no line in the log. */
#define TELL_NS MST_SECOND

static bool saves(const struct mst_stopping *s)
{
	return s->base->checkpointing.archive != NULL;
}

static uint64_t timeout_ns(const struct mst_stopping *s)
{
	return mst_server_options_stop_timeout(s->base->job.o, LEDGER_NS);
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

static void tell_wait(struct mst_stopping *s, uint64_t now_ns)
{
	if (!saves(s) || now_ns < s->tell_ns || now_ns >= s->until_ns)
		return;
	s->tell_ns = MST_NEVER;
	mst_warn(
		"job \"%s\": this server waits until all servers have made the newest version, for "
		"%.3g s more at most",
		s->base->job.o->job, seconds(s->until_ns - now_ns));
}

static void give_up(struct mst_stopping *s, uint64_t now_ns)
{
	s->until_ns = 0;
	if (saves(s))
		mst_error("job \"%s\": the newest version is not saved: not all servers have made "
			  "it in %.3g s (--stop-timeout)",
			  s->base->job.o->job, seconds(timeout_ns(s)));
	mst_finishing_stop(s->leading, s->why.text, now_ns);
}

void mst_stopping_step(struct mst_stopping *s, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_STOP, .for_good = s->base->job.for_good };

	if (s->due && s->base->job.server != NULL)
		s->due = !mst_requests_event(&s->base->job.requests, &ev);
	if (s->until_ns == 0)
		return;
	tell_wait(s, now_ns);
	if (now_ns >= s->until_ns)
		give_up(s, now_ns);
}

/* A job that does not run has no version, and its workers are told at once. */
void mst_stopping_begin(struct mst_stopping *s, const char *why, uint64_t now_ns)
{
	bool runs = s->base->job.state == MST_JOB_RUNNING;

	mst_reason_set(&s->why, "%s", why);
	s->due = s->base->job.server != NULL && !mst_job_is_over(&s->base->job);
	s->base->job.stopped = true;
	s->tell_ns = now_ns + TELL_NS;
	if (mst_job_is_over(&s->base->job))
		mst_checkpointing_stops(&s->base->checkpointing, s->ended_at, now_ns);
	if (runs)
		s->until_ns = now_ns + (saves(s) ? timeout_ns(s) : UNSAVED_NS);
	mst_stopping_step(s, now_ns);
	if (!runs)
		mst_finishing_stop(s->leading, s->why.text, now_ns);
}

/* The job may have ended for another reason, just before. */
void mst_stopping_finished(struct mst_stopping *s, const struct mst_notice *notice, uint64_t now_ns)
{
	bool lost = notice->finish.why == MST_FINISH_SPOILT ||
		    notice->finish.why == MST_FINISH_SERVER;

	s->ended_at = notice->finish.version;
	s->until_ns = 0;
	if (!lost) /* else there is nothing that could be saved */
		mst_checkpointing_ended(&s->base->checkpointing, s->ended_at);
	if (notice->finish.why == MST_FINISH_STOPPED || notice->finish.why == MST_FINISH_CLOSED)
		mst_finishing_stop(s->leading, s->why.text, now_ns);
	else
		mst_finishing_end(s->leading, notice, now_ns);
	if (s->base->job.stopped)
		mst_checkpointing_stops(&s->base->checkpointing, s->ended_at, now_ns);
}

bool mst_stopping_waits(const struct mst_stopping *s)
{
	return s->until_ns != 0;
}
