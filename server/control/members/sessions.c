/* SPDX-License-Identifier: MIT */
#include "server/control/members/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/rand.h"
#include "common/transport/origins.h"
#include "server/control/members/token.h"

/* ---- states ---- */

#define NEVER (-1)
#define FREE MST_PENDING_FREE
#define ANNOUNCED MST_PENDING_ANNOUNCED
#define EXPECTED MST_PENDING_EXPECTED
#define LINKING MST_PENDING_LINKING
#define LENT MST_PENDING_LENT

static const int after[MST_PENDING_STATES][MST_PENDING_EVENTS] = {
	/*              ANNOUNCE   EXPECT    REQUEST  LEND   END */
	[FREE] = { ANNOUNCED, EXPECTED, NEVER, NEVER, NEVER },
	[ANNOUNCED] = { NEVER, EXPECTED, NEVER, NEVER, FREE },
	[EXPECTED] = { NEVER, NEVER, LINKING, NEVER, FREE },
	[LINKING] = { NEVER, NEVER, NEVER, LENT, FREE },
	[LENT] = { NEVER, NEVER, NEVER, NEVER, FREE },
};

bool mst_pending_enter(enum mst_pending_state *state, enum mst_pending_event event)
{
	int next = after[*state][event];

	if (next == NEVER)
		return false;
	*state = (enum mst_pending_state)next;
	return true;
}

/* ---- beginning and end ---- */

int mst_sessions_init(struct mst_sessions *s, uint32_t workers, uint32_t max)
{
	*s = (struct mst_sessions){ .row = calloc(max, sizeof(*s->row)) };
	s->newest = calloc(workers, sizeof(*s->newest));
	s->over = calloc(workers, sizeof(struct mst_transport *));
	if (s->row == NULL || s->newest == NULL || s->over == NULL ||
	    mst_ranks_init(&s->free, max) != 0)
		return -ENOMEM;
	s->max = max;
	s->workers = workers;
	for (uint32_t i = 0; i < max; i++)
		mst_ranks_add(&s->free, i);
	for (uint32_t rank = 0; rank < workers; rank++)
		s->newest[rank] = MST_RANK_NONE;
	return 0;
}

uint64_t mst_sessions_bytes(uint32_t workers, uint32_t max)
{
	return max * (uint64_t)sizeof(struct mst_pending_session) +
	       workers * (uint64_t)(sizeof(uint32_t) + sizeof(struct mst_transport *)) +
	       mst_ranks_bytes(max);
}

void mst_sessions_fini(struct mst_sessions *s)
{
	mst_sessions_end_all(s);
	mst_ranks_fini(&s->free);
	free(s->over);
	free(s->newest);
	free(s->row);
	*s = (struct mst_sessions){ 0 };
}

struct mst_pending_session *mst_sessions_admit(struct mst_sessions *s, struct mst_identity who,
					       uint32_t unready)
{
	uint32_t i = mst_ranks_first(&s->free);

	MST_ASSERT(who.rank < s->workers);
	if (i == MST_RANK_NONE)
		return NULL;
	struct mst_pending_session *p = &s->row[i];
	*p = (struct mst_pending_session){ .session = { .who = who }, .unready = unready };
	if (mst_rand_secret(p->token, sizeof(p->token)) != 0)
		return NULL;
	(void)mst_pending_enter(&p->state,
				unready != 0 ? MST_PENDING_ANNOUNCE : MST_PENDING_EXPECT);
	p->expected_ns = s->answering.clock_ns;
	p->older = s->newest[who.rank];
	s->newest[who.rank] = i;
	mst_ranks_remove(&s->free, i);
	s->count++;
	return p;
}

bool mst_sessions_confirm(struct mst_sessions *s, struct mst_pending_session *p, uint32_t server)
{
	p->expected_ns = s->answering.clock_ns;
	p->unready &= ~(1u << server);
	return p->state == ANNOUNCED && p->unready == 0 &&
	       mst_pending_enter(&p->state, MST_PENDING_EXPECT);
}

/* Takes the session out of those of its rank. */
static void unchain(struct mst_sessions *s, const struct mst_pending_session *p)
{
	uint32_t *next = &s->newest[p->session.who.rank];

	while (&s->row[*next] != p)
		next = &s->row[*next].older;
	*next = p->older;
}

void mst_sessions_end(struct mst_sessions *s, struct mst_pending_session *p)
{
	struct mst_link *link = p->session.link;

	if (!mst_pending_enter(&p->state, MST_PENDING_END))
		return;
	s->count--;
	unchain(s, p);
	mst_ranks_add(&s->free, (uint32_t)(p - s->row));
	if (link != NULL)
		link->ops->link_free(link);
	*p = (struct mst_pending_session){ .state = FREE };
}

