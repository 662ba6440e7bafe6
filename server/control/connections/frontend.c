/* SPDX-License-Identifier: MIT */
#include "server/control/connections/frontend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/host/limits.h"
#include "server/control/connections/places.h"

#define EVENTS 64

/* The data of an epoll event is the index of a connection, or one of these. */
#define OF_OWNER UINT32_MAX /* only ends the wait */
#define OF_LISTENER (UINT32_MAX - 1)
#define OF_WAKER (UINT32_MAX - 2)

/* ---- descriptors ---- */

static int watch(struct mst_frontend *f, int fd, uint32_t events, uint32_t place, int op)
{
	struct epoll_event ev = { .events = events, .data.u32 = place };

	if (fd < 0)
		return 0; /* a simulated stream: its owner steps it by the clock */
	return epoll_ctl(f->epoll, op, fd, &ev) == 0 ? 0 : -errno;
}

/* Edge-triggered, because a descriptor that cannot be served now must not end every wait at once.
 * Every step looks at all of them anyway. */
int mst_frontend_watch(struct mst_frontend *f, int fd)
{
	return watch(f, fd, EPOLLIN | (uint32_t)EPOLLET, OF_OWNER, EPOLL_CTL_ADD);
}

static int watch_conn(struct mst_frontend *f, const struct mst_conn *c, bool out, int op)
{
	return watch(f, c->ops->stream_fd(c->stream), EPOLLIN | (out ? (uint32_t)EPOLLOUT : 0u),
		     (uint32_t)(c - f->places.conn), op);
}

/* Makes epoll wait for what a connection needs, unless its messages have to wait. Their bytes stay
 * unread, and would end every wait at once. Each step looks at such a connection anyway. */
static int poll_conn(struct mst_frontend *f, struct mst_conn *c)
{
	bool held = c->waits || c->paused, out = c->out_have > 0;
	int rc = 0;

	if (held && c->polled)
		rc = watch_conn(f, c, false, EPOLL_CTL_DEL);
	else if (!held && (!c->polled || out != c->polls_out))
		rc = watch_conn(f, c, out, c->polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
	if (rc == 0) {
		c->polled = !held;
		c->polls_out = !held && out;
	}
	return rc;
}

static void note_readable(struct mst_frontend *f, struct mst_conn *c)
{
	c->readable = true;
	mst_places_note(&f->places, c);
}

/* If another process has inherited a descriptor, epoll reports it even after its connection was
 * closed. */
static void note_event(struct mst_frontend *f, uint32_t of)
{
	if (of == OF_LISTENER)
		f->called = true;
	else if (of == OF_WAKER)
		f->woken = true;
	else if (of != OF_OWNER && f->places.conn[of].stream != NULL)
		note_readable(f, &f->places.conn[of]);
}

/* Notes what epoll reports as readable. Simulated streams have no descriptor; every step looks at
 * them anyway.
 * Return: how many events there were. */
static int mark(struct mst_frontend *f, int timeout_ms)
{
	struct epoll_event ev[EVENTS];
	int count = epoll_wait(f->epoll, ev, EVENTS, timeout_ms);

	for (int i = 0; i < count; i++)
		note_event(f, ev[i].data.u32);
	return count;
}

/* Does a connection hold bytes of which epoll knows nothing, and that the next step would read? */
static bool holds_bytes(const struct mst_frontend *f)
{
	const struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_places_next(&f->places, &f->places.ready, &i)) != NULL;) {
		if (c->readable && c->ops->buffered(c->stream))
			return true;
	}
	return false;
}

void mst_frontend_wait(struct mst_frontend *f, uint64_t timeout_ns)
{
	uint64_t woken;

	if (holds_bytes(f))
		timeout_ns = 0;
	(void)mark(f, (int)((timeout_ns + MST_MS - 1) / MST_MS));
	if (f->woken)
		(void)!read(f->wake_fd, &woken, sizeof(woken));
	f->woken = false;
}

