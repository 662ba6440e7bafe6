/* SPDX-License-Identifier: MIT */
/*
 * At the lead: the members of the job. Each takes a seat, is appointed to a part of the vector,
 * links, and is then told of every worker that will knock. A member that is lost ends the job: its
 * part of every version is lost with it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rand.h"
#include "common/kernels/sum.h"
#include "server/admin_state.h"

/* Of a start state, and what a member's connection may still hold of it. */
#define STATE_QUEUED_MAX ((size_t)1 << 20)

static struct mst_conn *conn_of(struct mst_admin *a, uint32_t server)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		struct mst_conn *c = &a->conn[i];
		if (c->stream != NULL && c->role == MST_CONN_SERVER && c->server == server)
			return c;
	}
	return NULL;
}

static void send_to(struct mst_admin *a, uint32_t server, const struct mst_message *msg)
{
	struct mst_conn *c = conn_of(a, server);

	if (c != NULL)
		mst_admin_send(a, c, msg);
}

static void send_all(struct mst_admin *a, const struct mst_message *msg)
{
	for (uint32_t i = 1; i < mst_admin_servers(a); i++)
		send_to(a, i, msg);
}

/* ---- seats ---- */

static int seat_for(const struct mst_admin *a, const struct mst_serve *serve, uint32_t *server,
		    char *why, size_t len)
{
	if (mst_admin_is_over(a)) {
		snprintf(why, len, "job \"%s\" is over: %.300s", a->o->job, a->why);
		return -ESHUTDOWN;
	}
	if (strcmp(serve->job, a->o->job) != 0) {
		snprintf(why, len, "there is no job \"%s\" here, this server leads \"%s\"",
			 serve->job, a->o->job);
		return -EINVAL;
	}
	if (strcmp(serve->scheme, a->cfg.transport->scheme) != 0) {
		snprintf(why, len,
			 "a server over %s cannot serve job \"%s\", which is over %s: give both "
			 "the same --transport",
			 serve->scheme, a->o->job, a->cfg.transport->scheme);
		return -EINVAL;
	}
	for (uint32_t i = 1; i < mst_admin_servers(a); i++) {
		if (!a->seat[i].taken && !a->seat[i].gone) {
			*server = i;
			return 0;
		}
	}
	snprintf(why, len,
		 "job \"%s\" has its %" PRIu32 " server%s already; start the lead with --servers",
		 a->o->job, mst_admin_servers(a), mst_admin_servers(a) > 1 ? "s" : "");
	return -ENOSPC;
}

static void offer_link(struct mst_admin *a, uint32_t server, uint8_t token[MST_TOKEN_LEN])
{
	struct mst_seat *s = &a->seat[server];

	s->offers++;
	s->expected = mst_rand_secret(s->token, sizeof(s->token)) == 0;
	memcpy(token, s->token, sizeof(s->token));
}

static void appoint(struct mst_admin *a, uint32_t server, uint64_t now_ns)
{
	struct mst_seat *s = &a->seat[server];
	struct mst_message *m = &a->message;

	memset(m, 0, sizeof(*m));
	m->kind = MST_MSG_APPOINT;
	mst_admin_fill_appoint(a, server, &m->appoint);
	memcpy(m->appoint.address, a->door->address, sizeof(m->appoint.address));
	offer_link(a, server, m->appoint.token);
	s->appointed = true;
	s->heard_ns = now_ns;
	send_to(a, server, m);
}

void mst_admin_appoint_all(struct mst_admin *a, uint64_t now_ns)
{
	a->gather_until = now_ns + a->o->join_timeout_ns;
	for (uint32_t i = 1; i < mst_admin_servers(a); i++) {
		if (a->seat[i].taken)
			appoint(a, i, now_ns);
	}
}

bool mst_admin_serve(struct mst_admin *a, struct mst_conn *c, const struct mst_serve *serve,
		     uint64_t now_ns)
{
	char why[MST_SENTENCE_LEN];
	uint32_t server;
	int rc = seat_for(a, serve, &server, why, sizeof(why));

	if (rc != 0) {
		mst_warn("%s refused: %s", c->peer, why);
		mst_admin_error(a, c, rc, why, now_ns);
		return true;
	}
	struct mst_seat *s = &a->seat[server];
	*s = (struct mst_seat){ .taken = true, .heard_ns = now_ns };
	memcpy(s->peer, c->peer, sizeof(s->peer));
	c->role = MST_CONN_SERVER;
	c->server = server;
	c->pid = serve->pid;
	mst_info("server %" PRIu32 " of %" PRIu32 " joined from %s, process %" PRIu32, server,
		 mst_admin_servers(a), c->peer, c->pid);
	if (a->elems != 0)
		appoint(a, server, now_ns);
	return true;
}

