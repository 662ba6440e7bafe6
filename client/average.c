/* SPDX-License-Identifier: MIT */
/* muster_average(). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/handle.h"

/* The last outcome has been handed out, or the session goes on. Return: 0, or why nothing more can
 * come. */
static int look(struct muster *m)
{
	if (m->worker.phase != MST_WORKER_OVER)
		return mst_engine_update(&m->engine);
	(void)mst_engine_take(&m->engine);
	if (!m->session.told.closed)
		return 0;
	return mst_client_fail(&m->failure, -ENOTCONN,
			       "rank %" PRIu32 ": the job is over, and its leader has closed the "
			       "connection before this worker had all of the average",
			       m->session.job.rank);
}

/* Asks, unless an earlier call has asked and what it asked for is still on its way. */
static int ask(struct muster *m)
{
	struct mst_message *msg;
	struct mst_gift into = { .bytes = m->session.welcome.elems * sizeof(float) };

	if (m->average_asked)
		return 0;
	free(m->average);
	m->average = NULL;
	into.data = malloc(into.bytes);
	msg = calloc(1, sizeof(*msg));
	if (into.data == NULL || msg == NULL) {
		free(into.data);
		free(msg);
		return mst_client_fail(&m->failure, -ENOMEM,
				       "no memory for an average of %" PRIu64 " bytes", into.bytes);
	}
	into.number = ++m->average_number;
	mst_control_expect(m->session.control, &into);
	m->average_asked = true;
	msg->kind = MST_MSG_ASK_AVERAGE;
	msg->number = into.number;
	/* What is small always finds room. If the connection is over, the next look tells why. */
	(void)mst_client_session_tell(&m->session, msg);
	free(msg);
	return 0;
}

static int time_is_over(struct muster *m)
{
	return mst_client_fail(&m->failure, -ETIMEDOUT,
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
		return mst_client_fail(&m->failure, -EINVAL,
				       "muster_average() needs somewhere to put the average and "
				       "its version");
	if (m->session.welcome.averages == 0)
		return mst_client_fail(&m->failure, -ENOTSUP,
				       "the servers keep no average of the parameters: start "
				       "musterd with --average%s",
				       m->session.welcome.owner == MUSTER_WORKERS_OWN
					       ? ", where they own the parameters"
					       : "");
	rc = ask(m);
	if (rc == 0)
		rc = await(m, &whole);
	mst_hint_publish(&m->hint);
	if (rc != 0)
		return rc;
	m->average_asked = false;
	m->average = whole.data;
	*average = (const float *)m->average;
	*version = whole.version;
	return 0;
}
