/* SPDX-License-Identifier: MIT */
#include "server/control/members/leading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/reason.h"
#include "common/transport/called.h"
#include "common/transport/origins.h"
#include "common/transport/transport.h"
#include "server/control/members/follower_links.h"
#include "server/control/members/token.h"

/* If two steps are further apart than this, the process was stopped. */
#define STOOD_STILL_NS MST_SECOND

/* ---- followers ---- */

static int follower_place_for(const struct mst_leading *l, const struct mst_serve *serve,
			      uint32_t *server, struct mst_reason *why)
{
	const struct mst_job *j = &l->base->job;
	char networks[MST_NETWORKS_TEXT_LEN];

	if (mst_job_is_over(j)) {
		mst_reason_set(why, "job \"%s\" is over: %s", j->o->job, j->why.text);
		return mst_job_over_word(j);
	}
	if (strcmp(serve->job, j->o->job) != 0) {
		mst_reason_set(
			why,
			"there is no job \"%s\" here, but \"%s\": give both servers the same "
			"--job",
			serve->job, j->o->job);
		return -EINVAL;
	}
	if (!mst_networks_share(&j->networks, serve->schemes)) {
		mst_reason_set(
			why,
			"a server over %s cannot serve job \"%s\", which is over %s: give both "
			"the same --transport",
			serve->schemes, j->o->job, mst_networks_text(&j->networks, networks));
		return -EINVAL;
	}
	for (uint32_t i = 1; i < mst_followers_servers(&l->followers); i++) {
		if (l->followers.place[i].state == MST_FOLLOWER_PLACE_AWAITED) {
			*server = i;
			return 0;
		}
	}
	mst_reason_set(why,
		       "job \"%s\" has its %" PRIu32
		       " server%s already; to have more, start its leader "
		       "with a larger --servers",
		       j->o->job, mst_followers_servers(&l->followers),
		       mst_followers_servers(&l->followers) > 1 ? "s" : "");
	return -ENOSPC;
}

static void appoint(struct mst_leading *l, uint32_t server)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_APPOINT);
	struct mst_follower_place *s = &l->followers.place[server];

	if (!mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_APPOINT))
		return;
	mst_job_appoint(&l->base->job, server, &m->appoint);
	memcpy(m->appoint.address, l->base->job.listener->address, sizeof(m->appoint.address));
	mst_follower_links_offer(&l->followers, server, m->appoint.token);
	s->heard_ns = mst_hearing_now(&l->base->hearing);
	mst_followers_send(&l->followers, server, m);
}

void mst_leading_appoint_all(struct mst_leading *l)
{
	for (uint32_t i = 1; i < mst_followers_servers(&l->followers); i++)
		appoint(l, i);
}

bool mst_leading_serve(struct mst_leading *l, struct mst_conn *c, const struct mst_serve *serve,
		       uint64_t now_ns)
{
	struct mst_reason why;
	uint32_t server = 0;
	int rc = follower_place_for(l, serve, &server, &why);

	if (rc != 0) {
		mst_complain(&l->base->front.complaints, MST_COMPLAINT_REFUSED, "%s refused: %s",
			     c->peer, why.text);
		mst_frontend_error(&l->base->front, c, rc, why.text, now_ns);
		return true;
	}
	struct mst_follower_place *s = &l->followers.place[server];
	*s = (struct mst_follower_place){ .heard_ns = mst_hearing_now(&l->base->hearing) };
	(void)mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_JOIN);
	memcpy(s->peer, c->peer, sizeof(s->peer));
	s->origins = serve->origins;
	mst_origins_add_peer(&s->origins, c->peer);
	mst_frontend_enter(&l->base->front, c, MST_CONN_SERVE);
	c->server = server;
	c->pid = serve->pid;
	mst_info("server %" PRIu32 " of %" PRIu32 " joined from %s, process %" PRIu32, server,
		 mst_followers_servers(&l->followers), c->peer, c->pid);
	if (l->base->job.server != NULL)
		appoint(l, server);
	return true;
}

bool mst_leading_broken(struct mst_leading *l, struct mst_conn *c, const char *what,
			uint64_t now_ns)
{
	struct mst_reason reason;

	mst_frontend_accuse(&l->base->front, c, what, &reason);
	mst_followers_lost(&l->followers, c->server, what);
	mst_frontend_error(&l->base->front, c, -EPROTO, reason.text, now_ns);
	return true;
}

bool mst_leading_has_waited(const struct mst_leading *l, uint64_t now_ns)
{
	return l->part_until != 0 && now_ns >= l->part_until;
}

/* ---- what followers say ---- */

/* The session may have ended meanwhile. */
static void confirm(struct mst_leading *l, uint32_t server, const struct mst_expect *e,
		    struct mst_pending_session **expected)
{
	struct mst_identity who = { e->rank, e->incarnation };
	struct mst_pending_session *p = mst_sessions_of(&l->base->sessions, who);

