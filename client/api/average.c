/* SPDX-License-Identifier: MIT */
/* The call muster_average(): the moving average of the parameters, for a worker that evaluates
 * it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/api/handle.h"

/* Takes in what has come, before the last outcome of the job or after it. Return: 0, or why no more
 * of the average can come. */
static int look(struct muster *m)
{
	int rc = 0;

	if (m->worker.phase != MST_WORKER_OVER)
		rc = mst_engine_update(&m->engine);
	else
		(void)mst_engine_take(&m->engine);
	if (rc != 0 || !m->session.told.closed)
		return rc;
	return mst_reason_fail(&m->failure, -ENOTCONN,
			       "rank %" PRIu32 ": the job is over, and its leader has closed the "
			       "connection before this worker had all of the average",
			       m->session.job.rank);
}

/* Makes room for the average, unless an earlier call has made room, and the average that it asked
 * for has not come yet. */
static int expect(struct muster *m)
{
	struct mst_gift into = { .bytes = m->session.welcome.elems * sizeof(float) };

	if (m->average_due)
		return 0;
	free(m->average);
	m->average = NULL;
	into.data = malloc(into.bytes);
	if (into.data == NULL)
		return mst_reason_fail(&m->failure, -ENOMEM,
				       "no memory for an average of %" PRIu64 " bytes", into.bytes);
	into.number = ++m->average_number;
	mst_control_expect(m->session.control, &into);
	m->average_due = true;
	m->average_asked = false;
	return 0;
}

/* Asks the leader, unless this has been done. Without room for the question the waiting loop tries
 * again: it is woken when there is room. If the connection is over, the next look tells why. */
static int ask(struct muster *m)
{
	if (m->average_asked)
		return 0;
	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(&m->failure, -ENOMEM, "no memory for a message");
	msg->kind = MST_MSG_ASK_AVERAGE;
	msg->number = m->average_number;
	m->average_asked = mst_client_session_tell(&m->session, msg) == 0;
	free(msg);
	return 0;
}

static int time_is_over(struct muster *m)
{
	return mst_reason_fail(&m->failure, -ETIMEDOUT,
			       "rank %" PRIu32 ": after %.3g s the average is not here yet; call "
			       "muster_average() again, nothing of it is lost",
			       m->session.job.rank, (double)m->wait_ns / (double)MST_SECOND);
}

/* Return: 0 with the average, or an error with its sentence. */
static int await(struct muster *m, struct mst_gift *out)
{
	uint64_t deadline_ns = mst_deadline_ns(m->wait_ns);
	struct mst_engine_watch watch = { 0 };
	int slept = 0;

	for (;;) {
		int rc = look(m);
		if (mst_control_expected(m->session.control, out))
			return 0;
		if (rc == 0)
			rc = ask(m);
		if (rc == 0 && slept == -ETIMEDOUT)
			return time_is_over(m);
		if (rc == 0)
			rc = mst_engine_watch(&m->engine, &watch);
		if (rc == 0)
			rc = mst_engine_interrupted(&m->engine, slept);
		if (rc != 0)
			return rc;
		slept = mst_engine_sleep(&m->engine, deadline_ns);
	}
}

int muster_average(struct muster *m, const float **average, uint64_t *version)
{
	struct mst_gift whole;
	int rc = mst_handle_enter(m, -EINVAL, "muster_average()");

	if (rc < 0)
		return rc;
	if (average == NULL || version == NULL)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_average() needs somewhere to put the average and "
				       "its version");
	if (m->session.welcome.averages == 0)
		return mst_reason_fail(&m->failure, -ENOTSUP,
				       "the servers keep no average of the parameters: start "
				       "musterd with --average%s",
				       m->session.welcome.owner == MUSTER_WORKERS_OWN
					       ? ", where they own the parameters"
					       : "");
	rc = expect(m);
	if (rc == 0)
		rc = await(m, &whole);
	mst_hint_publish(&m->hint);
	if (rc != 0)
		return rc;
	m->average_due = false;
	m->average = whole.data;
	*average = (const float *)m->average;
	*version = whole.version;
	return 0;
}
