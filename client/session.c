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
#define WHOSE_LEN (MST_CLIENT_NAME_LEN + 32)

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

static uint32_t number_of(const struct muster *m, const struct mst_client_part *p)
{
	return (uint32_t)(p - m->part);
}

static void copy_from(const struct mst_client_part *p, size_t offset, void *into, size_t bytes)
{
	memcpy(into, (const char *)p->link->landing + offset, bytes);
}

static int take_session(struct muster *m, struct mst_client_part *p, uint32_t which)
{
	struct mst_lane_session word;

	if (which >= MST_SESSION_WORDS)
		return -EPROTO;
	copy_from(p, p->layout.down_session[which], &word, sizeof(word));
	if (word.state == MST_SESSION_FINISHED)
		/* The lead's word alone counts. */
		return p == m->part ? mst_worker_ended(&m->worker, word.version) : 0;
	if (word.state != MST_SESSION_ENDED)
		return -EPROTO;
	m->put_out = p;
	mst_worker_fail(&m->worker, mst_control_ending(word.error));
	return 0;
}

static int copy_grant(const struct mst_client_part *p, uint32_t slot, struct mst_lane_grant *out)
{
	if (slot >= p->layout.slots)
		return -EPROTO;
	copy_from(p, p->layout.down_grant[slot], out, sizeof(*out));
	return 0;
}

static int take_grant(struct muster *m, const struct mst_client_part *p, uint32_t imm)
{
	struct mst_lane_grant grant;
	int rc = copy_grant(p, mst_imm_slot(imm), &grant);

	if (rc == 0 && (grant.epoch & MST_IMM_EPOCH_MASK) != mst_imm_epoch(imm))
		rc = -EPROTO;
	return rc == 0 ? mst_worker_granted(&m->worker, number_of(m, p), mst_imm_slot(imm),
					    grant.epoch)
		       : rc;
}

static int take_verdict(struct muster *m, const struct mst_client_part *p, uint32_t slot)
{
	struct mst_lane_verdict verdict;

	if (slot >= p->layout.slots)
		return -EPROTO;
	copy_from(p, p->layout.down_verdict[slot], &verdict, sizeof(verdict));
	return mst_worker_judged(&m->worker, number_of(m, p), slot, &verdict);
}

/* What has come with an answer. */
static int take_slots(struct muster *m, const struct mst_client_part *p, uint32_t verdicts,
		      uint32_t grants)
{
	struct mst_lane_grant grant;
	int rc = 0;

	for (uint32_t slot = 0; slot < MST_SLOTS_MAX && rc == 0; slot++) {
		if (verdicts >> slot & 1u)
			rc = take_verdict(m, p, slot);
		if (rc == 0 && grants >> slot & 1u) {
			rc = copy_grant(p, slot, &grant);
			if (rc == 0)
				rc = mst_worker_granted(&m->worker, number_of(m, p), slot,
							grant.epoch);
		}
	}
	return rc;
}

static int take_answer(struct muster *m, const struct mst_client_part *p, uint32_t imm)
{
	const char *record = (const char *)p->link->landing + p->layout.down_record;
	struct mst_lane_answer answer;
	int rc = take_slots(m, p, mst_imm_verdicts(imm), mst_imm_grants(imm));

	if (rc != 0)
		return rc;
	copy_from(p, p->layout.down_answer, &answer, sizeof(answer));
	return mst_worker_answered(&m->worker, number_of(m, p), &answer, record);
}

static int take_arrival(struct muster *m, struct mst_client_part *p, uint32_t imm)
{
	switch (mst_imm_kind(imm)) {
	case MST_IMM_SESSION:
		return take_session(m, p, mst_imm_slot(imm));
	case MST_IMM_GRANT:
		return take_grant(m, p, imm);
	case MST_IMM_VERDICT:
		return take_verdict(m, p, mst_imm_slot(imm));
	case MST_IMM_ANSWER:
		return take_answer(m, p, imm);
	default:
		return -EPROTO;
	}
}

static struct mst_client_part *part_of(struct muster *m, const struct mst_link *link)
{
	struct mst_client_part *p = m->part;

	while (p->link != link)
		p++;
	return p;
}

