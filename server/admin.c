/* SPDX-License-Identifier: MIT */
/* Connections and sleeping. A peer that sends rubbish, or says nothing at all, costs an entry of
 * the table for a few seconds and nothing else. */
#include "server/admin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/admin_state.h"
#include "server/sentence.h"

/* Entries beyond two per worker: watchers, and whoever knocks by mistake. */
#define CONNS_SPARE 64u

/* Deadlines are looked after this often; where servers beat for each other, so often in a lease
 * that no beat is late. */
#define NAP_MAX_NS (100 * MST_MS)
#define NAPS_PER_LEASE 8u

static int watch(struct mst_admin *a, int fd, bool out, int op)
{
	struct epoll_event ev = { .events = EPOLLIN | (out ? (uint32_t)EPOLLOUT : 0u) };

	if (fd < 0)
		return 0; /* a simulated stream: it is stepped by the clock */
	return epoll_ctl(a->epoll, op, fd, &ev) == 0 ? 0 : -errno;
}

int mst_admin_watch(struct mst_admin *a, int fd)
{
	return watch(a, fd, false, EPOLL_CTL_ADD);
}

/* Edge-triggered: a door that cannot take anybody in now must not keep the wait from sleeping;
 * every step looks at it anyway. */
int mst_admin_watch_door(struct mst_admin *a)
{
	struct epoll_event ev = { .events = EPOLLIN | (uint32_t)EPOLLET };
	int fd = a->cfg.transport->door->fd(a->door);

	return fd < 0 || epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

static int open_fds(struct mst_admin *a)
{
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	a->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->epoll < 0 || a->bell < 0)
		return -errno;
	return watch(a, a->bell, false, EPOLL_CTL_ADD);
}

static int open_listener(struct mst_admin *a, char *why, size_t why_len)
{
	if (mst_admin_is_member(a))
		return 0;
	int rc = a->cfg.stream->listen(a->o->listen, &a->listener, a->address, sizeof(a->address));

	if (rc == 0)
		return watch(a, a->cfg.stream->listener_fd(a->listener), false, EPOLL_CTL_ADD);
	if (rc == -EADDRINUSE)
		snprintf(why, why_len,
			 "cannot listen on %s: another process does; choose another port with "
			 "--listen HOST:PORT (port 0: any free one)",
			 a->o->listen);
	else
		snprintf(why, why_len, "cannot listen on %s: %s", a->o->listen, strerror(-rc));
	return rc;
}

/* Whether this host can be reached at all over the transport, by so many workers, shows now, not
 * when the first or the last of them has come. How long their gradients are nobody has said yet. */
static int try_door(const struct mst_admin *a, char *why, size_t why_len)
{
	const struct mst_transport *t = a->cfg.transport;
	struct mst_lane_figures shortest = { .elems = 1,
					     .type_bytes = 2,
					     .result_type_bytes = 2,
					     .slots = mst_admin_slots(a),
					     .workers = a->o->workers };
	struct mst_lane_layout layout;
	mst_lane_layout(&shortest, &layout);
	struct mst_net_cfg cfg = { .fabric = &a->fabric,
				   .links_max = a->o->workers + a->o->servers - 1,
				   .lanes = mst_admin_lanes(&layout) };
	struct mst_door *door = NULL;
	struct mst_net *net = NULL;

	int rc = t->net_open(&cfg, &net);
	if (rc == 0)
		rc = t->door->open(net, &door);
	if (rc != 0)
		snprintf(why, why_len, "cannot serve over %s: %s", t->scheme,
			 mst_sentence_cause(rc));
	t->door->close(door);
	t->net_close(net);
	return rc;
}

int mst_admin_read_options(struct mst_admin *a, char *why, size_t why_len)
{
	int rc = mst_admin_is_member(a) ? 0 : mst_server_options_rule(a->o, &a->rule, why, why_len);

	if (rc == 0)
		rc = mst_server_options_spread(a->o, a->weights, why, why_len);
	if (rc == 0)
		rc = mst_optimizer_parse(a->o->optimizer, &a->optimizer, why, why_len);
	return rc != 0 ? rc : mst_server_options_fabric(a->o, &a->fabric, why, why_len);
}

int mst_admin_tables(struct mst_admin *a)
{
	a->guest_max = MST_ADMIN_GUESTS_PER_RANK * a->o->workers;
	a->guest = calloc(a->guest_max, sizeof(*a->guest));
	a->present = calloc(a->o->workers, sizeof(*a->present));
	a->snapshot.rank = calloc(a->o->workers, sizeof(*a->snapshot.rank));
	return a->guest != NULL && a->present != NULL && a->snapshot.rank != NULL ? 0 : -ENOMEM;
}

