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
#include "common/base/reason.h"
#include "common/base/text.h"
#include "common/host/exit.h"
#include "tools/run/supervisor_state.h"

/* timeout(1) and batch systems signal a process, and after it the whole group. */
#define SAME_NS (300 * MST_MS)
#define TWICE_NS (2 * MST_SECOND) /* a second signal within this kills */
#define TERM_NS (3 * MST_SECOND)  /* from SIGTERM to SIGKILL */
#define STOP_NS (2 * MST_SECOND)  /* for a musterd to end its job before the workers are told */
#define ASK_EVERY_NS (250 * MST_MS)
#define TELL_EVERY_NS (10 * MST_SECOND) /* that workers have not exited */
/* --grace auto: for workers after a job that has ended well, and else. */
#define GRACE_WELL_NS (600 * MST_SECOND)
#define GRACE_NS (10 * MST_SECOND)

static const unsigned next_legal[] = {
	[MST_SUPERVISOR_STARTING] = 1u << MST_SUPERVISOR_RUNNING | 1u << MST_SUPERVISOR_CLOSING |
				    1u << MST_SUPERVISOR_DONE,
	[MST_SUPERVISOR_RUNNING] = 1u << MST_SUPERVISOR_ENDING,
	[MST_SUPERVISOR_ENDING] = 1u << MST_SUPERVISOR_CLOSING | 1u << MST_SUPERVISOR_DONE,
	[MST_SUPERVISOR_CLOSING] = 1u << MST_SUPERVISOR_DONE,
	[MST_SUPERVISOR_DONE] = 0,
};

void mst_supervisor_enter(struct mst_supervisor *s, enum mst_supervisor_phase next)
{
	MST_ASSERT(next_legal[s->phase] & 1u << next);
	s->phase = next;
	s->deadline_ns = MST_NEVER;
	s->suspect = NULL;
}

/* The newest of what musterd has told, or the blank snapshot. */
static const struct mst_job_snapshot *known_job(const struct mst_supervisor *s)
{
	const struct mst_job_snapshot *known = s->watch == NULL ? NULL
								: mst_watch_snapshot(s->watch);

	return known != NULL ? known : &s->blank;
}

uint64_t mst_supervisor_grace_ns(const struct mst_supervisor *s)
{
	return s->options->grace_ns != 0 ? s->options->grace_ns : GRACE_NS;
}

/* The same for workers, whose programs may still evaluate or save what they have learnt. */
static uint64_t grace_at_end_ns(const struct mst_supervisor *s)
{
	bool well = known_job(s)->job.state == MST_JOB_FINISHED;

	return s->options->grace_ns == 0 && well ? GRACE_WELL_NS : mst_supervisor_grace_ns(s);
}

/* Nobody is waited for for ever: SIGTERM at @when, SIGKILL some time later. */
static void push_from(struct mst_supervisor *s, uint64_t when_ns)
{
	s->push_signo = SIGTERM;
	s->push_ns = when_ns;
	s->tell_ns = mst_now_ns() + TELL_EVERY_NS;
	s->patient = when_ns > 0;
}

static bool servers_alive(struct mst_supervisor *s)
{
	return mst_supervisor_musterd(s)->alive ||
	       mst_children_alive(mst_supervisor_followers(s), s->followers) > 0;
}

static void signal_servers(struct mst_supervisor *s, int signo)
{
	mst_child_signal(mst_supervisor_musterd(s), signo);
	mst_children_signal(mst_supervisor_followers(s), s->followers, signo);
}

/* Servers that save versions end when the last one is written, and wait for no disk for longer than
 * patience. So they are given this time before anything is done to them. */
static uint64_t saving_ns(const struct mst_supervisor *s)
{
	const struct mst_server_options *server = &s->options->server;

	return mst_server_options_saves(server) ? server->patience_ns : 0;
}

/* No worker is left. A musterd that has ended its job goes by itself. */
static void close_down(struct mst_supervisor *s)
{
	uint64_t now = mst_now_ns();

	if (!servers_alive(s)) {
		mst_supervisor_enter(s, MST_SUPERVISOR_DONE);
		return;
	}
	mst_supervisor_enter(s, MST_SUPERVISOR_CLOSING);
	bool told = s->musterd_told && mst_supervisor_musterd(s)->alive;
	bool ends = mst_snapshot_ended(known_job(s)) || told;
	push_from(s, ends ? now + mst_supervisor_grace_ns(s) + saving_ns(s) : now);
}

