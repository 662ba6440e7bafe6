/* SPDX-License-Identifier: MIT */
#include "server/control/base.h"

#include <errno.h>
#include <inttypes.h>

void mst_base_init(struct mst_base *b, struct mst_archive *archive)
{
	b->linking.job = b->checkpointing.job = &b->job;
	b->linking.front = &b->front;
	b->linking.sessions = &b->sessions;
	b->checkpointing.archive = archive;
}

void mst_base_fini(struct mst_base *b)
{
	/* what is being made uses the job and its listener, and wakes the frontend */
	mst_linking_fini(&b->linking);
	mst_frontend_close(&b->front);
	mst_base_close_data_side(b);
	mst_checkpointing_fini(&b->checkpointing);
	mst_sessions_fini(&b->sessions);
	mst_job_fini(&b->job);
}

int mst_base_tables(struct mst_base *b, struct mst_reason *why)
{
	uint32_t workers = b->job.o->workers, sessions = MST_PLAN_SESSIONS_PER_RANK * workers;

	int rc = mst_sessions_init(&b->sessions, workers, sessions);
	if (rc == 0)
		rc = mst_job_tables(&b->job, sessions);
	if (rc != 0)
		mst_reason_set(why, "no memory for %" PRIu32 " workers", workers);
	return rc;
}

void mst_base_look(struct mst_base *b, uint64_t now_ns)
{
	mst_hearing_look(&b->hearing, b->job.o->lease_ns, now_ns);
	mst_requests_step(&b->job.requests);
}

void mst_base_notices(struct mst_base *b, mst_base_hear *hear, void *ctx, uint64_t now_ns)
{
	struct mst_notice notice;

	while (mst_server_notice(b->job.server, &notice)) {
		if (notice.kind == MST_NOTE_OVER)
			mst_sessions_let_go(&b->sessions, notice.session);
		else if (notice.kind == MST_NOTE_SAVES || notice.kind == MST_NOTE_SAVE ||
			 notice.kind == MST_NOTE_SAVED)
			mst_checkpointing_notice(&b->checkpointing, &notice, now_ns);
		else
			hear(ctx, &notice, now_ns);
	}
}

void mst_base_data_side(struct mst_base *b, mst_base_hear *hear, void *ctx, uint64_t now_ns)
{
	if (b->job.server == NULL)
		return;
	mst_linking_step(&b->linking, now_ns);
	mst_base_notices(b, hear, ctx, now_ns);
	b->lingered |= b->job.ended_ns != 0 && now_ns > b->job.ended_ns &&
		       now_ns - b->job.ended_ns > b->job.o->patience_ns;
}

void mst_base_stop(struct mst_base *b, const char *why, uint64_t now_ns)
{
	b->job.stopped = true;
	if (mst_job_end(&b->job, MST_JOB_FAILS, why, now_ns))
		b->job.error = mst_job_stop_word(&b->job);
	for (uint32_t i = 0; i < b->sessions.max; i++) {
		const struct mst_pending_session *p = &b->sessions.row[i];
		if (p->state != MST_PENDING_FREE && p->state != MST_PENDING_LENT)
			mst_requests_lose(&b->job.requests, p->session.who);
	}
}

void mst_base_close_data_side(struct mst_base *b)
{
	mst_job_hang_up(&b->job);
	mst_sessions_end_all(&b->sessions);
	mst_job_close(&b->job);
}
