/* SPDX-License-Identifier: MIT */
#include "server/control/plane.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/host/tasks.h"
#include "server/control/checkpointing.h"
#include "server/control/ending.h"
#include "server/control/following.h"
#include "server/control/handover.h"
#include "server/control/joining.h"
#include "server/control/lending.h"
#include "server/control/reporting.h"
#include "server/control/resting.h"
#include "server/control/roles.h"
#include "server/control/start_state.h"
#include "server/control/stopping.h"
#include "server/control/switching.h"
#include "server/control/workers.h"

/* Connections for each rank: of its present session, and of the next that waits for its end. */
#define CONNS_PER_RANK 2u

/* The control thread sleeps at most this long, and at most this part of a lease, so that what is
 * due several times in a lease is not late. */
#define NAP_MAX_NS (100 * MST_MS)
#define NAPS_PER_LEASE 16u
/* How long to sleep while requests wait for room, or messages for them: the data side does not say
 * when it has room again. Nor is epoll asked about connections whose messages wait. */
#define REQUESTS_NAP_NS MST_MS

struct mst_plane {
	struct mst_frontend front;
	struct mst_job job;
	struct mst_sessions sessions;
	struct mst_hearing hearing;
	struct mst_leading leading;
	struct mst_following following;
	struct mst_joining joining;
	struct mst_handover handover;
	struct mst_lending lending;
	struct mst_workers workers;
	struct mst_reporting reporting;
	struct mst_switching switching;
	struct mst_resting resting;
	struct mst_endings ending;
	struct mst_checkpointing checkpointing;
	struct mst_stopping stopping;
	bool follows; /* this server is a follower */
	/* The job is over, and workers, followers and the disk are not waited for any more. */
	bool lingered;
};

/* ---- connections ---- */

static void gone(void *ctx, struct mst_conn *c)
{
	struct mst_plane *p = ctx;
	/* A leader that does not believe this server's certificate says so after the handshake. */
	const char *why = c->ops->why(c->stream);

	if (c->role == MST_CONN_WORKER && !c->left)
		mst_requests_lose(&p->job.requests, c->who);
	else if (c->role == MST_CONN_SERVER)
		mst_leading_lost(&p->leading, c->server, "is gone: its connection closed");
	else if (c->role == MST_CONN_LEAD)
		mst_following_lost(&p->following, c->refused ? -EACCES : -ENOTCONN,
				   why != NULL ? why : "the leader is gone: its connection closed",
				   mst_now_ns());
}

/* @what: how the peer broke the protocol. */
static bool broken(void *ctx, struct mst_conn *c, const char *what, uint64_t now_ns)
{
	struct mst_plane *p = ctx;
	char reason[MST_REASON_LEN];

	if (c->role == MST_CONN_WORKER)
		return mst_workers_broken(&p->workers, c, what, now_ns);
	if (c->role == MST_CONN_SERVER)
		return mst_leading_broken(&p->leading, c, what, now_ns);
	mst_frontend_accuse(&p->front, c, what, reason);
	if (c->role == MST_CONN_LEAD)
		mst_following_lost(&p->following, -EPROTO, reason, now_ns);
	mst_frontend_error(&p->front, c, -EPROTO, reason, now_ns);
	return true;
}

static bool server_says(struct mst_plane *p, struct mst_conn *c, const struct mst_message *msg,
			uint64_t now_ns)
{
	struct mst_pending_session *expected = NULL;

	if (msg->kind == MST_MSG_AVERAGE) {
		const char *wrong = mst_lending_piece(&p->lending, c, &msg->handed);
		return wrong == NULL || mst_leading_broken(&p->leading, c, wrong, now_ns);
	}
	bool taken = mst_leading_message(&p->leading, c, msg, now_ns, &expected);

	if (expected != NULL)
		mst_joining_welcome(&p->joining, expected);
	return taken;
}