/* The run is over; the workers still alive are pushed from @when_ns on. */
static void end_run(struct mst_supervisor *s, uint64_t when_ns)
{
	mst_progress_clear(&s->progress);
	mst_supervisor_ranks_lost(s);
	if (s->phase == MST_SUPERVISOR_STARTING) {
		close_down(s);
		return;
	}
	mst_supervisor_enter(s, MST_SUPERVISOR_ENDING);
	push_from(s, when_ns);
	if (mst_children_alive(mst_supervisor_workers(s), s->workers) == 0)
		close_down(s);
}

void mst_supervisor_fail(struct mst_supervisor *s, uint64_t when_ns, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	mst_reason_vset(&s->ending.why, fmt, args);
	va_end(args);
	mst_text_clean(s->ending.why.text); /* it may name a program as it was typed */
	mst_progress_clear(&s->progress);
	mst_error("%s", s->ending.why.text);
	end_run(s, when_ns);
}

/* ---- the control connection: how the job is, and whether a worker that died can be spared ---- */

/* One request is on its way at a time (mst_watch_ask()), so that a musterd that hung does not find
 * many of them. */
void mst_supervisor_ask(struct mst_supervisor *s)
{
	s->next_ask_ns = s->watching ? mst_now_ns() + ASK_EVERY_NS : MST_NEVER;
	if (!s->watching || mst_watch_asking(s->watch))
		return;
	s->suspect_asked = s->suspect != NULL;
	s->asked++;
	s->ask_ns = mst_listening_now(&s->answering, mst_now_ns());
	if (mst_watch_ask(s->watch, true) < 0)
		s->next_ask_ns = MST_NEVER; /* what has come can be read still; reading ends it */
}

/* Among workers that died early, one that failed is to blame rather than one that just ended. */
static const struct mst_child *to_blame(struct mst_supervisor *s)
{
	for (uint32_t rank = 0; rank < s->workers; rank++) {
		const struct mst_child *worker = &mst_supervisor_workers(s)[rank];

		if (!worker->alive && worker->status != 0)
			return worker;
	}
	return s->suspect;
}

/* What a program that ended well before it had joined may have lacked. */
static void doubt(const struct mst_run_line *line, struct mst_reason *out)
{
	const char *late = mst_run_line_late(line);

	mst_reason_set(out, ": does its program join, by muster_open() or muster.torch.Sync()?");
	if (late != NULL)
		mst_reason_add(out,
			       " It was given %.60s: options of muster run stand before PROGRAM",
			       late);
}

/* In a later generation the job gathers again, and goes on without those that have died. */
static bool has_not_started(const struct mst_supervisor *s)
{
	return !s->started && known_job(s)->job.state == MST_JOB_GATHERING;
}

/* Before the start a dead worker or server can never join, and the others would wait in vain. */
static void blame(struct mst_supervisor *s)
{
	const struct mst_child *child = to_blame(s);
	struct mst_reason more = { .text = "" };
	char verdict[64];

	mst_child_ending(child, verdict, sizeof(verdict));
	if (child < mst_supervisor_followers(s) && child->status == 0)
		doubt(s->line, &more);
	mst_supervisor_fail(s, 0, "%s %s before the job had started%s", child->name, verdict,
			    more.text);
}

static void judge_suspect(struct mst_supervisor *s)
{
	if (s->suspect == NULL)
		return;
	if (!s->suspect_asked) {
		mst_supervisor_ask(s); /* this answer is older than the death */
	} else if (has_not_started(s)) {
		blame(s);
	} else {
		if (s->suspect < mst_supervisor_followers(s))
			mst_supervisor_rank_lost(s, s->suspect);
		s->suspect = NULL;
	}
}

static void take_snapshot(struct mst_supervisor *s)
{
	const struct mst_job_snapshot *known = known_job(s);
	uint64_t now = mst_now_ns();

	if (s->phase != MST_SUPERVISOR_RUNNING)
		return;
	s->started |= known->job.state != MST_JOB_GATHERING;
	mst_supervisor_ranks_told(s, known);
	mst_supervisor_servers_told(s, known);
	if (mst_snapshot_ended(known)) {
		end_run(s, now + grace_at_end_ns(s));
		return;
	}
	if (known->job.goes_on != 0)
		return; /* its servers are about to end */
	judge_suspect(s);
	if (s->phase == MST_SUPERVISOR_RUNNING)
		mst_progress_show(&s->progress, known, now);
}

