/* SPDX-License-Identifier: MIT */
#include "server/control/members/followers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/reason.h"

/* For this part of a lease, which is two heartbeats, a follower may be silent without
 * consequence. */
#define SILENT_SHARE 2u

/* ---- their connections ---- */

struct mst_conn *mst_followers_conn(const struct mst_followers *f, uint32_t server)
{
	struct mst_conn *c;

	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&f->base->front, MST_CONN_SERVER, &i)) != NULL;) {
		if (c->server == server)
			return c;
	}
	return NULL;
}

void mst_followers_send(struct mst_followers *f, uint32_t server, const struct mst_message *msg)
{
	struct mst_conn *c = mst_followers_conn(f, server);

	if (c != NULL)
		mst_frontend_send(&f->base->front, c, msg);
}

void mst_followers_send_all(struct mst_followers *f, const struct mst_message *msg)
{
	for (uint32_t i = 1; i < mst_followers_servers(f); i++)
		mst_followers_send(f, i, msg);
}

/* ---- the job goes on ---- */

bool mst_followers_are_ready(const struct mst_followers *f)
{
	for (uint32_t i = 1; i < mst_followers_servers(f); i++) {
		if (f->place[i].state != MST_FOLLOWER_PLACE_READY)
			return false;
	}
	return true;
}

/* Not while a follower is silent: it may have unread headers of workers. */
bool mst_followers_go_on(const struct mst_followers *f)
{
	uint64_t most_ns = f->base->job.o->lease_ns / SILENT_SHARE;

	for (uint32_t i = 1; i < mst_followers_servers(f); i++) {
		const struct mst_follower_place *s = &f->place[i];
		if (s->state == MST_FOLLOWER_PLACE_READY &&
		    mst_hearing_since(&f->base->hearing, s->heard_ns) >= most_ns)
			return false;
	}
	return true;
}

/* ---- workers ---- */

uint32_t mst_followers_set(const struct mst_followers *f)
{
	return (1u << mst_followers_servers(f)) - 2;
}

void mst_followers_announce(struct mst_followers *f, const struct mst_pending_session *p)
{
	struct mst_message *m = mst_frontend_draft(&f->base->front, MST_MSG_EXPECT);

	m->expect.rank = p->session.who.rank;
	m->expect.incarnation = p->session.who.incarnation;
	memcpy(m->expect.token, p->token, sizeof(m->expect.token));
	m->expect.origins = p->origins;
	mst_followers_send_all(f, m);
}

void mst_followers_forget(struct mst_followers *f, struct mst_identity who)
{
	struct mst_message *m = mst_frontend_draft(&f->base->front, MST_MSG_FORGET);

	m->expect.rank = who.rank;
	m->expect.incarnation = who.incarnation;
	mst_followers_send_all(f, m);
}

void mst_followers_fill_beat(struct mst_followers *f, struct mst_beat *out)
{
	out->count = mst_followers_servers(f);
	out->server[0].passes = mst_job_passes(&f->base->job);
	for (uint32_t i = 1; i < out->count; i++)
		out->server[i].passes = f->place[i].passes;
}

/* ---- losing them ---- */

static void tell_data_side(struct mst_followers *f, uint32_t server)
{
	struct mst_request request = { .kind = MST_REQ_PEER_GONE };

	request.peer.server = server;
	mst_requests_put(&f->base->job.requests, &request);
}

void mst_followers_lose(struct mst_followers *f, uint32_t server, const char *what)
{
	struct mst_follower_place *s = &f->place[server];
	struct mst_reason why;

	if (!mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_LOSE))
		return;
	mst_reason_set(&why, "server %" PRIu32 " of %" PRIu32 " (%s) %s", server,
		       mst_followers_servers(f), s->peer, what);
	mst_warn("%s", why.text);
	if (s->state == MST_FOLLOWER_PLACE_AWAITED) {
		*s = (struct mst_follower_place){ 0 };
		return;
	}
	mst_reason_set(&f->base->job.server_loss, "%s", why.text);
	tell_data_side(f, server);
}

/* A follower that was not told of the end may be missed: the last checkpoint waits for its part. */
static void part(struct mst_followers *f, uint32_t server)
{
	bool parts = mst_follower_place_enter(&f->place[server].state, MST_FOLLOWER_PLACE_PART);

	if (parts && !f->told_end && f->base->job.server != NULL)
		tell_data_side(f, server);
}

void mst_followers_lost(struct mst_followers *f, uint32_t server, const char *what)
{
	if (mst_job_is_over(&f->base->job))
		part(f, server);
	else
		mst_followers_lose(f, server, what);
}

void mst_followers_send_away(struct mst_followers *f, uint32_t server, uint64_t now_ns)
{
	struct mst_conn *c = mst_followers_conn(f, server);

	if (c != NULL)
		mst_frontend_error(&f->base->front, c,
				   mst_job_finish_word(&f->base->job, MST_FINISH_SERVER),
				   f->base->job.server_loss.text, now_ns);
}

void mst_followers_given_up(struct mst_followers *f, const struct mst_notice *notice,
			    uint64_t now_ns)
{
	uint32_t server = notice->peer.server;
	struct mst_follower_place *s = &f->place[server];
	struct mst_reason *loss = &f->base->job.server_loss;

	if (!mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_LOSE))
		return;
	mst_reason_set(loss, "server %" PRIu32 " of %" PRIu32 " (%s) ", server,
		       mst_followers_servers(f), s->peer);
	if (notice->peer.error == -EPROTO)
		mst_reason_add(loss, "broke the protocol on its link with this one");
	else
		mst_reason_add(loss, "had no link with this one for %.3g s (--server-lease)",
			       mst_followers_lease_s(f));
	mst_warn("%s", loss->text);
	mst_followers_send_away(f, server, now_ns);
}

void mst_followers_tell_end(struct mst_followers *f)
{
	if (f->told_end)
		return;
	f->told_end = true;
	struct mst_message *m = mst_frontend_draft(&f->base->front, MST_MSG_FINISHED);
	mst_job_fill_end(&f->base->job, m);
	mst_followers_send_all(f, m);
}

bool mst_followers_have_parted(const struct mst_followers *f)
{
	return mst_frontend_count(&f->base->front, MST_CONN_SERVER) == 0;
}