static bool leader_fetches(struct mst_plane *p, struct mst_conn *c, const struct mst_message *msg,
			   uint64_t now_ns)
{
	const char *wrong = p->job.server == NULL ? "a request for an average before the start"
						  : mst_lending_fetch(&p->lending, &msg->fetch);

	if (wrong != NULL)
		mst_following_accuse(&p->following, c, wrong, now_ns);
	return true;
}

/* A peer that is part of the job has broken the protocol: its role does not change. */
static bool refuse_role(struct mst_plane *p, struct mst_conn *c, const char *what, uint64_t now_ns)
{
	char reason[MST_REASON_LEN];

	if (c->role != MST_CONN_NEW && c->role != MST_CONN_WATCHER)
		return broken(p, c, what, now_ns);
	snprintf(reason, sizeof(reason), "%s %.400s", c->peer, what);
	mst_frontend_blame(&p->front, c, MST_COMPLAINT_REFUSED, reason);
	mst_frontend_error(&p->front, c, -EACCES, reason, now_ns);
	return true;
}

static bool is_change(enum mst_message_kind kind)
{
	return kind == MST_MSG_POLICY || kind == MST_MSG_REST || kind == MST_MSG_EVICT ||
	       kind == MST_MSG_END_JOB;
}

static bool asks_change(struct mst_plane *p, struct mst_conn *c, const struct mst_message *msg,
			uint64_t now_ns)
{
	c->asks_changes = true; /* therefore there is a place for it */
	if (c->role == MST_CONN_NEW)
		(void)mst_frontend_admit_watcher(&p->front, c, now_ns);
	c->heard_ns = now_ns;
	if (msg->kind == MST_MSG_POLICY)
		return mst_switching_ask(&p->switching, c, &msg->change, now_ns);
	if (msg->kind == MST_MSG_EVICT)
		return mst_ending_ask_evict(&p->ending, c, msg->evicted, now_ns);
	if (msg->kind == MST_MSG_END_JOB)
		return mst_ending_ask_end(&p->ending, c, msg->why, now_ns);
	return mst_resting_ask(&p->resting, c, &msg->rest, now_ns);
}

static bool message(void *ctx, struct mst_conn *c, const struct mst_message *msg, uint64_t now_ns)
{
	struct mst_plane *p = ctx;
	bool asks = msg->kind == MST_MSG_ASK_STATUS && c->role != MST_CONN_JOINING &&
		    c->role != MST_CONN_LEAD;
	char why[MST_REASON_LEN];

	if (!mst_roles_allow(c, msg->kind, why, sizeof(why)))
		return refuse_role(p, c, why, now_ns);
	if (asks) {
		mst_reporting_ask(&p->reporting, c, msg->watch != 0, now_ns);
		return true;
	}
	if (is_change(msg->kind) && (c->role == MST_CONN_NEW || c->role == MST_CONN_WATCHER))
		return asks_change(p, c, msg, now_ns);
	if (c->role == MST_CONN_WORKER && c->welcomed)
		return mst_workers_message(&p->workers, c, msg, now_ns);
	if (c->role == MST_CONN_SERVER)
		return server_says(p, c, msg, now_ns);
	if (c->role == MST_CONN_LEAD && msg->kind == MST_MSG_FETCH)
		return leader_fetches(p, c, msg, now_ns);
	if (c->role == MST_CONN_LEAD)
		return mst_following_message(&p->following, c, msg, now_ns);
	if (c->role == MST_CONN_NEW && msg->kind == MST_MSG_HELLO && !c->compares)
		return mst_joining_hello(&p->joining, c, &msg->hello, now_ns);
	if (c->compares && msg->kind == MST_MSG_TENSORS) {
		mst_joining_table(&p->joining, c, &msg->piece, now_ns);
		return true;
	}
	if (c->role == MST_CONN_NEW && msg->kind == MST_MSG_SERVE)
		return mst_leading_serve(&p->leading, c, &msg->serve, now_ns);
	return broken(p, c, "broke the protocol: a message before its hello is answered", now_ns);
}

