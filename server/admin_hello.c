/* SPDX-License-Identifier: MIT */
/* From hello to link: the first valid hello makes the job's data side; each admitted one becomes a
 * guest with a single-use token; whoever knocks with it is let in. */
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
#include "server/peer.h"
#include "server/sentence.h"

static int check_hello(const struct mst_admin *a, const struct mst_hello *h, char *why, size_t len)
{
	const char *job = a->o->job;

	if (a->state == MST_JOB_FINISHED || a->state == MST_JOB_FAILED) {
		snprintf(why, len, "job \"%s\" is over: %.300s", job, a->why);
		return -ESHUTDOWN;
	}
	if (h->rank >= 0 && (uint32_t)h->rank >= a->o->workers) {
		mst_sentence_refused(why, len, -ERANGE, h, a->o);
		return -EINVAL;
	}
	if (strcmp(h->job, job) != 0)
		snprintf(why, len, "there is no job \"%s\" here, this server runs \"%s\"", h->job,
			 job);
	else if (h->elems == 0 || h->elems > MST_ELEMS_MAX)
		snprintf(why, len, "a length of %" PRIu64 " elements cannot be", h->elems);
	else if (h->owner != a->o->owner)
		snprintf(why, len,
			 "owner %s does not match job \"%s\" (%s): start the server with "
			 "--owner %s, "
			 "or set options.owner",
			 mst_owner_name((enum muster_owner)h->owner), job,
			 mst_owner_name((enum muster_owner)a->o->owner),
			 mst_owner_name((enum muster_owner)h->owner));
	else if (a->elems != 0 && h->elems != a->elems)
		snprintf(why, len, "length %" PRIu64 " does not match job \"%s\" (%" PRIu64 ")",
			 h->elems, job, a->elems);
	else if (a->elems != 0 && h->type != (uint32_t)a->type)
		snprintf(why, len, "gradients of %s do not match job \"%s\" (%s)",
			 mst_type_name((enum muster_type)h->type), job, mst_type_name(a->type));
	else if (a->elems != 0 && h->result_type != (uint32_t)a->result_type)
		snprintf(why, len, "results of %s do not match job \"%s\" (%s)",
			 mst_type_name((enum muster_type)h->result_type), job,
			 mst_type_name(a->result_type));
	else
		return 0;
	return -EINVAL;
}

uint32_t mst_admin_guests(const struct mst_admin *a)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < a->guest_max; i++)
		count += a->guest[i].in_use;
	return count;
}

static int fix_first(struct mst_admin *a, const struct mst_hello *hello, char *why, size_t len,
		     uint64_t now_ns)
{
	int rc = mst_admin_fix_job(a, hello, why, len);

	if (rc == 0)
		mst_admin_appoint_all(a, now_ns);
	return rc;
}

bool mst_admin_hello(struct mst_admin *a, struct mst_conn *c, const struct mst_hello *hello,
		     uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };
	char why[MST_SENTENCE_LEN];

	int rc = check_hello(a, hello, why, sizeof(why));
	if (rc == 0 && a->elems == 0)
		rc = fix_first(a, hello, why, sizeof(why), now_ns);
	if (rc == 0 && !mst_admin_servers_ready(a)) {
		c->deadline_ns = now_ns + MST_ADMIN_GRACE_NS; /* it has said enough */
		return false;
	}
	if (rc == 0 && mst_admin_guests(a) + a->o->workers > a->guest_max) {
		mst_sentence_refused(why, sizeof(why), -EBUSY, hello, a->o);
		rc = -EBUSY;
	}
	if (rc != 0) {
		mst_warn("%s refused: %s", c->peer, why);
		mst_admin_error(a, c, rc, why, now_ns);
		return true;
	}
	ev.join.cookie = c->id;
	ev.join.rank = hello->rank;
	if (!mst_admin_event(a, &ev))
		return false;
	c->role = MST_CONN_JOINING;
	c->pid = hello->pid;
	c->who.rank = (uint32_t)hello->rank;
	return true;
}

/* Guests. */

struct mst_guest *mst_admin_guest_new(struct mst_admin *a, struct mst_identity who)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		struct mst_guest *g = &a->guest[i];
		if (g->in_use)
			continue;
		*g = (struct mst_guest){ .session = { .who = who } };
		if (mst_rand_secret(g->token, sizeof(g->token)) != 0)
			return NULL;
		g->in_use = g->expected = true;
		return g;
	}
	return NULL;
}

