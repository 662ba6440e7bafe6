/* SPDX-License-Identifier: MIT */
/*
 * What a shard puts to workers. Records are small, and the transport's own once they are put. Two
 * things are put from where they lie and may be on their way for long: a copied result, from the
 * buffer of its version, and a word of advice.
 *
 * Of a session on its way at a time are, at most: a verdict and a grant of each slot, the session
 * word twice, one answer with its record and its result, and one advice. A worker gets no second of
 * any before it has had the first and said so by a header or an ask. The transport has room for so
 * many; one more is asked for only by a worker that breaks the protocol, so it ends that session
 * and nothing ever has to be tried again.
 */
#include <errno.h>
#include <stdatomic.h>

#include "common/base/assert.h"
#include "server/shard_state.h"

/* Cookies: an answer's number, from 1 on. */
#define ADVICE_COOKIE 0u

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

/* It holds the session, and the version its buffer, until it has been sent. */
void mst_shard_send_result(struct mst_shard *s, struct mst_session *session,
			   const struct mst_lane_answer *answer)
{
	int rc = mst_shard_put(s, session,
			       &(struct mst_put){ .offset = s->cfg.layout.down_result,
						  .src = mst_shard_buffer(s, answer->buffer),
						  .bytes = s->cfg.layout.result_bytes,
						  .signal = true,
						  .cookie = answer->number });

	if (rc == 0) {
		session->busy++;
		session->unsent++;
	} else if (rc > 0) {
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
	mst_shard_answered(s, session, cookie);
	mst_shard_unbusy(s, session);
}

void mst_shard_forget_sends(struct mst_session *session)
{
	MST_ASSERT(session->busy >= session->unsent);
	session->busy -= session->unsent;
	session->unsent = 0;
	session->advising = false;
}
