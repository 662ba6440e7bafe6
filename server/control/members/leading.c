/* SPDX-License-Identifier: MIT */
#include "server/control/members/leading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rand.h"
#include "common/base/reason.h"
#include "server/control/members/token.h"

/* If two steps are further apart than this, the process was stopped. */
#define STOOD_STILL_NS MST_SECOND
/* For this part of a lease, which is two heartbeats, a follower may be silent without
 * consequence. */
#define SILENT_SHARE 2u

/* ---- their connections ---- */

static uint32_t servers(const struct mst_leading *l)
{
	return mst_job_servers(&l->base->job);
}

static double server_lease_s(const struct mst_leading *l)
{
	return (double)mst_server_options_server_lease(l->base->job.o) / (double)MST_SECOND;
}

struct mst_conn *mst_leading_conn(const struct mst_leading *l, uint32_t server)
{
	struct mst_conn *c;

	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&l->base->front, MST_CONN_SERVER, &i)) != NULL;) {
		if (c->server == server)
			return c;
	}
	return NULL;
}

void mst_leading_send(struct mst_leading *l, uint32_t server, const struct mst_message *msg)
{
	struct mst_conn *c = mst_leading_conn(l, server);

	if (c != NULL)
		mst_frontend_send(&l->base->front, c, msg);
}

static void send_all(struct mst_leading *l, const struct mst_message *msg)
{
	for (uint32_t i = 1; i < servers(l); i++)
		mst_leading_send(l, i, msg);
}

/* ---- followers ---- */

static int follower_place_for(const struct mst_leading *l, const struct mst_serve *serve,
			      uint32_t *server, struct mst_reason *why)
{
	const struct mst_job *j = &l->base->job;

	if (mst_job_is_over(j)) {
		mst_reason_set(why, "job \"%s\" is over: %s", j->o->job, j->why.text);
		return -ESHUTDOWN;
	}
	if (strcmp(serve->job, j->o->job) != 0) {
		mst_reason_set(
			why,
			"there is no job \"%s\" here, but \"%s\": give both servers the same "
			"--job",
			serve->job, j->o->job);
		return -EINVAL;
	}
	if (strcmp(serve->scheme, j->transport->scheme) != 0) {
		mst_reason_set(
			why,
			"a server over %s cannot serve job \"%s\", which is over %s: give both "
			"the same --transport",
			serve->scheme, j->o->job, j->transport->scheme);
		return -EINVAL;
	}
	for (uint32_t i = 1; i < servers(l); i++) {
		if (l->follower[i].state == MST_FOLLOWER_PLACE_AWAITED) {
			*server = i;
			return 0;
		}
	}
	mst_reason_set(why,
		       "job \"%s\" has its %" PRIu32
		       " server%s already; to have more, start its leader "
		       "with a larger --servers",
		       j->o->job, servers(l), servers(l) > 1 ? "s" : "");
	return -ENOSPC;
}

static void offer_link(struct mst_leading *l, uint32_t server, uint8_t token[MST_TOKEN_LEN])
{
	struct mst_follower_place *s = &l->follower[server];

	s->offers++;
	mst_sessions_look(&l->base->sessions, l->step_ns);
	s->offered_ns = l->base->sessions.answering.clock_ns;
	s->token_is_unused = mst_rand_secret(s->token, sizeof(s->token)) == 0;
	memcpy(token, s->token, sizeof(s->token));
}

static void appoint(struct mst_leading *l, uint32_t server)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_APPOINT);
	struct mst_follower_place *s = &l->follower[server];

	if (!mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_APPOINT))
		return;
	mst_job_appoint(&l->base->job, server, &m->appoint);
	memcpy(m->appoint.address, l->base->job.listener->address, sizeof(m->appoint.address));
	offer_link(l, server, m->appoint.token);
	s->heard_ns = mst_hearing_now(&l->base->hearing);
	mst_leading_send(l, server, m);
}

void mst_leading_appoint_all(struct mst_leading *l)
{
	for (uint32_t i = 1; i < servers(l); i++)
		appoint(l, i);
}

bool mst_leading_serve(struct mst_leading *l, struct mst_conn *c, const struct mst_serve *serve,
		       uint64_t now_ns)
{
	struct mst_reason why;
	uint32_t server;
	int rc = follower_place_for(l, serve, &server, &why);

	if (rc != 0) {
		mst_complain(&l->base->front.complaints, MST_COMPLAINT_REFUSED, "%s refused: %s",
			     c->peer, why.text);
		mst_frontend_error(&l->base->front, c, rc, why.text, now_ns);
		return true;
	}
	struct mst_follower_place *s = &l->follower[server];
	*s = (struct mst_follower_place){ .heard_ns = mst_hearing_now(&l->base->hearing) };
	(void)mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_JOIN);
	memcpy(s->peer, c->peer, sizeof(s->peer));
	s->origins = serve->origins;
	mst_frontend_enter(&l->base->front, c, MST_CONN_SERVE);
	c->server = server;
	c->pid = serve->pid;
	mst_info("server %" PRIu32 " of %" PRIu32 " joined from %s, process %" PRIu32, server,
		 servers(l), c->peer, c->pid);
	if (l->base->job.server != NULL)
		appoint(l, server);
	return true;
}

