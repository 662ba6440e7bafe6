/* SPDX-License-Identifier: MIT */
/*
 * What a shard puts to workers. Records are small, and the transport's own once they are put. Two
 * things are put from where they lie and may be on their way for long: a copied result, from the
 * buffer of its version, and a word of advice.
 *
 * Of a session on its way at a time are, at most: a verdict and a grant of each slot, both session
 * words, one answer with its record, its result in MST_PARTS_MAX parts and a rest, one advice. A
 * worker gets no second of any before it has had the first and said so by a header or an ask. The
 * transport has room for so many; one more is asked for only by a worker that breaks the protocol,
 * so it ends that session and nothing ever has to be tried again.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "common/kernels/sum.h"
#include "server/shard_state.h"

/* Cookies: of a part of a result its answer's number, from 1 on, and whether it is the last. */
#define ADVICE_COOKIE 0u
#define LAST_PART 1u

int mst_shard_put(struct mst_shard *s, struct mst_session *session, const struct mst_put *put)
{
	struct mst_put one = *put;

	if (session->over)
		return -EPIPE;
	one.more = true; /* a step that puts is followed by one that polls */
	int rc = session->link->ops->put(session->link, &one);
	if (rc < 0)
		mst_shard_lose(s, session, rc == -EAGAIN ? -EPROTO : -EPIPE);
	return rc;
}

/* ---- verdicts, grants, answers ---- */

/* One at a time: a worker hears its verdicts in the order of tickets, whatever their slots. */
void mst_shard_post_verdict(struct mst_shard *s, const struct mst_slot *slot)
{
	if (slot->session->verdicts_due != 0)
		mst_shard_put_due(s, slot->session);
	slot->session->verdicts_due |= 1u << slot->index;
	mst_bitset_add(s->due, slot->session->who.rank);
}

void mst_shard_post_grant(struct mst_shard *s, const struct mst_slot *slot)
{
	slot->session->grants_due |= 1u << slot->index;
	mst_bitset_add(s->due, slot->session->who.rank);
}

/* Those only: the worker may be reading the others. @told: each is announced by itself. */
static void put_cells_due(struct mst_shard *s, struct mst_session *session, bool told)
{
	const struct mst_lane_layout *at = &s->cfg.layout;

	for (uint32_t i = 0; i < s->cfg.slots; i++) {
		const struct mst_slot *slot = &session->slot[i];
		if (session->verdicts_due >> i & 1u)
			mst_shard_put(s, session,
				      &(struct mst_put){ .offset = at->down_verdict[i],
							 .src = &slot->verdict,
							 .bytes = sizeof(slot->verdict),
							 .notify = told,
							 .imm = mst_imm(MST_IMM_VERDICT, i, 0) });
		if (session->grants_due >> i & 1u)
			mst_shard_put(s, session,
				      &(struct mst_put){ .offset = at->down_grant[i],
							 .src = &slot->grant,
							 .bytes = sizeof(slot->grant),
							 .notify = told,
							 .imm = mst_imm(MST_IMM_GRANT, i,
									slot->grant.epoch) });
	}
	session->verdicts_due = session->grants_due = 0;
}

void mst_shard_put_due(struct mst_shard *s, struct mst_session *session)
{
	put_cells_due(s, session, true);
}

struct mst_lane_record *mst_shard_letter_record(const struct mst_shard *s)
{
	return (void *)(s->letter + s->cfg.layout.down_record - s->cfg.layout.down_answer);
}

/* Answer and record are neighbours, and one write. */
void mst_shard_put_answer(struct mst_shard *s, struct mst_session *session,
			  const struct mst_lane_answer *answer, size_t record_bytes)
{
	size_t answer_bytes = s->cfg.layout.down_record - s->cfg.layout.down_answer;
	uint32_t imm = mst_imm_answer(session->verdicts_due, session->grants_due);

	put_cells_due(s, session, false);
	memcpy(s->letter, answer, sizeof(*answer));
	mst_shard_put(s, session,
		      &(struct mst_put){ .offset = s->cfg.layout.down_answer,
					 .src = s->letter,
					 .bytes = answer_bytes + record_bytes,
					 .notify = true,
					 .imm = imm });
}

/* A session that waits for its answer has it all with that, and is woken once. */
void mst_shard_deliver(struct mst_shard *s)
{
	for (size_t word = 0; word < mst_bitset_words(s->cfg.workers); word++) {
		uint64_t ranks = s->due[word];
		s->due[word] = 0;
		for (; ranks != 0; ranks &= ranks - 1) {
			size_t rank = word * 64 + (size_t)__builtin_ctzll(ranks);
			struct mst_session *session = s->session[rank];
			if (session != NULL && !session->answering)
				mst_shard_put_due(s, session);
		}
	}
}

/* ---- advice ---- */

/* One at a time: what comes while it is on its way replaces what is to follow it. */
void mst_shard_advise(struct mst_shard *s, struct mst_session *session, uint64_t version)
{
	size_t offset = s->cfg.layout.down_advice;

	session->advice = version;
	if (session->advising || session->over)
		return;
	char *word = (char *)session->link->outbox + offset;
	/* Relaxed: a hint. Over a transport that maps this is the word muster_check() loads, and
	 * both must see it whole. */
	atomic_store_explicit((_Atomic uint64_t *)(void *)word, version, memory_order_relaxed);
	session->advised = version;
	session->advising = mst_shard_put(s, session,
					  &(struct mst_put){ .offset = offset,
							     .src = word,
							     .bytes = sizeof(version),
							     .signal = true,
							     .cookie = ADVICE_COOKIE }) == 0;
}

/* ---- results ---- */

/* Each holds the session, and the last the version its buffer, until it has been sent. */
void mst_shard_send_result(struct mst_shard *s, struct mst_session *session,
			   const struct mst_lane_answer *answer, const struct mst_span *part)
{
	size_t size = mst_type_bytes(s->cfg.result_type);
	bool last = part->end == s->cfg.elems;
	const char *result = mst_shard_buffer(s, answer->buffer);
	int rc = mst_shard_put(
		s, session,
		&(struct mst_put){ .offset = s->cfg.layout.down_result + part->begin * size,
				   .src = result + part->begin * size,
				   .bytes = (part->end - part->begin) * size,
				   .signal = true,
				   .cookie = answer->number << 1 | (last ? LAST_PART : 0) });

	if (rc == 0) {
		session->busy++;
		session->unsent++;
	} else if (rc > 0 && last) {
		mst_shard_answered(s, session, answer->number);
	}
}

void mst_shard_answered(struct mst_shard *s, struct mst_session *session, uint64_t number)
{
	struct mst_ledger_event ev = {
		.kind = MST_EV_ANSWERED,
		.who = session->who,
		.answered = { .shard = s->cfg.index, .number = number },
	};

	s->up.event(s->up.ctx, &ev);
}

void mst_shard_sent(struct mst_shard *s, struct mst_session *session, uint64_t cookie)
{
	if (cookie == ADVICE_COOKIE) {
		session->advising = false;
		if (session->advice != session->advised)
			mst_shard_advise(s, session, session->advice);
		return;
	}
	MST_ASSERT(session->unsent > 0);
	session->unsent--;
	if (cookie & LAST_PART)
		mst_shard_answered(s, session, cookie >> 1);
	mst_shard_unbusy(s, session);
}

void mst_shard_forget_sends(struct mst_session *session)
{
	MST_ASSERT(session->busy >= session->unsent);
	session->busy -= session->unsent;
	session->unsent = 0;
	session->advising = false;
}
