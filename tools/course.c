/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/log.h"
#include "tools/course_state.h"

#define TWICE_NS (2 * MST_SECOND) /* a second signal within this kills */
#define TERM_NS (3 * MST_SECOND)  /* from SIGTERM to SIGKILL */

static const unsigned next_legal[] = {
	[MST_COURSE_STARTING] = 1u << MST_COURSE_RUNNING | 1u << MST_COURSE_CLOSING |
				1u << MST_COURSE_DONE,
	[MST_COURSE_RUNNING] = 1u << MST_COURSE_ENDING,
	[MST_COURSE_ENDING] = 1u << MST_COURSE_CLOSING | 1u << MST_COURSE_DONE,
	[MST_COURSE_CLOSING] = 1u << MST_COURSE_DONE,
	[MST_COURSE_DONE] = 0,
};

void mst_course_enter(struct mst_course *c, enum mst_course_phase next)
{
	MST_ASSERT(next_legal[c->phase] & 1u << next);
	c->phase = next;
	c->deadline_ns = MST_NEVER;
	c->suspect = NULL;
}

const struct mst_snapshot *mst_course_known(const struct mst_course *c)
{
	const struct mst_snapshot *s = c->watch == NULL ? NULL : mst_watch_snapshot(c->watch);

	return s != NULL ? s : &c->blank;
}

/* Nobody is waited for for ever: SIGTERM at @when, SIGKILL some time later. */
static void push_from(struct mst_course *c, uint64_t when_ns)
{
	c->push_signo = SIGTERM;
	c->push_ns = when_ns;
}

static bool servers_alive(struct mst_course *c)
{
	return mst_course_musterd(c)->alive ||
	       mst_children_alive(mst_course_members(c), c->members) > 0;
}

static void signal_servers(struct mst_course *c, int signo)
{
	mst_child_signal(mst_course_musterd(c), signo);
	mst_children_signal(mst_course_members(c), c->members, signo);
}

/* No worker is left. A musterd that has ended its job goes by itself. */
static void close_down(struct mst_course *c)
{
	uint64_t now = mst_now_ns();

	if (!servers_alive(c)) {
		mst_course_enter(c, MST_COURSE_DONE);
		return;
	}
	mst_course_enter(c, MST_COURSE_CLOSING);
	push_from(c, mst_snapshot_ended(mst_course_known(c)) ? now + c->options->grace_ns : now);
}

void mst_course_end(struct mst_course *c, uint64_t when_ns)
{
	mst_progress_clear(&c->progress);
	if (c->phase == MST_COURSE_STARTING) {
		close_down(c);
		return;
	}
	mst_course_enter(c, MST_COURSE_ENDING);
	push_from(c, when_ns);
	if (mst_children_alive(mst_course_workers(c), c->workers) == 0)
		close_down(c);
}

void mst_course_fail(struct mst_course *c, uint64_t when_ns, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(c->ending.why, sizeof(c->ending.why), fmt, args);
	va_end(args);
	mst_progress_clear(&c->progress);
	mst_error("%s", c->ending.why);
	mst_course_end(c, when_ns);
}

/* A server that falls over when all is done has still fallen over. */
static void judge_end_of_musterd(struct mst_course *c, const char *fate)
{
	int status = mst_course_musterd(c)->status;

	if (status >= 0 || status == -SIGTERM || status == -SIGKILL || c->ending.why[0] != '\0')
		return;
	(void)snprintf(c->ending.why, sizeof(c->ending.why), "musterd %s while it closed", fate);
	mst_error("%s", c->ending.why);
}

static void musterd_ended(struct mst_course *c)
{
	char fate[64];

	mst_course_take_status(c); /* it may have told the job's end before its own */
	mst_child_fate(mst_course_musterd(c), fate, sizeof(fate));
	if (c->phase == MST_COURSE_ENDING || c->phase == MST_COURSE_CLOSING)
		judge_end_of_musterd(c, fate);
	if (c->phase == MST_COURSE_CLOSING) {
		if (!servers_alive(c))
			mst_course_enter(c, MST_COURSE_DONE);
	} else if (c->phase == MST_COURSE_RUNNING) {
		mst_course_fail(c, mst_now_ns() + c->options->grace_ns,
				"musterd %s at version %" PRIu64 ", in the middle of the job", fate,
				mst_course_known(c)->job.version);
	} else if (c->phase == MST_COURSE_STARTING) {
		mst_course_restart_musterd(c, fate);
	}
}