void mst_sessions_forget(struct mst_sessions *s, struct mst_identity who)
{
	struct mst_pending_session *p = mst_sessions_of(s, who);

	if (p != NULL && p->state != LENT)
		mst_sessions_end(s, p);
}

void mst_sessions_end_all(struct mst_sessions *s)
{
	for (uint32_t i = 0; i < s->max; i++)
		mst_sessions_end(s, &s->row[i]);
}

/* ---- how long a token is good for ---- */

/* After all requests have been answered, the clock runs on for this long, and then stands still
 * until they have been again: a worker that had to wait for the server is not late. */
#define FRESH_NS MST_SECOND

void mst_sessions_look(struct mst_sessions *s, uint64_t now_ns)
{
	if (s->answering.looked_ns == 0)
		mst_listening_start(&s->answering, FRESH_NS, now_ns);
	(void)mst_listening_now(&s->answering, now_ns);
}

void mst_sessions_answered(struct mst_sessions *s, uint64_t now_ns)
{
	mst_listening_heard(&s->answering, now_ns, now_ns);
}

uint64_t mst_sessions_waited(const struct mst_sessions *s, const struct mst_pending_session *p)
{
	return mst_sessions_since(s, p->expected_ns);
}

uint64_t mst_sessions_since(const struct mst_sessions *s, uint64_t then_ns)
{
	uint64_t read_ns = s->answering.read_ns;

	return read_ns > then_ns ? read_ns - then_ns : 0;
}

/* ---- looking for one ---- */

static bool is_same(struct mst_identity a, struct mst_identity b)
{
	return a.rank == b.rank && a.incarnation == b.incarnation;
}

struct mst_pending_session *mst_sessions_of(const struct mst_sessions *s, struct mst_identity who)
{
	uint32_t i = who.rank < s->workers ? s->newest[who.rank] : MST_RANK_NONE;

	while (i != MST_RANK_NONE && !is_same(s->row[i].session.who, who))
		i = s->row[i].older;
	return i != MST_RANK_NONE ? &s->row[i] : NULL;
}

static struct mst_pending_session *by_token(const struct mst_sessions *s, const uint8_t *token,
					    enum mst_pending_state state)
{
	for (uint32_t i = 0; i < s->max; i++) {
		struct mst_pending_session *p = &s->row[i];
		if (p->state == state && mst_token_is(p->token, token))
			return p;
	}
	return NULL;
}

struct mst_pending_session *mst_sessions_spend(struct mst_sessions *s,
					       const struct mst_link_request *request)
{
	struct mst_pending_session *p = by_token(s, request->token, EXPECTED);

	if (p == NULL || !mst_origins_cover(&p->origins, &request->from))
		return NULL;
	(void)mst_pending_enter(&p->state, MST_PENDING_REQUEST);
	return p;
}

const struct mst_pending_session *mst_sessions_expecting(const struct mst_sessions *s,
							 const uint8_t *token)
{
	return by_token(s, token, EXPECTED);
}

struct mst_pending_session *mst_sessions_linking(const struct mst_sessions *s, const uint8_t *token)
{
	return by_token(s, token, LINKING);
}

/* ---- why links broke ---- */

/* The data thread has written the reason before it reported the loss, and does not write it
 * again. */
static const char *link_reason(const struct mst_session *session)
{
	if (!session->lost)
		return "";
	if (session->why.text[0] != '\0')
		return session->why.text;
	return session->link != NULL ? session->link->why.text : "";
}

/* The session may still be there, because its slots are still being read; or it was let go last. */
const char *mst_sessions_link_reason(const struct mst_sessions *s, struct mst_identity who)
{
	const struct mst_pending_session *p = mst_sessions_of(s, who);

	if (p != NULL && p->state == LENT)
		return link_reason(&p->session);
	return is_same(s->let_go.who, who) ? s->let_go.why.text : "";
}

void mst_sessions_let_go(struct mst_sessions *s, const struct mst_session *session)
{
	s->let_go.who = session->who;
	mst_reason_set(&s->let_go.why, "%s", link_reason(session));
	for (uint32_t i = s->newest[session->who.rank]; i != MST_RANK_NONE; i = s->row[i].older) {
		if (&s->row[i].session == session) {
			mst_sessions_end(s, &s->row[i]);
			return;
		}
	}
}