static void lose_watch(struct mst_supervisor *s, int error)
{
	s->watching = false;
	s->next_ask_ns = MST_NEVER;
	if (s->phase != MST_SUPERVISOR_RUNNING)
		return;
	if (error != -EPIPE && error != -ECONNRESET) {
		mst_supervisor_fail(s, 0, "%s", mst_watch_error(s->watch));
		return;
	}
	if (mst_supervisor_goes_on(s)) { /* it ends, or begins anew with other workers */
		mst_supervisor_forget_watch(s);
		s->server[0].kill_ns = mst_now_ns() + MST_SUPERVISOR_SILENT_NS + saving_ns(s);
		return;
	}
	s->deadline_ns = mst_now_ns() + MST_SUPERVISOR_SILENT_NS;
	s->deadline_why = "musterd has closed the control connection, but runs on";
}

static void take_status(struct mst_supervisor *s)
{
	while (s->watching) {
		int rc = mst_watch_read(s->watch);

		if (rc == 0)
			return;
		if (rc < 0)
			lose_watch(s, rc);
		else
			take_snapshot(s);
	}
}

static void suspect(struct mst_supervisor *s, const struct mst_child *worker)
{
	if (s->suspect != NULL)
		return;
	s->suspect = worker;
	s->suspect_asked = false;
	s->suspect_ns = mst_now_ns() + MST_SUPERVISOR_SILENT_NS;
	mst_supervisor_ask(s);
}

/* ---- processes that have ended ---- */

/* A server that falls over when all is done has still fallen over. */
static void judge_end_of_musterd(struct mst_supervisor *s, const char *verdict)
{
	int status = mst_supervisor_musterd(s)->status;

	if (status >= 0 || status == -SIGTERM || status == -SIGKILL ||
	    s->ending.why.text[0] != '\0')
		return;
	mst_reason_set(&s->ending.why, "musterd %s while it closed", verdict);
	mst_error("%s", s->ending.why.text);
}

static void lose_musterd(struct mst_supervisor *s, const char *verdict)
{
	if (mst_supervisor_server_again(s, mst_supervisor_musterd(s)))
		return;
	if (s->up)
		mst_supervisor_fail(s, mst_now_ns() + mst_supervisor_grace_ns(s),
				    "musterd %s in the middle of the job; the last version that it "
				    "told of is %" PRIu64 "%s",
				    verdict, known_job(s)->job.version,
				    mst_supervisor_server_advice(s));
	else
		mst_supervisor_fail(s, mst_now_ns() + mst_supervisor_grace_ns(s),
				    "musterd, started again, %s before it could listen on %s; the "
				    "last version that was told of is %" PRIu64,
				    verdict, s->listen, known_job(s)->job.version);
}

/* The leader has ended while the run closes. Followers that look for the next one do not know. */
static void close_followers(struct mst_supervisor *s)
{
	uint64_t by_ns = mst_now_ns() + mst_supervisor_grace_ns(s);

	if (!servers_alive(s))
		mst_supervisor_enter(s, MST_SUPERVISOR_DONE);
	else if (mst_supervisor_goes_on(s) && s->push_signo == SIGTERM && by_ns < s->push_ns)
		push_from(s, by_ns);
}

static void musterd_ended(struct mst_supervisor *s)
{
	char verdict[64];

	take_status(s); /* it may have told the job's end before its own */
	mst_child_ending(mst_supervisor_musterd(s), verdict, sizeof(verdict));
	if (s->phase == MST_SUPERVISOR_ENDING || s->phase == MST_SUPERVISOR_CLOSING)
		judge_end_of_musterd(s, verdict);
	if (s->phase == MST_SUPERVISOR_CLOSING) {
		close_followers(s);
	} else if (s->phase == MST_SUPERVISOR_RUNNING) {
		lose_musterd(s, verdict);
	} else if (s->phase == MST_SUPERVISOR_STARTING) {
		mst_supervisor_restart_musterd(s, verdict);
	}
}