/* What that means for the job the lead knows. */
static void member_ended(struct mst_course *c, const struct mst_child *member)
{
	char fate[64];

	mst_child_fate(member, fate, sizeof(fate));
	if (c->phase == MST_COURSE_RUNNING && mst_course_known(c)->job.state == MST_JOB_GATHERING) {
		mst_course_suspect(c, member);
	} else if (c->phase == MST_COURSE_RUNNING && member->status != 0) {
		mst_progress_clear(&c->progress);
		mst_warn("%s %s at version %" PRIu64, member->name, fate,
			 mst_course_known(c)->job.version);
	}
	if (c->phase == MST_COURSE_CLOSING && !servers_alive(c))
		mst_course_enter(c, MST_COURSE_DONE);
}

static void worker_ended(struct mst_course *c, const struct mst_child *worker)
{
	bool last = mst_children_alive(mst_course_workers(c), c->workers) == 0;

	if (c->phase == MST_COURSE_ENDING && last)
		close_down(c);
	if (c->phase != MST_COURSE_RUNNING)
		return;
	if (mst_course_known(c)->job.state == MST_JOB_GATHERING)
		mst_course_suspect(c, worker);
	else
		mst_course_name_loss(c, worker);
	if (last) {
		c->deadline_ns = mst_now_ns() + c->options->grace_ns;
		c->deadline_why = "all workers have exited, but musterd has not ended the job";
	}
}

static void reap(struct mst_course *c)
{
	struct mst_child *child;

	while ((child = mst_children_reap(c->child, 1 + c->workers + c->members)) != NULL) {
		if (child == mst_course_musterd(c))
			musterd_ended(c);
		else if (child >= mst_course_members(c))
			member_ended(c, child);
		else
			worker_ended(c, child);
	}
}

/* Passed on once; who presses twice does not want to wait. */
static void interrupt_run(struct mst_course *c, int signo)
{
	uint64_t now = mst_now_ns();
	bool twice = c->ending.signo != 0 && now - c->signal_ns < TWICE_NS;

	c->ending.signo = signo;
	c->signal_ns = now;
	mst_progress_clear(&c->progress);
	mst_warn("SIG%s: %s", sigabbrev_np(signo),
		 twice ? "twice: killing all" : "passed on to the workers; the run ends");
	mst_children_signal(mst_course_workers(c), c->workers, twice ? SIGKILL : signo);
	if (twice)
		signal_servers(c, SIGKILL);
	if (c->phase == MST_COURSE_STARTING || c->phase == MST_COURSE_RUNNING)
		mst_course_end(c, now + c->options->grace_ns);
}

static void take_signals(struct mst_course *c)
{
	int signo;

	while ((signo = mst_signals_next(c->signals)) != 0)
		if (signo != SIGCHLD)
			interrupt_run(c, signo);
	reap(c);
}

static void push_now(struct mst_course *c)
{
	int signo = c->push_signo;

	if (c->phase == MST_COURSE_ENDING) {
		mst_warn("%u of %u workers have not exited: sending them SIG%s",
			 mst_children_alive(mst_course_workers(c), c->workers), c->workers,
			 sigabbrev_np(signo));
		mst_children_signal(mst_course_workers(c), c->workers, signo);
	} else {
		signal_servers(c, signo);
	}
	c->push_signo = signo == SIGTERM ? SIGKILL : 0;
	c->push_ns = mst_now_ns() + TERM_NS;
}

