/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake_lead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"

#define SCRIPT_NS (10 * MST_SECOND)
#define NAP_NS (MST_MS / 2)

static const struct mst_stream_ops *tcp = &mst_tcp;
static const struct mst_transport *shm = &mst_shm;

static void *run(void *arg)
{
	struct fake_lead *f = arg;
	uint64_t until_ns = mst_now_ns() + SCRIPT_NS;
	char peer[64];

	while (tcp->accept(f->listener, &f->stream, peer, sizeof(peer)) != 0) {
		if (atomic_load(&f->released) || mst_now_ns() > until_ns)
			return NULL;
		mst_sleep_ns(NAP_NS);
	}
	(void)f->script(f);
	tcp->close(f->stream);
	f->stream = NULL;
	return NULL;
}

static void make_welcome(struct fake_lead *f)
{
	f->welcome = (struct mst_welcome){
		.job = "default",
		.policy = "bsp",
		.rank = 1,
		.incarnation = 1,
		.workers = FAKE_WORKERS,
		.slots = FAKE_SLOTS,
		.elems = FAKE_ELEMS,
		.buffers = FAKE_BUFFERS,
		.lease_ns = MST_SECOND,
		.patience_ns = MST_SECOND,
		.ack_timeout = 16,
		.retries = 3,
		.pkey = -1,
	};
	f->welcome.server_count = 1;
	f->welcome.server[0].count = FAKE_ELEMS;
	memcpy(f->welcome.server[0].address, f->door->address, MST_DOOR_LEN);
	memset(f->welcome.server[0].token, 7, MST_SECRET_LEN);
}

void fake_open(struct fake_lead *f, bool (*script)(struct fake_lead *f))
{
	struct mst_net_cfg cfg = { .published_bytes = FAKE_BUFFERS * FAKE_STRIDE, .links_max = 1 };
	struct mst_lane_figures figures = { FAKE_ELEMS, 4, 4, FAKE_SLOTS, FAKE_WORKERS, false };

	memset(f, 0, sizeof(*f));
	f->script = script;
	CU_ASSERT_EQUAL_FATAL(
		tcp->listen("127.0.0.1:0", &f->listener, f->address, sizeof(f->address)), 0);
	CU_ASSERT_EQUAL_FATAL(shm->net_open(&cfg, &f->net), 0);
	CU_ASSERT_EQUAL_FATAL(shm->door->open(f->net, &f->door), 0);
	mst_lane_layout(&figures, &f->layout);
	make_welcome(f);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&f->thread, NULL, run, f), 0);
}

void fake_release(struct fake_lead *f)
{
	atomic_store(&f->released, true);
}

void fake_close(struct fake_lead *f)
{
	fake_release(f);
	pthread_join(f->thread, NULL);
	if (f->link != NULL) {
		shm->detach(f->link);
		shm->link_free(f->link);
	}
	shm->door->close(f->door);
	shm->net_close(f->net);
	tcp->unlisten(f->listener);
}

/* ---- the control connection ---- */

static bool next_message(struct fake_lead *f)
{
	uint64_t until_ns = mst_now_ns() + SCRIPT_NS;

	while (mst_now_ns() < until_ns && !atomic_load(&f->released)) {
		int64_t length = mst_frame_length(f->in, f->in_have, NULL);
		if (length < 0)
			return false;
		if (length > 0 && (size_t)length <= f->in_have) {
			int rc = mst_message_decode(f->in, (size_t)length, &f->message);
			f->in_have -= (size_t)length;
			memmove(f->in, f->in + length, f->in_have);
			return rc == 0;
		}
		ssize_t got = tcp->receive(f->stream, f->in + f->in_have,
					   sizeof(f->in) - f->in_have);
		if (got == 0)
			return false;
		if (got > 0)
			f->in_have += (size_t)got;
		else
			mst_sleep_ns(NAP_NS);
	}
	return false;
}

bool fake_hear(struct fake_lead *f, enum mst_message_kind kind)
{
	do {
		if (!next_message(f))
			return false;
	} while (f->message.kind == MST_MSG_HEARTBEAT && kind != MST_MSG_HEARTBEAT);
	return f->message.kind == kind;
}

bool fake_say_bytes(struct fake_lead *f, const void *bytes, size_t len)
{
	return tcp->send(f->stream, bytes, len) == (ssize_t)len;
}

bool fake_say(struct fake_lead *f, const struct mst_message *msg)
{
	uint8_t frame[4096];
	int64_t length = mst_message_encode(msg, frame, sizeof(frame));

	return length > 0 && fake_say_bytes(f, frame, (size_t)length);
}

bool fake_refuse(struct fake_lead *f, int code, const char *sentence)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));

	msg->kind = MST_MSG_ERROR;
	msg->error.code = code;
	snprintf(msg->error.sentence, sizeof(msg->error.sentence), "%s", sentence);
	bool said = fake_say(f, msg);
	free(msg);
	return said;
}

bool fake_stay(struct fake_lead *f)
{
	while (!atomic_load(&f->released))
		mst_sleep_ns(NAP_NS);
	return true;
}

bool fake_greet(struct fake_lead *f)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));

	msg->kind = MST_MSG_WELCOME;
	msg->welcome = f->welcome;
	bool said = fake_hear(f, MST_MSG_HELLO) && fake_say(f, msg);
	free(msg);
	return said;
}

/* ---- the link ---- */

bool fake_link(struct fake_lead *f)
{
	struct mst_knock knock;

	if (!fake_greet(f))
		return false;
	while (shm->door->knock(f->door, &knock) != 0) {
		if (atomic_load(&f->released))
			return false;
		mst_sleep_ns(NAP_NS);
	}
	return shm->door->answer(f->door, &knock, &f->link) == 0 &&
	       shm->attach(f->net, f->link) == 0;
}

bool fake_put(struct fake_lead *f, size_t offset, const void *src, size_t bytes, uint32_t imm)
{
	return shm->put(f->link, &(struct mst_put){ .offset = offset,
						    .src = src,
						    .bytes = bytes,
						    .notify = imm != 0,
						    .imm = imm }) >= 0;
}

bool fake_answer(struct fake_lead *f, const struct mst_lane_answer *a)
{
	struct mst_lane_record record = { .version = a->version };

	return fake_put(f, f->layout.down_record, &record, sizeof(record), 0) &&
	       fake_put(f, f->layout.down_answer, a, sizeof(*a), mst_imm(MST_IMM_ANSWER, 0, 0));
}

bool fake_begin(struct fake_lead *f)
{
	struct mst_lane_answer first = { .number = 1, .where = MST_WHERE_IN_PLACE };

	return fake_link(f) && fake_hear(f, MST_MSG_START) && fake_answer(f, &first);
}

bool fake_arrival(struct fake_lead *f, uint32_t *imm)
{
	struct mst_net_event ev;

	while (shm->poll(f->net, &ev, 1) == 0) {
		if (atomic_load(&f->released))
			return false;
		mst_sleep_ns(NAP_NS);
	}
	*imm = ev.imm;
	return ev.kind == MST_ARRIVED;
}
