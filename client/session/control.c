/* SPDX-License-Identifier: MIT */
#include "client/session/control.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

/* The longest that a leader says to a worker is a welcome to as many servers as there may be, with
 * as many verdicts. More is rubbish. */
#define IN_BYTES MST_FRAME_TO_WORKER
/* Two pieces of a start state, and always room beside them for what is small. */
#define SMALL_BYTES 4096u
#define ERRNO_MAX 4095
#define OUT_BYTES (2 * (MST_STATE_CHUNK + SMALL_BYTES))

struct mst_control {
	struct mst_control_cfg cfg;
	_Atomic bool news, over;

	pthread_mutex_t lock; /* of all that follows */
	struct mst_told told;
	struct mst_silence silence;
	uint64_t beat_ns, beat_due_ns;
	bool wants_room; /* a sender was told -EAGAIN */
	bool mute;       /* nothing can be sent any more */
	bool heard;      /* something has come */
	size_t in_have, out_have;
	struct mst_gift gives; /* data NULL: nothing is given, or all has been queued */
	uint64_t given;        /* bytes of it that have been queued */
	struct mst_gift takes; /* what has come of a state of another worker */
	uint64_t taken;
	struct mst_gift expects; /* what has come of the average; data NULL: none is asked for */
	uint64_t expects_have;
	struct mst_message message;
	uint8_t in[IN_BYTES];
	uint8_t out[OUT_BYTES];
};

int mst_control_new(const struct mst_control_cfg *cfg, struct mst_control **out)
{
	struct mst_control *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->cfg = *cfg;
	c->beat_due_ns = MST_NEVER;
	pthread_mutex_init(&c->lock, NULL);
	*out = c;
	return 0;
}

const char *mst_control_host(const struct mst_control *c, char out[MST_CALLED_LEN])
{
	return mst_called_host(c->cfg.ops->stream_fd(c->cfg.stream), out);
}

void mst_control_free(struct mst_control *c)
{
	if (c == NULL)
		return;
	if (c->cfg.stream != NULL) {
		c->cfg.ops->close(c->cfg.stream);
		pthread_mutex_destroy(&c->lock);
	}
	free(c->gives.data);
	free(c->takes.data);
	free(c->expects.data);
	free(c);
}

/* The lock is not taken: a thread that does not exist in this process may hold it for ever. */
void mst_control_disown(struct mst_control *c)
{
	c->cfg.ops->close(c->cfg.stream);
	c->cfg.stream = NULL;
}

int mst_control_ending(int code)
{
	bool call_again = code == -ETIMEDOUT || code == -EINTR || code == -EAGAIN;

	if (code == MST_AGAIN) /* no word of muster.h */
		return -ENOTCONN;
	return code < 0 && code >= -ERRNO_MAX && !call_again ? code : -EPROTO;
}

/* ---- what is told; under the lock ---- */

static void publish(struct mst_control *c)
{
	if (c->told.error != 0 || c->told.finished || c->told.closed)
		atomic_store_explicit(&c->over, true, memory_order_relaxed);
	/* Release: pairs with the acquire in mst_control_news(); who sees it finds `told` as it is
	 * now, or newer, once it has the lock. */
	atomic_store_explicit(&c->news, true, memory_order_release);
	c->cfg.wake(c->cfg.ctx);
}

static __attribute__((format(printf, 3, 4))) void fail(struct mst_control *c, int error,
						       const char *fmt, ...)
{
	va_list args;

	c->told.closed = true;
	if (c->told.error == 0 && !c->told.finished) {
		va_start(args, fmt);
		mst_reason_vset(&c->told.reason, fmt, args);
		va_end(args);
		c->told.error = error;
	}
	publish(c);
}

/* The session is lost, and the worker may come back: to this server, or to another one. */
static void lose(struct mst_control *c, const char *why)
{
	c->told.again |= c->told.error == 0 && !c->told.finished;
	fail(c, -ENOTCONN, "%s", why);
}

