/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/returns.h"

#include "common/base/clock.h"
#include "server/core/ledger/state/resized.h"

/* So many have to claim something before one of them can be found to be wrong. */
#define CLAIMS_MIN 3u

/* A start may go without one that has only said hello, and so without what it has. */
bool mst_returns_claims(const struct mst_member *m)
{
	return mst_member_takes_part(m) && m->claimed.number > 0;
}

uint64_t mst_returns_seen(const struct mst_ledger *l, const struct mst_claimed *claimed)
{
	bool own = claimed->seen_id == l->cfg.generation_id;

	return claimed->seen > claimed->number && !own ? claimed->seen : claimed->number;
}

bool mst_returns_any(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (mst_returns_claims(&l->member[rank]))
			return true;
	}
	return false;
}

/* Two generations of one number have begun apart. The id of the maker decides which comes first, so
 * that the order of ranks does not. */
static bool is_newer(const struct mst_claimed *a, const struct mst_claimed *b)
{
	if (a->number != b->number)
		return a->number > b->number;
	if (a->version != b->version)
		return a->version > b->version;
	return a->made > b->made;
}

static struct mst_member *newest_claim(struct mst_ledger *l)
{
	struct mst_member *newest = NULL;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		if (mst_returns_claims(m) &&
		    (newest == NULL || is_newer(&m->claimed, &newest->claimed)))
			newest = m;
	}
	return newest;
}

/* Is it further ahead of all others than any can be? One that has taken its version over was late
 * itself, and tells nothing of how far the others are. */
static bool is_absurd(const struct mst_ledger *l, const struct mst_member *first)
{
	uint32_t claims = 1;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (m == first || !mst_returns_claims(m) || m->claimed.taken)
			continue;
		if (m->claimed.number != first->claimed.number ||
		    first->claimed.version - m->claimed.version <= l->cfg.history)
			return false;
		claims++;
	}
	return l->cfg.owner == MUSTER_WORKERS_OWN && claims >= CLAIMS_MIN;
}

struct mst_claimed mst_returns_newest(struct mst_ledger *l)
{
	struct mst_member *first = newest_claim(l);

	while (first != NULL && is_absurd(l, first)) {
		first->claimed.number = 0;
		first = newest_claim(l);
	}
	return first != NULL ? first->claimed : (struct mst_claimed){ 0 };
}

uint64_t mst_returns_awaited_until(const struct mst_ledger *l, const struct mst_member *m)
{
	if (m->state == MST_MEMBER_ABSENT)
		return l->gathering.return_until;
	if (m->state != MST_MEMBER_JOINED)
		return 0;
	return l->rule.patience_ns < MST_NEVER - m->joined_ns ? m->joined_ns + l->rule.patience_ns
							      : MST_NEVER;
}

uint64_t mst_returns_until(const struct mst_ledger *l)
{
	uint64_t until = l->join_until;

	if (l->now_ns < l->join_until)
		return l->join_until;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		bool computes = m->state == MST_MEMBER_JOINED &&
				mst_claimed_takes_part(&m->claimed);
		uint64_t one = computes ? mst_returns_awaited_until(l, m) : 0;
		until = one > until ? one : until;
	}
	return until;
}

bool mst_returns_are_here(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (m->state != MST_MEMBER_ABSENT && mst_claimed_takes_part(&m->claimed))
			return true;
	}
	return false;
}

/* A generation has made all versions after the one that it began with. */
bool mst_returns_is_on_line(const struct mst_ledger *l, const struct mst_claimed *claimed)
{
	const struct mst_ledger_generation *g = &l->generation;

	if (l->phase != MST_PHASE_RUNNING || claimed->number == 0 || g->number == 0)
		return false;
	if (claimed->version > g->began)
		return claimed->made == l->cfg.generation_id && claimed->version <= l->store.newest;
	if (g->number == 1)
		return claimed->version == g->began && claimed->made == 0;
	return mst_claimed_same(claimed, &g->newest) || mst_claimed_before(claimed, &g->newest);
}

/* No generation has made the first version of a run. A worker that has not had it yet begins with
 * it, as the others did. One that takes states has the whole state of another in place of it. */
static bool begins_with(const struct mst_member *m, const struct mst_claimed *newest)
{
	return m->state != MST_MEMBER_ABSENT && m->claimed.number == 0 && newest->made == 0 &&
	       !m->comes_back;
}

/* One that is not there may come yet, and lack the newest version. */
struct mst_member *mst_returns_donor(struct mst_ledger *l, const struct mst_claimed *newest)
{
	struct mst_member *donor = NULL;
	bool lacks = false;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		bool has = mst_claimed_same(&m->claimed, newest);
		lacks |= m->state == MST_MEMBER_ABSENT || (m->claimed.number > 0 && !has) ||
			 begins_with(m, newest);
		if (has && mst_returns_claims(m) &&
		    (donor == NULL || (m->offers && !donor->offers)))
			donor = m;
	}
	return lacks ? donor : NULL;
}

/* Did no state come with the newest version, so that nobody lacks one? */
static bool is_stateless(const struct mst_ledger *l, const struct mst_claimed *newest)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (m->stateless && mst_claimed_same(&m->claimed, newest))
			return true;
	}
	return false;
}

static void go_on(struct mst_member *m)
{
	m->given = m->ask.have = m->claimed.version;
}

/* The number is after all that the checkpoint and workers know of. */
static void begin_with_checkpoint(struct mst_ledger *l)
{
	struct mst_ledger_generation *g = &l->generation;
	uint64_t number = g->next;

	*g = (struct mst_ledger_generation){
		.number = number, .next = number, .began = l->store.first, .newest = l->saved
	};
	g->newest.number = number - 1;
}

void mst_returns_begin(struct mst_ledger *l, const struct mst_claimed *newest)
{
	if (l->cfg.owner == MUSTER_SERVERS_OWN) {
		begin_with_checkpoint(l);
		return;
	}
	l->generation = (struct mst_ledger_generation){
		.number = l->generation.next,
		.next = l->generation.next,
		.began = newest->version,
		.newest = *newest,
	};
	l->has_start_state &= mst_claimed_same(&l->brought, newest);
	l->samples_total = newest->samples;
	l->reduction.applied = newest->version;
	mst_store_begin_with(&l->store, newest->version);
	bool has_first = l->has_start_state || is_stateless(l, newest);
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		if (mst_claimed_same(&m->claimed, newest) ||
		    mst_claimed_before(&m->claimed, newest))
			go_on(m);
		else if (!has_first || !begins_with(m, newest))
			m->comes_late = m->state != MST_MEMBER_ABSENT;
		mst_changed(l, m);
	}
}

void mst_returns_join(struct mst_ledger *l, struct mst_member *m)
{
	if (l->cfg.owner == MUSTER_WORKERS_OWN && mst_returns_is_on_line(l, &m->claimed))
		go_on(m);
}

bool mst_returns_lacks_first(const struct mst_ledger *l, const struct mst_member *m,
			     uint64_t version)
{
	bool has = m->ask.have == version;
	bool next = m->ask.have != MST_VERSION_NONE ? l->has_start_state : !m->comes_late;

	return l->cfg.owner == MUSTER_WORKERS_OWN && l->generation.number > 1 &&
	       version == l->store.first && !has && !next;
}
