/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/handshakes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rand.h"
#include "common/transport/channel.h"
#include "common/transport/tls/callers.h"
#include "common/transport/tls/stream.h"
#include "common/wire/message.h"

#define MOMENT_NS (100 * MST_MS) /* each caller has at least so long, however many there are */
#define LINGER_NS MST_SECOND
#define BEGUN_AT_ONCE 16 /* handshakes begun between two looks at the callers that are there */
#define RECORD_HANDSHAKE 22
#define WARNINGS 5u
#define WARNINGS_NS (10 * MST_SECOND)

uint64_t mst_tls_handshake_ns = 5 * MST_SECOND;

struct caller {
	struct mst_stream *below; /* before its first byte, and when it is leaving; else NULL */
	struct mst_stream *tls;   /* while hands are shaken; else NULL */
	uint64_t until_ns;
	bool leaving;
	char peer[MST_HANDOFF_PEER_LEN];
};

struct mst_handshakes {
	struct mst_handshakes_cfg cfg;
	uint32_t fresh[MST_HANDSHAKES_MAX]; /* places of callers whose first byte has come */
	struct mst_ratelimit warnings;
	struct mst_callers callers;
	struct mst_caller_place place[MST_HANDSHAKES_MAX];
	struct caller caller[MST_HANDSHAKES_MAX];
};

/* ---- callers that do not speak TLS ---- */

#define FRAME_BYTES 1024u

/* Sends an error of this release's protocol, as far as the stream takes it at once. Any release
 * understands it or says that the protocols differ. */
static void send_error(struct mst_stream *below)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));
	unsigned char frame[FRAME_BYTES];

	if (msg == NULL)
		return;
	msg->kind = MST_MSG_ERROR;
	msg->error.code = -EACCES;
	(void)snprintf(msg->error.reason, sizeof(msg->error.reason),
		       "this server lets in who proves itself by TLS: give --tls-ca, --tls-cert "
		       "and --tls-key, or set MUSTER_TLS_CA, MUSTER_TLS_CERT and MUSTER_TLS_KEY");
	int64_t length = mst_message_encode(msg, frame, sizeof(frame));
	if (length > 0)
		(void)mst_plain.send(below, frame, (size_t)length);
	free(msg);
}

static int watch(const struct mst_handshakes *h, int op, int fd, uint32_t events, uint32_t of)
{
	struct epoll_event ev = { .events = events, .data.u32 = of };

	return epoll_ctl(h->cfg.epoll, op, fd, &ev) == 0 ? 0 : -errno;
}

static int fd_of(const struct caller *c)
{
	return c->tls != NULL ? mst_tls_stream_fd(c->tls) : mst_plain.stream_fd(c->below);
}

/* ---- callers ---- */

void mst_handshakes_complain(struct mst_handshakes *h, const char *fmt, ...)
{
	char text[MST_LOG_LINE_MAX];
	va_list args;

	if (!mst_ratelimit_pass(&h->warnings, mst_now_ns()))
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	mst_warn("%s", text);
}

static void say_how_many_more(struct mst_handshakes *h, uint64_t now_ns)
{
	uint64_t more = mst_ratelimit_take(&h->warnings, now_ns);

	if (more > 0)
		mst_warn("%" PRIu64 " more callers proved nothing in the last %.0f s", more,
			 (double)WARNINGS_NS / (double)MST_SECOND);
}

static void leave(struct mst_handshakes *h, uint32_t i)
{
	struct caller *c = &h->caller[i];

	if (c->tls != NULL)
		mst_tls_stream_close(c->tls);
	else if (c->below != NULL)
		mst_plain.close(c->below);
	memset(c, 0, sizeof(*c));
	mst_callers_leave(&h->callers, i);
}

/* The peer is to read the last word before the connection is closed. */
static void linger(struct mst_handshakes *h, uint32_t i, uint64_t now_ns)
{
	struct caller *c = &h->caller[i];

	(void)shutdown(fd_of(c), SHUT_WR);
	(void)watch(h, EPOLL_CTL_MOD, fd_of(c), EPOLLIN, i);
	c->leaving = true;
	c->until_ns = now_ns + LINGER_NS;
}