static void hang_up(struct mst_control *c, ssize_t got)
{
	struct mst_reason gone;

	const char *why = c->cfg.ops->why(c->cfg.stream);

	if (got == -EACCES && why != NULL) {
		fail(c, -EACCES, "%s", why);
		return;
	}
	c->told.unheard = !c->heard;
	mst_reason_set(&gone,
		       "the server at %s has closed the connection without a word: it has just "
		       "ended, or was killed, or is no muster server; look at its log",
		       c->cfg.server);
	lose(c, gone.text);
}

/* The leader sends the pieces of one state in order, and another state only after this worker has
 * said that it has taken the one before. So a state that has come as a whole stays until it is
 * claimed. */
static void take_piece(struct mst_control *c, const struct mst_handed *p)
{
	if (p->piece.offset == 0 && c->takes.data == NULL) {
		c->taken = 0;
		c->takes = (struct mst_gift){ .data = malloc(p->piece.total),
					      .bytes = p->piece.total,
					      .number = p->number,
					      .version = p->version };
		if (c->takes.data == NULL) {
			fail(c, -ENOMEM,
			     "no memory for the state of another worker, %" PRIu64 " bytes",
			     p->piece.total);
			return;
		}
	}
	if (c->takes.data == NULL || p->number != c->takes.number || p->piece.length == 0 ||
	    p->piece.total != c->takes.bytes || p->piece.offset != c->taken) {
		fail(c, -EPROTO,
		     "the server at %s sent a state with a gap, or before the last was taken",
		     c->cfg.server);
		return;
	}
	memcpy(c->takes.data + p->piece.offset, p->piece.data, p->piece.length);
	c->taken += p->piece.length;
	if (c->taken == c->takes.bytes)
		publish(c);
}

/* Pieces come in order, and only of what this worker has asked for. */
static void take_average(struct mst_control *c, const struct mst_handed *p)
{
	bool begins = c->expects_have == 0;

	if (c->expects.data == NULL || p->number != c->expects.number || p->piece.length == 0 ||
	    p->piece.total != c->expects.bytes || p->piece.offset != c->expects_have ||
	    (!begins && p->version != c->expects.version)) {
		fail(c, -EPROTO,
		     "the server at %s sent an average with a gap, of two versions, or that nobody "
		     "asked for",
		     c->cfg.server);
		return;
	}
	memcpy(c->expects.data + p->piece.offset, p->piece.data, p->piece.length);
	c->expects.version = p->version;
	c->expects_have += p->piece.length;
	if (c->expects_have == c->expects.bytes)
		publish(c);
}

static void know(struct mst_told *told, const struct mst_in_force *what)
{
	told->knows = true;
	told->in_force = *what;
}

static void take_policy(struct mst_told *told, const char *policy)
{
	if (policy[0] != '\0')
		(void)snprintf(told->policy, sizeof(told->policy), "%s", policy);
}

/* One to a start that is under way does not say which change is in force: who else comes back may
 * know more. */
static void take_welcome(struct mst_told *told, const struct mst_welcome *welcome)
{
	told->welcomed = true;
	told->welcome = *welcome;
	take_policy(told, welcome->policy);
	if (welcome->generation.number > 0)
		know(told, &welcome->in_force);
}

static void take_begins(struct mst_told *told, const struct mst_begins *begins)
{
	told->begun = true;
	told->begins = *begins;
	take_policy(told, begins->policy);
	know(told, &begins->in_force);
}

static void take_change(struct mst_told *told, const struct mst_in_force *what)
{
	take_policy(told, what->policy);
	know(told, what);
}

static void take_differs(struct mst_told *told, const struct mst_differs *differs)
{
	told->differences++;
	told->differs = *differs;
}

