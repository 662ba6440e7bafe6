/* SPDX-License-Identifier: MIT */
#include "server/control/leader_plane.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/assert.h"
#include "common/base/log.h"
#include "server/control/connections/roles.h"
#include "server/control/generations/take_over.h"
#include "server/control/members/finishing.h"
#include "server/control/members/follower_links.h"
#include "server/control/transfer/start_sender.h"

/* ---- beginning and end ---- */

/* Gives each part pointers to the parts that it sees. */
static void join_parts(struct mst_leader_plane *p)
{
	p->leading.base = p->leading.followers.base = p->joining.base = p->state_transfer.base =
		p->base;
	p->lending.base = p->lending.lent.base = p->workers.base = p->reporting.base = p->base;
	p->switching.base = p->resting.base = p->ending.base = p->stopping.base = p->base;
	p->joining.leading = p->workers.leading = &p->leading;
	p->reporting.followers = p->lending.followers = &p->leading.followers;
	p->workers.start_state.followers = &p->leading.followers;
	p->workers.agreement.base = p->workers.divergence.base = p->workers.dismissal.base =
		p->base;
	p->workers.state_transfer = &p->state_transfer;
	p->workers.lending = &p->lending;
	p->stopping.leading = &p->leading;
	p->base->linking.servers = &mst_follower_links;
	p->base->linking.ctx = &p->leading.followers;
}

int mst_leader_plane_init(struct mst_leader_plane *p, struct mst_base *base, enum mst_access access,
			  struct mst_reason *why)
{
	p->base = base;
	join_parts(p);
	p->reporting.access = access;
	int rc = mst_base_tables(base, why);
	if (rc != 0)
		return rc;
	rc = mst_reporting_init(&p->reporting);
	if (rc == 0)
		rc = mst_joining_init(&p->joining);
	if (rc == 0)
		rc = mst_agreement_init(&p->workers.agreement);
	if (rc == 0)
		rc = mst_divergence_init(&p->workers.divergence);
	if (rc != 0) {
		mst_reason_set(why, "no memory for %" PRIu32 " workers", base->job.o->workers);
		return rc;
	}
	return mst_job_try_listener(&base->job, why);
}

static void fini(void *of)
{
	struct mst_leader_plane *p = of;

	mst_divergence_fini(&p->workers.divergence);
	mst_agreement_fini(&p->workers.agreement);
	mst_joining_fini(&p->joining);
	mst_reporting_fini(&p->reporting);
	mst_state_transfer_fini(&p->state_transfer);
}

/* ---- what peers say ---- */

static void gone(void *ctx, struct mst_conn *c)
{
	struct mst_leader_plane *p = ctx;

	if (c->role == MST_CONN_WORKER && !c->left)
		mst_requests_lose(&p->base->job.requests, c->who);
	else if (c->role == MST_CONN_SERVER)
		mst_followers_lost(&p->leading.followers, c->server,
				   "is gone: its connection closed");
}

/* @what: how the peer broke the protocol. */
static bool broken(void *ctx, struct mst_conn *c, const char *what, uint64_t now_ns)
{
	struct mst_leader_plane *p = ctx;
	struct mst_reason reason;

	if (c->role == MST_CONN_WORKER)
		return mst_workers_broken(&p->workers, c, what, now_ns);
	if (c->role == MST_CONN_SERVER)
		return mst_leading_broken(&p->leading, c, what, now_ns);
	mst_frontend_accuse(&p->base->front, c, what, &reason);
	mst_frontend_error(&p->base->front, c, -EPROTO, reason.text, now_ns);
	return true;
}

static bool server_says(struct mst_leader_plane *p, struct mst_conn *c,
			const struct mst_message *msg, uint64_t now_ns)
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

/* A peer that is part of the job has broken the protocol: its role does not change. */
static bool refuse_role(struct mst_leader_plane *p, struct mst_conn *c, const char *what,
			uint64_t now_ns)
{
	struct mst_reason reason;

	if (c->role != MST_CONN_NEW && c->role != MST_CONN_WATCHER)
		return broken(p, c, what, now_ns);
	mst_reason_set(&reason, "%s %s", c->peer, what);
	mst_frontend_blame(&p->base->front, c, MST_COMPLAINT_REFUSED, reason.text);
	mst_frontend_error(&p->base->front, c, -EACCES, reason.text, now_ns);
	return true;
}

