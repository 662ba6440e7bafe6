/* SPDX-License-Identifier: MIT */
/*
 * Between the link and the session's state: what arrives is copied out of the landing once and
 * handed to client/core. Nothing here blocks, allocates or locks, unless the lead has just said
 * something on the control connection.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "common/base/clock.h"

#define EVENTS 16

int mst_client_fail(struct muster *m, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(m->error, sizeof(m->error), fmt, args);
	va_end(args);
	return error;
}

void mst_client_publish(struct muster *m)
{
	bool over = m->worker.phase == MST_WORKER_FAILED || m->worker.last != MST_VERSION_NONE;

	/* Relaxed: muster_check() gives hints, nothing is read on the strength of them. */
	atomic_store_explicit(&m->computes_on, mst_worker_computes_on(&m->worker),
			      memory_order_relaxed);
	atomic_store_explicit(&m->over, over, memory_order_relaxed);
}

/* ---- what arrives on the link ---- */

static void copy_from(const struct muster *m, size_t offset, void *into, size_t bytes)
{
	memcpy(into, (const char *)m->link->landing + offset, bytes);
}

static int take_session(struct muster *m, uint32_t which)
{
	struct mst_lane_session word;

	if (which >= MST_SESSION_WORDS)
		return -EPROTO;
	copy_from(m, m->layout.down_session[which], &word, sizeof(word));
	if (word.state == MST_SESSION_FINISHED)
		return mst_worker_ended(&m->worker, word.version);
	if (word.state != MST_SESSION_ENDED)
		return -EPROTO;
	m->put_out = true;
	mst_worker_fail(&m->worker, mst_control_ending(word.error));
	return 0;
}

static int copy_grant(const struct muster *m, uint32_t slot, struct mst_lane_grant *out)
{
	if (slot >= m->layout.slots)
		return -EPROTO;
	copy_from(m, m->layout.down_grant[slot], out, sizeof(*out));
	return 0;
}

static int take_grant(struct muster *m, uint32_t imm)
{
	struct mst_lane_grant grant;
	int rc = copy_grant(m, mst_imm_slot(imm), &grant);

	if (rc == 0 && (grant.epoch & MST_IMM_EPOCH_MASK) != mst_imm_epoch(imm))
		rc = -EPROTO;
	return rc == 0 ? mst_worker_granted(&m->worker, mst_imm_slot(imm), grant.epoch) : rc;
}

static int take_verdict(struct muster *m, uint32_t slot)
{
	struct mst_lane_verdict verdict;

	if (slot >= m->layout.slots)
		return -EPROTO;
	copy_from(m, m->layout.down_verdict[slot], &verdict, sizeof(verdict));
	return mst_worker_judged(&m->worker, slot, &verdict);
}

/* What has come with an answer. */
static int take_slots(struct muster *m, uint32_t verdicts, uint32_t grants)
{
	struct mst_lane_grant grant;
	int rc = 0;

	for (uint32_t slot = 0; slot < MST_SLOTS_MAX && rc == 0; slot++) {
		if (verdicts >> slot & 1u)
			rc = take_verdict(m, slot);
		if (rc == 0 && grants >> slot & 1u) {
			rc = copy_grant(m, slot, &grant);
			if (rc == 0)
				rc = mst_worker_granted(&m->worker, slot, grant.epoch);
		}
	}
	return rc;
}

static int take_answer(struct muster *m, uint32_t imm)
{
	const char *record = (const char *)m->link->landing + m->layout.down_record;
	struct mst_lane_answer answer;
	int rc = take_slots(m, mst_imm_verdicts(imm), mst_imm_grants(imm));

	if (rc != 0)
		return rc;
	copy_from(m, m->layout.down_answer, &answer, sizeof(answer));
	return mst_worker_answered(&m->worker, &answer, record);
}

