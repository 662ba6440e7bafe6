/* SPDX-License-Identifier: MIT */
#include "server/control/follower_plane.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/control/connections/roles.h"

/* ---- it is told to end ---- */

/* How long the leader may take to end the job, unless --stop-timeout says so. */
#define LEADER_NS (5 * MST_SECOND)
/* How long the last message may take. */
#define LAST_WORDS_NS (200 * MST_MS)

static void leave(struct mst_leaving *l, uint64_t now_ns)
{
	mst_following_stop(l->following, l->why, now_ns);
	mst_base_stop(l->base, l->why, now_ns);
}

/* This server is told to end. */
static void leaving_begin(struct mst_leaving *l, const char *why, uint64_t now_ns)
{
	uint64_t most_ns = mst_server_options_stop_timeout(l->base->job.o, LEADER_NS);

	snprintf(l->why, sizeof(l->why), "%s", why);
	if (l->base->checkpointing.archive == NULL || l->base->job.server == NULL) {
		leave(l, now_ns);
		return;
	}
	l->leave_ns = now_ns + most_ns;
	mst_warn("job \"%s\": this server ends when its leader has saved the job; or in %.3g s "
		 "(--stop-timeout), if the leader goes on",
		 l->base->job.o->job, (double)most_ns / (double)MST_SECOND);
}

/* A leader that has ended the job may still save, however long its disk takes, and says when it has
 * done so. */
static void leaving_step(struct mst_leaving *l, uint64_t now_ns)
{
	bool ends = mst_following_hears_end(l->following);
	bool due = now_ns >= l->leave_ns && !ends &&
		   !mst_checkpointing_is_busy(&l->base->checkpointing);

	if (now_ns >= l->last_words_ns)
		l->last_words_ns = 0;
	if (l->leave_ns == 0 || !(due || mst_job_is_over(&l->base->job)))
		return;
	l->leave_ns = 0;
	l->last_words_ns = now_ns + LAST_WORDS_NS;
	leave(l, now_ns);
}

/* Is there something that the end of the server waits for? */
static bool leaving_waits(const struct mst_leaving *l)
{
	return l->leave_ns != 0 || l->last_words_ns != 0;
}

/* ---- the plane ---- */

void mst_follower_plane_init(struct mst_follower_plane *p, struct mst_base *base,
			     const struct mst_stream_ops *stream,
			     struct mst_credentials *credentials)
{
	p->base = p->following.base = p->fetching.base = p->fetching.lent.base = base;
	p->leaving.base = base;
	p->leaving.following = &p->following;
	p->following.stream = stream;
	p->following.credentials = credentials;
}

static void fini(void *of)
{
	(void)of;
}

/* ---- what the leader says ---- */

static void gone(void *ctx, struct mst_conn *c)
{
	struct mst_follower_plane *p = ctx;
	/* A leader that does not believe this server's certificate says so after the handshake. */
	const char *why = c->ops->why(c->stream);

	if (c->role == MST_CONN_LEAD)
		mst_following_lost(&p->following, c->refused ? -EACCES : -ENOTCONN,
				   why != NULL ? why : "the leader is gone: its connection closed",
				   mst_now_ns());
}

/* @what: how the leader broke the protocol. */
static bool broken(void *ctx, struct mst_conn *c, const char *what, uint64_t now_ns)
{
	struct mst_follower_plane *p = ctx;
	struct mst_reason reason;

	mst_frontend_accuse(&p->base->front, c, what, &reason);
	if (c->role == MST_CONN_LEAD)
		mst_following_lost(&p->following, -EPROTO, reason.text, now_ns);
	mst_frontend_error(&p->base->front, c, -EPROTO, reason.text, now_ns);
	return true;
}

static bool message(void *ctx, struct mst_conn *c, const struct mst_message *msg, uint64_t now_ns)
{
	struct mst_follower_plane *p = ctx;
	struct mst_reason why;

	if (!mst_roles_allow(c, msg->kind, &why))
		return broken(p, c, why.text, now_ns);
	if (msg->kind != MST_MSG_FETCH)
		return mst_following_message(&p->following, c, msg, now_ns);
	const char *wrong = mst_fetching_ask(&p->fetching, &msg->fetch);
	if (wrong != NULL)
		mst_following_accuse(&p->following, c, wrong, now_ns);
	return true;
}

/* ---- steps ---- */

static bool is_saving(const void *of)
{
	const struct mst_follower_plane *p = of;

	return leaving_waits(&p->leaving) || mst_checkpointing_is_busy(&p->base->checkpointing);
}

static void hear(void *ctx, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_follower_plane *p = ctx;

	if (notice->kind == MST_NOTE_LENT)
		mst_lent_take(&p->fetching.lent, notice);
	else
		mst_following_notice(&p->following, notice, now_ns);
}

static void step(void *of, uint64_t now_ns)
{
	struct mst_follower_plane *p = of;
	struct mst_base *b = p->base;

	mst_base_look(b, now_ns);
	mst_following_step(&p->following, now_ns);
	mst_frontend_step(&b->front, now_ns);
	mst_hearing_heard(&b->hearing, now_ns);
	mst_following_judge(&p->following, now_ns);
	mst_base_data_side(b, hear, p, now_ns);
	/* after all that has been heard in this step, so that nothing of it waits for the next */
	mst_fetching_step(&p->fetching, mst_following_conn(&p->following));
	mst_checkpointing_step(&b->checkpointing, now_ns);
	leaving_step(&p->leaving, now_ns);
}

static uint64_t nap(const void *of)
{
	(void)of;
	return MST_PLANE_ROLE_NAP_NS;
}

/* ---- the end of the job ---- */

static void stop(void *of, const char *why, uint64_t now_ns)
{
	struct mst_follower_plane *p = of;

	leaving_begin(&p->leaving, why, now_ns);
}

/* While its leader is there, when its workers have gone, unless they come back to the plane that is
 * made in place of this one; otherwise at once. */
static bool is_over(const void *of)
{
	const struct mst_follower_plane *p = of;
	const struct mst_base *b = p->base;

	return p->following.state == MST_FOLLOWING_CUT_OFF || b->job.stopped || b->lingered ||
	       ((b->sessions.count == 0 || b->job.renews) && !is_saving(p));
}

/* Its part is made for the job of its leader. */
static bool is_vacant(const void *of)
{
	(void)of;
	return false;
}

static void vacate(void *of)
{
	(void)of;
	MST_ASSERT(false);
}

static bool was_refused(const void *of)
{
	const struct mst_follower_plane *p = of;

	return p->following.refused;
}

const struct mst_plane_role mst_follower_role = {
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
