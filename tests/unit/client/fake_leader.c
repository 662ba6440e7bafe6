/* SPDX-License-Identifier: MIT */
#include "tests/unit/client/fake_leader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"

#define SCRIPT_NS (60 * MST_SECOND)
#define NAP_NS (MST_MS / 2)
/* What is left of the bytes received is moved once for each message: it must stay little. */
#define RECEIVED_MAX ((size_t)16 << 10)

static const struct mst_stream_ops *plain = &mst_plain;
const struct mst_transport *fake_transport = &mst_shm;
bool fake_marked;

bool fake_next(struct fake_leader *f)
{
	uint64_t until_ns = mst_now_ns() + SCRIPT_NS;
	char peer[64];

	if (f->stream != NULL)
		plain->close(f->stream);
	f->stream = NULL;
	f->in_have = 0;
	while (plain->accept(f->listen_fd, &f->stream, peer, sizeof(peer)) != 0) {
		if (atomic_load(&f->released) || mst_now_ns() > until_ns)
			return false;
		mst_sleep_ns(NAP_NS);
	}
	return true;
}

static void *run(void *arg)
{
	struct fake_leader *f = arg;

	if (!fake_next(f))
		return NULL;
	(void)f->script(f);
	if (f->stream != NULL)
		plain->close(f->stream);
	f->stream = NULL;
	return NULL;
}

static void make_welcome(struct fake_leader *f)
{
	struct mst_welcome *w = &f->welcome;

	*w = (struct mst_welcome){
		.job = "default",
		.policy = "bsp",
		.rank = 1,
		.incarnation = 1,
		.workers = FAKE_WORKERS,
		.slots = FAKE_SLOTS,
		.elems = FAKE_ELEMS + (f->servers - 1) * FAKE_PART_ELEMS,
		.buffers = FAKE_BUFFERS,
		.lease_ns = 60 * MST_SECOND,
		.server_lease_ns = 600 * MST_SECOND, /* it does not beat */
		.patience_ns = 60 * MST_SECOND,
		.may_finish = 1,
		.server_count = f->servers,
		.path = { .link_timeout_ns = 2 * MST_SECOND, .pkey = -1 },
	};
	for (uint32_t k = 0; k < f->servers; k++) {
		bool last = k == f->servers - 1;
		w->server[k].first = (uint64_t)k * FAKE_PART_ELEMS;
		w->server[k].count = last ? FAKE_ELEMS : FAKE_PART_ELEMS;
		memcpy(w->server[k].address, f->server[k].listener->address, MST_LISTENER_LEN);
		memset(w->server[k].token, 7 + (int)k, MST_SECRET_LEN);
	}
}

static void open_server(struct fake_leader *f, uint32_t k)
{
	bool last = k == f->servers - 1;
	struct fake_server *s = &f->server[k];
	struct mst_lane_figures figures = { .elems = last ? FAKE_ELEMS : FAKE_PART_ELEMS,
					    .type_bytes = 4,
					    .result_type_bytes = 4,
					    .slots = FAKE_SLOTS,
					    .workers = FAKE_WORKERS,
					    .parted = f->servers > 1 };

	mst_lane_layout(&figures, &s->layout);
	size_t stride = (s->layout.result_bytes + FAKE_STRIDE - 1) / FAKE_STRIDE * FAKE_STRIDE;
	size_t marks = fake_marked ? mst_lane_marks_bytes(FAKE_BUFFERS) : 0;
	struct mst_net_cfg cfg = { .published_bytes = FAKE_BUFFERS * stride + marks,
				   .links_max = 1 };
	CU_ASSERT_EQUAL_FATAL(fake_transport->net_open(&cfg, &s->net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(fake_transport->listener->open(s->net, &s->listener, UT_UNREAD), 0);
}

void fake_open_servers(struct fake_leader *f, bool (*script)(struct fake_leader *f),
		       uint32_t servers)
{
	memset(f, 0, sizeof(*f));
	f->script = script;
	f->servers = servers;
	CU_ASSERT_EQUAL_FATAL(
		plain->listen("127.0.0.1:0", NULL, &f->listen_fd, f->address, sizeof(f->address)),
		0);
	for (uint32_t k = 0; k < servers; k++)
		open_server(f, k);
	f->net = f->server[0].net;
	f->listener = f->server[0].listener;
	f->layout = f->server[0].layout;
	make_welcome(f);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&f->thread, NULL, run, f), 0);
}