void mst_handshakes_enter(struct mst_handshakes *h, struct mst_stream *below, const char *peer)
{
	uint64_t now_ns = mst_now_ns();
	uint32_t group = mst_callers_group(&h->callers, peer), goes;

	if (!mst_callers_room(&h->callers, group, now_ns, &goes)) {
		mst_handshakes_complain(
			h, "%s was turned away: %" PRIu32 " callers are proving who they are", peer,
			h->callers.count);
		mst_plain.close(below);
		return;
	}
	if (goes != MST_CALLERS_NONE) {
		mst_handshakes_complain(
			h, "%s gave way to another caller before it had proven who it is",
			h->caller[goes].peer);
		leave(h, goes);
	}
	uint32_t i = mst_callers_enter(&h->callers, group, now_ns);
	struct caller *c = &h->caller[i];
	*c = (struct caller){ .below = below, .until_ns = now_ns + mst_tls_handshake_ns };
	(void)snprintf(c->peer, sizeof(c->peer), "%s", peer);
	if (watch(h, EPOLL_CTL_ADD, fd_of(c), EPOLLIN, i) != 0)
		leave(h, i);
}

/* ---- handshakes ---- */

static void hand_over(struct mst_handshakes *h, uint32_t i)
{
	struct caller *c = &h->caller[i];

	(void)watch(h, EPOLL_CTL_DEL, fd_of(c), 0, i);
	int rc = mst_handoff_give(h->cfg.handoff, c->tls, c->peer);
	if (rc == 0)
		c->tls = NULL;
	else if (rc == -ENOBUFS)
		mst_handshakes_complain(h,
					"%s has proven who it is, but %u others wait to be heard",
					c->peer, h->cfg.handoff->max);
	else
		mst_handshakes_complain(
			h, "%s has proven who it is, but cannot be handed over: write: %s", c->peer,
			strerror(-rc));
	leave(h, i);
}

static void shake(struct mst_handshakes *h, uint32_t i)
{
	struct caller *c = &h->caller[i];
	int rc = mst_tls_stream_shake(c->tls);

	if (rc == 0) {
		hand_over(h, i);
	} else if (rc == -EAGAIN) {
		bool room = mst_tls_stream_wants_room(c->tls);
		(void)watch(h, EPOLL_CTL_MOD, fd_of(c), room ? EPOLLOUT : EPOLLIN, i);
	} else {
		mst_handshakes_complain(h, "%s", mst_tls_stream_why(c->tls));
		if (rc == -ECONNRESET)
			leave(h, i);
		else
			linger(h, i, mst_now_ns());
	}
}

static void answer_plain(const struct mst_handshakes *h, struct mst_stream *below)
{
	if (h->cfg.channels)
		(void)mst_plain.send(below, h->cfg.refusal, h->cfg.refusal_bytes);
	else
		send_error(below);
}

/* The first byte of a caller tells whether it speaks TLS. One that does not is answered in plain
 * words, which need nothing of what it has sent. */
static void begin(struct mst_handshakes *h, uint32_t i)
{
	struct caller *c = &h->caller[i];
	struct mst_tls_begin how = {
		.below = c->below,
		.own = h->cfg.own,
		.peer = c->peer,
		.serves = true,
		.channel = h->cfg.channels,
	};
	unsigned char first = 0;
	ssize_t got = recv(fd_of(c), &first, 1, MSG_PEEK | MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		mst_handshakes_complain(h, "%s closed the connection without a word", c->peer);
		leave(h, i);
	} else if (first != RECORD_HANDSHAKE) {
		mst_handshakes_complain(
			h, "%s does not speak TLS%s, which this server wants; it was told so",
			c->peer, h->cfg.channels ? " at the data port" : "");
		answer_plain(h, c->below);
		linger(h, i, mst_now_ns());
	} else {
		c->below = NULL;
		if (mst_tls_stream_new(&how, &c->tls) == 0)
			shake(h, i);
		else
			leave(h, i);
	}
}