/* A member has one connection, and hears from its lead how many workers there are. */
static int open_tables(struct mst_admin *a)
{
	a->conn_max = mst_admin_is_member(a) ? 1 : 2 * a->o->workers + CONNS_SPARE + a->o->servers;
	a->conn = calloc(a->conn_max, sizeof(*a->conn));
	if (a->conn == NULL)
		return -ENOMEM;
	return mst_admin_is_member(a) ? 0 : mst_admin_tables(a);
}

int mst_admin_new(const struct mst_admin_cfg *cfg, struct mst_admin **out, char *why,
		  size_t why_len)
{
	struct mst_admin *a = calloc(1, sizeof(*a));

	snprintf(why, why_len, "no memory for %" PRIu32 " workers", cfg->options->workers);
	if (a == NULL)
		return -ENOMEM;
	a->cfg = *cfg;
	a->o = cfg->options;
	a->epoll = a->bell = -1;
	a->next_id = 1;
	int rc = open_tables(a);
	if (rc == 0)
		rc = mst_admin_read_options(a, why, why_len);
	if (rc == 0 && !mst_admin_is_member(a))
		rc = try_door(a, why, why_len);
	if (rc == 0)
		rc = open_fds(a);
	if (rc == 0)
		rc = open_listener(a, why, why_len);
	if (rc != 0) {
		mst_admin_free(a);
		return rc;
	}
	*out = a;
	return 0;
}

void mst_admin_free(struct mst_admin *a)
{
	if (a == NULL)
		return;
	for (uint32_t i = 0; a->conn != NULL && i < a->conn_max; i++)
		mst_conn_close(&a->conn[i]);
	if (a->server != NULL)
		mst_server_hang_up(a->server);
	for (uint32_t i = 0; a->guest != NULL && i < a->guest_max; i++)
		mst_admin_guest_free(a, &a->guest[i]);
	a->cfg.stream->unlisten(a->listener);
	if (a->door != NULL)
		a->cfg.transport->door->close(a->door);
	mst_server_free(a->server);
	if (a->epoll >= 0)
		close(a->epoll);
	if (a->bell >= 0)
		close(a->bell);
	free(a->conn);
	free(a->guest);
	free(a->present);
	free(a->snapshot.rank);
	free(a);
}

const char *mst_admin_address(const struct mst_admin *a)
{
	return a->address;
}

struct mst_server *mst_admin_server(struct mst_admin *a)
{
	return a->server;
}

void mst_admin_wake(struct mst_admin *a)
{
	uint64_t one = 1;
	int saved = errno; /* it may be a signal handler's call */

	(void)!write(a->bell, &one, sizeof(one));
	errno = saved;
}

void mst_admin_wait(struct mst_admin *a, uint64_t timeout_ns)
{
	struct epoll_event ev[16];
	uint64_t rung;

	(void)epoll_wait(a->epoll, ev, 16, (int)((timeout_ns + MST_MS - 1) / MST_MS));
	(void)!read(a->bell, &rung, sizeof(rung));
}

uint64_t mst_admin_nap(const struct mst_admin *a)
{
	uint64_t share = a->o->lease_ns / NAPS_PER_LEASE;
	bool beats = mst_admin_is_member(a) || mst_admin_servers(a) > 1;

	return beats && share < NAP_MAX_NS ? share : NAP_MAX_NS;
}

bool mst_admin_event(struct mst_admin *a, const struct mst_ledger_event *ev)
{
	struct mst_request request = { .kind = MST_REQ_EVENT, .event = *ev };

	return mst_server_request(a->server, &request);
}

struct mst_conn *mst_admin_conn_of(struct mst_admin *a, struct mst_identity who)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		struct mst_conn *c = &a->conn[i];
		if (c->stream != NULL && c->role == MST_CONN_WORKER && c->who.rank == who.rank &&
		    c->who.incarnation == who.incarnation)
			return c;
	}
	return NULL;
}

/* The ledger must hear of it; the ring has a place for it, whatever else waits there. */
void mst_admin_lose(struct mst_admin *a, struct mst_identity who)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LOST, .who = who, .error = -EPIPE };

	while (!mst_admin_event(a, &ev))
		mst_sleep_ns(MST_MS);
}

void mst_admin_hang_up(struct mst_admin *a, struct mst_conn *c)
{
	if (c->role == MST_CONN_WORKER && !c->left)
		mst_admin_lose(a, c->who);
	else if (c->role == MST_CONN_SERVER)
		mst_admin_server_lost(a, c, "is gone: its connection closed");
	else if (c->role == MST_CONN_LEAD)
		mst_admin_lead_lost(a, "the lead is gone: its connection closed", mst_now_ns());
	mst_conn_close(c);
}

/* Sends what goes, and has epoll watch for room while something is left. */
static int push_out(struct mst_admin *a, struct mst_conn *c)
{
	int rc = mst_conn_flush(c);
	bool pending = c->out_have > 0;

	if (rc == 0 && pending != c->polls_out &&
	    watch(a, c->ops->stream_fd(c->stream), pending, EPOLL_CTL_MOD) == 0)
		c->polls_out = pending;
	return rc;
}