static void keep_time(struct mst_course *c)
{
	uint64_t now = mst_now_ns();

	if (c->suspect != NULL && now >= c->suspect_ns)
		mst_course_blame(c);
	if (now >= c->deadline_ns)
		mst_course_fail(c, 0, "%s", c->deadline_why);
	if (c->phase == MST_COURSE_RUNNING && now >= c->next_ask_ns)
		mst_course_ask(c);
	if ((c->phase == MST_COURSE_ENDING || c->phase == MST_COURSE_CLOSING) &&
	    c->push_signo != 0 && now >= c->push_ns)
		push_now(c);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The longest sleep: no harm in a look now and then. */
#define LOOK_NS (60 * MST_SECOND)

static void sleep_until_news(struct mst_course *c)
{
	bool starting = c->phase == MST_COURSE_STARTING;
	uint64_t until = c->deadline_ns, now = mst_now_ns();
	struct pollfd fd[] = {
		{ .fd = c->signals->fd, .events = POLLIN },
		{ .fd = starting ? c->daemon.ready_fd : -1, .events = POLLIN },
		{ .fd = c->watching ? mst_watch_fd(c->watch) : -1, .events = POLLIN },
	};

	if (c->phase == MST_COURSE_RUNNING)
		until = earlier(until, earlier(c->next_ask_ns, c->suspect ? c->suspect_ns : until));
	else if (c->push_signo != 0)
		until = earlier(until, c->push_ns);
	uint64_t left = now < until ? until - now : 0;
	int ms = (int)(earlier(left, LOOK_NS) / MST_MS) + (left > 0);
	(void)poll(fd, sizeof(fd) / sizeof(fd[0]), ms);
}

static void conclude(struct mst_course *c, struct mst_ending *out)
{
	const struct mst_snapshot *s = mst_course_known(c);
	struct mst_ending *e = &c->ending;

	e->finished = e->why[0] == '\0' && s->job.state == MST_JOB_FINISHED;
	if (e->signo != 0)
		(void)snprintf(e->why, sizeof(e->why), "by SIG%s", sigabbrev_np(e->signo));
	else if (e->why[0] == '\0')
		(void)snprintf(e->why, sizeof(e->why), "%s", s->job.why);
	e->job = s;
	e->musterd = mst_course_musterd(c);
	e->member = mst_course_members(c);
	e->members = c->members;
	e->worker = mst_course_workers(c);
	e->workers = c->workers;
	*out = *e;
}

void mst_course_run(struct mst_course *c, struct mst_ending *out)
{
	mst_course_start_musterd(c);
	while (c->phase != MST_COURSE_DONE) {
		sleep_until_news(c);
		mst_course_take_ready(c);
		mst_course_take_status(c);
		take_signals(c);
		keep_time(c);
	}
	conclude(c, out);
}

int mst_course_new(const struct mst_course_cfg *cfg, struct mst_course **out)
{
	const struct mst_run_options *options = &cfg->line->options;
	uint32_t count = options->server.workers, servers = options->server.servers;
	struct mst_course *c = calloc(1, sizeof(*c) + (servers + count) * sizeof(c->child[0]));

	if (c == NULL)
		return -ENOMEM;
	c->line = cfg->line;
	c->options = options;
	c->signals = cfg->signals;
	c->workers = count;
	c->members = servers - 1;
	c->daemon.ready_fd = -1;
	c->deadline_ns = MST_NEVER;
	c->next_ask_ns = MST_NEVER;
	mst_progress_init(&c->progress, options->quiet);
	c->blank.job = (struct mst_status){ .workers = count, .loss = NAN };
	(void)snprintf(c->blank.job.job, MST_NAME_LEN, "%s", options->server.job);
	(void)snprintf(c->blank.job.policy, MST_POLICY_LEN, "%s", options->server.policy);
	(void)snprintf(mst_course_musterd(c)->name, sizeof(c->child[0].name), "musterd");
	for (uint32_t rank = 0; rank < count; rank++)
		(void)snprintf(mst_course_workers(c)[rank].name, sizeof(c->child[0].name),
			       "rank %u", rank);
	for (uint32_t i = 0; i < c->members; i++)
		(void)snprintf(mst_course_members(c)[i].name, sizeof(c->child[0].name),
			       "server %hhu", (unsigned char)(i + 1));
	*out = c;
	return 0;
}

void mst_course_free(struct mst_course *c)
{
	if (c == NULL)
		return;
	mst_daemon_fini(&c->daemon);
	mst_watch_close(c->watch);
	free(c);
}