void mst_frontend_wake(struct mst_frontend *f)
{
	uint64_t one = 1;
	int saved = errno; /* the caller may be a signal handler */

	(void)!write(f->wake_fd, &one, sizeof(one));
	errno = saved;
}

/* ---- beginning and end ---- */

static int open_descriptors(struct mst_frontend *f)
{
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->epoll < 0 || f->wake_fd < 0)
		return -errno;
	return watch(f, f->wake_fd, EPOLLIN, OF_WAKER, EPOLL_CTL_ADD);
}

static void explain_listen(int rc, const char *listen, struct mst_reason *why)
{
	if (rc == -EADDRINUSE)
		mst_reason_set(
			why,
			"cannot listen on %s: another process does; choose another port with "
			"--listen HOST:PORT (port 0: any free one)",
			listen);
	else if (rc == -ENOENT)
		mst_reason_set(why, "cannot listen on %s: there is no host of this name", listen);
	else if (rc == -EADDRNOTAVAIL)
		mst_reason_set(
			why,
			"cannot listen on %s: no interface of this host has this address (ip "
			"address shows them)",
			listen);
	else if (rc == -EDESTADDRREQ)
		mst_reason_set(why,
			       "cannot listen on %s: an address of one link, fe80::, needs the "
			       "interface, as in [fe80::1%%eth0]:17077 (ip address shows them)",
			       listen);
	else if (rc == -EHOSTUNREACH)
		mst_reason_set(why,
			       "cannot listen on %s: the name could not be looked up; give an "
			       "address of this host",
			       listen);
	else
		mst_reason_set(why, "cannot listen on %s: %s", listen, strerror(-rc));
}

static int open_listener(struct mst_frontend *f, struct mst_reason *why)
{
	const struct mst_stream_ops *s = f->cfg.stream;

	if (f->cfg.listen == NULL)
		return 0;
	int rc = s->listen(f->cfg.listen, f->cfg.credentials, &f->listener, f->address,
			   sizeof(f->address));
	if (rc != 0) {
		explain_listen(rc, f->cfg.listen, why);
		return rc;
	}
	rc = watch(f, s->listener_fd(f->listener), EPOLLIN, OF_LISTENER, EPOLL_CTL_ADD);
	if (rc != 0)
		explain_listen(rc, f->cfg.listen, why);
	return rc;
}

int mst_frontend_open(struct mst_frontend *f, const struct mst_frontend_cfg *cfg,
		      struct mst_reason *why)
{
	/* There is one entry more, since a new connection is accepted before the oldest stranger is
	 * closed. */
	uint32_t others = cfg->listen != NULL ? MST_FRONTEND_STRANGERS + MST_FRONTEND_WATCHERS + 1
					      : 0;

	*f = (struct mst_frontend){ .cfg = *cfg, .epoll = -1, .wake_fd = -1, .next_id = 1 };
	mst_complaints_init(&f->complaints);
	int rc = mst_places_init(&f->places, cfg->members + others, cfg->workers);
	if (rc != 0) {
		mst_reason_set(why, "no memory for %" PRIu32 " connections", f->places.max);
		return rc;
	}
	rc = open_descriptors(f);
	if (rc != 0) {
		struct mst_reason said;
		mst_reason_set(why, "no descriptors to wait by: %s",
			       mst_limit_refused("epoll_create1 or eventfd", rc, &said));
		return rc;
	}
	return open_listener(f, why);
}

void mst_frontend_close(struct mst_frontend *f)
{
	if (f->cfg.stream == NULL)
		return;
	mst_complaints_step(&f->complaints, MST_NEVER);
	mst_places_fini(&f->places);
	f->cfg.stream->unlisten(f->listener);
	if (f->epoll >= 0)
		close(f->epoll);
	if (f->wake_fd >= 0)
		close(f->wake_fd);
	f->cfg.stream = NULL;
}

/* ---- looking for one ---- */

struct mst_conn *mst_frontend_next(const struct mst_frontend *f, uint32_t *i)
{
	while (*i < f->places.max) {
		struct mst_conn *c = &f->places.conn[(*i)++];
		if (c->stream != NULL)
			return c;
	}
	return NULL;
}

