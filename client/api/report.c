/* SPDX-License-Identifier: MIT */
/* The call muster_report(): a worker reports a value by name. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/text.h"

static_assert(MUSTER_METRIC_NAME_MAX == MST_NAME_LEN - 1, "a name has a NUL on the wire");

/* 0; -EINVAL or -EDOM with its sentence. */
static int check_metric(struct muster *m, const char *name, double value)
{
	size_t bytes = name != NULL ? strlen(name) : 0;

	if (bytes == 0)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_report() needs the name of the metric");
	if (bytes > MUSTER_METRIC_NAME_MAX)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "the name of the metric \"%.60s...\" has %zu bytes; a name "
				       "has at most %u",
				       name, bytes, MUSTER_METRIC_NAME_MAX);
	if (!mst_text_is_clean(name))
		return mst_reason_fail(&m->failure, -EINVAL,
				       "the name of the metric has control characters, or is not "
				       "UTF-8: give it another name");
	if (!isfinite(value))
		return mst_reason_fail(&m->failure, -EDOM,
				       "\"%s\" of version %" PRIu64 " is %g; only a finite value "
				       "can be reported",
				       name, m->worker.given, value);
	return 0;
}

int muster_report(struct muster *m, const char *name, double value)
{
	int rc = mst_handle_enter(m, -EINVAL, "muster_report()");

	if (rc >= 0) /* also after the last outcome */
		rc = check_metric(m, name, value);
	if (rc < 0)
		return rc;

	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(&m->failure, -ENOMEM, "no memory for a message");
	msg->kind = MST_MSG_REPORT;
	(void)snprintf(msg->metric.name, sizeof(msg->metric.name), "%s", name);
	msg->metric.value = value;
	msg->metric.version = m->worker.given;
	rc = mst_client_session_tell(&m->session, msg);
	free(msg);
	if (rc == -EAGAIN)
		return mst_reason_fail(&m->failure, rc,
				       "the control connection is busy; try again");
	if (rc != 0 && mst_client_session_returns(&m->session) && !m->session.told.finished)
		return 0; /* the server is lost, and the value with it */
	if (rc != 0)
		return mst_reason_fail(&m->failure, -ENOTCONN,
				       "\"%s\" of version %" PRIu64
				       " cannot be reported: the leader "
				       "has closed the connection",
				       name, m->worker.given);
	return 0;
}