void fake_open(struct fake_leader *f, bool (*script)(struct fake_leader *f))
{
	fake_open_servers(f, script, 1);
}

void fake_release(struct fake_leader *f)
{
	atomic_store(&f->released, true);
}

void fake_close(struct fake_leader *f)
{
	fake_release(f);
	pthread_join(f->thread, NULL);
	fake_unlink(f);
	for (uint32_t k = 0; k < f->servers; k++) {
		fake_transport->listener->close(f->server[k].listener);
		fake_transport->net_close(f->server[k].net);
	}
	plain->unlisten(f->listen_fd);
}

/* ---- the control connection ---- */

static bool next_message(struct fake_leader *f)
{
	uint64_t until_ns = mst_now_ns() + SCRIPT_NS;

	while (mst_now_ns() < until_ns && !atomic_load(&f->released)) {
		int64_t length = mst_frame_length(f->in, f->in_have, NULL);
		if (length < 0)
			return false;
		if (length > 0 && (size_t)length <= f->in_have) {
			int rc = mst_message_decode(f->in, (size_t)length, &f->message, NULL);
			f->in_have -= (size_t)length;
			memmove(f->in, f->in + length, f->in_have);
			return rc == 0;
		}
		size_t room = sizeof(f->in) - f->in_have;
		ssize_t got = plain->receive(f->stream, f->in + f->in_have,
					     room < RECEIVED_MAX ? room : RECEIVED_MAX);
		if (got == 0)
			return false;
		if (got > 0)
			f->in_have += (size_t)got;
		else
			mst_sleep_ns(NAP_NS);
	}
	return false;
}

bool fake_hear(struct fake_leader *f, enum mst_message_kind kind)
{
	do {
		if (!next_message(f))
			return false;
	} while (f->message.kind == MST_MSG_HEARTBEAT && kind != MST_MSG_HEARTBEAT);
	return f->message.kind == kind;
}

bool fake_say_bytes(struct fake_leader *f, const void *bytes, size_t len)
{
	return plain->send(f->stream, bytes, len) == (ssize_t)len;
}

bool fake_say(struct fake_leader *f, const struct mst_message *msg)
{
	uint8_t frame[4096];
	int64_t length = mst_message_encode(msg, frame, sizeof(frame));

	return length > 0 && fake_say_bytes(f, frame, (size_t)length);
}

bool fake_refuse(struct fake_leader *f, int code, const char *reason)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));

	msg->kind = MST_MSG_ERROR;
	msg->error.code = code;
	snprintf(msg->error.reason, sizeof(msg->error.reason), "%s", reason);
	bool said = fake_say(f, msg);
	free(msg);
	return said;
}

static void look(struct fake_server *s)
{
	struct mst_net_event ev;

	while (s->link != NULL && fake_transport->poll(s->net, &ev, 1) > 0) {
		s->lost |= ev.kind == MST_LOST;
		if (ev.kind == MST_ARRIVED && s->arrived < FAKE_ARRIVALS_MAX)
			s->imm[s->arrived++] = ev.imm;
	}
}

void fake_turn(struct fake_leader *f)
{
	for (uint32_t k = 0; k < f->servers; k++)
		look(&f->server[k]);
	mst_sleep_ns(NAP_NS);
}

bool fake_stay(struct fake_leader *f)
{
	while (!atomic_load(&f->released))
		fake_turn(f);
	return true;
}

bool fake_greet(struct fake_leader *f)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));

	msg->kind = MST_MSG_WELCOME;
	msg->welcome = f->welcome;
	bool said = fake_hear(f, MST_MSG_HELLO) && fake_say(f, msg);
	free(msg);
	return said;
}