static const struct mst_frontend_ops frontend_ops = { message, broken, gone };

/* ---- beginning and end ---- */

/* Gives each part pointers to the parts below it. */
static void join_parts(struct mst_plane *p, const struct mst_plane_cfg *cfg)
{
	p->leading.job = p->following.job = p->joining.job = &p->job;
	p->workers.job = p->reporting.job = &p->job;
	p->leading.front = p->following.front = p->joining.front = &p->front;
	p->workers.front = p->reporting.front = &p->front;
	p->handover.job = &p->job;
	p->handover.front = &p->front;
	p->workers.handover = &p->handover;
	p->lending.job = &p->job;
	p->lending.front = &p->front;
	p->lending.leading = &p->leading;
	p->workers.lending = &p->lending;
	p->leading.sessions = p->following.sessions = &p->sessions;
	p->joining.sessions = p->workers.sessions = &p->sessions;
	p->leading.hearing = &p->hearing;
	p->following.hearing = &p->hearing;
	p->joining.leading = p->workers.leading = &p->leading;
	p->reporting.leading = &p->leading;
	p->reporting.access = cfg->access;
	p->switching.job = p->resting.job = p->ending.job = &p->job;
	p->switching.front = p->resting.front = p->ending.front = &p->front;
	p->following.stream = cfg->stream;
	p->following.credentials = cfg->credentials;
	p->checkpointing.job = &p->job;
	p->checkpointing.archive = cfg->archive;
	p->stopping.job = &p->job;
	p->stopping.workers = &p->workers;
	p->stopping.following = &p->following;
	p->stopping.checkpointing = &p->checkpointing;
}

/* A follower has only the connection with its leader, and does not know yet how many workers there
 * are. */
static int open_frontend(struct mst_plane *p, const struct mst_plane_cfg *cfg, char *why,
			 size_t len)
{
	const struct mst_server_options *o = cfg->options;
	struct mst_frontend_cfg front = {
		.stream = cfg->stream,
		.credentials = cfg->credentials,
		.listen = p->follows ? NULL : o->listen,
		.workers = p->follows ? 0 : o->workers,
		.members = p->follows ? 1 : CONNS_PER_RANK * o->workers + o->servers - 1,
		.ops = &frontend_ops,
		.ctx = p,
	};

	return mst_frontend_open(&p->front, &front, why, len);
}

/* A follower makes its tables when it is appointed. */
static int make_tables(struct mst_plane *p, char *why, size_t len)
{
	uint32_t workers = p->job.o->workers, sessions = MST_PLAN_SESSIONS_PER_RANK * workers;

	int rc = mst_sessions_init(&p->sessions, workers, sessions);
	if (rc == 0)
		rc = mst_job_tables(&p->job, sessions);
	if (rc == 0)
		rc = mst_reporting_init(&p->reporting);
	if (rc != 0)
		snprintf(why, len, "no memory for %" PRIu32 " workers", workers);
	return rc;
}

static int open_plane(struct mst_plane *p, const struct mst_plane_cfg *cfg, char *why, size_t len)
{
	struct mst_job_cfg job = { cfg->options, cfg->transport, &p->front, cfg->cores,
				   cfg->recording };
	char cause[400];
	int rc = mst_job_init(&p->job, &job, why, len);

	p->follows = mst_job_follows(&p->job);
	join_parts(p, cfg);
	if (rc == 0 && !p->follows)
		rc = make_tables(p, why, len);
	if (rc == 0 && !p->follows)
		rc = mst_job_try_listener(&p->job, why, len);
	if (rc == 0)
		rc = open_frontend(p, cfg, why, len);
	if (rc != 0)
		return rc;
	rc = mst_joining_init(&p->joining, cfg->makes_links_aside);
	if (rc != 0)
		snprintf(why, len, "cannot start the threads that make links: %s",
			 mst_host_tasks_failed(rc, cause, sizeof(cause)));
	return rc;
}