void mst_admin_guest_free(struct mst_admin *a, struct mst_guest *g)
{
	if (!g->in_use)
		return;
	if (g->session.link != NULL)
		a->cfg.transport->link_free(g->session.link);
	*g = (struct mst_guest){ 0 };
}

void mst_admin_guest_forget(struct mst_admin *a, struct mst_identity who)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		struct mst_guest *g = &a->guest[i];
		if (g->in_use && !g->handed_over && g->session.who.rank == who.rank &&
		    g->session.who.incarnation == who.incarnation)
			mst_admin_guest_free(a, g);
	}
}

/* One token for all servers: each lets it in once. */
static void fill_servers(const struct mst_admin *a, const struct mst_guest *g,
			 struct mst_welcome *w)
{
	static_assert(sizeof(w->server[0].address) == sizeof(a->door->address), "any door");
	w->server_count = mst_admin_servers(a);
	for (uint32_t i = 0; i < w->server_count; i++) {
		struct mst_welcome_server *row = &w->server[i];
		memcpy(row->address, i == 0 ? a->door->address : a->seat[i].door,
		       sizeof(row->address));
		memcpy(row->token, g->token, sizeof(row->token));
		mst_admin_part(a, i, &row->first, &row->count);
	}
}

static void fill_welcome(const struct mst_admin *a, const struct mst_guest *g,
			 struct mst_welcome *w)
{
	const struct mst_notice *notice = &g->admitted;

	snprintf(w->job, sizeof(w->job), "%s", a->o->job);
	snprintf(w->policy, sizeof(w->policy), "%s", a->o->policy);
	fill_servers(a, g, w);
	w->ack_timeout = a->fabric.ack_timeout;
	w->retries = a->fabric.retries;
	w->traffic_class = a->fabric.traffic_class;
	w->service_level = a->fabric.service_level;
	w->pkey = a->fabric.pkey;
	w->rank = notice->who.rank;
	w->incarnation = notice->who.incarnation;
	w->workers = a->o->workers;
	w->slots = a->layout.slots;
	w->elems = a->elems;
	w->type = (uint32_t)a->type;
	w->result_type = (uint32_t)a->result_type;
	w->owner = a->o->owner;
	w->buffers = a->o->buffers + (a->o->owner == MUSTER_WORKERS_OWN ? a->o->history : 0);
	w->lease_ns = a->o->lease_ns;
	w->patience_ns = a->o->patience_ns;
	w->fate_count = notice->join.fate_count;
	memcpy(w->fate, notice->join.fate, sizeof(w->fate));
}

static struct mst_conn *conn_of_cookie(struct mst_admin *a, uint64_t cookie)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		struct mst_conn *c = &a->conn[i];
		if (c->stream != NULL && c->id == cookie && c->role == MST_CONN_JOINING)
			return c;
	}
	return NULL;
}

static void refuse(struct mst_admin *a, struct mst_conn *c, int error, uint64_t now_ns)
{
	struct mst_hello hello = { .rank = (int32_t)c->who.rank };
	char why[MST_SENTENCE_LEN];

	mst_sentence_refused(why, sizeof(why), error, &hello, a->o);
	mst_warn("%s refused: %s", c->peer, why);
	mst_admin_error(a, c, error, why, now_ns);
}

/* The ledger has decided on a hello. */
void mst_admin_welcome(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_conn *c = conn_of_cookie(a, notice->join.cookie);

	if (notice->kind == MST_NOTE_REFUSED) {
		if (c != NULL)
			refuse(a, c, notice->join.error, now_ns);
		return;
	}
	struct mst_guest *g = c != NULL ? mst_admin_guest_new(a, notice->who) : NULL;
	if (g == NULL) {
		struct mst_ledger_event ev = { .kind = MST_EV_LOST,
					       .who = notice->who,
					       .error = -EPIPE };
		(void)mst_admin_event(a, &ev);
		if (c != NULL)
			refuse(a, c, -EBUSY, now_ns);
		return;
	}
	c->role = MST_CONN_WORKER;
	c->who = notice->who;
	mst_info("rank %" PRIu32 " joined from %s, process %" PRIu32 "%s", c->who.rank, c->peer,
		 c->pid, c->who.incarnation > 1 ? ", again" : "");
	g->admitted = *notice;
	mst_admin_expect(a, g);
}