static void hear(struct mst_control *c, const struct mst_message *msg)
{
	struct mst_told *told = &c->told;

	switch (msg->kind) {
	case MST_MSG_WELCOME:
		take_welcome(told, &msg->welcome);
		break;
	case MST_MSG_SEND_STATE:
		told->send_state = true;
		told->wanted = msg->wanted;
		break;
	case MST_MSG_SEND_TABLE:
		told->send_table = true;
		break;
	case MST_MSG_AGREE:
		told->agrees = true;
		told->agree = msg->agree;
		break;
	case MST_MSG_DIFFERS:
		take_differs(told, &msg->differs);
		break;
	case MST_MSG_FINISHED:
		told->finished = true;
		memcpy(told->reason.text, msg->why, sizeof(told->reason.text));
		break;
	case MST_MSG_BEHIND:
		told->behind++;
		told->newest = msg->number;
		break;
	case MST_MSG_STATE_WANTED:
		told->state_wanted = msg->number;
		break;
	case MST_MSG_DONE:
		told->goals++;
		told->goal = msg->goal;
		break;
	case MST_MSG_TAKE:
		take_piece(c, &msg->handed);
		return;
	case MST_MSG_AVERAGE:
		take_average(c, &msg->handed);
		return;
	case MST_MSG_BEAT:
		mst_silence_beat(&c->silence, &msg->beat);
		return;
	case MST_MSG_BEGINS:
		take_begins(told, &msg->begins);
		break;
	case MST_MSG_IN_FORCE:
		take_change(told, &msg->in_force);
		break;
	case MST_MSG_WORKERS:
		told->workforce = msg->workforce;
		break;
	case MST_MSG_ERROR:
		if (msg->error.code == MST_AGAIN) {
			told->asked_again = true;
			lose(c, msg->error.reason);
			return;
		}
		fail(c, mst_control_ending(msg->error.code), "%s", msg->error.reason);
		return;
	default:
		fail(c, -EPROTO, "the server at %s sent a message of kind %d, which is no worker's",
		     c->cfg.server, (int)msg->kind);
		return;
	}
	publish(c);
}

/* ---- frames; under the lock ---- */

static void refuse(struct mst_control *c, uint32_t protocol, const struct mst_unknown *unknown)
{
	if (unknown->tag != 0)
		fail(c, -EPROTO, "the server at %s %s", c->cfg.server,
		     mst_unknown_say(unknown).text);
	else if (protocol != 0 && protocol != MST_PROTOCOL)
		fail(c, -EPROTO,
		     "the server at %s speaks protocol %" PRIu32
		     ", this library protocol %u: install "
		     "the same release on both sides",
		     c->cfg.server, protocol, MST_PROTOCOL);
	else
		fail(c, -EPROTO,
		     "what answers at %s is no muster server, or sent a broken message: is that "
		     "the address of a server, and not of another program or a proxy "
		     "(MUSTER_SERVER)?",
		     c->cfg.server);
}

/* Return: bytes used up, 0 if the frame is not whole yet. */
static size_t read_frame(struct mst_control *c, size_t at)
{
	size_t have = c->in_have - at;
	struct mst_unknown unknown = { 0, 0 };
	uint32_t protocol = 0;
	int64_t length = mst_frame_length(c->in + at, have, &protocol);

	if (length < 0 || length > (int64_t)sizeof(c->in) ||
	    (length > 0 && protocol != MST_PROTOCOL)) {
		refuse(c, protocol, &unknown);
		return 0;
	}
	if (length == 0 || (size_t)length > have)
		return 0;
	if (mst_message_decode(c->in + at, (size_t)length, &c->message, &unknown) != 0) {
		refuse(c, protocol, &unknown);
		return 0;
	}
	hear(c, &c->message);
	return (size_t)length;
}

static void read_frames(struct mst_control *c)
{
	size_t at = 0, used;

	while (!c->told.closed && at < c->in_have && (used = read_frame(c, at)) > 0)
		at += used;
	memmove(c->in, c->in + at, c->in_have - at);
	c->in_have -= at;
}

static void receive(struct mst_control *c)
{
	ssize_t got = 1;

	while (!c->told.closed && got > 0) {
		got = c->cfg.ops->receive(c->cfg.stream, c->in + c->in_have,
					  sizeof(c->in) - c->in_have);
		if (got > 0) {
			c->heard = true;
			c->in_have += (size_t)got;
			read_frames(c);
		} else if (got != -EAGAIN || c->mute) {
			hang_up(c, got);
		}
	}
}

static void flush(struct mst_control *c)
{
	ssize_t taken = 1;
	size_t sent = 0;

	while (!c->told.closed && sent < c->out_have && taken > 0) {
		taken = c->cfg.ops->send(c->cfg.stream, c->out + sent, c->out_have - sent);
		if (taken > 0)
			sent += (size_t)taken;
	}
	memmove(c->out, c->out + sent, c->out_have - sent);
	c->out_have -= sent;
	/* A peer that is gone may have said why before. receive() reads these words first, and then
	 * the end of the connection. */
	if (taken < 0 && taken != -EAGAIN) {
		c->mute = true;
		c->out_have = 0;
	}
	if (c->wants_room && sent > 0) {
		c->wants_room = false;
		publish(c);
	}
}

