/* SPDX-License-Identifier: MIT */
/*
 * Puts results, records, verdicts, grants and hints to workers. Records are small, and the
 * transport's own once they are put. Two things are put from where they lie and may be on their way
 * for long: a copied result, from the buffer of its version, and a hint.
 *
 * At most the following of a session is on its way at a time: a verdict and a grant of each slot,
 * both session words, one answer with its record, its result in MST_PARTS_MAX parts and the mark
 * before it, one hint. A worker gets no second of any before it has had the first and said so by a
 * header or an ask. The transport has room for all of these; one more is asked for only by a worker
 * that breaks the protocol, so it ends that session and nothing ever has to be tried again.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/kernels/sum.h"
#include "server/data/aggregator_state.h"

/* Cookies: of a part of a result its answer's number, from 1 on, and whether it is the last. */
#define HINT_COOKIE 0u
#define LAST_PART 1u

static_assert(MST_RAILS_MAX <= MST_MARK_WORDS, "each rail of a link has a mark of its own");

int mst_aggregator_put(struct mst_aggregator *a, struct mst_session *session,
		       const struct mst_put *put)
{
	struct mst_put one = *put;

	if (session->over)
		return -EPIPE;
	one.more = true; /* a step that puts is followed by one that polls */
	int rc = session->link->ops->put(session->link, &one);
	if (rc == -EAGAIN)
		mst_aggregator_lose(
			a, session,
			mst_aggregator_refuse(
				session, "it leaves no credit, or no room, for what it is sent"));
	else if (rc < 0)
		mst_aggregator_lose(a, session, -EPIPE);
	return rc;
}

/* ---- verdicts, grants, answers ---- */

/* One at a time: a worker hears its verdicts in the order of tickets, whatever their slots. */
void mst_aggregator_post_verdict(struct mst_aggregator *a, const struct mst_slot *slot)
{
	if (slot->session->verdicts_due != 0)
		mst_aggregator_put_due(a, slot->session);
	slot->session->verdicts_due |= 1u << slot->index;
	mst_ranks_add(&a->due, slot->session->who.rank);
}

void mst_aggregator_post_grant(struct mst_aggregator *a, const struct mst_slot *slot)
{
	slot->session->grants_due |= 1u << slot->index;
	mst_ranks_add(&a->due, slot->session->who.rank);
}

/* Puts only those that are due: the worker may be reading the others. @told: each put is announced
 * by itself. */
static void put_verdicts_and_grants(struct mst_aggregator *a, struct mst_session *session,
				    bool told)
{
	const struct mst_lane_layout *at = &a->cfg.layout;

	for (uint32_t i = 0; i < a->cfg.slots; i++) {
		const struct mst_slot *slot = &session->slot[i];
		if (session->verdicts_due >> i & 1u)
			mst_aggregator_put(
				a, session,
				&(struct mst_put){ .offset = at->down_verdict[i],
						   .src = &slot->verdict,
						   .bytes = sizeof(slot->verdict),
						   .notify = told,
						   .imm = mst_imm(MST_IMM_VERDICT, i, 0) });
		if (session->grants_due >> i & 1u)
			mst_aggregator_put(a, session,
					   &(struct mst_put){ .offset = at->down_grant[i],
							      .src = &slot->grant,
							      .bytes = sizeof(slot->grant),
							      .notify = told,
							      .imm = mst_imm(MST_IMM_GRANT, i,
									     slot->grant.epoch) });
	}
	session->verdicts_due = session->grants_due = 0;
}

void mst_aggregator_put_due(struct mst_aggregator *a, struct mst_session *session)
{
	put_verdicts_and_grants(a, session, true);
}

/* ---- a response: verdicts and grants that are due and next to the answer; answer; record ---- */

static size_t response_begin(const struct mst_lane_layout *l)
{
	return l->down_verdict[l->slots - 1];
}

size_t mst_aggregator_response_bytes(const struct mst_lane_layout *l)
{
	return l->down_result - response_begin(l);
}

static char *response_at(const struct mst_aggregator *a, size_t offset)
{
	return a->response + (offset - response_begin(&a->cfg.layout));
}

struct mst_lane_record *mst_aggregator_response_record(const struct mst_aggregator *a)
{
	return (void *)response_at(a, a->cfg.layout.down_record);
}

/* Takes in verdicts and grants from the answer backwards, up to the first that is not due: the
 * worker may be reading that one. Return: where the response begins. */
static size_t enclose_due(struct mst_aggregator *a, struct mst_session *session)
{
	const struct mst_lane_layout *at = &a->cfg.layout;
	size_t begin = at->down_answer;

	for (uint32_t i = 0; i < a->cfg.slots; i++) {
		const struct mst_slot *slot = &session->slot[i];
		if (!(session->grants_due >> i & 1u))
			break;
		begin = at->down_grant[i];
		memcpy(response_at(a, begin), &slot->grant, sizeof(slot->grant));
		session->grants_due &= ~(1u << i);
		if (!(session->verdicts_due >> i & 1u))
			break;
		begin = at->down_verdict[i];
		memcpy(response_at(a, begin), &slot->verdict, sizeof(slot->verdict));
		session->verdicts_due &= ~(1u << i);
	}
	return begin;
}

