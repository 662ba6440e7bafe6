/* SPDX-License-Identifier: MIT */
/*
 * The beginning of a run: musterd is started and says where it listens, then the workers are
 * started and told that address.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/host/tasks.h"
#include "common/transport/stream.h"
#include "server/options/process.h"
#include "tools/run/supervisor_state.h"

#define ANY_PORT "127.0.0.1:0"
#define READY_NS (15 * MST_SECOND)
#define CONNECT_NS (10 * MST_SECOND)

static struct mst_daemon_cfg daemon_cfg(const struct mst_supervisor *s)
{
	const struct mst_run_options *o = s->options;

	return (struct mst_daemon_cfg){
		.flags = s->line->flags,
		.quiet = o->quiet,
		.server_patience_ns = o->chose_patience ? o->server.server_patience_ns : 0,
		.stdout_to_stderr = mst_run_prints_json(o),
		.mask = &s->signals->before,
	};
}

/* A directory that another process has locked is waited for before. */
static uint64_t ready_until(const struct mst_supervisor *s)
{
	const struct mst_server_options *o = &s->options->server;
	uint64_t until_ns = mst_now_ns() + READY_NS;

	return mst_supervisor_goes_on(s) && mst_server_options_saves(o)
		       ? mst_server_options_join_until(o, until_ns)
		       : until_ns;
}

static void launch(struct mst_supervisor *s, const char *listen, struct mst_daemon_cfg *cfg)
{
	struct mst_reason why;

	cfg->listen = listen;
	cfg->workers = s->workers;
	s->listen = listen;
	s->port_taken = s->up = false;
	s->server[0].started_ns = mst_now_ns();
	if (mst_daemon_start(&s->daemon, mst_supervisor_musterd(s), cfg, &why) < 0)
		mst_supervisor_fail(s, 0, "%s", why.text);
}

static void start_musterd(struct mst_supervisor *s, const char *listen)
{
	struct mst_daemon_cfg cfg = daemon_cfg(s);

	s->deadline_ns = ready_until(s);
	s->deadline_why = "musterd does not say where it listens";
	launch(s, listen, &cfg);
}

void mst_supervisor_start_musterd_again(struct mst_supervisor *s)
{
	struct mst_daemon_cfg cfg = daemon_cfg(s);

	mst_daemon_fini(&s->daemon);
	s->server[0].kill_ns = ready_until(s);
	launch(s, s->address, &cfg);
}

static bool is_free(const char *address)
{
	struct mst_listener *listener;
	char bound[160];

	if (mst_plain.listen(address, NULL, &listener, bound, sizeof(bound)) < 0)
		return false;
	mst_plain.unlisten(listener);
	return true;
}

static const char *choose_address(const struct mst_supervisor *s)
{
	const char *wanted = s->options->server.listen;

	return strcmp(wanted, MST_RUN_LISTEN) != 0 || is_free(wanted) ? wanted : ANY_PORT;
}

/* Each worker that joins has a thread for its heartbeats, and none may be missing at the start. */
#define WORKER_TASKS 2u

/* What starts them is there. What PROGRAM starts besides is not known. */
static int check_tasks(const struct mst_supervisor *s, struct mst_reason *why)
{
	uint32_t servers = 1 + s->followers;
	char who[64];

	(void)snprintf(who, sizeof(who), "%u worker%s and %u server%s", s->workers,
		       s->workers > 1 ? "s" : "", servers, servers > 1 ? "s" : "");
	return mst_host_tasks_check(who,
				    (uint64_t)s->workers * WORKER_TASKS +
					    (uint64_t)servers * MST_SERVER_THREADS_MIN +
					    mst_server_options_record(&s->options->server),
				    "fewer workers", why);
}

void mst_supervisor_start_musterd(struct mst_supervisor *s)
{
	struct mst_reason why;

	if (check_tasks(s, &why) < 0)
		mst_supervisor_fail(s, 0, "%s", why.text);
	else
		start_musterd(s, choose_address(s));
}

/* What it has said comes before its end. */
static bool has_said_taken(struct mst_supervisor *s)
{
	return s->port_taken ||
	       (s->daemon.fd >= 0 &&
		mst_daemon_ready(&s->daemon, s->address, sizeof(s->address)) == -EADDRINUSE);
}

void mst_supervisor_restart_musterd(struct mst_supervisor *s, const char *verdict)
{
	bool taken = has_said_taken(s);

	mst_daemon_fini(&s->daemon);
	/* Another run may have taken the port between our look and musterd's, and may be over by
	 * now: whether the port is free again tells nothing. */
	if (taken && strcmp(s->listen, MST_RUN_LISTEN) == 0)
		start_musterd(s, ANY_PORT);
	else
		mst_supervisor_fail(s, 0, "musterd %s before it could listen on %s", verdict,
				    s->listen);
}

/* The user's program, with the environment that tells it which worker it is. */
static int start_worker(struct mst_supervisor *s, uint32_t rank)
{
	char server[192], job[96], own[32], all[32];
	struct mst_spawn spawn = {
		.argv = s->line->program,
		.env = (char *const[]){ server, job, own, all, NULL },
		.keep_fd = -1,
		.stdout_to_stderr = mst_run_prints_json(s->options),
		.mask = &s->signals->before,
	};

	(void)snprintf(server, sizeof(server), "MUSTER_SERVER=%s", s->address);
	(void)snprintf(job, sizeof(job), "MUSTER_JOB=%s", s->options->server.job);
	(void)snprintf(own, sizeof(own), "MUSTER_RANK=%u", rank);
	(void)snprintf(all, sizeof(all), "MUSTER_WORKERS=%u", s->workers);
	return mst_child_start(&mst_supervisor_workers(s)[rank], &spawn);
}