static bool is_change(enum mst_message_kind kind)
{
	return kind == MST_MSG_POLICY || kind == MST_MSG_REST || kind == MST_MSG_EVICT ||
	       kind == MST_MSG_END_JOB || kind == MST_MSG_WORKERS;
}

static bool asks_change(struct mst_leader_plane *p, struct mst_conn *c,
			const struct mst_message *msg, uint64_t now_ns)
{
	c->asks_changes = true; /* therefore there is a place for it */
	if (c->role == MST_CONN_NEW)
		(void)mst_frontend_admit_watcher(&p->base->front, c, now_ns);
	c->heard_ns = now_ns;
	if (msg->kind == MST_MSG_POLICY)
		return mst_switching_ask(&p->switching, c, &msg->change, now_ns);
	if (msg->kind == MST_MSG_EVICT)
		return mst_ending_ask_evict(&p->ending, c, msg->evicted, now_ns);
	if (msg->kind == MST_MSG_END_JOB)
		return mst_ending_ask_end(&p->ending, c, msg->why, now_ns);
	if (msg->kind == MST_MSG_WORKERS) {
		mst_resizing_ask(p->base, c, msg->workforce.workers, now_ns);
		return true;
	}
	return mst_resting_ask(&p->resting, c, &msg->rest, now_ns);
}