	if (p != NULL && mst_sessions_confirm(&l->base->sessions, p, server))
		*expected = p;
}

/* A worker links with all servers over one network. */
static bool is_reachable(const struct mst_leading *l, const char *listener)
{
	struct mst_networks common = l->base->job.networks;

	mst_networks_keep(&common, l->base->job.listener->address);
	mst_networks_keep(&common, listener);
	for (uint32_t i = 1; i < mst_followers_servers(&l->followers); i++)
		if (l->followers.place[i].listener[0] != '\0')
			mst_networks_keep(&common, l->followers.place[i].listener);
	return common.count > 0;
}

/* The follower serves at @listener: workers are sent to that address. They depend on the server
 * link, so it must be up. */
static bool serves(struct mst_leading *l, struct mst_conn *c, const char *listener, uint64_t now_ns)
{
	struct mst_follower_place *s = &l->followers.place[c->server];
	char host[MST_CALLED_LEN], places[MST_ADDRESS_LEN];
	uint64_t first, count;

	if (s->linking)
		return false; /* later: the follower says so because of that link */
	if (s->state != MST_FOLLOWER_PLACE_LINKED)
		return mst_leading_broken(
			l, c, "broke the protocol: ready without a link, or twice", now_ns);
	if (!is_reachable(l, listener))
		return mst_leading_broken(
			l, c, "serves over no network that all servers of the job have", now_ns);
	(void)mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_SERVE);
	memcpy(s->listener, listener, sizeof(s->listener));
	/* A follower of this host is where this server is called. */
	if (!mst_called_is_here(mst_called_host_of(c->peer, host)))
		mst_called_fill(s->listener, sizeof(s->listener), host);
	mst_job_part(&l->base->job, c->server, &first, &count);
	mst_info("server %" PRIu32 " serves elements %" PRIu64 " to %" PRIu64 " at %.200s",
		 c->server, first, first + count - 1, mst_networks_places(s->listener, places));
	return true;
}

/* A follower gives up: everybody is told why. It closes its connection next, which is not reported
 * again. */
static void gives_up(struct mst_leading *l, struct mst_conn *c, const char *why, uint64_t now_ns)
{
	struct mst_reason what;

	if (mst_job_is_over(&l->base->job)) {
		mst_warn("server %" PRIu32 ": %s", c->server, why);
		return;
	}
	mst_reason_set(&what, "gives up: %s", why);
	mst_followers_lose(&l->followers, c->server, what.text);
	mst_frontend_part(&l->base->front, c, now_ns);
}

/* Workers wait for the follower's data thread. So a follower whose data thread stands still counts
 * as silent, although its control thread sends heartbeats. */
static void beats(struct mst_leading *l, struct mst_follower_place *s, const struct mst_beat *beat)
{
	uint64_t passes = beat->count > 0 ? beat->server[0].passes : 0;

	if (passes != s->passes || s->state != MST_FOLLOWER_PLACE_READY)
		s->heard_ns = mst_hearing_now(&l->base->hearing);
	s->passes = passes;
}

bool mst_leading_message(struct mst_leading *l, struct mst_conn *c, const struct mst_message *msg,
			 uint64_t now_ns, struct mst_pending_session **expected)
{
	struct mst_follower_place *s = &l->followers.place[c->server];

	if (msg->kind == MST_MSG_BEAT) {
		beats(l, s, &msg->beat);
		return true;
	}
	if (msg->kind == MST_MSG_ERROR) {
		gives_up(l, c, msg->error.reason, now_ns);
		return true;
	}
	if (s->state != MST_FOLLOWER_PLACE_READY)
		s->heard_ns = mst_hearing_now(&l->base->hearing);
	if (s->state == MST_FOLLOWER_PLACE_JOINED)
		return mst_leading_broken(
			l, c, "broke the protocol: a server's message before it is appointed",
			now_ns);
	switch (msg->kind) {
	case MST_MSG_READY:
		return serves(l, c, msg->listener, now_ns);
	case MST_MSG_EXPECT:
		confirm(l, c->server, &msg->expect, expected);
		return true;
	case MST_MSG_STATE_DONE:
		if (s->states_done == s->states_sent)
			return mst_leading_broken(
				l, c, "broke the protocol: a start state that was not sent",
				now_ns);
		s->states_done++;
		return true;
	case MST_MSG_RELINK:
		if (mst_token_is(msg->token, s->token))
			mst_follower_links_offer_again(&l->followers, c->server);
		return true;
	default:
		return mst_leading_broken(
			l, c, "broke the protocol: a message that is not a server's", now_ns);
	}
}

/* ---- time ---- */