/* What to do when a program cannot be executed; "" if its errno does not tell. */
static const char *advice(const char *program, int error)
{
	const char *suffix = strrchr(program, '.');

	if (error == -ENOENT && strchr(program, ' ') != NULL)
		return "; PROGRAM and its arguments are words of their own: leave out the quotes";
	if (error == -ENOENT && strchr(program, '=') != NULL)
		return "; the environment is set by -- env NAME=VALUE PROGRAM, or before muster "
		       "run";
	if (suffix != NULL && strcmp(suffix, ".py") == 0)
		return "; a Python program is started by its interpreter, as in -- python3 "
		       "PROGRAM.py";
	if (error == -ENOENT && strchr(program, '/') == NULL)
		return "; it is looked for in PATH, and a file in this directory is ./NAME";
	if (error == -EACCES)
		return "; may this user execute it (chmod +x)?";
	return "";
}

void mst_supervisor_start_rank(struct mst_supervisor *s, uint32_t rank)
{
	struct mst_reason cause;
	int rc = start_worker(s, rank);

	if (rc < 0)
		mst_supervisor_fail(s, 0, "cannot start %s as rank %u: %s%s", s->line->program[0],
				    rank, mst_host_tasks_failed(rc, &cause),
				    advice(s->line->program[0], rc));
}

static void start_workers(struct mst_supervisor *s)
{
	for (uint32_t rank = 0; rank < s->workers && s->phase == MST_SUPERVISOR_RUNNING; rank++)
		mst_supervisor_start_rank(s, rank);
}

void mst_supervisor_start_follower(struct mst_supervisor *s, uint32_t i)
{
	struct mst_daemon_cfg cfg = daemon_cfg(s);
	struct mst_reason why;

	s->server[1 + i].started_ns = mst_now_ns();
	if (mst_daemon_start_follower(&mst_supervisor_followers(s)[i], &cfg, s->address, &why) < 0)
		mst_supervisor_fail(s, 0, "%s", why.text);
}

static void start_followers(struct mst_supervisor *s)
{
	for (uint32_t i = 0; i < s->followers && s->phase == MST_SUPERVISOR_RUNNING; i++)
		mst_supervisor_start_follower(s, i);
}

static void musterd_is_up(struct mst_supervisor *s)
{
	struct mst_reason why;

	mst_info("musterd listens on %s: %u workers, policy %s", s->address, s->workers,
		 s->options->server.policy);
	if (strcmp(s->listen, ANY_PORT) == 0 && strcmp(s->options->server.listen, ANY_PORT) != 0)
		mst_warn("%s is taken by another process, perhaps another job: this run has %s "
			 "instead; muster status, finish, policy, ... of this run need that "
			 "address, typed or in MUSTER_SERVER",
			 s->options->server.listen, s->address);
	if (mst_watch_open(s->address, CONNECT_NS, &s->watch, &why) < 0) {
		mst_supervisor_fail(s, 0, "%s", why.text);
		return;
	}
	s->up = s->watching = true;
	mst_supervisor_ask(s);
	mst_supervisor_enter(s, MST_SUPERVISOR_RUNNING);
	s->deadline_ns = MST_NEVER;
	start_followers(s);
	if (s->phase == MST_SUPERVISOR_RUNNING)
		start_workers(s);
}

/* If it does not let this process in, it is about to end, or stands still. */
static void musterd_is_up_again(struct mst_supervisor *s)
{
	struct mst_reason why;

	mst_info("musterd listens on %s again", s->address);
	s->up = true;
	s->server[0].kill_ns = mst_now_ns() + MST_SUPERVISOR_SILENT_NS;
	if (mst_watch_open(s->address, CONNECT_NS, &s->watch, &why) < 0)
		return;
	s->server[0].kill_ns = MST_NEVER;
	s->watching = true;
	if (s->suspect != NULL)
		s->suspect_ns = mst_now_ns() + MST_SUPERVISOR_SILENT_NS;
	mst_supervisor_ask(s);
}

/* A musterd that begins anew with another number of workers says again where it listens. */
bool mst_supervisor_awaits_ready(const struct mst_supervisor *s)
{
	if (s->daemon.fd < 0)
		return false;
	return s->phase == MST_SUPERVISOR_STARTING ||
	       (s->phase == MST_SUPERVISOR_RUNNING && (!s->up || s->watch == NULL));
}

void mst_supervisor_take_ready(struct mst_supervisor *s)
{
	if (!mst_supervisor_awaits_ready(s))
		return;
	int rc = mst_daemon_ready(&s->daemon, s->address, sizeof(s->address));
	if (rc == 1 && s->phase == MST_SUPERVISOR_RUNNING) {
		musterd_is_up_again(s);
	} else if (rc == 1) {
		musterd_is_up(s);
	} else if (rc == -EADDRINUSE) {
		s->port_taken = true; /* it is about to exit */
	} else if (rc < 0 && s->phase == MST_SUPERVISOR_RUNNING) {
		s->server[0].kill_ns = mst_now_ns() + MST_SUPERVISOR_SILENT_NS;
	} else if (rc < 0) {
		/* Most likely it is dying: its exit says more. */
		s->deadline_ns = mst_now_ns() + MST_SUPERVISOR_SILENT_NS;
		s->deadline_why = "musterd is there but does not say where it listens";
	}
}