struct mst_conn *mst_frontend_next_of(const struct mst_frontend *f, enum mst_conn_role role,
				      uint32_t *i)
{
	return mst_places_next(&f->places, &f->places.of_role[role], i);
}

struct mst_conn *mst_frontend_worker(struct mst_frontend *f, struct mst_identity who)
{
	return mst_places_of_worker(&f->places, who);
}

struct mst_conn *mst_frontend_conn(struct mst_frontend *f, uint64_t id)
{
	struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next(f, &i)) != NULL;) {
		if (c->id == id)
			return c;
	}
	return NULL;
}

bool mst_frontend_has_sent_all(const struct mst_frontend *f)
{
	const struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next(f, &i)) != NULL;) {
		if (c->out_have > 0)
			return false;
	}
	return true;
}

/* ---- sending ---- */

void mst_frontend_hang_up(struct mst_frontend *f, struct mst_conn *c)
{
	f->cfg.ops->gone(f->cfg.ctx, c);
	mst_places_close(&f->places, c);
}

/* Sends as much as the connection takes, and has epoll wait for room while something is left. If
 * epoll has no memory for that, each step looks. */
static int push_out(struct mst_frontend *f, struct mst_conn *c)
{
	int rc = mst_conn_flush(c);

	if (rc == 0 && poll_conn(f, c) != 0)
		note_readable(f, c);
	return rc;
}

void mst_frontend_blame(struct mst_frontend *f, const struct mst_conn *c, enum mst_complaint kind,
			const char *reason)
{
	if (mst_conn_is_known(c))
		mst_warn("%s", reason);
	else
		mst_complain(&f->complaints, kind, "%s", reason);
}

void mst_frontend_send(struct mst_frontend *f, struct mst_conn *c, const struct mst_message *msg)
{
	struct mst_reason reason;
	int rc = mst_conn_send(c, msg);

	if (rc == 0)
		rc = push_out(f, c);
	if (rc == -EPIPE)
		note_readable(f, c); /* the next read finds that the peer has closed */
	if (rc == 0 || rc == -EPIPE)
		return;
	mst_reason_set(&reason, "%s: %s; closed", c->peer,
		       rc == -ENOBUFS ? "does not read what it asked for"
				      : "no memory for its answer");
	mst_frontend_blame(f, c, MST_COMPLAINT_UNREAD, reason.text);
	mst_frontend_hang_up(f, c);
}

void mst_frontend_part(struct mst_frontend *f, struct mst_conn *c, uint64_t now_ns)
{
	if (mst_places_enter(&f->places, c, MST_CONN_PART))
		c->deadline_ns = now_ns + MST_FRONTEND_GRACE_NS;
}

void mst_frontend_error(struct mst_frontend *f, struct mst_conn *c, int code, const char *reason,
			uint64_t now_ns)
{
	struct mst_message *m = calloc(1, sizeof(*m));

	if (m != NULL) {
		m->kind = MST_MSG_ERROR;
		m->error.code = code;
		snprintf(m->error.reason, sizeof(m->error.reason), "%s", reason);
		mst_frontend_send(f, c, m);
		free(m);
	}
	if (c->stream == NULL)
		return;
	mst_frontend_part(f, c, now_ns);
}

void mst_frontend_accuse(struct mst_frontend *f, const struct mst_conn *c, const char *what,
			 struct mst_reason *reason)
{
	mst_reason_set(reason, "%s %s", c->peer, what);
	mst_frontend_blame(f, c, MST_COMPLAINT_BROKEN, reason->text);
}

struct mst_message *mst_frontend_draft(struct mst_frontend *f, enum mst_message_kind kind)
{
	memset(&f->draft, 0, sizeof(f->draft));
	f->draft.kind = kind;
	return &f->draft;
}

/* ---- places ---- */

void mst_frontend_enter(struct mst_frontend *f, struct mst_conn *c, enum mst_conn_event event)
{
	(void)mst_places_enter(&f->places, c, event);
}

void mst_frontend_admit(struct mst_frontend *f, struct mst_conn *c, struct mst_identity who)
{
	(void)mst_places_admit(&f->places, c, who);
}