bool mst_leading_is_ready(const struct mst_leading *l)
{
	for (uint32_t i = 1; i < servers(l); i++) {
		if (l->follower[i].state != MST_FOLLOWER_PLACE_READY)
			return false;
	}
	return true;
}

/* ---- workers ---- */

uint32_t mst_leading_set(const struct mst_leading *l)
{
	return (1u << servers(l)) - 2;
}

void mst_leading_announce(struct mst_leading *l, const struct mst_pending_session *p)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_EXPECT);

	m->expect.rank = p->session.who.rank;
	m->expect.incarnation = p->session.who.incarnation;
	memcpy(m->expect.token, p->token, sizeof(m->expect.token));
	m->expect.origins = p->origins;
	send_all(l, m);
}

/* The session may have ended meanwhile. */
static void confirm(struct mst_leading *l, uint32_t server, const struct mst_expect *e,
		    struct mst_pending_session **expected)
{
	struct mst_identity who = { e->rank, e->incarnation };
	struct mst_pending_session *p = mst_sessions_of(&l->base->sessions, who);

	if (p != NULL && mst_sessions_confirm(&l->base->sessions, p, server))
		*expected = p;
}

void mst_leading_forget(struct mst_leading *l, struct mst_identity who)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_FORGET);

	m->expect.rank = who.rank;
	m->expect.incarnation = who.incarnation;
	send_all(l, m);
}

void mst_leading_fill_beat(struct mst_leading *l, struct mst_beat *out)
{
	out->count = servers(l);
	out->server[0].passes = mst_job_passes(&l->base->job);
	for (uint32_t i = 1; i < out->count; i++)
		out->server[i].passes = l->follower[i].passes;
}

/* ---- losing them ---- */

static void tell_data_side(struct mst_leading *l, uint32_t server)
{
	struct mst_request request = { .kind = MST_REQ_PEER_GONE };

	request.peer.server = server;
	mst_requests_put(&l->base->job.requests, &request);
}

static void lose(struct mst_leading *l, uint32_t server, const char *what)
{
	struct mst_follower_place *s = &l->follower[server];
	struct mst_reason why;

	if (!mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_LOSE))
		return;
	mst_reason_set(&why, "server %" PRIu32 " of %" PRIu32 " (%s) %s", server, servers(l),
		       s->peer, what);
	mst_warn("%s", why.text);
	if (s->state == MST_FOLLOWER_PLACE_AWAITED) {
		*s = (struct mst_follower_place){ 0 };
		return;
	}
	mst_reason_set(&l->base->job.server_loss, "%s", why.text);
	tell_data_side(l, server);
}

/* A follower that was not told of the end may be missed: the last checkpoint waits for its part. */
static void part(struct mst_leading *l, uint32_t server)
{
	bool parts = mst_follower_place_enter(&l->follower[server].state, MST_FOLLOWER_PLACE_PART);

	if (parts && !l->told_end && l->base->job.server != NULL)
		tell_data_side(l, server);
}

void mst_leading_lost(struct mst_leading *l, uint32_t server, const char *what)
{
	if (mst_job_is_over(&l->base->job))
		part(l, server);
	else
		lose(l, server, what);
}

bool mst_leading_broken(struct mst_leading *l, struct mst_conn *c, const char *what,
			uint64_t now_ns)
{
	struct mst_reason reason;

	mst_frontend_accuse(&l->base->front, c, what, &reason);
	mst_leading_lost(l, c->server, what);
	mst_frontend_error(&l->base->front, c, -EPROTO, reason.text, now_ns);
	return true;
}

/* The follower may still read why it is sent away; the job does not wait for that. */
static void send_away(struct mst_leading *l, uint32_t server, uint64_t now_ns)
{
	struct mst_conn *c = mst_leading_conn(l, server);

	if (c != NULL)
		mst_frontend_error(&l->base->front, c, -ENOTCONN, l->base->job.server_loss.text,
				   now_ns);
}

