/* SPDX-License-Identifier: MIT */
/* The call muster_average(): the moving average of the parameters, for a worker that evaluates
 * it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/api/reply.h"

/* Takes in what has come, before the last outcome of the job or after it. Return: 0, or why no more
 * of the average can come. */
static int take(struct muster *m)
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

/* All of the average may be here, and nothing more can come. */
static int look(struct muster *m, void *ctx)
{
	int rc = take(m);

	return mst_control_expected(m->session.control, ctx) ? 1 : rc;
}

static int ask(struct muster *m, void *ctx)
{
	(void)ctx;
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

/* Return: 0 with the average, or an error with its sentence. */
static int await(struct muster *m, struct mst_gift *out)
{
	const struct mst_reply reply = {
		.ctx = out,
		.look = look,
		.tell = ask,
		.late = "the average is not here yet; call muster_average() again, nothing of it "
			"is lost",
	};
	int rc = mst_reply_await(m, &reply);

	return rc < 0 ? rc : 0;
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