static int queue(struct mst_control *c, const struct mst_message *msg)
{
	bool large = msg->kind == MST_MSG_STATE || msg->kind == MST_MSG_TENSORS ||
		     msg->kind == MST_MSG_GIVE || msg->kind == MST_MSG_SET;
	size_t kept_free = large ? SMALL_BYTES : 0;
	size_t room = sizeof(c->out) - c->out_have;

	if (c->told.closed)
		return -EPIPE;
	int64_t length = mst_message_encode(msg, c->out + c->out_have,
					    room > kept_free ? room - kept_free : 0);
	if (length < 0)
		return -EAGAIN;
	c->out_have += (size_t)length;
	return 0;
}

/* ---- the state that this worker gives; under the lock ---- */

/* So many pieces are queued in a step, so that nobody waits long for the lock. */
#define PIECES_PER_STEP 4

/* Queues one piece of the state, if there is room. */
static bool queue_piece(struct mst_control *c)
{
	uint64_t left = c->gives.bytes - c->given;

	c->message.kind = MST_MSG_GIVE;
	c->message.handed = (struct mst_handed){
		.number = c->gives.number,
		.version = c->gives.version,
		.too_large = c->gives.too_large,
		.piece = { .offset = c->given,
			   .total = c->gives.bytes,
			   .length = (uint32_t)(left < MST_STATE_CHUNK ? left : MST_STATE_CHUNK),
			   .data = c->gives.data + c->given },
	};
	if (queue(c, &c->message) != 0)
		return false;
	c->given += c->message.handed.piece.length;
	return true;
}

static void pump(struct mst_control *c)
{
	for (int i = 0; i < PIECES_PER_STEP && c->gives.data != NULL && queue_piece(c); i++) {
		if (c->given == c->gives.bytes) {
			free(c->gives.data);
			c->gives = (struct mst_gift){ 0 };
		}
		flush(c);
	}
}

/* ---- what others call ---- */

int mst_control_give(struct mst_control *c, const struct mst_gift *gift)
{
	pthread_mutex_lock(&c->lock);
	bool busy = c->gives.data != NULL;
	if (!busy) {
		c->gives = *gift;
		c->given = 0;
	}
	pthread_mutex_unlock(&c->lock);
	return busy ? -EALREADY : 0;
}

bool mst_control_claim(struct mst_control *c, uint64_t number, struct mst_gift *out)
{
	pthread_mutex_lock(&c->lock);
	bool whole = c->takes.data != NULL && c->taken == c->takes.bytes;
	bool fits = (number == MST_AGREED_GIFT) == (c->takes.number == MST_AGREED_GIFT);
	if (whole) {
		if (fits)
			*out = c->takes;
		else
			free(c->takes.data);
		c->takes = (struct mst_gift){ 0 };
		c->taken = 0;
	}
	pthread_mutex_unlock(&c->lock);
	return whole && fits;
}

void mst_control_expect(struct mst_control *c, const struct mst_gift *into)
{
	pthread_mutex_lock(&c->lock);
	free(c->expects.data);
	c->expects = *into;
	c->expects_have = 0;
	pthread_mutex_unlock(&c->lock);
}

bool mst_control_expected(struct mst_control *c, struct mst_gift *out)
{
	pthread_mutex_lock(&c->lock);
	bool whole = c->expects.data != NULL && c->expects_have == c->expects.bytes;
	if (whole) {
		*out = c->expects;
		c->expects = (struct mst_gift){ 0 };
		c->expects_have = 0;
	}
	pthread_mutex_unlock(&c->lock);
	return whole;
}