bool mst_admin_servers_ready(const struct mst_admin *a)
{
	for (uint32_t i = 1; i < mst_admin_servers(a); i++) {
		if (!a->seat[i].ready)
			return false;
	}
	return true;
}

uint32_t mst_admin_seat_of(const struct mst_admin *a, const uint8_t *token)
{
	for (uint32_t i = 1; i < mst_admin_servers(a); i++) {
		if (a->seat[i].expected && memcmp(a->seat[i].token, token, MST_TOKEN_LEN) == 0)
			return i;
	}
	return 0;
}

/* ---- workers ---- */

void mst_admin_expect(struct mst_admin *a, struct mst_guest *g)
{
	struct mst_message *m = &a->message;

	g->unready = (1u << mst_admin_servers(a)) - 2;
	if (g->unready == 0) {
		mst_admin_send_welcome(a, g);
		return;
	}
	memset(m, 0, sizeof(*m));
	m->kind = MST_MSG_EXPECT;
	m->expect.rank = g->session.who.rank;
	m->expect.incarnation = g->session.who.incarnation;
	memcpy(m->expect.token, g->token, sizeof(m->expect.token));
	send_all(a, m);
}

/* A guest whose session has ended meanwhile is not there any more. What is said of it lies in the
 * message at hand, which a welcome writes over. */
static void expected(struct mst_admin *a, uint32_t server, const struct mst_expect *e)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		struct mst_guest *g = &a->guest[i];
		if (!g->in_use || g->session.who.rank != e->rank ||
		    g->session.who.incarnation != e->incarnation || g->unready == 0)
			continue;
		g->unready &= ~(1u << server);
		if (g->unready == 0)
			mst_admin_send_welcome(a, g);
		return;
	}
}

void mst_admin_forget(struct mst_admin *a, struct mst_identity who)
{
	struct mst_message *m = &a->message;

	if (mst_admin_servers(a) == 1)
		return;
	memset(m, 0, sizeof(*m));
	m->kind = MST_MSG_FORGET;
	m->expect.rank = who.rank;
	m->expect.incarnation = who.incarnation;
	send_all(a, m);
}

/* ---- the start state ---- */

bool mst_admin_state_room(struct mst_admin *a)
{
	for (uint32_t i = 1; i < mst_admin_servers(a); i++) {
		const struct mst_conn *c = conn_of(a, i);
		if (c != NULL && c->out_have > STATE_QUEUED_MAX)
			return false;
	}
	return true;
}

static void pass_to(struct mst_admin *a, uint32_t server, const struct mst_state_piece *piece)
{
	uint64_t size = mst_type_bytes(a->result_type), first, count;
	struct mst_message *m = &a->passed; /* the one at hand is the piece's */

	mst_admin_part(a, server, &first, &count);
	uint64_t begin = first * size, end = (first + count) * size;
	uint64_t from = piece->offset > begin ? piece->offset : begin;
	uint64_t to = piece->offset + piece->length < end ? piece->offset + piece->length : end;
	if (from >= to)
		return;
	m->kind = MST_MSG_STATE;
	m->state = (struct mst_state_piece){
		.offset = from - begin,
		.total = end - begin,
		.length = (uint32_t)(to - from),
		.data = (const char *)piece->data + (from - piece->offset),
	};
	send_to(a, server, m);
	a->seat[server].states_sent += to == end;
}

void mst_admin_state_pass(struct mst_admin *a, const struct mst_state_piece *piece)
{
	for (uint32_t i = 1; i < mst_admin_servers(a); i++)
		pass_to(a, i, piece);
}

/* Everywhere: now the ledger may hear of it. */
static void state_if_everywhere(struct mst_admin *a)
{
	struct mst_ledger_event ev = { .kind = MST_EV_STATE, .who = a->state_of };

	if (!a->passes_state)
		return;
	for (uint32_t i = 1; i < mst_admin_servers(a); i++) {
		if (a->seat[i].states_done != a->seat[i].states_sent)
			return;
	}
	if (mst_admin_event(a, &ev))
		a->passes_state = false;
}

/* ---- losing them ---- */

