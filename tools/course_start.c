/* SPDX-License-Identifier: MIT */
/*
 * The course of a run, its beginning: musterd is started and says where it listens, the workers
 * are started and told.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/transport/stream.h"
#include "tools/course_state.h"
#include "tools/worker.h"

#define ANY_PORT "127.0.0.1:0"
#define READY_NS (15 * MST_SECOND)
#define CONNECT_NS (10 * MST_SECOND)

static void start_musterd(struct mst_course *c, const char *listen)
{
	char why[MST_SENTENCE_LEN];
	struct mst_daemon_cfg cfg = {
		.flags = c->line->flags,
		.listen = listen,
		.workers = c->workers,
		.stdout_to_stderr = mst_run_prints_json(c->options),
		.mask = &c->signals->before,
	};

	c->listen = listen;
	c->deadline_ns = mst_now_ns() + READY_NS;
	c->deadline_why = "musterd does not say where it listens";
	if (mst_daemon_start(&c->daemon, mst_course_musterd(c), &cfg, why, sizeof(why)) < 0)
		mst_course_fail(c, 0, "%s", why);
}

static bool is_free(const char *address)
{
	struct mst_listener *listener;
	char bound[160];

	if (mst_tcp.listen(address, &listener, bound, sizeof(bound)) < 0)
		return false;
	mst_tcp.unlisten(listener);
	return true;
}

static const char *choose_address(const struct mst_course *c)
{
	const char *wanted = c->options->server.listen;

	return strcmp(wanted, MST_RUN_LISTEN) != 0 || is_free(wanted) ? wanted : ANY_PORT;
}

void mst_course_start_musterd(struct mst_course *c)
{
	start_musterd(c, choose_address(c));
}

void mst_course_restart_musterd(struct mst_course *c, const char *fate)
{
	mst_daemon_fini(&c->daemon);
	/* Another run may have taken the port between our look and musterd's. */
	if (strcmp(c->listen, MST_RUN_LISTEN) == 0 && !is_free(c->listen))
		start_musterd(c, ANY_PORT);
	else
		mst_course_fail(c, 0, "musterd %s before it could listen on %s", fate, c->listen);
}

static void start_workers(struct mst_course *c)
{
	struct mst_worker_cfg cfg = {
		.program = c->line->program,
		.server = c->address,
		.job = c->options->server.job,
		.workers = c->workers,
		.stdout_to_stderr = mst_run_prints_json(c->options),
		.mask = &c->signals->before,
	};

	for (uint32_t rank = 0; rank < c->workers; rank++) {
		int rc = mst_worker_child_start(&mst_course_workers(c)[rank], rank, &cfg);

		if (rc < 0) {
			mst_course_fail(c, 0, "cannot start %s as rank %u: %s", cfg.program[0],
					rank, strerror(-rc));
			return;
		}
	}
}

static void start_members(struct mst_course *c)
{
	char why[MST_SENTENCE_LEN];
	struct mst_daemon_cfg cfg = {
		.flags = c->line->flags,
		.stdout_to_stderr = mst_run_prints_json(c->options),
		.mask = &c->signals->before,
	};

	for (uint32_t i = 0; i < c->members; i++) {
		int rc = mst_daemon_start_member(&mst_course_members(c)[i], &cfg, c->address, why,
						 sizeof(why));
		if (rc < 0) {
			mst_course_fail(c, 0, "%s", why);
			return;
		}
	}
}

static void musterd_is_up(struct mst_course *c)
{
	char why[MST_SENTENCE_LEN];

	mst_info("musterd listens on %s: %u workers, policy %s", c->address, c->workers,
		 c->options->server.policy);
	if (mst_watch_open(c->address, CONNECT_NS, &c->watch, why, sizeof(why)) < 0) {
		mst_course_fail(c, 0, "%s", why);
		return;
	}
	c->watching = true;
	mst_course_ask(c);
	mst_course_enter(c, MST_COURSE_RUNNING);
	c->deadline_ns = MST_NEVER;
	start_members(c);
	if (c->phase == MST_COURSE_RUNNING)
		start_workers(c);
}

void mst_course_take_ready(struct mst_course *c)
{
	if (c->phase != MST_COURSE_STARTING || c->daemon.ready_fd < 0)
		return;
	int rc = mst_daemon_ready(&c->daemon, c->address, sizeof(c->address));
	if (rc == 1) {
		musterd_is_up(c);
	} else if (rc < 0) {
		/* Most likely it is dying: its exit says more. */
		c->deadline_ns = mst_now_ns() + MST_COURSE_SILENT_NS;
		c->deadline_why = "musterd is there but does not say where it listens";
	}
}