void mst_aggregator_put_answer(struct mst_aggregator *a, struct mst_session *session,
			       const struct mst_lane_answer *answer, size_t record_bytes)
{
	uint32_t imm = mst_imm_answer(session->verdicts_due, session->grants_due);
	size_t begin = enclose_due(a, session);

	put_verdicts_and_grants(a, session, false);
	memcpy(response_at(a, a->cfg.layout.down_answer), answer, sizeof(*answer));
	mst_aggregator_put(
		a, session,
		&(struct mst_put){ .offset = begin,
				   .src = response_at(a, begin),
				   .bytes = a->cfg.layout.down_record + record_bytes - begin,
				   .notify = true,
				   .imm = imm });
}

/* A session that waits for its answer has it all with that, and is woken once. */
void mst_aggregator_deliver(struct mst_aggregator *a)
{
	for (uint32_t rank; (rank = mst_ranks_first(&a->due)) != MST_RANK_NONE;) {
		struct mst_session *session = a->session[rank];
		mst_ranks_remove(&a->due, rank);
		if (session != NULL && !session->answering)
			mst_aggregator_put_due(a, session);
	}
}

/* ---- hints ---- */

/* One hint is on its way at a time. A hint that comes meanwhile replaces the one that waits. */
void mst_aggregator_advise(struct mst_aggregator *a, struct mst_session *session, uint64_t word)
{
	size_t offset = a->cfg.layout.down_hint;

	session->hint = word;
	if (session->advising || session->over)
		return;
	char *at = (char *)session->link->outbound + offset;
	/* Relaxed: a hint. Over a transport that maps this is the word muster_check() loads, and
	 * both must see it whole. */
	atomic_store_explicit((_Atomic uint64_t *)(void *)at, word, memory_order_relaxed);
	session->advised = word;
	session->advising = mst_aggregator_put(a, session,
					       &(struct mst_put){ .offset = offset,
								  .src = at,
								  .bytes = sizeof(word),
								  .urgent = true,
								  .signal = true,
								  .cookie = HINT_COOKIE }) == 0;
}

/* ---- results ---- */

/* Nothing of a version is put before its mark, on whichever rail. Return: it is put. */
static bool mark_result(struct mst_aggregator *a, struct mst_session *session, uint64_t version)
{
	if (!a->cfg.marks || session->marked == version)
		return true;
	int rc = mst_aggregator_put(a, session,
				    &(struct mst_put){ .offset = a->cfg.layout.down_mark,
						       .src = &version,
						       .bytes = sizeof(version),
						       .every_rail = true });
	if (rc < 0)
		return false;
	session->marked = version;
	return true;
}

/* Each part keeps its session until it has been sent. The last part also keeps the version's
 * buffer. */
void mst_aggregator_send_result(struct mst_aggregator *a, struct mst_session *session,
				const struct mst_lane_answer *answer,
				const struct mst_result_part *part)
{
	size_t size = mst_type_bytes(a->cfg.result_type);
	const char *result = mst_version_buffer(a, answer->buffer);
	const struct mst_span *span = &part->span;

	if (!mark_result(a, session, answer->version))
		return;
	int rc = mst_aggregator_put(
		a, session,
		&(struct mst_put){ .offset = a->cfg.layout.down_result + span->begin * size,
				   .src = result + span->begin * size,
				   .bytes = (span->end - span->begin) * size,
				   .signal = true,
				   .cookie = answer->number << 1 | (part->last ? LAST_PART : 0) });

	if (rc == 0) {
		session->busy++;
		session->unsent++;
	} else if (rc > 0 && part->last) {
		mst_aggregator_answered(a, session, answer->number);
	}
}

void mst_aggregator_answered(struct mst_aggregator *a, struct mst_session *session, uint64_t number)
{
	struct mst_ledger_event ev = {
		.kind = MST_EV_ANSWERED,
		.who = session->who,
		.answered = { .shard = a->cfg.index, .number = number },
	};

	a->up.event(a->up.ctx, &ev);
}

void mst_aggregator_sent(struct mst_aggregator *a, struct mst_session *session, uint64_t cookie)
{
	if (cookie == HINT_COOKIE) {
		session->advising = false;
		if (session->hint != session->advised)
			mst_aggregator_advise(a, session, session->hint);
		return;
	}
	MST_ASSERT(session->unsent > 0);
	session->unsent--;
	if (cookie & LAST_PART)
		mst_aggregator_answered(a, session, cookie >> 1);
	mst_aggregator_unbusy(a, session);
}

void mst_aggregator_forget_sends(struct mst_session *session)
{
	MST_ASSERT(session->busy >= session->unsent);
	session->busy -= session->unsent;
	session->unsent = 0;
	session->advising = false;
}