void mst_leading_gone(struct mst_leading *l, const struct mst_notice *notice, uint64_t now_ns)
{
	uint32_t server = notice->peer.server;
	struct mst_follower_place *s = &l->follower[server];
	struct mst_reason *loss = &l->base->job.server_loss;

	if (!mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_LOSE))
		return;
	mst_reason_set(loss, "server %" PRIu32 " of %" PRIu32 " (%s) ", server, servers(l),
		       s->peer);
	if (notice->peer.error == -EPROTO)
		mst_reason_add(loss, "broke the protocol on its link with this one");
	else
		mst_reason_add(loss, "had no link with this one for %.3g s (--server-lease)",
			       server_lease_s(l));
	mst_warn("%s", loss->text);
	send_away(l, server, now_ns);
}

void mst_leading_tell_end(struct mst_leading *l)
{
	if (l->told_end)
		return;
	l->told_end = true;
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_FINISHED);
	mst_job_fill_end(&l->base->job, m);
	send_all(l, m);
}

bool mst_leading_have_parted(const struct mst_leading *l)
{
	return mst_frontend_count(&l->base->front, MST_CONN_SERVER) == 0;
}

bool mst_leading_has_waited(const struct mst_leading *l, uint64_t now_ns)
{
	return l->part_until != 0 && now_ns >= l->part_until;
}

/* ---- their links ---- */

/* Offers another link in place of the last one. */
static void relink(struct mst_leading *l, uint32_t server)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_RELINK);

	offer_link(l, server, m->token);
	mst_leading_send(l, server, m);
}

void mst_leading_link_lost(struct mst_leading *l, const struct mst_notice *notice)
{
	uint32_t server = notice->peer.server;
	const struct mst_follower_place *s = &l->follower[server];

	if (s->state == MST_FOLLOWER_PLACE_GONE || mst_job_is_over(&l->base->job) ||
	    notice->peer.number != s->offers)
		return;
	mst_warn("the link with server %" PRIu32 " is lost; trying for %.3g s to make it anew",
		 server, server_lease_s(l));
	relink(l, server);
}

/* From an address that the follower has announced its token is spent, whatever comes of the
 * request; a follower that gets no link asks for another token. Time in which requests for links
 * had to wait does not count for the age of a token. */
static uint32_t spend(void *ctx, const struct mst_link_request *request, uint64_t *age_ns)
{
	struct mst_leading *l = ctx;

	for (uint32_t i = 1; i < servers(l); i++) {
		if (mst_follower_place_spend(&l->follower[i], request)) {
			*age_ns = mst_sessions_since(&l->base->sessions, l->follower[i].offered_ns);
			return i;
		}
	}
	return 0;
}

static uint32_t expecting(void *ctx, const uint8_t *token, const struct mst_origins **announced)
{
	struct mst_leading *l = ctx;

	for (uint32_t i = 1; i < servers(l); i++) {
		if (mst_follower_place_expects(&l->follower[i], token)) {
			*announced = &l->follower[i].origins;
			return i;
		}
	}
	return 0;
}

static void link_begins(void *ctx, uint32_t server)
{
	struct mst_leading *l = ctx;

	mst_follower_place_link_begins(&l->follower[server]);
}

/* Gives the follower's link to the data side, or frees it if the follower is gone. */
static void let_in(struct mst_leading *l, uint32_t server, struct mst_link *link)
{
	struct mst_request request = { .kind = MST_REQ_PEER_LINKED };
	struct mst_follower_place *s = &l->follower[server];

	if (!mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_LINK)) {
		link->ops->link_free(link);
		return;
	}
	request.peer.server = server;
	request.peer.number = s->offers;
	request.peer.link = link;
	mst_requests_put(&l->base->job.requests, &request);
}

/* A failure is only logged: the link is tried again until the follower's lease is over. */
static bool link_made(void *ctx, const struct mst_link_made *made)
{
	struct mst_leading *l = ctx;
	uint32_t server = 1;

	while (server < servers(l) &&
	       !mst_follower_place_link_made(&l->follower[server], made->token))
		server++;
	if (server >= servers(l))
		return false;
	if (made->error != 0)
		mst_warn("server %" PRIu32 ": its link could not be set up: %s", server,
			 made->why.text[0] != '\0' ? made->why.text : strerror(-made->error));
	else
		let_in(l, server, made->link);
	return true;
}

const struct mst_linking_ops mst_leading_links = { expecting, spend, link_begins, link_made };

/* ---- what followers say ---- */

/* The follower serves at @listener: workers are sent to that address. They depend on the server
 * link, so it must be up. */
