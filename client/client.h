/* SPDX-License-Identifier: MIT */
/*
 * The shell of libmuster: what the files of client/ share. It moves bytes and waits; what they
 * mean, client/core decides.
 *
 * A handle belongs to one thread at a time; only muster_check() may run beside it, and the
 * heartbeat's thread touches the control connection alone. After a fork() only the parent may use
 * the handle.
 */
#ifndef MST_CLIENT_CLIENT_H
#define MST_CLIENT_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/control.h"
#include "client/core/worker.h"
#include "client/heartbeat.h"
#include "client/settings.h"
#include "common/transport/stream.h"
#include "common/transport/transport.h"
#include "common/wire/lane.h"
#include "muster/muster.h"

/* A server, and its part of the vector. */
struct mst_client_part {
	struct mst_link *link;
	struct mst_lane_layout layout;
	uint64_t first, count; /* elements */
	bool lost;             /* nothing more comes from the link */
};

/* Room where the parts of several servers are mapped side by side. */
struct mst_client_room {
	char *at;
	size_t bytes; /* 0: none */
};

struct muster {
	struct mst_settings settings;
	const struct mst_stream_ops *stream;
	const struct mst_transport *transport; /* of the servers' doors; NULL before the welcome */
	struct mst_net *net;
	struct mst_client_part part[MST_SERVERS_MAX]; /* 0 leads */
	uint32_t part_count;                          /* 0 before the welcome */
	struct mst_control *control;
	struct mst_heartbeat *heartbeat;
	struct mst_told told; /* as last looked at */
	struct mst_welcome welcome;

	/* Several servers: where a whole gradient is composed, and a whole result lies. */
	struct mst_client_room gradient[MST_SLOTS_MAX], copied, published;

	struct mst_worker worker;
	uint32_t gathered; /* slots that are in huge pages if they can be, bit by bit */

	struct muster_job job;
	uint64_t wait_ns;

	uint64_t state_sent; /* bytes of it */
	bool asked_end;      /* FINISH is sent */
	/* A server has ended the session on its side; NULL: none has. */
	const struct mst_client_part *put_out;
	const struct mst_client_part *odd; /* the first that broke the protocol; NULL: none */
	bool learned_why;                  /* the lead has had its moment for last words */

	/* For muster_check(), which any thread may call. */
	_Atomic uint64_t computes_on; /* version */
	_Atomic bool over;

	char error[MST_SENTENCE_LEN + MST_WHY_LEN]; /* the lead's words, and the link's */
};

/* Keeps the sentence for muster_error(). Return: @error, so that a caller can pass it up. */
int mst_client_fail(struct muster *m, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- join.c ---- */

/* From the settings to a linked session whose heart beats. On failure what there is stays, to be
 * released by mst_client_free(). */
int mst_client_join(struct muster *m);
/* Accepts a handle at any stage of joining. */
void mst_client_free(struct muster *m);

/* ---- links.c ---- */

/* The net of the doors' transport, in whose thread the caller is. */
int mst_client_open_net(struct muster *m);
/* From the welcome to a link with each server. */
int mst_client_link(struct muster *m, uint64_t deadline_ns);
/* Frees all that there are. */
void mst_client_unlink(struct muster *m);

/* ---- whole.c: gradients and results that lie in one piece, whoever has parts of them ---- */

/* Several servers: maps the parts of all links side by side; 0, or an error with its sentence. */
int mst_client_join_parts(struct muster *m);
/* Unmaps them, once the links are freed. */
void mst_client_free_rooms(struct muster *m);
/* Where a slot's part of it lies in the link's outbox. */
static inline size_t mst_client_gradient_at(const struct muster *m, const struct mst_client_part *p,
					    uint32_t slot)
{
	return mst_lane_gradient(&p->layout, slot, m->welcome.rank);
}
/* The gradient of a slot. */
char *mst_client_gradient(const struct muster *m, int slot);
/* The version that is held; NULL: it has no data. */
const void *mst_client_result(const struct muster *m);

static inline size_t mst_client_gradient_bytes(const struct muster *m)
{
	return m->welcome.elems * mst_type_size(m->settings.type);
}

static inline size_t mst_client_result_bytes(const struct muster *m)
{
	return m->welcome.elems * mst_type_size(m->settings.result_type);
}

/* Bytes from one version to the next where a server publishes its part of them. */
static inline size_t mst_client_stride(const struct mst_client_part *p)
{
	return (p->layout.result_bytes + 4095) / 4096 * 4096;
}

/* ---- session.c ---- */

/* Takes in all that has arrived. 0, or the error that ended the session. Never blocks. */
int mst_client_update(struct muster *m);
/* A part whose link is lost; NULL: there is none. */
const struct mst_client_part *mst_client_lost(const struct muster *m);
#define MST_CLIENT_NAME_LEN 48u
/* Which server this is, for sentences: "the server", where there is one. */
const char *mst_client_name(const struct muster *m, const struct mst_client_part *p, char *out);
/* The error that ended the session, with its sentence. */
int mst_client_ended(struct muster *m);
/* What became known must become known to muster_check() too. */
void mst_client_publish(struct muster *m);

/* ---- send.c: 0, or the error that ended the session. May wait, while as much is on its way as the
 * link can take; not longer than the others would wait for this worker ---- */

/* Queues a control message. As mst_control_send(). */
int mst_client_tell(struct muster *m, const struct mst_message *msg);
/* Where the gradient of a slot is composed; before it is composed there for the first time it takes
 * as long as such memory takes to come. */
char *mst_client_compose(struct muster *m, int slot);
/* Puts elements of the contribution being filled, or all that are still to be handed over. */
int mst_client_send_range(struct muster *m, int slot, const struct mst_range *range);
int mst_client_send_rest(struct muster *m);
int mst_client_send_header(struct muster *m, const struct mst_lane_header *header);
int mst_client_send_abandon(struct muster *m, int slot);
int mst_client_send_ask(struct muster *m, const struct mst_lane_ask *ask);

/* ---- wait.c ---- */

/* Sleeps until something may have changed. 0; -ETIMEDOUT and -EINTR without a sentence. */
int mst_client_sleep(struct muster *m, uint64_t deadline_ns);
/* The session has ended: gives the lead a moment to say why. Return: as mst_client_ended(). */
int mst_client_learn_why(struct muster *m);
/* Writes the next outcome to the caller. Return: as muster_wait(). */
int mst_client_give(struct muster *m, struct muster_outcome *out);
/* Why nothing can come any more that a wait still misses; 0: it can; 1: nothing is missed now. */
int mst_client_cut_off(struct muster *m);

/* Never wraps: MST_NEVER is the end of time. */
uint64_t mst_client_deadline(uint64_t timeout_ns);
/* 0: it has come. */
uint64_t mst_client_left_ns(uint64_t deadline_ns);

#endif