/* ---- the link ---- */

/* 1: still nobody at the listener. */
static int let_in(struct fake_leader *f, uint32_t k)
{
	struct fake_server *s = &f->server[k];
	struct mst_link_request request;

	if (s->link != NULL)
		return 0;
	if (fake_transport->listener->next_request(s->listener, &request, UT_UNREAD) != 0)
		return 1;
	if (request.token[0] != 7 + k ||
	    fake_transport->listener->answer(s->listener, &request, &s->link, UT_UNREAD) != 0)
		return -1;
	return fake_transport->attach(s->net, s->link, UT_UNREAD);
}

/* A worker dials in the order it likes. */
bool fake_let_in(struct fake_leader *f)
{
	uint32_t linked = 0;

	while (linked < f->servers) {
		linked = 0;
		for (uint32_t k = 0; k < f->servers; k++) {
			int rc = let_in(f, k);
			if (rc < 0 || atomic_load(&f->released))
				return false;
			linked += rc == 0;
		}
		if (linked < f->servers)
			mst_sleep_ns(NAP_NS);
	}
	f->link = f->server[0].link;
	return true;
}

bool fake_link(struct fake_leader *f)
{
	return fake_greet(f) && fake_let_in(f);
}

void fake_unlink(struct fake_leader *f)
{
	for (uint32_t k = 0; k < f->servers; k++) {
		struct fake_server *s = &f->server[k];
		if (s->link != NULL) {
			fake_transport->detach(s->link);
			fake_transport->link_free(s->link);
		}
		s->link = NULL;
		s->arrived = s->taken = 0;
		s->lost = false;
	}
	f->link = NULL;
}

bool fake_put_of(struct fake_leader *f, uint32_t k, const struct mst_put *put)
{
	return fake_transport->put(f->server[k].link, put) >= 0;
}

bool fake_put(struct fake_leader *f, size_t offset, const void *src, size_t bytes, uint32_t imm)
{
	return fake_put_of(f, 0,
			   &(struct mst_put){ .offset = offset,
					      .src = src,
					      .bytes = bytes,
					      .notify = imm != 0,
					      .imm = imm });
}

/* The leader's has a record. */
bool fake_answer_of(struct fake_leader *f, uint32_t k, const struct mst_lane_answer *a)
{
	struct mst_lane_record record = { .version = a->version, .size = MST_RECORD_SIZE };
	struct mst_put with = { .offset = f->server[k].layout.down_record,
				.src = &record,
				.bytes = sizeof(record) };
	struct mst_put answer = { .offset = f->server[k].layout.down_answer,
				  .src = a,
				  .bytes = sizeof(*a),
				  .notify = true,
				  .imm = mst_imm(MST_IMM_ANSWER, 0, 0) };

	return (k > 0 || fake_put_of(f, k, &with)) && fake_put_of(f, k, &answer);
}

bool fake_answer(struct fake_leader *f, const struct mst_lane_answer *a)
{
	return fake_answer_of(f, 0, a);
}

bool fake_begin(struct fake_leader *f)
{
	struct mst_lane_answer first = { .number = 1, .where = MST_WHERE_IN_PLACE };
	bool done = fake_link(f) && fake_hear(f, MST_MSG_START);

	if (!fake_transport->maps)
		first.where = MST_WHERE_COPIED;
	for (uint32_t k = f->servers; k-- > 0;)
		done = done && fake_answer_of(f, k, &first);
	return done;
}

bool fake_arrival_of(struct fake_leader *f, uint32_t k, uint32_t *imm)
{
	struct fake_server *s = &f->server[k];

	look(s);
	while (s->taken == s->arrived) {
		if (s->lost || atomic_load(&f->released))
			return false;
		fake_turn(f);
	}
	*imm = s->imm[s->taken++];
	return true;
}

bool fake_arrival(struct fake_leader *f, uint32_t *imm)
{
	return fake_arrival_of(f, 0, imm);
}