static void take_event(struct muster *m, const struct mst_net_event *ev)
{
	struct mst_client_part *p = part_of(m, ev->link);

	switch (ev->kind) {
	case MST_ARRIVED:
		if (take_arrival(m, p, ev->imm) == 0)
			break;
		m->odd = m->odd != NULL ? m->odd : p;
		mst_worker_fail(&m->worker, -EPROTO);
		break;
	case MST_SENT:
		mst_worker_sent(&m->worker, (uint32_t)ev->cookie);
		break;
	case MST_LOST:
		p->lost = true;
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

/* A link that is lost, and not because its server has ended the session; NULL: none is. */
static const struct mst_client_part *broken(const struct muster *m)
{
	for (uint32_t k = 0; k < m->part_count; k++)
		if (m->part[k].lost && &m->part[k] != m->put_out)
			return &m->part[k];
	return NULL;
}

/* What that link says of it; NULL: there is none. */
static const char *why_broken(const struct muster *m)
{
	const struct mst_client_part *p = broken(m);

	return p != NULL ? p->link->why : NULL;
}

static const char *sentence_of(const struct muster *m, int error)
{
	const char *why = why_broken(m);

	if (error == -ENOTCONN && why != NULL && why[0] != '\0')
		return why;
	switch (error) {
	case -EPROTO:
		if (m->part_count > 1)
			return "what it sent the protocol does not allow at this point, or it "
			       "differs from what other servers sent";
		return "the server sent what the protocol does not allow at this point";
	case -EHOSTDOWN:
		return "the job has failed: too few live workers, or a server of it is gone";
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
	const char *why = m->put_out != NULL ? NULL : why_broken(m);

	return why != NULL && strstr(m->told.sentence, why) == NULL ? why : "";
}

/* Of several servers, which one's link broke, or which one has ended the session: because it lost
 * another server, perhaps, as this worker did. */
static const char *whose(const struct muster *m, char *out)
{
	const struct mst_client_part *p = m->odd != NULL ? NULL : broken(m);
	const struct mst_client_part *said = m->odd != NULL ? m->odd : m->put_out;
	char name[MST_CLIENT_NAME_LEN];

	out[0] = '\0';
	if (m->part_count > 1 && p != NULL)
		(void)snprintf(out, WHOSE_LEN,
			       "the link to %s is lost: ", mst_client_name(m, p, name));
	else if (m->part_count > 1 && said != NULL)
		(void)snprintf(out, WHOSE_LEN, "%s: ", mst_client_name(m, said, name));
	return out;
}

/* A lead that hangs up may have had no time for words; what a server put before says more. */
static bool link_knows_better(const struct muster *m)
{
	return m->put_out != NULL && m->told.error == -ENOTCONN && m->worker.error != 0 &&
	       m->worker.error != -ENOTCONN;
}

/* Is it about one server, and not what all of them say? */
static bool names_server(const struct muster *m, int error)
{
	return error == -ENOTCONN || (error == -EPROTO && m->odd != NULL);
}

/* The lead's own words are better than what the link could tell: they may lie unread. */
int mst_client_ended(struct muster *m)
{
	char of[WHOSE_LEN];

	if (m->told.error == 0 && !m->told.closed) {
		(void)mst_control_step(m->control, mst_now_ns());
		mst_control_look(m->control, &m->told);
	}
	bool lead = m->told.error != 0 && !link_knows_better(m);
	int error = lead ? m->told.error : m->worker.error;
	const char *said = lead ? m->told.sentence : sentence_of(m, error);
	const char *own = lead ? own_reason(m) : "";

	(void)whose(m, of);
	if (own[0] != '\0')
		return mst_client_fail(m, error, "rank %" PRIu32 " in job \"%s\": %s; here: %s%s",
				       m->job.rank, m->job.name, said, of, own);
	return mst_client_fail(m, error, "rank %" PRIu32 " in job \"%s\": %s%s", m->job.rank,
			       m->job.name, lead || !names_server(m, error) ? "" : of, said);
}

/* Is a link lost, and the end of the job no reason for it? */
static bool is_cut_off(const struct muster *m)
{
	for (uint32_t k = 0; k < m->part_count; k++)
		if (m->part[k].lost)
			return m->worker.last == MST_VERSION_NONE && !m->told.finished;
	return false;
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
	else if (is_cut_off(m))
		mst_worker_fail(&m->worker, -ENOTCONN);
	mst_client_publish(m);
	return m->worker.phase == MST_WORKER_FAILED ? mst_client_ended(m) : 0;
}
