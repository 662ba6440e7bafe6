/* SPDX-License-Identifier: MIT */
#include "client/session/starting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/reason.h"

static uint64_t state_bytes(const struct mst_starting *s)
{
	const struct muster_job *job = &s->session->job;

	return job->elems * mst_type_size(job->result_type);
}

static void say_start(struct mst_starting *s, struct mst_message *msg, bool offers)
{
	msg->kind = MST_MSG_START;
	msg->start.offers = offers;
	msg->start.version = s->session->settings->start_version;
	(void)snprintf(msg->start.passed, sizeof(msg->start.passed), "%s", s->session->passed.text);
	if (mst_client_session_tell(s->session, msg) != 0)
		return; /* the connection is over, and the next look tells why */
	mst_worker_start(s->worker);
}

/* Sends as much of the tensor table as there is room for now. Return: all has been sent. */
static bool send_tensors(struct mst_starting *s, struct mst_message *msg)
{
	const struct mst_tensors *tensors = s->session->settings->tensors;
	uint32_t total = mst_tensors_table(tensors).tensors;

	msg->kind = MST_MSG_TENSORS;
	while (s->tensors_sent < total) {
		uint32_t behind = mst_tensors_piece(tensors, s->tensors_sent, MST_TENSORS_PIECE,
						    &msg->piece);

		if (mst_client_session_tell(s->session, msg) != 0)
			return false; /* no room: this thread is woken when there is */
		s->tensors_sent = behind;
	}
	return true;
}

/* The servers have the state already. */
static void send_no_state(struct mst_starting *s, struct mst_message *msg)
{
	*msg = (struct mst_message){ .kind = MST_MSG_STATE };
	if (!s->ended)
		s->ended = mst_client_session_tell(s->session, msg) == 0;
}

/* Sends as many pieces as there is room for now. */
static int send_state(struct mst_starting *s, struct mst_message *msg, const char *own)
{
	uint64_t total = state_bytes(s);

	bool wanted = s->session->told.wanted.state != 0;

	if (wanted && own == NULL && s->sent < total)
		return mst_reason_fail(s->failure, -EINVAL,
				       "rank %" PRIu32
				       " has offered a start state and is to send it; "
				       "give muster_start() the same state again",
				       s->session->job.rank);
	if (s->session->told.wanted.tensors != 0 && !send_tensors(s, msg))
		return 0;
	if (!wanted) {
		send_no_state(s, msg);
		return 0;
	}
	msg->kind = MST_MSG_STATE;
	while (s->sent < total) {
		uint64_t left = total - s->sent;
		msg->state = (struct mst_state_piece){
			.offset = s->sent,
			.total = total,
			.length = left < MST_STATE_CHUNK ? (uint32_t)left : MST_STATE_CHUNK,
			.data = own + s->sent,
		};
		if (mst_client_session_tell(s->session, msg) != 0)
			break; /* no room: this thread is woken when there is */
		s->sent += msg->state.length;
	}
	return 0;
}

static int time_is_over(struct mst_starting *s)
{
	return mst_reason_fail(
		s->failure, -ETIMEDOUT,
		"rank %" PRIu32 ": not all %" PRIu32 " workers have started within "
		"%.1f s (muster status tells who is missing); call muster_start() again",
		s->session->job.rank, s->session->job.workers,
		(double)s->session->settings->join_ns / (double)MST_SECOND);
}

static int await_start(struct mst_starting *s, struct mst_message *msg, const void *own)
{
	uint64_t deadline_ns = mst_deadline_ns(s->session->settings->join_ns);
	struct mst_engine_watch watch = { 0 };
	int slept = 0;

	for (;;) {
		int rc = mst_engine_update(s->engine);
		if (rc != 0)
			return rc;
		if (mst_worker_misses(s->worker) == 0)
			return 0;
		if (mst_client_transfer_is_behind(s->transfer))
			return mst_client_transfer_tell(s->transfer);
		rc = mst_engine_cut_off(s->engine);
		if (rc > 0)
			continue;
		if (rc == 0 && s->session->told.send_state)
			rc = send_state(s, msg, own);
		if (rc != 0)
			return rc;
		if (slept == -ETIMEDOUT)
			return time_is_over(s);
		rc = mst_engine_interrupted(s->engine, slept);
		if (rc == 0)
			rc = mst_engine_watch(s->engine, &watch);
		if (rc != 0)
			return rc;
		slept = mst_engine_sleep(s->engine, deadline_ns);
	}
}

int mst_starting_run(struct mst_starting *s, const void *own)
{
	int rc = mst_engine_update(s->engine);

	if (rc == 0 && own != NULL && s->sent < state_bytes(s))
		rc = mst_client_guard_state(s->guard, own);
	if (rc != 0)
		return rc;
	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(s->failure, -ENOMEM, "no memory for a message");
	if (s->worker->phase == MST_WORKER_JOINED)
		say_start(s, msg, own != NULL);
	rc = await_start(s, msg, own);
	free(msg);
	return rc;
}