static bool serves(struct mst_leading *l, struct mst_conn *c, const char *listener, uint64_t now_ns)
{
	const struct mst_transport *of = mst_transport_of(listener);
	struct mst_follower_place *s = &l->follower[c->server];
	uint64_t first, count;

	if (s->linking)
		return false; /* later: the follower says so because of that link */
	if (s->state != MST_FOLLOWER_PLACE_LINKED)
		return mst_leading_broken(
			l, c, "broke the protocol: ready without a link, or twice", now_ns);
	if (of == NULL || strcmp(of->scheme, l->base->job.transport->scheme) != 0)
		return mst_leading_broken(
			l, c, "broke the protocol: a listener for another transport", now_ns);
	(void)mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_SERVE);
	memcpy(s->listener, listener, sizeof(s->listener));
	mst_job_part(&l->base->job, c->server, &first, &count);
	mst_info("server %" PRIu32 " serves elements %" PRIu64 " to %" PRIu64 " at %.100s",
		 c->server, first, first + count - 1, listener);
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
	lose(l, c->server, what.text);
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
	struct mst_follower_place *s = &l->follower[c->server];

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
			relink(l, c->server);
		return true;
	default:
		return mst_leading_broken(
			l, c, "broke the protocol: a message that is not a server's", now_ns);
	}
}

/* ---- time ---- */

void mst_leading_look(struct mst_leading *l, uint64_t now_ns)
{
	if (l->step_ns == 0)
		l->join_until = mst_server_options_join_until(l->base->job.o, now_ns);
	else if ((now_ns - l->step_ns > STOOD_STILL_NS || mst_job_is_being_made(&l->base->job)) &&
		 l->join_until != MST_NEVER)
		l->join_until += now_ns - l->step_ns;
	l->step_ns = now_ns;
}

/* Not while a follower is silent: it may have unread headers of workers. */
bool mst_leading_servers_go_on(const struct mst_leading *l)
{
	uint64_t most_ns = l->base->job.o->lease_ns / SILENT_SHARE;

	for (uint32_t i = 1; i < servers(l); i++) {
		const struct mst_follower_place *s = &l->follower[i];
		if (s->state == MST_FOLLOWER_PLACE_READY &&
		    mst_hearing_since(&l->base->hearing, s->heard_ns) >= most_ns)
			return false;
	}
	return true;
}

static void judge_silence(struct mst_leading *l, uint64_t now_ns)
{
	uint64_t lease_ns = mst_server_options_server_lease(l->base->job.o);
	char what[96];

	for (uint32_t i = 1; i < servers(l); i++) {
		const struct mst_follower_place *s = &l->follower[i];
		const struct mst_conn *c = mst_leading_conn(l, i);
		if (s->state != MST_FOLLOWER_PLACE_READY || c == NULL ||
		    !mst_hearing_is_silent(&l->base->hearing, c, s->heard_ns, lease_ns))
			continue;
		snprintf(what, sizeof(what),
			 "was silent for %.3g s (--server-lease): stopped, or cut off",
			 server_lease_s(l));
		lose(l, i, what);
		send_away(l, i, now_ns);
	}
}

bool mst_leading_nobody_came(const struct mst_leading *l, struct mst_reason *why)
{
	const struct mst_server_options *o = l->base->job.o;
	double seconds = (double)o->join_timeout_ns / (double)MST_SECOND;
	uint32_t count = 1;

	if (l->base->job.plan.vector.elems == 0) {
		mst_reason_set(why,
			       "no worker came within %.3g s (--join-timeout): start %" PRIu32
			       " of them with MUSTER_SERVER=%s in their environment",
			       seconds, o->workers, l->base->front.address);
		return true;
	}
	if (l->gathered || mst_leading_is_ready(l))
		return false;
	for (uint32_t i = 1; i < servers(l); i++)
		count += l->follower[i].state == MST_FOLLOWER_PLACE_READY;
	mst_reason_set(why,
		       "only %" PRIu32 " of %" PRIu32 " servers were there within %.3g s "
		       "(--join-timeout): start the others with musterd --join %s",
		       count, servers(l), seconds, l->base->front.address);
	return true;
}

static void judge_gathering(struct mst_leading *l, uint64_t now_ns)
{
	struct mst_reason why;

	if (mst_leading_is_ready(l))
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
	send_all(l, mst_frontend_draft(&l->base->front, MST_MSG_HEARTBEAT));
	keep_unwelcome(l);
}

void mst_leading_step(struct mst_leading *l, uint64_t now_ns)
{
	if (!mst_job_is_over(&l->base->job))
		judge_gathering(l, now_ns);
	if (servers(l) == 1)
		return;
	beat(l, now_ns);
	if (!mst_job_is_over(&l->base->job))
		judge_silence(l, now_ns);
	else if (l->part_until == 0 && l->base->sessions.count == 0)
		l->part_until = now_ns + MST_FRONTEND_GRACE_NS;
}
