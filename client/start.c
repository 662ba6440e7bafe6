/* SPDX-License-Identifier: MIT */
/* muster_start(): say that this worker is ready, send the start state if the lead asks for it, and
 * wait for the first version. May be called again after -ETIMEDOUT or -EINTR. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/client.h"
#include "common/base/clock.h"

static void say_start(struct muster *m, struct mst_message *msg, bool offers)
{
	msg->kind = MST_MSG_START;
	msg->offers = offers;
	if (mst_client_tell(m, msg) != 0)
		return; /* the connection is over, and the next look tells why */
	mst_worker_start(&m->worker);
}

/* As many pieces as go now. */
static int send_state(struct muster *m, struct mst_message *msg, const char *own)
{
	uint64_t total = mst_client_result_bytes(m);

	if (own == NULL && m->state_sent < total)
		return mst_client_fail(m, -EINVAL,
				       "rank %" PRIu32
				       " has offered a start state and is to send it; "
				       "give muster_start() the same state again",
				       m->job.rank);
	msg->kind = MST_MSG_STATE;
	while (m->state_sent < total) {
		uint64_t left = total - m->state_sent;
		msg->state = (struct mst_state_piece){
			.offset = m->state_sent,
			.total = total,
			.length = left < MST_STATE_CHUNK ? (uint32_t)left : MST_STATE_CHUNK,
			.data = own + m->state_sent,
		};
		if (mst_client_tell(m, msg) != 0)
			break; /* no room: this thread is woken when there is */
		m->state_sent += msg->state.length;
	}
	return 0;
}

static int time_is_over(struct muster *m)
{
	return mst_client_fail(
		m, -ETIMEDOUT,
		"rank %" PRIu32 ": not all %" PRIu32 " workers have started within "
		"%.1f s (muster status tells who is missing); call muster_start() again",
		m->job.rank, m->job.workers, (double)m->settings.join_ns / (double)MST_SECOND);
}

static int await_start(struct muster *m, struct mst_message *msg, const void *own)
{
	uint64_t deadline_ns = mst_client_deadline(m->settings.join_ns);
	int slept = 0;

	for (;;) {
		if (mst_client_update(m) != 0)
			return mst_client_learn_why(m);
		if (mst_worker_misses(&m->worker) == 0)
			return 0;
		int rc = mst_client_cut_off(m);
		if (rc > 0)
			continue;
		if (rc == 0 && m->told.send_state)
			rc = send_state(m, msg, own);
		if (rc != 0)
			return rc;
		if (slept == -ETIMEDOUT)
			return time_is_over(m);
		if (slept == -EINTR)
			return mst_client_fail(m, -EINTR,
					       "a signal ended the wait; nothing is lost");
		slept = mst_client_sleep(m, deadline_ns);
	}
}

static int start(struct muster *m, struct mst_message *msg, const void *own)
{
	int rc = mst_client_update(m);

	if (rc != 0)
		return mst_client_learn_why(m);
	if (m->worker.phase == MST_WORKER_JOINED)
		say_start(m, msg, own != NULL);
	return await_start(m, msg, own);
}

int muster_start(struct muster *m, const void *own, struct muster_outcome *out)
{
	if (out == NULL)
		return mst_client_fail(m, -EINVAL, "muster_start() needs an outcome to write to");
	if (m->worker.phase == MST_WORKER_WORKING || m->worker.phase == MST_WORKER_OVER)
		return mst_client_fail(m, -EINVAL, "this handle has started already");

	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_client_fail(m, -ENOMEM, "no memory for a message");
	int rc = start(m, msg, own);
	free(msg);
	if (rc != 0)
		return rc;
	/* That more may be ready already, a wait tells. */
	(void)mst_client_give(m, out);
	return 0;
}