static void lose(struct mst_admin *a, uint32_t server, const char *what)
{
	struct mst_seat *s = &a->seat[server];
	struct mst_request request = { .kind = MST_REQ_PEER_GONE };
	char why[MST_SENTENCE_LEN];

	if (s->gone)
		return;
	snprintf(why, sizeof(why), "server %" PRIu32 " of %" PRIu32 " (%s) %s", server,
		 mst_admin_servers(a), s->peer, what);
	mst_warn("%s", why);
	if (!s->appointed) { /* another may take its place */
		*s = (struct mst_seat){ 0 };
		return;
	}
	s->gone = true;
	s->taken = s->ready = false;
	snprintf(a->loss, sizeof(a->loss), "%s", why);
	if (mst_admin_is_over(a))
		return;
	request.peer.server = server;
	while (!mst_server_request(a->server, &request))
		mst_sleep_ns(MST_MS);
}

/* ---- what members say ---- */

/* Workers are sent to that door, and wait for what goes by the link between the servers. */
static bool ready(struct mst_admin *a, struct mst_conn *c, const char *door, uint64_t now_ns)
{
	struct mst_seat *s = &a->seat[c->server];
	const struct mst_transport *of = mst_transport_of(door);
	uint64_t first, count;

	if (!s->linked || s->ready)
		return mst_admin_broken(a, c, "ready without a link, or twice", now_ns);
	if (of == NULL || strcmp(of->scheme, a->cfg.transport->scheme) != 0)
		return mst_admin_broken(a, c, "a door for another transport", now_ns);
	memcpy(s->door, door, sizeof(s->door));
	s->ready = true;
	mst_admin_part(a, c->server, &first, &count);
	mst_info("server %" PRIu32 " serves elements %" PRIu64 " to %" PRIu64 " at %.100s",
		 c->server, first, first + count - 1, door);
	return true;
}

/* Another link, in place of the last that was offered. */
static void relink(struct mst_admin *a, uint32_t server)
{
	struct mst_message *m = &a->message;

	memset(m, 0, sizeof(*m));
	m->kind = MST_MSG_RELINK;
	offer_link(a, server, m->token);
	send_to(a, server, m);
}

/* Why is said to everybody; that it closes its connection next is nothing new. */
static void gives_up(struct mst_admin *a, struct mst_conn *c, const char *why)
{
	char what[MST_SENTENCE_LEN];

	if (mst_admin_is_over(a)) {
		mst_warn("server %" PRIu32 ": %s", c->server, why);
		return;
	}
	snprintf(what, sizeof(what), "gives up: %.400s", why);
	lose(a, c->server, what);
	c->role = MST_CONN_CLOSING;
}

bool mst_admin_server_message(struct mst_admin *a, struct mst_conn *c,
			      const struct mst_message *msg, uint64_t now_ns)
{
	struct mst_seat *s = &a->seat[c->server];

	s->heard_ns = now_ns;
	if (msg->kind == MST_MSG_HEARTBEAT)
		return true;
	if (!s->appointed)
		return mst_admin_broken(a, c, "a server's message before it is appointed", now_ns);
	switch (msg->kind) {
	case MST_MSG_READY:
		return ready(a, c, msg->door, now_ns);
	case MST_MSG_EXPECT:
		expected(a, c->server, &msg->expect);
		return true;
	case MST_MSG_STATE_DONE:
		if (s->states_done == s->states_sent)
			return mst_admin_broken(a, c, "a start state that was not sent", now_ns);
		s->states_done++;
		return true;
	case MST_MSG_RELINK:
		if (memcmp(msg->token, s->token, sizeof(s->token)) == 0)
			relink(a, c->server);
		return true;
	case MST_MSG_ERROR:
		gives_up(a, c, msg->error.sentence);
		return true;
	default:
		return mst_admin_broken(a, c, "a message that is not a server's", now_ns);
	}
}

/* ---- what becomes of them ---- */

/* It may still listen; the job does not wait for it to. */
static void send_away(struct mst_admin *a, uint32_t server, uint64_t now_ns)
{
	struct mst_conn *c = conn_of(a, server);

	if (c != NULL)
		mst_admin_error(a, c, -ENOTCONN, a->loss, now_ns);
}

void mst_admin_server_lost(struct mst_admin *a, const struct mst_conn *c, const char *what)
{
	if (mst_admin_is_over(a))
		a->seat[c->server].gone = true;
	else
		lose(a, c->server, what);
}

