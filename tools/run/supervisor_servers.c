/* SPDX-License-Identifier: MIT */
/*
 * The servers of a run, one by one: where the job goes on at other servers (--server-patience), one
 * that has ended is started again at its address, and one that stands still is killed for that.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/host/exit.h"
#include "tools/run/supervisor_state.h"

#define SPAN_MIN (MST_RESTARTS_SPAN_NS / MST_SECOND / 60)

bool mst_supervisor_goes_on(const struct mst_supervisor *s)
{
	return mst_server_options_goes_on(&s->options->server);
}

static uint64_t lease_ns(const struct mst_supervisor *s)
{
	return mst_server_options_server_lease(&s->options->server);
}

static struct mst_child *server(struct mst_supervisor *s, uint32_t i)
{
	return i == 0 ? mst_supervisor_musterd(s) : &mst_supervisor_followers(s)[i - 1];
}

static uint32_t number_of(struct mst_supervisor *s, const struct mst_child *child)
{
	return child == mst_supervisor_musterd(s)
		       ? 0
		       : (uint32_t)(child - mst_supervisor_followers(s)) + 1;
}

/* ---- one that has ended ---- */

/* A server that has ended its job, or cannot serve, says so by another status. */
static bool was_lost(const struct mst_child *child)
{
	return child->status < 0 || child->status == MST_EXIT_AGAIN ||
	       child->status > MST_EXIT_BY_SIGNAL;
}

void mst_supervisor_server_ending(const struct mst_child *child, char *out, size_t len)
{
	if (child->status == MST_EXIT_AGAIN)
		(void)snprintf(out, len,
			       "has ended because another server was lost, or it stood "
			       "still");
	else
		mst_child_ending(child, out, len);
}

const char *mst_supervisor_server_advice(const struct mst_supervisor *s)
{
	const struct mst_server_options *o = &s->options->server;

	if (mst_supervisor_goes_on(s))
		return "";
	if (o->owner != MUSTER_WORKERS_OWN && !mst_server_options_saves(o))
		return "; with --state DIR the server would have been started again, and the job "
		       "gone on from its last checkpoint";
	return "; with --server-patience 10min the server would have been started again, and the "
	       "job gone on";
}

/* What to do when the run has given up. */
static void how_to_go_on(const struct mst_supervisor *s, struct mst_reason *out)
{
	const struct mst_server_options *o = &s->options->server;

	if (mst_server_options_succeeds(o))
		mst_reason_set(out,
			       "once that is fixed, the same command goes on from the last "
			       "checkpoint in %.200s",
			       o->state);
	else if (mst_server_options_saves(o))
		mst_reason_set(out,
			       "once that is fixed, the same command with --resume %.200s "
			       "--or-begin goes on from the last checkpoint",
			       o->state);
	else
		mst_reason_set(out, "once that is fixed, the same command begins the job anew; "
				    "with --state DIR it could go on from a checkpoint");
}

static void give_up(struct mst_supervisor *s, const char *name, const char *verdict)
{
	struct mst_reason how;

	how_to_go_on(s, &how);
	mst_supervisor_fail(s, mst_now_ns() + mst_supervisor_grace_ns(s),
			    "%s %s, and was started again %u times in %u min already: the log says "
			    "why; %s",
			    name, verdict, MST_RESTARTS_MOST, (unsigned)SPAN_MIN, how.text);
}

bool mst_supervisor_server_again(struct mst_supervisor *s, const struct mst_child *child)
{
	struct mst_server_course *c = &s->server[number_of(s, child)];
	uint64_t now_ns = mst_now_ns();
	char verdict[96];

	c->kill_ns = MST_NEVER;
	if (!mst_supervisor_goes_on(s) || s->ending.signo != 0 || !was_lost(child))
		return false;
	mst_supervisor_server_ending(child, verdict, sizeof(verdict));
	uint32_t times = mst_restarts_take(&c->restarts, now_ns);
	if (times == 0) {
		give_up(s, child->name, verdict);
		return true;
	}
	c->again_ns = now_ns + mst_restarts_pause(now_ns - c->started_ns);
	mst_progress_clear(&s->progress);
	mst_warn("%s %s; it is started again at %s (%u of %u times in %u min)", child->name,
		 verdict, s->address, times, MST_RESTARTS_MOST, (unsigned)SPAN_MIN);
	return true;
}

