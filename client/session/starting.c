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

static void say_start(struct mst_starting *s, struct mst_message *msg, enum mst_offer offers)
{
	msg->kind = MST_MSG_START;
	msg->start.offers = offers;
	msg->start.version = s->session->settings->start_version;
	(void)snprintf(msg->start.passed, sizeof(msg->start.passed), "%s", s->session->passed.text);
	if (!mst_lineage_start(s->lineage) || mst_client_session_tell(s->session, msg) != 0)
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

/* ---- the sets of the last versions ---- */

/* The oldest version from which on the sets of all versions are here, up to the last one that was
 * given; MST_VERSION_NONE: not even that of the last one is. */
static uint64_t first_set(const struct mst_worker *w)
{
	uint32_t most = w->cfg.history < MST_COUNTED_MAX ? w->cfg.history : MST_COUNTED_MAX - 1;
	uint64_t version = w->given;

	if (mst_worker_set_of(w, version) == NULL)
		return MST_VERSION_NONE;
	for (uint32_t i = 0; i < most && version > 0 && mst_worker_set_of(w, version - 1) != NULL;
	     i++)
		version--;
	return version;
}

/* The window of the step that made the version is what the version before it has opened. */
static uint32_t window_of(const struct mst_worker *w, uint64_t version)
{
	const struct mst_held *before = version > 0 ? mst_worker_set_of(w, version - 1) : NULL;

	return before != NULL ? before->window : 0;
}

static void fill_set(const struct mst_starting *s, const struct mst_held *held,
		     struct mst_set_piece *out)
{
	uint32_t left = held->share_count - s->share;

	*out = (struct mst_set_piece){ .version = held->version,
				       .made = mst_lineage_maker(s->lineage, held->version),
				       .weight = held->weight,
				       .lr_scale = held->lr_scale,
				       .workers = held->workers,
				       .window = window_of(s->worker, held->version),
				       .first = s->share,
				       .total = held->share_count,
				       .count = left < MST_SET_SHARES ? left : MST_SET_SHARES };
	for (uint32_t i = 0; i < out->count; i++) {
		const struct muster_share *share = &held->share[s->share + i];
		out->share[i] = (struct mst_lane_share){ share->rank, share->count, share->weight };
	}
}

/* Return: all have been sent. */
static bool send_sets(struct mst_starting *s, struct mst_message *msg)
{
	const struct mst_worker *w = s->worker;

	if (s->set == 0 && s->share == 0)
		s->set = first_set(w);
	while (s->set != MST_VERSION_NONE && s->set <= w->given) {
		const struct mst_held *held = mst_worker_set_of(w, s->set);
		msg->kind = MST_MSG_SET;
		fill_set(s, held, &msg->set);
		if (mst_client_session_tell(s->session, msg) != 0)
			return false; /* no room: this thread is woken when there is */
		s->share += msg->set.count;
		if (s->share == held->share_count) {
			s->set++;
			s->share = 0;
		}
	}
	s->set = MST_VERSION_NONE;
	return true;
}

/* ---- the state ---- */

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
	if (s->session->told.wanted.sets != 0 && !send_sets(s, msg))
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

/* Is something that this worker was asked for still to be sent? */
static bool is_asked(const struct mst_starting *s)
{
	const struct mst_told *told = &s->session->told;
	uint32_t tensors = mst_tensors_table(s->session->settings->tensors).tensors;

	if (!told->send_state)
		return false;
	if (told->wanted.tensors != 0 && s->tensors_sent < tensors)
		return true;
	if (told->wanted.sets != 0 && s->set != MST_VERSION_NONE)
		return true;
	return told->wanted.state != 0 ? s->sent < state_bytes(s) : !s->ended;
}

/* Each thing that arrives wakes this thread, whether anything is to be sent or not. */
int mst_starting_serve(struct mst_starting *s, const void *own)
{
	if (!is_asked(s))
		return 0;
	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(s->failure, -ENOMEM, "no memory for a message");
	int rc = send_state(s, msg, s->brings != NULL ? s->brings : own);
	free(msg);
	return rc;
}

static enum mst_offer offer_again(const struct mst_lineage *lineage, const void *brings)
{
	if (lineage->stateless)
		return MST_OFFER_STATELESS;
	return brings != NULL ? MST_OFFER_STATE : MST_OFFER_NOTHING;
}

void mst_starting_again(struct mst_starting *s, const void *brings)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));

	s->brings = brings;
	s->set = s->sent = 0;
	s->share = s->tensors_sent = 0;
	s->ended = false;
	if (msg != NULL && (s->behind || mst_worker_has_begun(s->worker)))
		say_start(s, msg, offer_again(s->lineage, brings));
	free(msg);
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

static int await_start(struct mst_starting *s, const void *own)
{
	uint64_t deadline_ns = mst_deadline_ns(s->session->settings->join_ns);
	struct mst_engine_watch watch = { 0 };
	int slept = 0;

	for (;;) {
		int rc = mst_engine_update(s->engine);
		if (rc != 0)
			return rc;
		if (s->worker->adrift)
			return MST_AGAIN;
		if (mst_worker_misses(s->worker) == 0 && mst_client_session_has_begun(s->session))
			return 0;
		if (mst_client_transfer_is_behind(s->transfer))
			return mst_client_transfer_tell(s->transfer);
		rc = mst_engine_cut_off(s->engine);
		if (rc > 0)
			continue;
		if (rc == 0)
			rc = mst_starting_serve(s, own);
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

	if (rc == 0 && s->worker->adrift)
		return MST_AGAIN;
	if (rc == 0 && own != NULL && s->sent < state_bytes(s))
		rc = mst_client_guard_state(s->guard, own);
	if (rc != 0)
		return rc;
	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(s->failure, -ENOMEM, "no memory for a message");
	if (s->worker->phase == MST_WORKER_JOINED)
		say_start(s, msg, own != NULL ? MST_OFFER_STATE : MST_OFFER_NOTHING);
	rc = await_start(s, own);
	s->behind = rc == -ESTALE;
	free(msg);
	return rc;
}