/* Has the peer sent nothing yet that lets it stay? A hello that waits to be handled does. */
static bool is_stranger(const struct mst_conn *c)
{
	return c->role == MST_CONN_NEW && !c->waits;
}

/* If there are @max connections of a role, or as many strangers if it is NEW, the one of them that
 * has been silent longest; else NULL. */
static struct mst_conn *surplus(struct mst_frontend *f, enum mst_conn_role role, uint32_t max)
{
	struct mst_conn *c, *oldest = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; (c = mst_frontend_next_of(f, role, &i)) != NULL;) {
		if (role == MST_CONN_NEW && !is_stranger(c))
			continue;
		count++;
		if (oldest == NULL || mst_conn_is_older(c, oldest))
			oldest = c;
	}
	return count >= max ? oldest : NULL;
}

/* Makes epoll wait for the listener, or not: while there is no room for connections, new ones must
 * not end every wait at once. */
static void listen_again(struct mst_frontend *f, bool listens)
{
	int fd = f->cfg.stream->listener_fd(f->listener);

	if (listens == f->deaf &&
	    watch(f, fd, EPOLLIN, OF_LISTENER, listens ? EPOLL_CTL_ADD : EPOLL_CTL_DEL) == 0)
		f->deaf = !listens;
}

static struct mst_conn *take_place(struct mst_frontend *f, struct mst_conn *c,
				   struct mst_stream *stream)
{
	mst_places_open(&f->places, c, f->cfg.stream, stream, f->next_id++);
	if (poll_conn(f, c) == 0)
		return c;
	mst_places_close(&f->places, c);
	return NULL;
}

struct mst_conn *mst_frontend_adopt(struct mst_frontend *f, struct mst_stream *stream,
				    const char *peer, enum mst_conn_event is)
{
	struct mst_conn *c = mst_places_free(&f->places);

	if (c == NULL) {
		f->cfg.stream->close(stream);
		return NULL;
	}
	snprintf(c->peer, sizeof(c->peer), "%.60s", peer);
	c = take_place(f, c, stream);
	if (c != NULL)
		mst_frontend_enter(f, c, is);
	return c;
}

/* A watcher keeps its place if it has asked for the status within this time. */
#define WATCHER_IDLE_NS MST_FRONTEND_GRACE_NS

bool mst_frontend_admit_watcher(struct mst_frontend *f, struct mst_conn *c, uint64_t now_ns)
{
	struct mst_conn *idle = surplus(f, MST_CONN_WATCHER, MST_FRONTEND_WATCHERS);

	if (idle != NULL && now_ns - idle->heard_ns < WATCHER_IDLE_NS) {
		idle = mst_places_yield(&f->places, c);
		if (idle == NULL)
			return false;
	}
	if (idle != NULL)
		mst_frontend_error(f, idle, -EBUSY,
				   "too many ask at once, and this connection gives its place to "
				   "another: ask on a new one",
				   now_ns);
	return mst_places_enter(&f->places, c, MST_CONN_WATCH);
}

/* ---- reading ---- */

/* A record of TLS that begins a handshake. */
static bool begins_tls(const struct mst_conn *c)
{
	return c->in_have >= 2 && c->in[c->in_at] == 0x16 && c->in[c->in_at + 1] == 0x03;
}

/* What mst_conn_next() has told of bytes that are no message. */
struct rubbish {
	int rc;
	uint32_t protocol;
	struct mst_unknown unknown;
};

