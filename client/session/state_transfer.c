/* SPDX-License-Identifier: MIT */
#include "client/session/state_transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void mst_client_transfer_let_go(struct mst_client_transfer *b)
{
	free(b->state);
	b->state = NULL;
}

void mst_client_transfer_fini(struct mst_client_transfer *b)
{
	mst_client_transfer_let_go(b);
}

int mst_client_transfer_tell(struct mst_client_transfer *b)
{
	const struct mst_held *held = &b->worker->held;
	bool joins = held->version == MST_VERSION_NONE;

	if (joins)
		return mst_reason_fail(
			b->failure, -ESTALE,
			"rank %" PRIu32 " has joined a job that is at version %" PRIu64
			": take the state of another worker with muster_take_state()",
			b->session->job.rank, b->session->told.newest);
	return mst_reason_fail(b->failure, -ESTALE,
			       "rank %" PRIu32 " has version %" PRIu64
			       ", and the job is at version %" PRIu64
			       " and does not keep the one after it: take the state of another "
			       "worker with muster_take_state()",
			       b->session->job.rank, held->version, b->session->told.newest);
}

/* ---- giving ---- */

bool mst_client_transfer_wanted(const struct mst_client_transfer *b)
{
	return b->session->told.state_wanted > b->answered && !mst_client_transfer_is_behind(b) &&
	       b->worker->phase == MST_WORKER_WORKING;
}

/* Tells the leader that nothing is given, so that it asks another worker at once. After what is
 * still being sent there is no place for it. @too_large: the bytes of a state that the leader does
 * not take; 0: there is none. Return: 0 or -EALREADY. */
static int decline(struct mst_client_transfer *b, uint64_t too_large)
{
	struct mst_gift none = { .data = malloc(1),
				 .number = b->answered,
				 .version = b->worker->given,
				 .too_large = too_large };

	if (none.data == NULL)
		return 0; /* the leader stops waiting after a while */
	int rc = mst_client_session_give(b->session, &none);
	if (rc != 0)
		free(none.data);
	return rc;
}

static int too_large(struct mst_client_transfer *b, size_t bytes)
{
	return mst_reason_fail(b->failure, -EMSGSIZE,
			       "rank %" PRIu32 ": a state of %zu bytes is larger than the server "
			       "takes, %" PRIu64 ": raise musterd --state-max",
			       b->session->job.rank, bytes, b->session->welcome.state_max);
}

static int send(struct mst_client_transfer *b, const void *state, size_t bytes)
{
	struct mst_gift gift = { .data = malloc(bytes),
				 .bytes = bytes,
				 .number = b->answered,
				 .version = b->worker->given };

	if (gift.data == NULL) {
		if (decline(b, 0) == -EALREADY)
			return -EALREADY;
		return mst_reason_fail(b->failure, -ENOMEM,
				       "no memory for a copy of a state of %zu bytes", bytes);
	}
	memcpy(gift.data, state, bytes);
	int rc = mst_client_session_give(b->session, &gift);
	if (rc != 0)
		free(gift.data);
	return rc;
}

int mst_client_transfer_give(struct mst_client_transfer *b, const void *state, size_t bytes)
{
	uint64_t before = b->answered;

	if (!mst_client_transfer_wanted(b))
		return mst_reason_fail(b->failure, -EINVAL,
				       "nobody wants a state now: ask muster_state_wanted() first");
	if (state == NULL && bytes > 0)
		return mst_reason_fail(b->failure, -EINVAL,
				       "muster_give_state() needs a state of %zu bytes", bytes);
	b->answered = b->session->told.state_wanted;
	bool fits = bytes <= b->session->welcome.state_max;
	int rc = bytes > 0 && fits ? send(b, state, bytes) : decline(b, fits ? 0 : bytes);
	if (rc == -EALREADY) {
		b->answered = before;
		return mst_reason_fail(b->failure, -EAGAIN,
				       "the last state is still being sent; give this one at the "
				       "next outcome");
	}
	return rc == 0 && !fits ? too_large(b, bytes) : rc;
}