void mst_admin_peer_lost(struct mst_admin *a, uint32_t server, uint64_t number)
{
	if (a->seat[server].gone || mst_admin_is_over(a) || number != a->seat[server].offers)
		return;
	mst_warn("the link with server %" PRIu32 " is lost; it is to be made anew within %.3g s",
		 server, (double)a->o->lease_ns / (double)MST_SECOND);
	relink(a, server);
}

void mst_admin_peer_gone(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns)
{
	uint32_t server = notice->peer.server;
	struct mst_seat *s = &a->seat[server];

	if (s->gone)
		return;
	s->gone = true;
	snprintf(a->loss, sizeof(a->loss), "server %" PRIu32 " of %" PRIu32 " (%s) %s", server,
		 mst_admin_servers(a), s->peer,
		 notice->peer.error == -EPROTO ? "broke the protocol on its link with this one"
					       : "had no link with this one for its lease");
	mst_warn("%s", a->loss);
	send_away(a, server, now_ns);
}

/* ---- time ---- */

static void judge_silence(struct mst_admin *a, uint64_t now_ns)
{
	char what[96];

	for (uint32_t i = 1; i < mst_admin_servers(a); i++) {
		struct mst_seat *s = &a->seat[i];
		if (!s->ready || s->gone || now_ns - s->heard_ns < a->o->lease_ns)
			continue;
		snprintf(what, sizeof(what),
			 "was silent for its lease of %.3g s: stopped, or cut off",
			 (double)a->o->lease_ns / (double)MST_SECOND);
		lose(a, i, what);
		send_away(a, i, now_ns);
	}
}

static void judge_gathering(struct mst_admin *a, uint64_t now_ns)
{
	char why[MST_SENTENCE_LEN];
	uint32_t count = 1;

	if (mst_admin_servers_ready(a))
		a->gather_until = 0; /* who is lost from now on was there in time */
	if (a->gather_until == 0 || now_ns < a->gather_until)
		return;
	for (uint32_t i = 1; i < mst_admin_servers(a); i++)
		count += a->seat[i].ready;
	snprintf(why, sizeof(why),
		 "only %" PRIu32 " of %" PRIu32 " servers were there within %.3g s "
		 "(--join-timeout): start the others with musterd --join %s",
		 count, mst_admin_servers(a), (double)a->o->join_timeout_ns / (double)MST_SECOND,
		 a->address);
	mst_admin_fail(a, -EHOSTDOWN, why, now_ns);
	memset(&a->message, 0, sizeof(a->message));
	a->message.kind = MST_MSG_ERROR;
	a->message.error.code = -EHOSTDOWN;
	snprintf(a->message.error.sentence, sizeof(a->message.error.sentence), "%s", why);
	mst_admin_servers_told(a, &a->message);
}

/* Who has no welcome yet, for a member is slow to expect it, has no heartbeat: it does not know the
 * lease. Its connection tells if it dies. */
static void keep_unwelcome(struct mst_admin *a)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		const struct mst_guest *g = &a->guest[i];
		struct mst_ledger_event ev = { .kind = MST_EV_HEARTBEAT, .who = g->session.who };
		if (g->in_use && g->unready != 0)
			(void)mst_admin_event(a, &ev); /* else the next time */
	}
}

static void beat(struct mst_admin *a, uint64_t now_ns)
{
	if (now_ns < a->beat_ns)
		return;
	a->beat_ns = now_ns + a->o->lease_ns / MST_ADMIN_BEATS_PER_LEASE;
	memset(&a->message, 0, sizeof(a->message));
	a->message.kind = MST_MSG_HEARTBEAT;
	send_all(a, &a->message);
	keep_unwelcome(a);
}

void mst_admin_servers_step(struct mst_admin *a, uint64_t now_ns)
{
	state_if_everywhere(a);
	if (mst_admin_servers(a) == 1)
		return;
	beat(a, now_ns);
	if (mst_admin_is_over(a)) {
		if (a->part_until == 0 && mst_admin_guests(a) == 0)
			a->part_until = now_ns + MST_ADMIN_GRACE_NS;
		a->lingered |= a->part_until != 0 && now_ns >= a->part_until;
		return;
	}
	judge_gathering(a, now_ns);
	judge_silence(a, now_ns);
}

/* Each hears how the job ended; it goes when its workers have. */
void mst_admin_servers_told(struct mst_admin *a, const struct mst_message *end)
{
	send_all(a, end);
}

bool mst_admin_servers_parted(const struct mst_admin *a)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		if (a->conn[i].stream != NULL && a->conn[i].role == MST_CONN_SERVER)
			return false;
	}
	return true;
}