void mst_admin_send(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg)
{
	int rc = mst_conn_send(c, msg);

	if (rc == 0)
		rc = push_out(a, c);
	if (rc == 0 || rc == -EPIPE) /* the reading side notices, and knows what follows from it */
		return;
	mst_warn("%s: %s; closed", c->peer,
		 rc == -ENOBUFS ? "does not read what it asked for" : "no memory for its answer");
	mst_admin_hang_up(a, c);
}

void mst_admin_error(struct mst_admin *a, struct mst_conn *c, int code, const char *sentence,
		     uint64_t now_ns)
{
	struct mst_message *m = calloc(1, sizeof(*m));

	if (m != NULL) {
		m->kind = MST_MSG_ERROR;
		m->error.code = code;
		snprintf(m->error.sentence, sizeof(m->error.sentence), "%s", sentence);
		mst_admin_send(a, c, m);
		free(m);
	}
	if (c->stream == NULL)
		return;
	c->role = MST_CONN_CLOSING;
	c->deadline_ns = now_ns + MST_ADMIN_GRACE_NS;
}

static struct mst_conn *conn_free(struct mst_admin *a)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		if (a->conn[i].stream == NULL)
			return &a->conn[i];
	}
	return NULL;
}

/* A listener that cannot be served now must not keep the wait from sleeping. */
static void listen_again(struct mst_admin *a, bool listens)
{
	int fd = a->cfg.stream->listener_fd(a->listener);

	if (listens == a->deaf && watch(a, fd, false, listens ? EPOLL_CTL_ADD : EPOLL_CTL_DEL) == 0)
		a->deaf = !listens;
}

static void accept_all(struct mst_admin *a, uint64_t now_ns)
{
	struct mst_stream *stream;
	struct mst_conn *c;

	while ((c = conn_free(a)) != NULL) {
		int rc = a->cfg.stream->accept(a->listener, &stream, c->peer, sizeof(c->peer));
		if (rc == -EAGAIN)
			break;
		if (rc != 0) {
			listen_again(a, false);
			return;
		}
		mst_conn_open(c, a->cfg.stream, stream, a->next_id++);
		c->deadline_ns = now_ns + MST_ADMIN_GRACE_NS;
		if (watch(a, c->ops->stream_fd(stream), false, EPOLL_CTL_ADD) != 0)
			mst_conn_close(c);
	}
	listen_again(a, c != NULL);
}

/* @what: what its peer did. */
static bool end_broken(struct mst_admin *a, struct mst_conn *c, const char *what, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LOST, .who = c->who, .error = -EPROTO };
	char sentence[MST_SENTENCE_LEN];

	if (c->role == MST_CONN_WORKER && !mst_admin_event(a, &ev))
		return false;
	snprintf(sentence, sizeof(sentence), "%s %.400s", c->peer, what);
	c->left |= c->role == MST_CONN_WORKER;
	mst_warn("%s", sentence);
	if (c->role == MST_CONN_SERVER)
		mst_admin_server_lost(a, c, what);
	else if (c->role == MST_CONN_LEAD)
		mst_admin_lead_lost(a, sentence, now_ns);
	mst_admin_error(a, c, -EPROTO, sentence, now_ns);
	return true;
}

bool mst_admin_broken(struct mst_admin *a, struct mst_conn *c, const char *what, uint64_t now_ns)
{
	char all[MST_SENTENCE_LEN];

	snprintf(all, sizeof(all), "broke the protocol: %s", what);
	return end_broken(a, c, all, now_ns);
}

/* Where the ring is full, the rubbish is found once more at the next step. */
static void refuse_rubbish(struct mst_admin *a, struct mst_conn *c, uint32_t protocol,
			   uint64_t now_ns)
{
	char what[128];

	if (protocol != 0 && protocol != MST_PROTOCOL)
		snprintf(what, sizeof(what),
			 "speaks protocol %" PRIu32 ", this server speaks %u; use the same "
			 "version of muster on both sides",
			 protocol, MST_PROTOCOL);
	else
		snprintf(what, sizeof(what), "sent what is no message of muster");
	(void)end_broken(a, c, what, now_ns);
}

/* All messages that are there. A closing connection's are read and forgotten. */
static void read_messages(struct mst_admin *a, struct mst_conn *c, uint64_t now_ns)
{
	uint32_t protocol = 0;
	int rc = 0;

	while (c->stream != NULL && (rc = mst_conn_next(c, &a->message, &protocol)) > 0) {
		if (c->role == MST_CONN_CLOSING)
			continue;
		if (!mst_admin_message(a, c, &a->message, now_ns)) {
			mst_conn_again(c);
			return;
		}
	}
	if (c->stream != NULL && rc < 0 && c->role != MST_CONN_CLOSING)
		refuse_rubbish(a, c, protocol, now_ns);
}