/* ---- taking ---- */

int mst_client_transfer_accept(struct mst_client_transfer *b, const struct mst_gift *gift)
{
	struct mst_message *msg;

	b->state = gift->data;
	if (mst_worker_took(b->worker, gift->version) != 0) {
		mst_engine_fail(b->engine, -EPROTO);
		return mst_reason_fail(b->failure, -EPROTO,
				       "rank %" PRIu32 ": the server has handed over a state of "
				       "version %" PRIu64 ", which is of no use here",
				       b->session->job.rank, gift->version);
	}
	b->overcome = b->session->told.behind;
	msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(b->failure, -ENOMEM, "no memory for a message");
	msg->kind = MST_MSG_TOOK;
	msg->number = gift->number;
	/* What is small always finds room. If the connection is over, the next look tells why. */
	(void)mst_client_session_tell(b->session, msg);
	free(msg);
	return 0;
}

static int time_is_over(struct mst_client_transfer *b, uint64_t wait_ns)
{
	return mst_reason_fail(b->failure, -ETIMEDOUT,
			       "rank %" PRIu32 ": after %.3g s there is no state of another worker "
			       "yet; call muster_take_state() again",
			       b->session->job.rank, (double)wait_ns / (double)MST_SECOND);
}

/* Return: -ESHUTDOWN with its sentence. From now on this worker is behind no more. */
static int job_is_over(struct mst_client_transfer *b)
{
	b->overcome = b->session->told.behind;
	return mst_reason_fail(b->failure, -ESHUTDOWN,
			       "rank %" PRIu32 ": the job has ended with version %" PRIu64
			       ", and nobody gives a state any more: this worker stays at version "
			       "%" PRIu64 ", with which muster_wait() brings the last outcome",
			       b->session->job.rank, b->worker->last, b->worker->held.version);
}

/* A server was lost while the state was waited for, and the next one has answered. */
static int no_more(struct mst_client_transfer *b)
{
	return mst_reason_fail(b->failure, -ESHUTDOWN,
			       "rank %" PRIu32
			       " lacks nothing any more: a server was lost, and at the "
			       "next one this worker goes on from what it has, with muster_wait()",
			       b->session->job.rank);
}

int mst_client_transfer_take(struct mst_client_transfer *b, uint64_t wait_ns, struct mst_gift *out)
{
	uint64_t deadline_ns = mst_deadline_ns(wait_ns);
	struct mst_engine_watch watch = { 0 };
	int slept = 0;

	for (;;) {
		int rc = mst_engine_update(b->engine);
		if (rc != 0)
			return rc;
		if (b->worker->adrift)
			return MST_AGAIN;
		if (b->worker->incomplete)
			return job_is_over(b);
		bool behind = mst_client_transfer_is_behind(b);
		if (!behind && b->worker->phase == MST_WORKER_STARTING &&
		    mst_worker_misses(b->worker) == 0)
			return no_more(b);
		if (!behind && b->worker->phase != MST_WORKER_STARTING)
			return mst_reason_fail(b->failure, -EINVAL,
					       "there is no state to take: this worker is not "
					       "behind (no call has returned -ESTALE)");
		if (mst_control_claim(b->session->control, MST_AGREED_GIFT + 1, out))
			return 0;
		if (slept == -ETIMEDOUT)
			return time_is_over(b, wait_ns);
		rc = b->serve(b->ctx);
		if (rc == 0)
			rc = mst_engine_watch(b->engine, &watch);
		if (rc == 0)
			rc = mst_engine_interrupted(b->engine, slept);
		if (rc == 0)
			rc = mst_engine_cut_off(b->engine);
		if (rc < 0)
			return rc;
		slept = rc == 0 ? mst_engine_sleep(b->engine, deadline_ns) : 0;
	}
}