int mst_control_send(struct mst_control *c, const struct mst_message *msg)
{
	pthread_mutex_lock(&c->lock);
	int rc = queue(c, msg);
	if (rc == 0)
		flush(c);
	else if (rc == -EAGAIN)
		c->wants_room = true;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/* A heartbeat that finds no room may be dropped: the queued messages show as well that this process
 * is alive. */
static void beat(struct mst_control *c, uint64_t now_ns)
{
	if (now_ns < c->beat_due_ns)
		return;
	c->beat_due_ns = now_ns + c->beat_ns;
	c->message.kind = MST_MSG_HEARTBEAT;
	(void)queue(c, &c->message);
}

/* Reads to the end. */
static void listen_to_servers(struct mst_control *c, uint64_t now_ns)
{
	mst_silence_look(&c->silence, now_ns);
	receive(c);
	mst_silence_read(&c->silence, now_ns);
}

uint64_t mst_control_step(struct mst_control *c, uint64_t now_ns)
{
	pthread_mutex_lock(&c->lock);
	listen_to_servers(c, now_ns);
	beat(c, now_ns);
	flush(c);
	pump(c);
	uint64_t due_ns = c->told.closed ? MST_NEVER : c->beat_due_ns;
	pthread_mutex_unlock(&c->lock);
	return due_ns;
}

void mst_control_sleep(struct mst_control *c, int notify_fd, uint64_t until_ns)
{
	uint64_t now_ns = mst_now_ns();
	uint64_t left_ms = now_ns < until_ns ? (until_ns - now_ns + MST_MS - 1) / MST_MS : 0;
	struct pollfd fds[] = {
		{ .fd = c->cfg.ops->stream_fd(c->cfg.stream), .events = POLLIN },
		{ .fd = notify_fd, .events = POLLIN },
	};

	if (mst_control_pending(c))
		fds[0].events |= POLLOUT;
	(void)poll(fds, 2, left_ms > 1000 ? 1000 : (int)left_ms);
}

void mst_control_beat(struct mst_control *c, const struct mst_welcome *welcome,
		      uint64_t interval_ns, uint64_t now_ns)
{
	pthread_mutex_lock(&c->lock);
	c->beat_ns = interval_ns;
	c->beat_due_ns = now_ns + interval_ns;
	mst_silence_begin(&c->silence, welcome->server_count, welcome->lease_ns, now_ns);
	pthread_mutex_unlock(&c->lock);
}

bool mst_control_silent(struct mst_control *c, uint32_t moved, uint64_t limit_ns,
			struct mst_silent *out)
{
	pthread_mutex_lock(&c->lock);
	listen_to_servers(c, mst_now_ns());
	mst_silence_moved(&c->silence, moved);
	bool silent = mst_silence_find(&c->silence, limit_ns, out);
	pthread_mutex_unlock(&c->lock);
	return silent;
}

void mst_control_give_up(struct mst_control *c, const char *reason)
{
	pthread_mutex_lock(&c->lock);
	lose(c, reason);
	pthread_mutex_unlock(&c->lock);
}

bool mst_control_news(const struct mst_control *c)
{
	/* Acquire: pairs with the release in publish(). */
	return atomic_load_explicit(&c->news, memory_order_acquire);
}

void mst_control_look(struct mst_control *c, struct mst_told *out)
{
	/* The flag is cleared before the copy, so that whatever is told later raises it again. */
	atomic_store_explicit(&c->news, false, memory_order_relaxed);
	pthread_mutex_lock(&c->lock);
	*out = c->told;
	pthread_mutex_unlock(&c->lock);
}

void mst_control_peek(struct mst_control *c, struct mst_told *out)
{
	pthread_mutex_lock(&c->lock);
	*out = c->told;
	pthread_mutex_unlock(&c->lock);
}

bool mst_control_lost(struct mst_control *c)
{
	pthread_mutex_lock(&c->lock);
	bool lost = c->told.again;
	pthread_mutex_unlock(&c->lock);
	return lost;
}

bool mst_control_over(const struct mst_control *c)
{
	/* Relaxed: a hint that guards nothing. */
	return atomic_load_explicit(&c->over, memory_order_relaxed);
}

bool mst_control_pending(struct mst_control *c)
{
	pthread_mutex_lock(&c->lock);
	bool pending = (c->out_have > 0 || c->gives.data != NULL) && !c->told.closed;
	pthread_mutex_unlock(&c->lock);
	return pending;
}
