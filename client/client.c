/* SPDX-License-Identifier: MIT */
/* The calls of include/muster/muster.h that do not wait, and the beginning and end of a handle. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "common/base/clock.h"

/* How long muster_close() gives the server to judge what was pushed last. */
#define FAREWELL_NS MST_SECOND

static _Thread_local char open_error[MST_SENTENCE_LEN + MST_WHY_LEN];

/* ---- beginning and end ---- */

int muster_open(const struct muster_options *opt, struct muster **out)
{
	struct muster *m;
	int rc;

	open_error[0] = '\0';
	if (out == NULL) {
		(void)snprintf(open_error, sizeof(open_error),
			       "muster_open() needs somewhere to "
			       "put the handle");
		return -EINVAL;
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		(void)snprintf(open_error, sizeof(open_error), "no memory for a handle");
		return -ENOMEM;
	}
	m->stream = &mst_tcp;
	rc = mst_settings_read(opt, &m->settings, m->error, sizeof(m->error));
	if (rc == 0)
		rc = mst_client_join(m);
	if (rc != 0) {
		(void)snprintf(open_error, sizeof(open_error), "%s", m->error);
		mst_client_free(m);
		return rc;
	}
	*out = m;
	return 0;
}

/* Leaves, and waits until the server has ended the session in turn: then it has judged all that was
 * pushed, and the link may go. */
static void leave(struct muster *m)
{
	uint64_t deadline_ns = mst_client_deadline(FAREWELL_NS);
	struct mst_message *msg = calloc(1, sizeof(*msg));
	bool told = false;

	if (msg != NULL) {
		msg->kind = MST_MSG_LEAVE;
		msg->seq = m->worker.headers;
		told = mst_client_tell(m, msg) == 0;
		free(msg);
	}
	while (told && m->put_out == NULL && mst_client_lost(m) == NULL && !m->told.closed &&
	       mst_client_sleep(m, deadline_ns) != -ETIMEDOUT)
		(void)mst_client_update(m);
}

void muster_close(struct muster *m)
{
	if (m == NULL)
		return;
	if (mst_client_update(m) == 0)
		leave(m);
	mst_client_free(m);
}

const char *muster_error(const struct muster *m)
{
	return m != NULL ? m->error : open_error;
}

const struct muster_job *muster_job(const struct muster *m)
{
	return &m->job;
}

/* ---- what every call that acts begins with ---- */

enum gate {
	GATE_OPEN = 0,
	GATE_OVER = 1, /* the last outcome has been handed out: return 0, do nothing */
};

/* GATE_OPEN, GATE_OVER, or an error, @early before muster_start(). Looks at how the session
 * stands first: what was read in place since the last call was sound only if it has not ended. */
static int pass_gate(struct muster *m, int early, const char *call)
{
	if (m->worker.phase == MST_WORKER_OVER)
		return GATE_OVER;
	int rc = mst_client_update(m);
	if (rc != 0)
		return rc;
	if (m->worker.phase < MST_WORKER_WORKING)
		return mst_client_fail(m, early, "call muster_start() before %s", call);
	return GATE_OPEN;
}

static int no_buffer(struct muster *m)
{
	if (mst_tickets_full(&m->worker.tickets))
		return mst_client_fail(m, -EAGAIN,
				       "%u pushes have no outcome yet; call muster_wait()",
				       MST_TICKETS_MAX);
	return mst_client_fail(m, -EAGAIN,
			       "all %" PRIu32 " gradient buffers are in flight; call muster_wait()",
			       m->job.slots);
}

/* ---- filling and pushing ---- */

void *muster_gradient(struct muster *m)
{
	if (pass_gate(m, -EAGAIN, "muster_gradient()") != GATE_OPEN)
		return NULL;
	int slot = mst_worker_fill(&m->worker);
	if (slot < 0) {
		(void)no_buffer(m);
		return NULL;
	}
	mst_client_publish(m);
	return mst_client_compose(m, slot);
}

static int bad_range(struct muster *m, int rc, uint64_t first, uint64_t count)
{
	if (rc == -ENOSPC)
		return mst_client_fail(m, -EINVAL,
				       "too many separate ranges; hand neighbouring ones over one "
				       "after the other");
	return mst_client_fail(m, rc,
			       "%" PRIu64 " elements from %" PRIu64
			       " on are not all within the %" PRIu64
			       " of the vector, or some were given before",
			       count, first, m->job.elems);
}

