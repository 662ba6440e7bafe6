/* SPDX-License-Identifier: MIT */
/* The call muster_goal(): a worker gives the version that the job is to end with. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/api/reply.h"

/* 0; -EINVAL or -EACCES with its sentence. */
static int check(struct muster *m, uint64_t version)
{
	if (version == 0)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "a job cannot end with version 0; the first that workers "
				       "make is version 1");
	if (m->session.welcome.may_finish == 0)
		return mst_reason_fail(
			&m->failure, -EACCES,
			"rank %" PRIu32 " cannot have job \"%s\" end with version "
			"%" PRIu64 ": only an operator may (musterd --finish operator); give "
			"musterd --commits %" PRIu64 " instead",
			m->session.job.rank, m->session.welcome.job, version, version);
	return 0;
}

static int tell(struct muster *m, void *ctx)
{
	(void)ctx;
	if (m->goal_told)
		return 0;
	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(&m->failure, -ENOMEM, "no memory for a message");
	msg->kind = MST_MSG_FINISH;
	msg->goal = m->goal_due;
	m->goal_told = mst_client_session_tell(&m->session, msg) == 0;
	m->goals_told += m->goal_told;
	if (m->goal_told && (m->goal_given == 0 || m->goal_due < m->goal_given))
		m->goal_given = m->goal_due;
	free(msg);
	return 0;
}

/* 0: the leader has not answered, and the job goes on. */
static int look(struct muster *m, void *ctx)
{
	const struct mst_told *told = &m->session.told;
	uint64_t *goal = ctx;
	int rc = mst_engine_update(&m->engine);

	if (rc != 0)
		return rc;
	if (m->worker.last != MST_VERSION_NONE)
		*goal = m->worker.last;
	else if (m->goal_told && told->goals == m->goals_told)
		*goal = told->goal;
	else
		return 0;
	return 1;
}

/* Return: 0 with the job's goal, or an error with its sentence. */
static int await(struct muster *m, uint64_t *goal)
{
	const struct mst_reply reply = {
		.ctx = goal,
		.look = look,
		.tell = tell,
		.late = "the server has not said with which version the job ends; call "
			"muster_goal() again",
		.or_last_version = true,
	};
	int rc = mst_reply_await(m, &reply);

	return rc < 0 ? rc : 0;
}

int muster_goal(struct muster *m, uint64_t version, uint64_t *ends_with)
{
	uint64_t goal = 0;
	int rc = mst_handle_enter(m, -EINVAL, "muster_goal()");

	if (rc == MST_ENTRY_OPEN)
		rc = check(m, version);
	if (rc < 0)
		return rc;
	if (rc == MST_ENTRY_OVER) {
		goal = m->worker.last;
	} else {
		m->goal_told &= m->goal_due == version;
		m->goal_due = version;
		rc = await(m, &goal);
		mst_hint_publish(&m->hint);
		if (rc != 0)
			return rc;
		m->goal_due = 0;
	}
	if (ends_with != NULL)
		*ends_with = goal;
	return 0;
}