/* ---- starting it again ---- */

uint64_t mst_supervisor_server_next(const struct mst_supervisor *s)
{
	uint64_t next_ns = MST_NEVER;

	for (uint32_t i = 0; i <= s->followers; i++) {
		const struct mst_server_course *c = &s->server[i];
		if (c->again_ns != 0 && c->again_ns < next_ns)
			next_ns = c->again_ns;
		if (c->kill_ns < next_ns)
			next_ns = c->kill_ns;
	}
	return next_ns;
}

/* Followers end when their leader does, at once, unless they stand still. One that has no part yet
 * looks for the next leader: mst_supervisor_servers_told(). */
static void expect_ends(struct mst_supervisor *s, uint64_t now_ns)
{
	for (uint32_t i = 1; i <= s->followers; i++)
		if (server(s, i)->alive)
			s->server[i].kill_ns = server(s, i)->stopped ? now_ns
								     : now_ns + lease_ns(s);
}

/* What musterd has told stays known until the next one tells more. */
void mst_supervisor_forget_watch(struct mst_supervisor *s)
{
	const struct mst_job_snapshot *known = s->watch != NULL ? mst_watch_snapshot(s->watch)
								: NULL;

	if (known != NULL)
		s->blank = *known;
	s->blank.job.state = s->started ? MST_JOB_RUNNING : MST_JOB_GATHERING;
	s->blank.job.goes_on = 0;
	mst_watch_close(s->watch);
	s->watch = NULL;
	s->watching = s->suspect_asked = false;
	s->suspect_ns = MST_NEVER; /* the next one will tell */
	s->next_ask_ns = s->deadline_ns = MST_NEVER;
}

void mst_supervisor_servers_start(struct mst_supervisor *s, uint64_t now_ns)
{
	for (uint32_t i = 0; i <= s->followers && s->phase == MST_SUPERVISOR_RUNNING; i++) {
		struct mst_server_course *c = &s->server[i];
		if (c->again_ns == 0 || now_ns < c->again_ns)
			continue;
		c->again_ns = 0;
		if (i > 0) {
			mst_supervisor_start_follower(s, i - 1);
			continue;
		}
		mst_supervisor_forget_watch(s);
		expect_ends(s, now_ns);
		mst_supervisor_start_musterd_again(s);
	}
}

/* ---- those that stand still ---- */

void mst_supervisor_servers_told(struct mst_supervisor *s, const struct mst_job_snapshot *known)
{
	for (uint32_t i = 0; i < known->job.server_count; i++)
		if (known->job.server[i].state == MST_SERVER_AWAITED)
			return;
	for (uint32_t i = 1; i <= s->followers; i++)
		s->server[i].kill_ns = MST_NEVER;
}

/* Time in which this process stood still itself does not count. */
static bool is_silent(const struct mst_supervisor *s)
{
	return s->watching && mst_watch_asking(s->watch) &&
	       s->answering.read_ns >= s->ask_ns + lease_ns(s);
}

static void kill_server(struct mst_supervisor *s, uint32_t i, const char *why)
{
	s->server[i].kill_ns = MST_NEVER;
	if (!server(s, i)->alive)
		return;
	mst_progress_clear(&s->progress);
	mst_warn("%s %s: it stands still, and is killed", server(s, i)->name, why);
	mst_child_signal(server(s, i), SIGKILL);
}

void mst_supervisor_servers_look(struct mst_supervisor *s, uint64_t now_ns)
{
	char why[64];

	mst_listening_heard(&s->answering, now_ns, now_ns);
	if (!mst_supervisor_goes_on(s) || s->phase != MST_SUPERVISOR_RUNNING)
		return;
	if (is_silent(s)) {
		(void)snprintf(why, sizeof(why), "has not answered for %.3g s (--server-lease)",
			       (double)lease_ns(s) / (double)MST_SECOND);
		s->watching = false; /* nothing of use comes from it any more */
		kill_server(s, 0, why);
	}
	for (uint32_t i = 0; i <= s->followers; i++)
		if (now_ns >= s->server[i].kill_ns)
			kill_server(s, i,
				    i == 0 ? "neither listens nor ends"
					   : "has not ended with its leader");
}