int muster_push_range(struct muster *m, uint64_t first, uint64_t count, const void *src)
{
	struct mst_range range = { first, first + count };
	uint32_t bytes = mst_type_size(m->job.type);
	int rc = pass_gate(m, -EINVAL, "muster_push_range()");

	if (rc != GATE_OPEN)
		return rc == GATE_OVER ? 0 : rc;
	int slot = mst_worker_fill(&m->worker);
	if (slot < 0)
		return no_buffer(m);
	mst_client_publish(m);
	rc = mst_worker_range(&m->worker, first, count);
	if (rc != 0)
		return bad_range(m, rc, first, count);
	if (src != NULL)
		memmove(mst_client_compose(m, slot) + first * bytes, src, count * bytes);
	return mst_client_send_range(m, slot, &range);
}

static int check_contribution(struct muster *m, const struct muster_contribution *c)
{
	if (c == NULL)
		return mst_client_fail(m, -EINVAL, "muster_push() needs a contribution");
	if (!(c->weight > 0 && c->weight <= MST_WEIGHT_MAX))
		return mst_client_fail(m, -EINVAL,
				       "a contribution's weight is %g; it is the number of "
				       "samples, more than 0 and at most 2^53",
				       c->weight);
	return 0;
}

/* The rest of the data, and behind them the header. */
static int hand_in(struct muster *m, const struct muster_contribution *c, uint64_t *ticket)
{
	struct mst_lane_header header;
	int rc = mst_worker_fill(&m->worker);

	if (rc < 0)
		return no_buffer(m);
	rc = mst_client_send_rest(m);
	if (rc == 0)
		rc = mst_worker_push(&m->worker, c, &header, ticket);
	return rc > 0 ? mst_client_send_header(m, &header) : rc;
}

int muster_push(struct muster *m, const struct muster_contribution *c, uint64_t *ticket)
{
	uint64_t number = 0;
	int rc = pass_gate(m, -EINVAL, "muster_push()");

	if (rc == GATE_OPEN) {
		rc = check_contribution(m, c);
		if (rc != 0)
			return rc;
		rc = hand_in(m, c, &number);
		mst_client_publish(m);
	}
	if (rc < 0)
		return rc;
	if (ticket != NULL)
		*ticket = number;
	return 0;
}

int muster_abandon(struct muster *m)
{
	int rc = pass_gate(m, -EINVAL, "muster_abandon()");

	if (rc != GATE_OPEN)
		return rc == GATE_OVER ? 0 : rc;
	int slot = mst_worker_abandon(&m->worker);
	mst_client_publish(m);
	return slot >= 0 ? mst_client_send_abandon(m, slot) : 0;
}

/* ---- asking and ending ---- */

int muster_pull(struct muster *m)
{
	struct mst_lane_ask ask;
	int rc = pass_gate(m, -EINVAL, "muster_pull()");

	if (rc != GATE_OPEN)
		return rc == GATE_OVER ? 0 : rc;
	return mst_worker_pull(&m->worker, &ask) ? mst_client_send_ask(m, &ask) : 0;
}

enum muster_advice muster_check(const struct muster *m)
{
	/* Relaxed: hints, of which each stands for itself. The advice word's partner is the plain
	 * put of eight aligned bytes, which is never seen torn. */
	const _Atomic uint64_t *advice =
		(const _Atomic uint64_t *)(const void *)((const char *)m->part[0].link->landing +
							 m->part[0].layout.down_advice);
	uint64_t oldest = atomic_load_explicit(advice, memory_order_relaxed);

	if (atomic_load_explicit(&m->over, memory_order_relaxed) || mst_control_over(m->control) ||
	    atomic_load_explicit(&m->computes_on, memory_order_relaxed) < oldest)
		return MUSTER_GIVE_UP;
	return MUSTER_GO_ON;
}

int muster_finish(struct muster *m, const char *why)
{
	int rc = pass_gate(m, -EINVAL, "muster_finish()");

	if (rc == GATE_OVER || m->asked_end)
		return 0;
	if (rc != GATE_OPEN)
		return rc;

	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_client_fail(m, -ENOMEM, "no memory for a message");
	msg->kind = MST_MSG_FINISH;
	(void)snprintf(msg->why, sizeof(msg->why), "%s", why != NULL ? why : "");
	rc = mst_client_tell(m, msg);
	free(msg);
	if (rc == -EAGAIN)
		return mst_client_fail(m, rc, "the control connection is busy; try again");
	/* -EPIPE: the connection is over, and the next look tells why. */
	m->asked_end = true;
	m->worker.finishing = true;
	return 0;
}