/* What that means for the job the leader knows. */
static void follower_ended(struct mst_supervisor *s, const struct mst_child *follower)
{
	char verdict[64];

	if (s->phase == MST_SUPERVISOR_RUNNING && mst_supervisor_server_again(s, follower))
		return;
	mst_child_ending(follower, verdict, sizeof(verdict));
	if (s->phase == MST_SUPERVISOR_RUNNING && has_not_started(s)) {
		suspect(s, follower);
	} else if (s->phase == MST_SUPERVISOR_RUNNING && follower->status != 0) {
		mst_progress_clear(&s->progress);
		mst_warn("%s %s; the last version that musterd told of is %" PRIu64 "%s",
			 follower->name, verdict, known_job(s)->job.version,
			 mst_supervisor_server_advice(s));
	}
	if (s->phase == MST_SUPERVISOR_CLOSING && !servers_alive(s))
		mst_supervisor_enter(s, MST_SUPERVISOR_DONE);
}

static void worker_ended(struct mst_supervisor *s, const struct mst_child *worker)
{
	bool last = mst_children_alive(mst_supervisor_workers(s), s->workers) == 0;

	if (s->phase == MST_SUPERVISOR_ENDING && last)
		close_down(s);
	if (s->phase != MST_SUPERVISOR_RUNNING)
		return;
	mst_supervisor_rank_ended(s, worker);
	if (mst_supervisor_rank_again(s, worker))
		return;
	last &= mst_supervisor_rank_next(s) == MST_NEVER;
	if (has_not_started(s))
		suspect(s, worker);
	else
		mst_supervisor_rank_lost(s, worker);
	if (last) {
		s->deadline_ns = mst_now_ns() + mst_supervisor_grace_ns(s);
		s->deadline_why = "all workers have exited, but musterd has not ended the job";
	}
}

static void reap(struct mst_supervisor *s)
{
	struct mst_child *child;

	while ((child = mst_children_reap(s->child, 1 + s->workers + s->followers)) != NULL) {
		if (child == mst_supervisor_musterd(s))
			musterd_ended(s);
		else if (child >= mst_supervisor_followers(s))
			follower_ended(s, child);
		else
			worker_ended(s, child);
	}
}

/* ---- signals and time ---- */

/* Workers die one after the other, and a job goes on with those that are left. So a musterd that
 * saves versions is told first, and the workers when it has ended the job: the last version that it
 * saves is made of all. */
static void tell_musterd_first(struct mst_supervisor *s, int signo)
{
	s->musterd_told = true;
	s->pass_signo = signo;
	s->pass_ns = s->signal_ns + STOP_NS;
	mst_child_signal(mst_supervisor_musterd(s), SIGUSR1); /* never a second signal */
}

static void pass_on(struct mst_supervisor *s)
{
	bool ended = mst_snapshot_ended(known_job(s)) || !mst_supervisor_musterd(s)->alive;

	if (s->pass_signo == 0 || (!ended && mst_now_ns() < s->pass_ns))
		return;
	mst_children_signal(mst_supervisor_workers(s), s->workers, s->pass_signo);
	s->pass_signo = 0;
	if (s->phase == MST_SUPERVISOR_ENDING)
		push_from(s, mst_now_ns() + mst_supervisor_grace_ns(s));
}

/* Passed on once; who presses twice does not want to wait. */
static void interrupt_run(struct mst_supervisor *s, int signo)
{
	uint64_t now = mst_now_ns();

	if (s->ending.signo == signo && now - s->signal_ns < SAME_NS)
		return;
	bool twice = s->ending.signo != 0 && now - s->signal_ns < TWICE_NS;
	bool saves = s->phase == MST_SUPERVISOR_RUNNING && !twice && saving_ns(s) > 0;

	s->ending.signo = signo;
	s->signal_ns = now;
	mst_progress_clear(&s->progress);
	mst_warn("SIG%s: %s", sigabbrev_np(signo),
		 twice   ? "twice: killing all"
		 : saves ? "musterd ends the job and saves it; then passed on to the workers"
			 : "passed on to the workers; the run ends");
	if (saves)
		tell_musterd_first(s, signo);
	else
		mst_children_signal(mst_supervisor_workers(s), s->workers, twice ? SIGKILL : signo);
	if (twice)
		signal_servers(s, SIGKILL);
	if (s->phase == MST_SUPERVISOR_STARTING || s->phase == MST_SUPERVISOR_RUNNING)
		end_run(s, (saves ? s->pass_ns : now) + mst_supervisor_grace_ns(s));
	else if (s->phase == MST_SUPERVISOR_ENDING && now + mst_supervisor_grace_ns(s) < s->push_ns)
		push_from(s, now + mst_supervisor_grace_ns(s));
}