static int take_arrival(struct muster *m, uint32_t imm)
{
	switch (mst_imm_kind(imm)) {
	case MST_IMM_SESSION:
		return take_session(m, mst_imm_slot(imm));
	case MST_IMM_GRANT:
		return take_grant(m, imm);
	case MST_IMM_VERDICT:
		return take_verdict(m, mst_imm_slot(imm));
	case MST_IMM_ANSWER:
		return take_answer(m, imm);
	default:
		return -EPROTO;
	}
}

static void take_event(struct muster *m, const struct mst_net_event *ev)
{
	switch (ev->kind) {
	case MST_ARRIVED:
		if (take_arrival(m, ev->imm) != 0)
			mst_worker_fail(&m->worker, -EPROTO);
		break;
	case MST_SENT:
		mst_worker_sent(&m->worker, (uint32_t)ev->cookie);
		break;
	case MST_LOST:
		m->link_lost = true;
		break;
	}
}

static void take_events(struct muster *m)
{
	struct mst_net_event ev[EVENTS];
	int count;

	do {
		count = m->transport->poll(m->net, ev, EVENTS);
		for (int i = 0; i < count; i++)
			take_event(m, &ev[i]);
	} while (count == EVENTS);
}

/* ---- what the session has come to ---- */

static const char *sentence_of(const struct muster *m, int error)
{
	if (error == -ENOTCONN && m->link_lost && m->link->why[0] != '\0')
		return m->link->why;
	switch (error) {
	case -EPROTO:
		return "the server sent what the protocol does not allow at this point";
	case -EHOSTDOWN:
		return "the job has failed: too few live workers";
	case -ESTALE:
		return "this worker is further behind than the server keeps versions";
	default:
		return "the server has ended the session, or is gone";
	}
}

/* A link that broke by itself, and not because the server has ended the session: how that looked
 * from here, unless the lead has said the same. */
static const char *own_reason(const struct muster *m)
{
	bool broke = m->link_lost && !m->put_out;

	return broke && strstr(m->told.sentence, m->link->why) == NULL ? m->link->why : "";
}

/* A lead that hangs up may have had no time for words; what a shard put before says more. */
static bool link_knows_better(const struct muster *m)
{
	return m->put_out && m->told.error == -ENOTCONN && m->worker.error != 0 &&
	       m->worker.error != -ENOTCONN;
}

/* The lead's own words are better than what the link could tell: they may lie unread. */
int mst_client_ended(struct muster *m)
{
	if (m->told.error == 0 && !m->told.closed) {
		(void)mst_control_step(m->control, mst_now_ns());
		mst_control_look(m->control, &m->told);
	}
	bool lead = m->told.error != 0 && !link_knows_better(m);
	int error = lead ? m->told.error : m->worker.error;
	const char *said = lead ? m->told.sentence : sentence_of(m, error);
	const char *own = lead ? own_reason(m) : "";

	return mst_client_fail(m, error, "rank %" PRIu32 " in job \"%s\": %s%s%s", m->job.rank,
			       m->job.name, said, own[0] != '\0' ? "; here: " : "", own);
}

int mst_client_update(struct muster *m)
{
	/* In this order: what a server put before it hung up is found after the news that it
	 * has. */
	if (mst_control_news(m->control))
		mst_control_look(m->control, &m->told);
	/* A reader's fence, as of a sequence lock: what the user read in place before this call was
	 * read before the look that finds whether the session had ended. Pairs with the fence that
	 * the server's put of the session word makes before its buffers change. */
	atomic_thread_fence(memory_order_acquire);
	take_events(m);
	if (m->told.error != 0)
		mst_worker_fail(&m->worker, m->told.error);
	else if (m->link_lost && m->worker.last == MST_VERSION_NONE && !m->told.finished)
		mst_worker_fail(&m->worker, -ENOTCONN);
	mst_client_publish(m);
	return m->worker.phase == MST_WORKER_FAILED ? mst_client_ended(m) : 0;
}