void mst_admin_send_welcome(struct mst_admin *a, const struct mst_guest *g)
{
	struct mst_conn *c = mst_admin_conn_of(a, g->session.who);
	struct mst_message *m = &a->message;

	if (c == NULL)
		return; /* it is gone; the ledger will hear so */
	memset(m, 0, sizeof(*m));
	m->kind = MST_MSG_WELCOME;
	fill_welcome(a, g, &m->welcome);
	mst_admin_send(a, c, m);
}

/* Doors. */

static struct mst_guest *guest_expected(struct mst_admin *a, const uint8_t *token)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		struct mst_guest *g = &a->guest[i];
		if (g->expected && memcmp(g->token, token, MST_TOKEN_LEN) == 0)
			return g;
	}
	return NULL;
}

static bool lanes_match(const struct mst_lanes *lanes, const struct mst_lanes *wanted)
{
	struct mst_lanes own = *wanted;

	return lanes->up_bytes == own.up_bytes && lanes->down_bytes == own.down_bytes &&
	       lanes->up_credits == own.up_credits && lanes->down_credits == own.down_credits;
}

/* Its worker is told why, before the end of its session says less. */
static void no_link(struct mst_admin *a, struct mst_identity who, int error, uint64_t now_ns)
{
	struct mst_conn *c = mst_admin_conn_of(a, who);
	char sentence[MST_SENTENCE_LEN];

	snprintf(sentence, sizeof(sentence), "rank %" PRIu32 ": its link could not be set up: %s",
		 who.rank, mst_sentence_cause(error));
	mst_warn("%s", sentence);
	if (c != NULL) {
		c->left = true;
		mst_admin_error(a, c, error, sentence, now_ns);
	}
	mst_admin_lose(a, who);
}

static void let_in(struct mst_admin *a, struct mst_guest *g, const struct mst_knock *knock,
		   uint64_t now_ns)
{
	struct mst_request request = { .kind = MST_REQ_LINKED, .session = &g->session };

	g->expected = false; /* a token is used once, whatever comes of it */
	int rc = a->cfg.transport->door->answer(a->door, knock, &g->session.link);
	if (rc != 0) {
		no_link(a, g->session.who, rc, now_ns);
		return;
	}
	g->handed_over = true;
	while (!mst_server_request(a->server, &request))
		mst_sleep_ns(MST_MS);
}

/* A member's line. It is tried again until its lease is over, so that little is said of it here. */
static void let_server_in(struct mst_admin *a, uint32_t server, const struct mst_knock *knock)
{
	struct mst_request request = { .kind = MST_REQ_PEER_LINKED };

	a->seat[server].expected = false;
	request.peer.server = server;
	request.peer.number = a->seat[server].offers;
	int rc = a->cfg.transport->door->answer(a->door, knock, &request.peer.link);
	if (rc != 0) {
		mst_warn("server %" PRIu32 ": its link could not be set up: %s", server,
			 mst_sentence_cause(rc));
		return;
	}
	a->seat[server].linked = true;
	while (!mst_server_request(a->server, &request))
		mst_sleep_ns(MST_MS);
}

static void answer_door(struct mst_admin *a, const struct mst_knock *knock, uint64_t now_ns)
{
	struct mst_guest *g = guest_expected(a, knock->token);
	uint32_t server = mst_admin_seat_of(a, knock->token);
	struct mst_lanes workers = mst_admin_lanes(&a->layout);
	struct mst_lanes servers = mst_peer_lanes(mst_peer_window(a->o->workers, a->layout.slots));

	if (g != NULL && lanes_match(&knock->lanes, &workers)) {
		let_in(a, g, knock, now_ns);
	} else if (server != 0 && lanes_match(&knock->lanes, &servers)) {
		let_server_in(a, server, knock);
	} else {
		mst_warn("somebody knocked with %s; sent away",
			 g == NULL && server == 0 ? "no valid token"
						  : "other figures than its welcome has");
		(void)a->cfg.transport->door->answer(a->door, knock, NULL);
	}
}

/* To let somebody in takes as long as registering memory does. Whoever else knocks has its turn in
 * the next step: heartbeats, of others and one's own, come in between. */
void mst_admin_doors(struct mst_admin *a, uint64_t now_ns)
{
	struct mst_knock knock;
	int rc = a->cfg.transport->door->knock(a->door, &knock);

	if (rc == 0) {
		answer_door(a, &knock, now_ns);
		mst_admin_wake(a);
	}
	if (rc == -ENODEV && !a->door_broken) {
		mst_error("nobody can join any more: %s", mst_why());
		a->door_broken = true;
	}
}