static void take_signals(struct mst_supervisor *s)
{
	int signo;

	while ((signo = mst_signals_next(s->signals)) != 0)
		if (signo != SIGCHLD)
			interrupt_run(s, signo);
	reap(s);
}

#define LEFT_LEN 512u

/* Workers that go on after the end of the job are waited for, which must not look like a hang. */
static void tell_left(struct mst_supervisor *s, uint64_t now_ns)
{
	char left[LEFT_LEN];

	s->tell_ns = now_ns + TELL_EVERY_NS;
	uint32_t count = mst_supervisor_ranks_left(s, left, sizeof(left));
	mst_warn("the job is over, and %u of %u workers have not exited yet: %s; SIGTERM follows "
		 "in %" PRIu64 " s (--grace)",
		 count, s->workers, left, (s->push_ns - now_ns + MST_SECOND - 1) / MST_SECOND);
}

static void push_now(struct mst_supervisor *s)
{
	int signo = s->push_signo;
	char left[LEFT_LEN];

	if (s->phase == MST_SUPERVISOR_ENDING) {
		uint32_t count = mst_supervisor_ranks_left(s, left, sizeof(left));
		if (s->patient)
			mst_warn("%u of %u workers have not exited: sending SIG%s to %s; --grace "
				 "gives them more time",
				 count, s->workers, sigabbrev_np(signo), left);
		mst_children_signal(mst_supervisor_workers(s), s->workers, signo);
	} else {
		signal_servers(s, signo);
	}
	s->push_signo = signo == SIGTERM ? SIGKILL : 0;
	s->push_ns = mst_now_ns() + TERM_NS;
	if (s->phase == MST_SUPERVISOR_CLOSING)
		s->push_ns += saving_ns(s);
}

/* Before the first signal to them. */
static bool waits_for_workers(const struct mst_supervisor *s)
{
	return s->phase == MST_SUPERVISOR_ENDING && s->push_signo == SIGTERM;
}

/* Workers that were halted (SIGSTOP) do no last work. */
static bool waits_in_vain(struct mst_supervisor *s)
{
	for (uint32_t rank = 0; rank < s->workers; rank++)
		if (mst_supervisor_workers(s)[rank].alive &&
		    !mst_supervisor_workers(s)[rank].stopped)
			return false;
	return s->options->grace_ns == 0;
}

