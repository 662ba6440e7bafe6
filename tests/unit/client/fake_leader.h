/* SPDX-License-Identifier: MIT */
/*
 * A leader that follows a script instead of the protocol, over real sockets and real shared memory:
 * for what the real one never does. The script runs on a thread of its own, the test on its own
 * calls the library; a script that cannot go on returns false and hangs up.
 */
#ifndef MST_TESTS_UNIT_CLIENT_FAKE_LEAD_H
#define MST_TESTS_UNIT_CLIENT_FAKE_LEAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/transport/stream.h"
#include "common/transport/transport.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"

#define FAKE_ELEMS 1000u
#define FAKE_WORKERS 2u
#define FAKE_SLOTS 1u
#define FAKE_BUFFERS 4u
#define FAKE_STRIDE 4096u

/* Further servers, which follow the same script. */
#define FAKE_SERVERS_MAX 3u
#define FAKE_PART_ELEMS 4096u /* of all but the last, which has FAKE_ELEMS more */

#define FAKE_ARRIVALS_MAX 64u

struct fake_server {
	struct mst_net *net;
	struct mst_link_listener *listener;
	struct mst_link *link;
	struct mst_lane_layout layout;
	uint32_t imm[FAKE_ARRIVALS_MAX]; /* of what has arrived, in turn */
	unsigned arrived, taken;
	bool lost;
};

/* The transport of the listeners; mst_shm if a test does not say otherwise. */
extern const struct mst_transport *fake_transport;
/* The next publishes marks, too; false at first. */
extern bool fake_marked;

struct fake_leader {
	bool (*script)(struct fake_leader *f);
	char address[64]; /* of the control port */

	struct mst_listener *listen_fd;
	struct mst_stream *stream;
	struct mst_net *net;
	struct mst_link_listener *listener;
	struct mst_link *link;
	struct mst_lane_layout layout;
	uint32_t servers;
	struct fake_server server[FAKE_SERVERS_MAX]; /* the first is the leader's own, as above */
	struct mst_welcome welcome;                  /* a good one; a script may spoil it */
	struct mst_message message;                  /* last received */
	uint8_t in[MST_FRAME_HEADER + MST_FRAME_BODY_MAX];
	size_t in_have;

	_Atomic bool released; /* the test has seen enough: hang up */
	pthread_t thread;
};

/* Listens, and runs the script once somebody has connected. */
void fake_open(struct fake_leader *f, bool (*script)(struct fake_leader *f));
/* The same of a job with several servers. */
void fake_open_servers(struct fake_leader *f, bool (*script)(struct fake_leader *f),
		       uint32_t servers);
void fake_close(struct fake_leader *f);

/* ---- for scripts; false: it took too long, or the worker has gone ---- */

/* Hangs up, and waits for the next connection. */
bool fake_next(struct fake_leader *f);
bool fake_hear(struct fake_leader *f, enum mst_message_kind kind); /* heartbeats are passed over */
bool fake_say(struct fake_leader *f, const struct mst_message *msg);
bool fake_say_bytes(struct fake_leader *f, const void *bytes, size_t len);
bool fake_refuse(struct fake_leader *f, int code, const char *reason);
/* Until the test calls fake_release(). */
bool fake_stay(struct fake_leader *f);

bool fake_greet(struct fake_leader *f);  /* hello and welcome */
bool fake_link(struct fake_leader *f);   /* and let in */
bool fake_let_in(struct fake_leader *f); /* that alone, of a worker that has been welcomed */
bool fake_begin(struct fake_leader *f);  /* and START, answered with version 0 */
/* The links of all servers end, so that a worker may be let in again. */
void fake_unlink(struct fake_leader *f);

/* The same of server @k. */
bool fake_put_of(struct fake_leader *f, uint32_t k, const struct mst_put *put);
bool fake_answer_of(struct fake_leader *f, uint32_t k, const struct mst_lane_answer *a);
bool fake_arrival_of(struct fake_leader *f, uint32_t k, uint32_t *imm);
/* Looks at all links, so that what was put goes its way, and naps. */
void fake_turn(struct fake_leader *f);

bool fake_put(struct fake_leader *f, size_t offset, const void *src, size_t bytes, uint32_t imm);
bool fake_answer(struct fake_leader *f, const struct mst_lane_answer *a);
/* The immediate of the next arrival. */
bool fake_arrival(struct fake_leader *f, uint32_t *imm);

/* ---- for tests ---- */

void fake_release(struct fake_leader *f);

#endif