static bool message(void *ctx, struct mst_conn *c, const struct mst_message *msg, uint64_t now_ns)
{
	struct mst_leader_plane *p = ctx;
	struct mst_reason why;

	if (!mst_roles_allow(c, msg->kind, &why))
		return refuse_role(p, c, why.text, now_ns);
	if (msg->kind == MST_MSG_ASK_STATUS && c->role != MST_CONN_JOINING) {
		mst_reporting_ask(&p->reporting, c, msg->watch != 0, now_ns);
		return true;
	}
	if (is_change(msg->kind) && (c->role == MST_CONN_NEW || c->role == MST_CONN_WATCHER))
		return asks_change(p, c, msg, now_ns);
	if (c->role == MST_CONN_WORKER && c->welcomed)
		return mst_workers_message(&p->workers, c, msg, now_ns);
	if (c->role == MST_CONN_SERVER)
		return server_says(p, c, msg, now_ns);
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

/* ---- what the data side says ---- */

/* What the ledger says of changes that somebody has asked for, and of gradients.
 * Return: false: the notice is about something else. */
static bool hear_change(struct mst_leader_plane *p, const struct mst_notice *notice,
			uint64_t now_ns)
{
	switch (notice->kind) {
	case MST_NOTE_TAKEN:
		if (!mst_take_over_taken(&p->base->job))
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
	case MST_NOTE_STRAGGLER:
		mst_straggling_noted(p->resting.base, notice);
		return true;
	default:
		return false;
	}
}

static void hear(void *ctx, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_leader_plane *p = ctx;

	if (hear_change(p, notice, now_ns) || mst_state_transfer_notice(&p->state_transfer, notice))
		return;
	switch (notice->kind) {
	case MST_NOTE_ADMITTED:
		mst_joining_admitted(&p->joining, notice, now_ns);
		break;
	case MST_NOTE_REFUSED:
		mst_joining_refused(&p->joining, notice, now_ns);
		break;
	case MST_NOTE_SEND_STATE:
		mst_start_sender_ask(&p->workers.start_state, notice->who);
		break;
	case MST_NOTE_STARTED:
		mst_workers_started(&p->workers, &notice->generation);
		break;
	case MST_NOTE_GOAL:
		mst_finishing_goal(&p->leading, notice);
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
		mst_follower_links_lost(&p->leading.followers, notice);
		break;
	case MST_NOTE_PEER_GONE:
		mst_followers_given_up(&p->leading.followers, notice, now_ns);
		break;
	case MST_NOTE_LENT:
		mst_lending_lent(&p->lending, notice);
		break;
	case MST_NOTE_OVER: /* the base hears these itself */
	case MST_NOTE_SAVES:
	case MST_NOTE_SAVE:
	case MST_NOTE_SAVED:
	case MST_NOTE_PEER_LINKED: /* for followers only */
	default:
		break;
	}
}

/* ---- steps ---- */

static bool is_saving(const void *of)
{
	const struct mst_leader_plane *p = of;

	return mst_stopping_waits(&p->stopping) ||
	       mst_checkpointing_is_busy(&p->base->checkpointing);
}

static void hear_peers(struct mst_leader_plane *p, uint64_t now_ns)
{
	struct mst_base *b = p->base;

	mst_leading_look(&p->leading, now_ns);
	mst_joining_step(&p->joining, now_ns);
	mst_frontend_step(&b->front, now_ns);
	mst_hearing_heard(&b->hearing, now_ns);
	if (b->job.server != NULL && mst_followers_go_on(&p->leading.followers))
		mst_hearing_tell(&b->hearing, &b->front, &b->job.requests, b->job.o->lease_ns,
				 now_ns);
	mst_start_state_step(&p->workers.start_state);
	mst_leading_step(&p->leading, now_ns);
	b->lingered |= !is_saving(p) && mst_leading_has_waited(&p->leading, now_ns);
	mst_workers_agree(&p->workers, now_ns);
	if (b->job.server != NULL)
		mst_workers_beat(&p->workers, now_ns);
}

/* A follower leaves when it is told of the end. So it is told when it is not needed any more. */
static void part_from_followers(struct mst_leader_plane *p)
{
	if (mst_job_is_over(&p->base->job) && (p->base->lingered || !is_saving(p)))
		mst_followers_tell_end(&p->leading.followers);
}

static void step(void *of, uint64_t now_ns)
{
	struct mst_leader_plane *p = of;
	struct mst_base *b = p->base;

	mst_base_look(b, now_ns);
	hear_peers(p, now_ns);
	mst_base_data_side(b, hear, p, now_ns);
	/* after all that has been heard in this step, so that nothing of it waits for the next */
	mst_state_transfer_step(&p->state_transfer);
	mst_lending_step(&p->lending, now_ns);
	mst_checkpointing_step(&b->checkpointing, now_ns);
	mst_stopping_step(&p->stopping, now_ns);
	part_from_followers(p);
	mst_reporting_step(&p->reporting, now_ns);
}

static uint64_t nap(const void *of)
{
	const struct mst_leader_plane *p = of;

	return mst_reporting_waits(&p->reporting) ? MST_REPORTING_GAP_NS : MST_PLANE_ROLE_NAP_NS;
}

/* ---- the end of the job ---- */

/* The data side may have started the job since the last step, so its notices are heard first. */
static void stop(void *of, const char *why, uint64_t now_ns)
{
	struct mst_leader_plane *p = of;

	if (p->base->job.server != NULL)
		mst_base_notices(p->base, hear, p, now_ns);
	mst_stopping_begin(&p->stopping, why, now_ns);
}

static bool all_told(const struct mst_leader_plane *p)
{
	return mst_frontend_has_sent_all(&p->base->front) &&
	       (p->base->job.server == NULL ||
		(p->reporting.final_told && !mst_reporting_is_behind(&p->reporting)));
}

static bool is_over(const void *of)
{
	const struct mst_leader_plane *p = of;
	const struct mst_base *b = p->base;

	/* Workers keep what they have of this one until the next one lets them in. */
	bool left = b->sessions.count == 0 || b->job.renews;

	return b->lingered || (left && !is_saving(p) && all_told(p) &&
			       mst_followers_have_parted(&p->leading.followers));
}

static bool is_vacant(const void *of)
{
	const struct mst_leader_plane *p = of;
	const struct mst_base *b = p->base;

	return b->job.server != NULL && b->job.state == MST_JOB_GATHERING &&
	       mst_job_servers(&b->job) == 1 && !p->reporting.lent && b->sessions.count == 0 &&
	       !mst_linking_is_busy(&b->linking) &&
	       mst_frontend_count(&b->front, MST_CONN_JOINING) == 0 &&
	       mst_frontend_count(&b->front, MST_CONN_WORKER) == 0;
}

static void vacate(void *of)
{
	struct mst_leader_plane *p = of;
	struct mst_base *b = p->base;

	mst_info("job \"%s\": all workers left before the start; the next worker's hello decides "
		 "length and types",
		 b->job.o->job);
	MST_ASSERT(is_vacant(p));
	mst_base_close_data_side(b);
	mst_job_forget(&b->job);
	mst_linking_forget(&b->linking);
	mst_reporting_forget(&p->reporting);
	mst_start_state_drop(&p->workers.start_state);
}

/* A leader asks nobody whether it may be one. */
static bool was_refused(const void *of)
{
	(void)of;
	return false;
}

const struct mst_plane_role mst_leader_role = {
	.front = { message, broken, gone },
	.step = step,
	.nap = nap,
	.stop = stop,
	.is_saving = is_saving,
	.is_over = is_over,
	.is_vacant = is_vacant,
	.vacate = vacate,
	.was_refused = was_refused,
	.fini = fini,
};