int mst_plane_new(const struct mst_plane_cfg *cfg, struct mst_plane **out, char *why, size_t len)
{
	struct mst_plane *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		snprintf(why, len, "no memory for the control plane");
		return -ENOMEM;
	}
	int rc = open_plane(p, cfg, why, len);
	if (rc != 0) {
		mst_plane_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

static void close_data_side(struct mst_plane *p)
{
	mst_job_hang_up(&p->job);
	mst_sessions_end_all(&p->sessions);
	mst_job_close(&p->job);
}

void mst_plane_free(struct mst_plane *p)
{
	if (p == NULL)
		return;
	/* what is being made uses the job and its listener, and wakes the frontend */
	mst_joining_fini(&p->joining);
	mst_frontend_close(&p->front);
	close_data_side(p);
	mst_reporting_fini(&p->reporting);
	mst_handover_fini(&p->handover);
	mst_checkpointing_fini(&p->checkpointing);
	mst_sessions_fini(&p->sessions);
	mst_job_fini(&p->job);
	free(p);
}

const char *mst_plane_address(const struct mst_plane *p)
{
	return p->front.address;
}

struct mst_server *mst_plane_server(struct mst_plane *p)
{
	return p->job.server;
}

void mst_plane_wake(struct mst_plane *p)
{
	mst_frontend_wake(&p->front);
}

void mst_plane_wait(struct mst_plane *p, uint64_t timeout_ns)
{
	mst_frontend_wait(&p->front, timeout_ns);
}

uint64_t mst_plane_nap(const struct mst_plane *p)
{
	uint64_t share = p->job.o->lease_ns / NAPS_PER_LEASE;

	if (mst_requests_wait(&p->job.requests) || p->front.holds)
		return REQUESTS_NAP_NS;
	if (mst_reporting_waits(&p->reporting) && share > MST_REPORTING_GAP_NS)
		return MST_REPORTING_GAP_NS;
	return share < NAP_MAX_NS ? share : NAP_MAX_NS;
}

/* ---- what the data side says ---- */

/* What the ledger says of changes that somebody has asked for, and of gradients.
 * Return: false: the notice is about something else. */
static bool hear_change(struct mst_plane *p, const struct mst_notice *notice, uint64_t now_ns)
{
	switch (notice->kind) {
	case MST_NOTE_TAKEN:
		mst_switching_taken(&p->switching, notice, now_ns);
		return true;
	case MST_NOTE_POLICY:
		mst_switching_in_force(&p->switching, notice);
		return true;
	case MST_NOTE_STUCK:
		mst_switching_stuck(&p->switching, notice);
		return true;
	case MST_NOTE_DROPPED:
		mst_switching_dropped(&p->switching, notice);
		return true;
	case MST_NOTE_ALL_REFUSED:
		mst_workers_refused(&p->workers, notice);
		return true;
	case MST_NOTE_EVICT_REFUSED:
		mst_ending_evict_refused(&p->ending, notice, now_ns);
		return true;
	case MST_NOTE_REST_TAKEN:
		mst_resting_taken(&p->resting, notice, now_ns);
		return true;
	case MST_NOTE_RESTS:
		mst_resting_noted(&p->resting, notice);
		return true;
	default:
		return false;
	}
}

static void leader_hears(struct mst_plane *p, const struct mst_notice *notice, uint64_t now_ns)
{
	if (hear_change(p, notice, now_ns) || mst_handover_notice(&p->handover, notice))
		return;
	switch (notice->kind) {
	case MST_NOTE_ADMITTED:
		mst_joining_admitted(&p->joining, notice, now_ns);
		break;
	case MST_NOTE_REFUSED:
		mst_joining_refused(&p->joining, notice, now_ns);
		break;
	case MST_NOTE_SEND_STATE:
		mst_workers_send_state(&p->workers, notice->who);
		break;
	case MST_NOTE_STARTED:
		mst_workers_started(&p->workers);
		break;
	case MST_NOTE_EVICTED:
		mst_workers_evicted(&p->workers, notice, now_ns);
		mst_ending_evicted(&p->ending, notice, now_ns);
		break;
	case MST_NOTE_SNAPSHOT:
		mst_reporting_filled(&p->reporting);
		break;
	case MST_NOTE_FINISHED:
		mst_stopping_finished(&p->stopping, notice, now_ns);
		mst_ending_finished(&p->ending, notice, now_ns);
		break;
	case MST_NOTE_PEER_LOST:
		mst_leading_link_lost(&p->leading, notice);
		break;
	case MST_NOTE_PEER_GONE:
		mst_leading_gone(&p->leading, notice, now_ns);
		break;
	case MST_NOTE_OVER: /* of leader and follower: see hear_data_side() */
	case MST_NOTE_SAVES:
	case MST_NOTE_SAVE:
	case MST_NOTE_SAVED:
	case MST_NOTE_LENT:
	case MST_NOTE_PEER_LINKED: /* for followers only */
	default:
		break;
	}
}

static void hear_data_side(struct mst_plane *p, uint64_t now_ns)
{
	struct mst_notice notice;

	while (mst_server_notice(p->job.server, &notice)) {
		if (notice.kind == MST_NOTE_OVER)
			mst_sessions_let_go(&p->sessions, notice.session);
		else if (notice.kind == MST_NOTE_SAVES || notice.kind == MST_NOTE_SAVE ||
			 notice.kind == MST_NOTE_SAVED)
			mst_checkpointing_notice(&p->checkpointing, &notice, now_ns);
		else if (notice.kind == MST_NOTE_LENT)
			mst_lending_lent(&p->lending, &notice);
		else if (p->follows)
			mst_following_notice(&p->following, &notice, now_ns);
		else
			leader_hears(p, &notice, now_ns);
	}
}

/* ---- steps ---- */

static void step_follower(struct mst_plane *p, uint64_t now_ns)
{
	mst_following_step(&p->following, now_ns);
	mst_frontend_step(&p->front, now_ns);
	mst_hearing_heard(&p->hearing, now_ns);
	mst_following_judge(&p->following, now_ns);
}

static void step_leader(struct mst_plane *p, uint64_t now_ns)
{
	mst_leading_look(&p->leading, now_ns);
	mst_joining_step(&p->joining, now_ns);
	mst_frontend_step(&p->front, now_ns);
	mst_hearing_heard(&p->hearing, now_ns);
	if (p->job.server != NULL && mst_leading_servers_go_on(&p->leading))
		mst_hearing_tell(&p->hearing, &p->front, &p->job.requests, p->job.o->lease_ns,
				 now_ns);
	mst_start_state_step(&p->leading);
	mst_leading_step(&p->leading, now_ns);
	p->lingered |= !mst_plane_is_saving(p) && mst_leading_has_waited(&p->leading, now_ns);
	mst_handover_step(&p->handover);
	if (p->job.server != NULL)
		mst_workers_beat(&p->workers, now_ns);
}

bool mst_plane_is_saving(const struct mst_plane *p)
{
	return mst_stopping_waits(&p->stopping) || mst_checkpointing_is_busy(&p->checkpointing);
}

bool mst_plane_give_up_saving(const struct mst_plane *p)
{
	mst_checkpointing_give_up(&p->checkpointing);
	return !mst_checkpointing_is_busy(&p->checkpointing);
}

/* Followers leave when they hear of the end, so they hear of it when they are not needed. */
static void part_from_followers(struct mst_plane *p)
{
	if (mst_job_is_over(&p->job) && (p->lingered || !mst_plane_is_saving(p)))
		mst_leading_tell_end(&p->leading);
}

/* Behind all that has been heard in this step, so that nothing of it waits for the next. */
static void lend(struct mst_plane *p, uint64_t now_ns)
{
	if (p->follows)
		mst_lending_step_follower(&p->lending, mst_following_conn(&p->following));
	else
		mst_lending_step(&p->lending, now_ns);
}

void mst_plane_step(struct mst_plane *p, uint64_t now_ns)
{
	mst_hearing_look(&p->hearing, p->job.o->lease_ns, now_ns);
	mst_requests_step(&p->job.requests);
	if (p->follows)
		step_follower(p, now_ns);
	else
		step_leader(p, now_ns);
	if (p->job.server != NULL) {
		mst_joining_links(&p->joining, now_ns);
		hear_data_side(p, now_ns);
		p->lingered |= p->job.ended_ns != 0 && now_ns > p->job.ended_ns &&
			       now_ns - p->job.ended_ns > p->job.o->patience_ns;
	}
	lend(p, now_ns);
	mst_checkpointing_step(&p->checkpointing, now_ns);
	if (p->follows) {
		mst_stopping_step_follower(&p->stopping, now_ns);
	} else {
		mst_stopping_step(&p->stopping, now_ns);
		part_from_followers(p);
	}
	if (!p->follows)
		mst_reporting_step(&p->reporting, now_ns);
}

/* ---- the end of the job ---- */

bool mst_plane_is_vacant(const struct mst_plane *p)
{
	return p->job.server != NULL && p->job.state == MST_JOB_GATHERING &&
	       mst_job_servers(&p->job) == 1 && !p->reporting.lent && p->sessions.count == 0 &&
	       !mst_joining_is_busy(&p->joining) &&
	       mst_frontend_count(&p->front, MST_CONN_JOINING) == 0 &&
	       mst_frontend_count(&p->front, MST_CONN_WORKER) == 0;
}

void mst_plane_vacate(struct mst_plane *p)
{
	mst_info("job \"%s\": all workers left before the start; the next worker's hello decides "
		 "length and types",
		 p->job.o->job);
	MST_ASSERT(mst_plane_is_vacant(p));
	close_data_side(p);
	mst_job_forget(&p->job);
	mst_joining_forget(&p->joining);
	mst_reporting_forget(&p->reporting);
	mst_start_state_drop(&p->leading);
}

/* Whether the job runs the data side knows: it may have started it since the last step. */
void mst_plane_stop(struct mst_plane *p, const char *why, uint64_t now_ns)
{
	if (p->follows) {
		mst_stopping_begin_follower(&p->stopping, why, now_ns);
		return;
	}
	if (p->job.server != NULL)
		hear_data_side(p, now_ns);
	mst_stopping_begin(&p->stopping, why, now_ns);
}

static bool follower_is_over(const struct mst_plane *p)
{
	/* While its leader is there, when its workers have gone; otherwise at once. */
	return p->following.state == MST_FOLLOWING_CUT_OFF || p->job.stopped || p->lingered ||
	       (p->sessions.count == 0 && !mst_plane_is_saving(p));
}

static bool all_told(const struct mst_plane *p)
{
	return mst_frontend_has_sent_all(&p->front) &&
	       (p->job.server == NULL ||
		(p->reporting.final_told && !mst_reporting_is_behind(&p->reporting)));
}

static bool leader_is_over(const struct mst_plane *p)
{
	return p->lingered || (p->sessions.count == 0 && !mst_plane_is_saving(p) && all_told(p) &&
			       mst_leading_have_parted(&p->leading));
}

int mst_plane_over(const struct mst_plane *p)
{
	if (!mst_job_is_over(&p->job) || !(p->follows ? follower_is_over(p) : leader_is_over(p)))
		return 0;
	return p->job.state == MST_JOB_FINISHED ? 1 : -1;
}

bool mst_plane_was_refused(const struct mst_plane *p)
{
	return p->following.refused;
}