/* If the owner cannot handle the error now, the next step finds it again. */
static void refuse_rubbish(struct mst_frontend *f, struct mst_conn *c, const struct rubbish *of,
			   uint64_t now_ns)
{
	char what[sizeof(struct mst_unknown_words)];

	if (of->unknown.tag != 0)
		snprintf(what, sizeof(what), "%s", mst_unknown_say(&of->unknown).text);
	else if (of->protocol != 0 && of->protocol != MST_PROTOCOL)
		snprintf(what, sizeof(what),
			 "speaks protocol %" PRIu32 ", this server speaks %u; use the same "
			 "version of muster on both sides",
			 of->protocol, MST_PROTOCOL);
	else if (!c->principal.proven && begins_tls(c))
		snprintf(what, sizeof(what),
			 "speaks TLS, and this server was started without "
			 "--tls-ca, --tls-cert and --tls-key");
	else if (of->rc == -EMSGSIZE && c->role == MST_CONN_WORKER)
		snprintf(what, sizeof(what),
			 "broke the protocol: a message that is longer than it may send, for "
			 "nobody asked it for a state");
	else
		snprintf(what, sizeof(what), "sent bytes that are not a message of muster");
	c->waits = !f->cfg.ops->broken(f->cfg.ctx, c, what, now_ns);
}

/* The peer has sent more than is handled in this period: the rest waits, unless it floods. */
static void hold_back(struct mst_frontend *f, struct mst_conn *c, uint64_t now_ns)
{
	char what[256];

	c->paused = !mst_flood_is_one(&c->flood) || c->role == MST_CONN_CLOSING;
	if (c->paused)
		return;
	snprintf(what, sizeof(what),
		 "broke the protocol: it floods the server, for in %u periods of %" PRIu64
		 " ms, one after the other, it had sent more than the %u messages that are handled "
		 "in each; report and ask less often",
		 MST_FLOOD_PERIODS, MST_FLOOD_PERIOD_NS / MST_MS, MST_FLOOD_MESSAGES);
	c->waits = !f->cfg.ops->broken(f->cfg.ctx, c, what, now_ns);
}

/* Passes received messages to the owner. The messages of a closing connection are dropped. */
static void read_messages(struct mst_frontend *f, struct mst_conn *c, uint64_t now_ns)
{
	struct rubbish of = { 0 };

	c->waits = c->paused = false;
	while (c->stream != NULL &&
	       (of.rc = mst_conn_next(c, &f->message, &of.protocol, &of.unknown)) > 0) {
		if (!mst_flood_admits(&c->flood, now_ns)) {
			mst_conn_again(c);
			hold_back(f, c, now_ns);
			return;
		}
		if (c->role == MST_CONN_CLOSING)
			continue;
		if (!f->cfg.ops->message(f->cfg.ctx, c, &f->message, now_ns)) {
			mst_conn_again(c);
			mst_flood_again(&c->flood);
			c->waits = true;
			return;
		}
	}
	if (c->stream == NULL || of.rc >= 0)
		return;
	if (c->role == MST_CONN_CLOSING)
		c->paused = true; /* it stays unread, and must not end every wait */
	else
		refuse_rubbish(f, c, &of, now_ns);
}

static bool is_due(const struct mst_conn *c, uint64_t now_ns)
{
	return (c->role == MST_CONN_NEW || c->role == MST_CONN_CLOSING) && now_ns >= c->deadline_ns;
}

/* How often one connection is read in a step: enough for all that an honest peer has sent, and few
 * enough that a flood does not keep other peers from being heard. */
#define READS_MAX 8u

/* Reads a connection to its end, or until the owner cannot take its messages.
 * Return: 0 or why nothing more comes. */
static int read_conn(struct mst_frontend *f, struct mst_conn *c, uint64_t now_ns)
{
	int rc = 0;

	c->dry = c->readable = false;
	for (uint32_t i = 0; i < READS_MAX && rc == 0 && c->stream != NULL && !c->dry; i++) {
		rc = mst_conn_receive(c);
		/* A new peer that has closed is not heard: its hello may have waited, and its
		 * sender has gone. */
		if (rc == 0 || c->role != MST_CONN_NEW)
			read_messages(f, c, now_ns);
		if (c->waits || c->paused)
			break;
	}
	c->readable |= c->stream != NULL && !c->dry && !c->waits && !c->paused;
	return rc;
}