static void step_conn(struct mst_admin *a, struct mst_conn *c, uint64_t now_ns)
{
	int rc = mst_conn_receive(c);

	/* A hello may have had to wait, and its sender not have waited. */
	if (rc == 0 || c->role != MST_CONN_NEW)
		read_messages(a, c, now_ns);
	if (c->stream == NULL)
		return;
	if (rc == 0)
		rc = push_out(a, c);
	bool silent = (c->role == MST_CONN_NEW || c->role == MST_CONN_CLOSING) &&
		      now_ns >= c->deadline_ns;
	bool said_all = c->role == MST_CONN_CLOSING && c->out_have == 0;
	if (c->role == MST_CONN_NEW && silent)
		mst_warn("%s connected and said nothing for %.0f s; closed", c->peer,
			 (double)MST_ADMIN_GRACE_NS / (double)MST_SECOND);
	if (rc != 0 || silent || said_all)
		mst_admin_hang_up(a, c);
}

void mst_admin_step(struct mst_admin *a, uint64_t now_ns)
{
	if (mst_admin_is_member(a))
		mst_admin_member_step(a, now_ns);
	else
		accept_all(a, now_ns);
	/* Connections that closed come before hellos that were waiting for their rank. */
	for (uint32_t i = 0; i < a->conn_max; i++) {
		if (a->conn[i].stream != NULL && a->conn[i].role != MST_CONN_NEW)
			step_conn(a, &a->conn[i], now_ns);
	}
	for (uint32_t i = 0; i < a->conn_max; i++) {
		if (a->conn[i].stream != NULL && a->conn[i].role == MST_CONN_NEW)
			step_conn(a, &a->conn[i], now_ns);
	}
	if (mst_admin_is_member(a))
		mst_admin_member_judge(a, now_ns);
	else
		mst_admin_servers_step(a, now_ns);
	if (a->server == NULL) {
		mst_admin_status(a, a->state != MST_JOB_GATHERING);
		return;
	}
	mst_admin_doors(a, now_ns);
	mst_admin_notices(a, now_ns);
	a->lingered |= a->ended_ns != 0 && now_ns > a->ended_ns &&
		       now_ns - a->ended_ns > a->o->patience_ns;
	mst_admin_want_snapshot(a);
}

void mst_admin_fail(struct mst_admin *a, int error, const char *why, uint64_t now_ns)
{
	a->state = MST_JOB_FAILED;
	a->error = error;
	snprintf(a->why, sizeof(a->why), "%s", why);
	a->ended_ns = now_ns;
	mst_error("job \"%s\" has failed: %s", a->o->job, a->why);
}

void mst_admin_stop(struct mst_admin *a, const char *why, uint64_t now_ns)
{
	a->stopped = true;
	if (a->state == MST_JOB_GATHERING || a->state == MST_JOB_RUNNING) {
		a->state = MST_JOB_FAILED;
		snprintf(a->why, sizeof(a->why), "%s", why);
		a->ended_ns = now_ns;
	}
	for (uint32_t i = 0; i < a->conn_max; i++) {
		struct mst_conn *c = &a->conn[i];
		if (c->stream != NULL &&
		    (c->role == MST_CONN_WORKER || c->role == MST_CONN_JOINING)) {
			c->left = true; /* the server ends it, so it is no loss */
			mst_admin_error(a, c, -ENOTCONN, why, now_ns);
		}
	}
	memset(&a->message, 0, sizeof(a->message));
	a->message.kind = MST_MSG_ERROR;
	a->message.error.code = -ENOTCONN;
	snprintf(a->message.error.sentence, sizeof(a->message.error.sentence), "%s", why);
	mst_admin_servers_told(a, &a->message);
	/* Whoever has no link yet will not make one. */
	for (uint32_t i = 0; i < a->guest_max; i++) {
		if (a->guest[i].in_use && !a->guest[i].handed_over)
			mst_admin_lose(a, a->guest[i].session.who);
	}
}

static bool all_told(const struct mst_admin *a)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		if (a->conn[i].stream != NULL && a->conn[i].out_have > 0)
			return false;
	}
	return a->server == NULL || a->final_told;
}

int mst_admin_over(const struct mst_admin *a)
{
	if (a->state == MST_JOB_GATHERING || a->state == MST_JOB_RUNNING)
		return 0;
	if (mst_admin_is_member(a)) {
		if (!mst_admin_member_over(a))
			return 0;
	} else if (!a->lingered &&
		   (mst_admin_guests(a) > 0 || !all_told(a) || !mst_admin_servers_parted(a))) {
		return 0;
	}
	return a->state == MST_JOB_FINISHED ? 1 : -1;
}