void mst_leading_look(struct mst_leading *l, uint64_t now_ns)
{
	if (l->followers.step_ns == 0)
		l->join_until = mst_server_options_join_until(l->base->job.o, now_ns);
	else if ((now_ns - l->followers.step_ns > STOOD_STILL_NS ||
		  mst_job_is_being_made(&l->base->job)) &&
		 l->join_until != MST_NEVER)
		l->join_until += now_ns - l->followers.step_ns;
	l->followers.step_ns = now_ns;
}

static void judge_silence(struct mst_leading *l, uint64_t now_ns)
{
	uint64_t lease_ns = mst_server_options_server_lease(l->base->job.o);
	char what[96];

	for (uint32_t i = 1; i < mst_followers_servers(&l->followers); i++) {
		const struct mst_follower_place *s = &l->followers.place[i];
		const struct mst_conn *c = mst_followers_conn(&l->followers, i);
		if (s->state != MST_FOLLOWER_PLACE_READY || c == NULL ||
		    !mst_hearing_is_silent(&l->base->hearing, c, s->heard_ns, lease_ns))
			continue;
		snprintf(what, sizeof(what),
			 "was silent for %.3g s (--server-lease): stopped, or cut off",
			 mst_followers_lease_s(&l->followers));
		mst_followers_lose(&l->followers, i, what);
		mst_followers_send_away(&l->followers, i, now_ns);
	}
}

bool mst_leading_nobody_came(const struct mst_leading *l, struct mst_reason *why)
{
	const struct mst_server_options *o = l->base->job.o;
	double seconds = (double)o->join_timeout_ns / (double)MST_SECOND;
	uint32_t count = 1;

	if (l->base->job.plan.vector.elems == 0 && l->refused > 0) {
		mst_reason_set(why,
			       "no worker was let in within %.3g s (--join-timeout): %" PRIu64
			       " called and %s refused, the last because %.300s",
			       seconds, l->refused, l->refused > 1 ? "were" : "was",
			       l->refusal.text);
		return true;
	}
	if (l->base->job.plan.vector.elems == 0) {
		mst_reason_set(why,
			       "no worker came within %.3g s (--join-timeout): start %" PRIu32
			       " of them with MUSTER_SERVER=%s in their environment",
			       seconds, o->workers, l->base->front.address);
		return true;
	}
	if (l->gathered || mst_followers_are_ready(&l->followers))
		return false;
	for (uint32_t i = 1; i < mst_followers_servers(&l->followers); i++)
		count += l->followers.place[i].state == MST_FOLLOWER_PLACE_READY;
	mst_reason_set(why,
		       "only %" PRIu32 " of %" PRIu32 " servers were there within %.3g s "
		       "(--join-timeout): start the others with musterd --join %s",
		       count, mst_followers_servers(&l->followers), seconds,
		       l->base->front.address);
	return true;
}

static void judge_gathering(struct mst_leading *l, uint64_t now_ns)
{
	struct mst_reason why;

	if (mst_followers_are_ready(&l->followers))
		l->gathered = true; /* a follower that is lost from now on was there in time */
	if (now_ns < l->join_until || !mst_leading_nobody_came(l, &why))
		return;
	mst_job_fail(&l->base->job, -EHOSTDOWN, why.text, now_ns);
}

/* Sends heartbeats to the ledger for workers that have no welcome yet because a follower is slow to
 * expect them: such a worker does not know the lease. If it dies, its connection closes. */
static void keep_unwelcome(struct mst_leading *l)
{
	for (uint32_t i = 0; i < l->base->sessions.max; i++) {
		const struct mst_pending_session *p = &l->base->sessions.row[i];
		struct mst_ledger_event ev = { .kind = MST_EV_HEARTBEAT, .who = p->session.who };
		if (p->state == MST_PENDING_ANNOUNCED)
			/* if there is no room, the next time */
			(void)mst_requests_event(&l->base->job.requests, &ev);
	}
}

static void beat(struct mst_leading *l, uint64_t now_ns)
{
	if (now_ns < l->beat_ns)
		return;
	l->beat_ns = now_ns + l->base->job.o->lease_ns / MST_BEATS_PER_LEASE;
	mst_followers_send_all(&l->followers,
			       mst_frontend_draft(&l->base->front, MST_MSG_HEARTBEAT));
	keep_unwelcome(l);
}

void mst_leading_step(struct mst_leading *l, uint64_t now_ns)
{
	if (!mst_job_is_over(&l->base->job))
		judge_gathering(l, now_ns);
	if (mst_followers_servers(&l->followers) == 1)
		return;
	beat(l, now_ns);
	if (!mst_job_is_over(&l->base->job))
		judge_silence(l, now_ns);
	else if (l->part_until == 0 && l->base->sessions.count == 0)
		l->part_until = now_ns + MST_FRONTEND_GRACE_NS;
}