/* Reads what a leaving caller still sends, until it closes. */
static void drain(struct mst_handshakes *h, uint32_t i)
{
	char rest[4096];
	ssize_t got = recv(fd_of(&h->caller[i]), rest, sizeof(rest), MSG_DONTWAIT);

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		leave(h, i);
}

/* Begins handshakes with some of @fresh; epoll tells again of the others. */
static void begin_some(struct mst_handshakes *h, uint32_t count)
{
	for (uint32_t begun = 0; begun < BEGUN_AT_ONCE && count > 0; begun++) {
		uint32_t next = 0;

		for (uint32_t i = 1; i < count; i++) {
			if (mst_callers_precedes(&h->callers, h->fresh[i], h->fresh[next]))
				next = i;
		}
		begin(h, h->fresh[next]);
		h->fresh[next] = h->fresh[--count];
	}
}

/* A caller of which epoll tells may have given way since. */
void mst_handshakes_serve(struct mst_handshakes *h, const struct epoll_event *event, int count)
{
	uint32_t fresh = 0;

	for (int i = 0; i < count; i++) {
		uint32_t of = event[i].data.u32;
		if (of >= MST_HANDSHAKES_MAX)
			continue;
		if (h->caller[of].leaving)
			drain(h, of);
		else if (h->caller[of].tls != NULL)
			shake(h, of);
		else if (h->caller[of].below != NULL)
			h->fresh[fresh++] = of;
	}
	begin_some(h, fresh);
}

static void end_those_that_are_late(struct mst_handshakes *h, uint64_t now_ns)
{
	for (uint32_t i = 0; i < h->callers.max; i++) {
		if (!h->place[i].taken || now_ns < h->caller[i].until_ns)
			continue;
		if (!h->caller[i].leaving)
			mst_handshakes_complain(h,
						"%s has not proven who it is within %.0f s; closed",
						h->caller[i].peer,
						(double)mst_tls_handshake_ns / (double)MST_SECOND);
		leave(h, i);
	}
}

void mst_handshakes_tick(struct mst_handshakes *h, uint64_t now_ns)
{
	end_those_that_are_late(h, now_ns);
	say_how_many_more(h, now_ns);
}

bool mst_handshakes_are_timed(const struct mst_handshakes *h)
{
	return h->callers.count > 0 || h->warnings.held_back > 0;
}

/* ---- beginning and end ---- */

/* Callers may take an eighth of the process's descriptors; those of a data port are counted with
 * what the job needs. */
static uint32_t most_callers(bool channels)
{
	struct rlimit limit;

	if (channels)
		return MST_CHANNEL_CALLERS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 8 >= MST_HANDSHAKES_MAX)
		return MST_HANDSHAKES_MAX;
	return limit.rlim_cur >= 128 ? (uint32_t)limit.rlim_cur / 8 : 16;
}

int mst_handshakes_new(const struct mst_handshakes_cfg *cfg, struct mst_handshakes **out)
{
	struct mst_handshakes *h = calloc(1, sizeof(*h));
	uint32_t max = most_callers(cfg->channels);

	if (h == NULL)
		return -ENOMEM;
	h->cfg = *cfg;
	h->callers = (struct mst_callers){ .max = max,
					   .max_of_group = cfg->channels ? max : max / 2,
					   .moment_ns = MOMENT_NS,
					   .place = h->place };
	h->warnings = (struct mst_ratelimit){ .window_ns = WARNINGS_NS, .burst = WARNINGS };
	int rc = mst_rand_secret(&h->callers.seed, sizeof(h->callers.seed));
	if (rc != 0) {
		free(h);
		return rc;
	}
	*out = h;
	return 0;
}

void mst_handshakes_free(struct mst_handshakes *h)
{
	if (h == NULL)
		return;
	for (uint32_t i = 0; i < h->callers.max; i++)
		if (h->place[i].taken)
			leave(h, i);
	free(h);
}