static void step_conn(struct mst_frontend *f, struct mst_conn *c, uint64_t now_ns)
{
	int rc = read_conn(f, c, now_ns);

	if (c->stream == NULL)
		return;
	if (rc == 0)
		rc = push_out(f, c);
	bool silent = is_due(c, now_ns);
	bool said_all = c->role == MST_CONN_CLOSING && c->out_have == 0;
	if (c->role == MST_CONN_NEW && silent)
		mst_complain(&f->complaints, MST_COMPLAINT_SILENT,
			     "%s connected and said nothing for %.0f s; closed", c->peer,
			     (double)MST_FRONTEND_GRACE_NS / (double)MST_SECOND);
	if (rc != 0 || silent || said_all) {
		mst_frontend_hang_up(f, c);
		return;
	}
	f->holds |= c->paused || (c->waits && c->role != MST_CONN_NEW);
	mst_places_note(&f->places, c);
}

/* ---- accepting ---- */

/* Closes the oldest stranger if all places of strangers are taken. The stranger may have sent a
 * hello that has not been read yet, so its connection is read first: a peer that has sent hello may
 * stay. */
static void make_room(struct mst_frontend *f, uint64_t now_ns)
{
	struct mst_conn *oldest = surplus(f, MST_CONN_NEW, MST_FRONTEND_STRANGERS);

	for (; oldest != NULL; oldest = surplus(f, MST_CONN_NEW, MST_FRONTEND_STRANGERS)) {
		step_conn(f, oldest, now_ns);
		if (oldest->stream != NULL && is_stranger(oldest))
			mst_frontend_hang_up(f, oldest);
	}
}

/* While epoll does not wait for the listener, each step has to try. */
static bool may_have_callers(const struct mst_frontend *f)
{
	return f->listener != NULL &&
	       (f->called || f->deaf || f->cfg.stream->listener_fd(f->listener) < 0);
}

/* How many callers are accepted in a step: strangers may call faster than that, without end, and
 * those who are known are to be heard. Of the others epoll tells again. */
#define ACCEPTS_MAX 64u

/* Connections that may stay have entries of their own, so one is free once a stranger is closed. */
static void accept_some(struct mst_frontend *f, uint64_t now_ns)
{
	struct mst_stream *stream;
	char peer[sizeof(f->places.conn->peer)];
	int rc = 0;

	f->called = false;
	for (uint32_t i = 0; i < ACCEPTS_MAX && rc == 0; i++) {
		struct mst_conn *c = mst_places_free(&f->places);
		if (c == NULL) {
			rc = -ENOSPC;
			break;
		}
		rc = f->cfg.stream->accept(f->listener, &stream, peer, sizeof(peer));
		if (rc != 0)
			break;
		make_room(f, now_ns);
		memcpy(c->peer, peer, sizeof(peer));
		c = take_place(f, c, stream);
		if (c != NULL) {
			c->heard_ns = now_ns;
			c->deadline_ns = now_ns + MST_FRONTEND_GRACE_NS;
			note_readable(f, c);
		}
	}
	listen_again(f, rc == -EAGAIN || rc == 0);
}

/* ---- a step ---- */

static void step_known(struct mst_frontend *f, uint64_t now_ns)
{
	struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_places_next(&f->places, &f->places.ready, &i)) != NULL;) {
		if (c->role != MST_CONN_NEW)
			step_conn(f, c, now_ns);
	}
}

/* There are few new peers, and each has a deadline. */
static void step_new(struct mst_frontend *f, uint64_t now_ns)
{
	struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next_of(f, MST_CONN_NEW, &i)) != NULL;) {
		if (mst_places_is_ready(&f->places, c) || is_due(c, now_ns))
			step_conn(f, c, now_ns);
	}
}

/* Known connections come before new ones: a connection that has closed may free the rank that a
 * hello waits for. */
void mst_frontend_step(struct mst_frontend *f, uint64_t now_ns)
{
	mst_complaints_step(&f->complaints, now_ns);
	f->holds = false;
	for (int rounds = 0; mark(f, 0) == EVENTS && rounds < (int)(f->places.max / EVENTS);)
		rounds++;
	step_known(f, now_ns);
	if (may_have_callers(f))
		accept_some(f, now_ns);
	step_new(f, now_ns);
}