static void keep_time(struct mst_supervisor *s)
{
	uint64_t now = mst_now_ns();

	pass_on(s);
	if (s->suspect != NULL && now >= s->suspect_ns)
		blame(s);
	if (now >= s->deadline_ns)
		mst_supervisor_fail(s, 0, "%s", s->deadline_why);
	if (s->phase == MST_SUPERVISOR_RUNNING && now >= s->next_ask_ns)
		mst_supervisor_ask(s);
	if ((s->phase == MST_SUPERVISOR_ENDING || s->phase == MST_SUPERVISOR_CLOSING) &&
	    s->push_signo != 0 && now >= s->push_ns)
		push_now(s);
	else if (waits_for_workers(s) && now >= s->tell_ns && waits_in_vain(s))
		push_now(s);
	else if (waits_for_workers(s) && now >= s->tell_ns)
		tell_left(s, now);
	if (s->phase == MST_SUPERVISOR_RUNNING) {
		mst_supervisor_ranks_start(s, now);
		mst_supervisor_servers_look(s, now);
		mst_supervisor_servers_start(s, now);
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The longest sleep: no harm in a look now and then. */
#define LOOK_NS (60 * MST_SECOND)

static void sleep_until_news(struct mst_supervisor *s)
{
	bool starting = mst_supervisor_awaits_ready(s);
	uint64_t until = s->deadline_ns, now = mst_now_ns();
	struct pollfd fd[] = {
		{ .fd = s->signals->fd, .events = POLLIN },
		{ .fd = starting ? s->daemon.fd : -1, .events = POLLIN },
		{ .fd = s->watching ? mst_watch_fd(s->watch) : -1, .events = POLLIN },
	};

	if (s->phase == MST_SUPERVISOR_RUNNING)
		until = earlier(earlier(earlier(until, mst_supervisor_rank_next(s)),
					mst_supervisor_server_next(s)),
				earlier(s->next_ask_ns, s->suspect ? s->suspect_ns : until));
	else if (s->push_signo != 0)
		until = earlier(until, waits_for_workers(s) ? earlier(s->push_ns, s->tell_ns)
							    : s->push_ns);
	if (s->pass_signo != 0)
		until = earlier(until, s->pass_ns);
	uint64_t left = now < until ? until - now : 0;
	int ms = (int)(earlier(left, LOOK_NS) / MST_MS) + (left > 0);
	(void)poll(fd, sizeof(fd) / sizeof(fd[0]), ms);
}

static void take_missing(struct mst_supervisor *s)
{
	struct mst_ending *e = &s->ending;
	struct mst_reason what;

	while (mst_daemon_missing(&s->daemon, &what))
		mst_ending_miss(e, "%s", what.text);
	if (e->missing_count == 0 && mst_supervisor_musterd(s)->status == MST_EXIT_INCOMPLETE)
		mst_ending_miss(e, "something that musterd was to write; its log says what");
}

static void conclude(struct mst_supervisor *s, struct mst_ending *out)
{
	const struct mst_job_snapshot *known = known_job(s);
	struct mst_ending *e = &s->ending;

	e->finished = e->why.text[0] == '\0' && known->job.state == MST_JOB_FINISHED;
	if (e->signo != 0)
		mst_reason_set(&e->why, "by SIG%s", sigabbrev_np(e->signo));
	else if (e->why.text[0] == '\0')
		mst_reason_set(&e->why, "%s", known->job.why);
	e->job = known;
	e->musterd = mst_supervisor_musterd(s);
	e->follower = mst_supervisor_followers(s);
	e->followers = s->followers;
	e->worker = mst_supervisor_workers(s);
	e->course = s->course;
	e->workers = s->workers;
	take_missing(s);
	*out = *e;
}

void mst_supervisor_run(struct mst_supervisor *s, struct mst_ending *out)
{
	mst_supervisor_start_musterd(s);
	while (s->phase != MST_SUPERVISOR_DONE) {
		sleep_until_news(s);
		mst_supervisor_take_ready(s);
		take_status(s);
		take_signals(s);
		keep_time(s);
	}
	conclude(s, out);
}

int mst_supervisor_new(const struct mst_supervisor_cfg *cfg, struct mst_supervisor **out)
{
	const struct mst_run_options *options = &cfg->line->options;
	uint32_t count = options->server.workers, servers = options->server.servers;
	struct mst_supervisor *s = calloc(1, sizeof(*s) + (servers + count) * sizeof(s->child[0]));

	if (s == NULL)
		return -ENOMEM;
	s->daemon.fd = -1;
	s->course = calloc(count, sizeof(s->course[0]));
	s->server = calloc(servers, sizeof(s->server[0]));
	if (s->course == NULL || s->server == NULL) {
		mst_supervisor_free(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < servers; i++)
		s->server[i].kill_ns = MST_NEVER;
	mst_listening_start(&s->answering, MST_SECOND, mst_now_ns());
	s->line = cfg->line;
	s->options = options;
	s->signals = cfg->signals;
	s->workers = count;
	s->followers = servers - 1;
	s->deadline_ns = MST_NEVER;
	s->next_ask_ns = MST_NEVER;
	mst_progress_init(&s->progress, options->quiet);
	s->blank.job = (struct mst_status){ MST_STATUS_NOTHING, .workers = count };
	(void)snprintf(s->blank.job.job, MST_NAME_LEN, "%s", options->server.job);
	(void)snprintf(s->blank.job.policy, MST_POLICY_LEN, "%s", options->server.policy);
	(void)snprintf(mst_supervisor_musterd(s)->name, sizeof(s->child[0].name), "musterd");
	for (uint32_t rank = 0; rank < count; rank++)
		(void)snprintf(mst_supervisor_workers(s)[rank].name, sizeof(s->child[0].name),
			       "rank %u", rank);
	for (uint32_t i = 0; i < s->followers; i++)
		(void)snprintf(mst_supervisor_followers(s)[i].name, sizeof(s->child[0].name),
			       "server %hhu", (unsigned char)(i + 1));
	*out = s;
	return 0;
}

void mst_supervisor_free(struct mst_supervisor *s)
{
	if (s == NULL)
		return;
	mst_daemon_fini(&s->daemon);
	mst_watch_close(s->watch);
	free(s->course);
	free(s->server);
	free(s);
}
