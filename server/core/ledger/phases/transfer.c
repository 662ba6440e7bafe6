/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/transfer.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/core/ledger/state/behind.h"
#include "server/core/ledger/state/life.h"

/* A donor computes first, for up to patience; then it gives, and the leader receives. */
#define GIVING_PATIENCES 2u

static uint64_t giving_ns(const struct mst_ledger *l)
{
	uint64_t patience = l->rule.patience_ns;

	return patience < MST_NEVER / GIVING_PATIENCES ? GIVING_PATIENCES * patience : MST_NEVER;
}

static uint64_t after(uint64_t since_ns, uint64_t time_ns)
{
	return time_ns < MST_NEVER - since_ns ? since_ns + time_ns : MST_NEVER;
}

/* The next member from @rank on that is behind; NULL: there is none. */
static struct mst_member *next_behind(struct mst_ledger *l, uint32_t rank)
{
	rank = mst_counts_next(&l->counts, MST_STANDS_BEHIND, rank);
	return rank != MST_RANK_NONE ? &l->member[rank] : NULL;
}

#define FOR_BEHIND(l, m)                                                                           \
	for (struct mst_member *m = next_behind(l, 0); m != NULL; m = next_behind(l, m->rank + 1))

static bool somebody_waits(struct mst_ledger *l)
{
	FOR_BEHIND(l, m)
	if (m->behind == MST_BEHIND_WAITS)
		return true;
	return false;
}

/* Nothing of the last asking is needed any more. */
static void stop(struct mst_ledger *l)
{
	l->transfer.state = MST_TRANSFER_IDLE;
	l->transfer.idle_ns = l->now_ns;
	mst_decide(l, MST_DO_HANDED, NULL);
}

/* Can whoever has @version go on with the version after it? */
static bool goes_on_from(const struct mst_ledger *l, uint64_t version)
{
	return version == l->store.newest || mst_store_keeps(&l->store, version + 1);
}

/* ---- who gives ---- */

/* The version that the worker may still be at: an answer that the ledger has decided may not have
 * reached it. */
static uint64_t oldest_of(const struct mst_ledger *l, const struct mst_member *m)
{
	return m->ask.have != MST_VERSION_NONE ? m->ask.have : l->store.first;
}

/* A worker that waits may have been outrun because the last donor was too slow. */
static bool wants_another(struct mst_ledger *l)
{
	FOR_BEHIND(l, m)
	if (m->behind == MST_BEHIND_WAITS && m->outrun > 0)
		return true;
	return false;
}

/* The newest version that a worker has which waits, as its state is not the others': it cannot take
 * an older one. */
static uint64_t least_wanted(struct mst_ledger *l)
{
	uint64_t least = 0;

	FOR_BEHIND(l, m)
	if (m->behind == MST_BEHIND_WAITS && m->ask.have != MST_VERSION_NONE && m->ask.have > least)
		least = m->ask.have;
	return least;
}

static bool was_last(const struct mst_ledger *l, const struct mst_member *m)
{
	return m->rank == l->transfer.donor.rank && m->incarnation == l->transfer.donor.incarnation;
}

/* The most up to date of the workers that have not been asked. If another worker than the last
 * donor is wanted, the last donor comes last. */
static struct mst_member *find_donor(struct mst_ledger *l)
{
	struct mst_member *best = NULL, *last = NULL;
	bool another = wants_another(l);
	uint64_t least = least_wanted(l);

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		if (!mst_behind_may_give(m) || m->asked_in == l->transfer.round ||
		    !goes_on_from(l, m->given) || oldest_of(l, m) < least)
			continue;
		if (another && was_last(l, m))
			last = m;
		else if (best == NULL || m->given > best->given)
			best = m;
	}
	return best != NULL ? best : last;
}

/* Is there a worker that has not been asked, and could be later? */
static bool is_hope(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (m->asked_in != l->transfer.round &&
		    (mst_behind_may_give(m) || m->behind == MST_BEHIND_CATCHES))
			return true;
	}
	return false;
}

static void ask(struct mst_ledger *l, struct mst_member *donor)
{
	struct mst_transfer *h = &l->transfer;

	donor->asked_in = h->round;
	h->state = MST_TRANSFER_ASKED;
	h->number++;
	h->donor = (struct mst_identity){ donor->rank, donor->incarnation };
	h->version = oldest_of(l, donor);
	h->asked_ns = l->now_ns;
	mst_decide(l, MST_DO_WANT, donor)->state.number = h->number;
}

static void begin_round(struct mst_ledger *l)
{
	l->transfer.round++;
	l->transfer.round_ns = l->now_ns;
}

/* When the time of a worker that waits or takes is over. The time in which donors were asked is not
 * taken off the time of a worker that waits. */
static uint64_t over_ns(const struct mst_ledger *l, const struct mst_member *m)
{
	uint64_t since_ns = m->behind_ns;

	if (m->behind == MST_BEHIND_WAITS && l->transfer.idle_ns > since_ns)
		since_ns = l->transfer.idle_ns;
	return after(since_ns, giving_ns(l));
}

static bool is_over(const struct mst_ledger *l, const struct mst_member *m)
{
	return l->now_ns >= over_ns(l, m);
}

/* No worker can be asked for its state any more. Workers that have waited since this round began
 * are refused, and the other waiting workers get a round of their own. While a worker that could
 * give its state lacks versions itself, the waiting workers go on waiting, but not for longer than
 * a donor may take. Return: a round begins. */
static bool refuse(struct mst_ledger *l)
{
	uint64_t began_ns = l->transfer.round_ns;
	bool hope = is_hope(l), left = false;

	FOR_BEHIND(l, m)
	{
		if (m->behind != MST_BEHIND_WAITS)
			continue;
		if (m->behind_ns <= began_ns ? !hope || is_over(l, m) : is_over(l, m))
			mst_life_lose(l, m, MST_EVICT_NO_STATE);
		else
			left = true;
	}
	if (left && !hope)
		begin_round(l);
	return left && !hope;
}

/* ---- what has been given and taken ---- */

static bool is_donor(const struct mst_ledger *l, const struct mst_member *m)
{
	const struct mst_transfer *h = &l->transfer;

	return h->state == MST_TRANSFER_ASKED && mst_member_is(m, h->donor.incarnation) &&
	       m->rank == h->donor.rank;
}

void mst_transfer_given(struct mst_ledger *l, struct mst_member *m, uint64_t number,
			uint64_t version)
{
	struct mst_transfer *h = &l->transfer;

	if (!is_donor(l, m) || number != h->number)
		return; /* another has been asked meanwhile */
	bool fits = version >= h->version && version <= m->given;
	if (!fits || !goes_on_from(l, version)) {
		stop(l);
		if (!fits && version != MST_VERSION_NONE)
			mst_life_lose(l, m, MST_EVICT_INVALID); /* it cannot have that version */
		return;
	}
	h->state = MST_TRANSFER_TAKEN;
	h->version = version;
	FOR_BEHIND(l, taker)
	{
		bool older = taker->ask.have != MST_VERSION_NONE && version < taker->ask.have;
		if (taker->behind != MST_BEHIND_WAITS || older)
			continue;
		mst_behind_enter(l, taker, MST_BEHIND_TAKES);
		struct mst_decision *d = mst_decide(l, MST_DO_HAND, taker);
		d->state.number = h->number;
		d->state.version = version;
	}
}

void mst_transfer_taken(struct mst_ledger *l, struct mst_member *m, uint64_t number)
{
	if (m->behind != MST_BEHIND_TAKES || number != l->transfer.number) {
		mst_life_lose(l, m, MST_EVICT_INVALID);
		return;
	}
	MST_ASSERT(m->asks); /* the ask that found the version gone */
	m->given = m->ask.have = l->transfer.version;
	m->took = true;
	m->strays = false;
	mst_behind_enter(l, m, MST_BEHIND_CATCHES);
}

/* ---- what follows ---- */

/* An asking that leads to nothing ends here, and so does one that nobody waits for any more. */
static void give_up_donor(struct mst_ledger *l)
{
	struct mst_transfer *h = &l->transfer;
	const struct mst_member *m = &l->member[h->donor.rank];

	if (h->state != MST_TRANSFER_ASKED)
		return;
	if (!somebody_waits(l)) {
		stop(l);
		begin_round(l);
	} else if (!is_donor(l, m) || !mst_behind_may_give(m) || !goes_on_from(l, m->given) ||
		   l->now_ns >= after(h->asked_ns, giving_ns(l))) {
		stop(l);
	}
}

/* A worker that takes too long to receive the state loses its session. When no worker receives the
 * state any more, the state can be freed, and the round of the workers that received it is over. */
static void look_at_takers(struct mst_ledger *l)
{
	bool takes = false;

	if (l->transfer.state != MST_TRANSFER_TAKEN)
		return;
	FOR_BEHIND(l, m)
	{
		if (m->behind == MST_BEHIND_TAKES && is_over(l, m))
			mst_life_lose(l, m, MST_EVICT_UNTAKEN);
		else
			takes |= m->behind == MST_BEHIND_TAKES;
	}
	if (takes)
		return;
	stop(l);
	begin_round(l);
}

static uint64_t first_needed(struct mst_ledger *l)
{
	uint64_t first = MST_VERSION_NONE;

	if (l->transfer.state != MST_TRANSFER_IDLE)
		first = l->transfer.version + 1;
	FOR_BEHIND(l, m)
	if (m->behind == MST_BEHIND_CATCHES && m->given + 1 < first)
		first = m->given + 1;
	return first;
}

static void seek_donor(struct mst_ledger *l)
{
	struct mst_member *donor;

	if (l->transfer.round == 0)
		begin_round(l);
	while ((donor = find_donor(l)) == NULL && refuse(l))
		;
	if (donor != NULL)
		ask(l, donor);
}

void mst_transfer_settle(struct mst_ledger *l)
{
	struct mst_transfer *h = &l->transfer;
	bool idle = h->state == MST_TRANSFER_IDLE && l->store.pin == MST_VERSION_NONE &&
		    mst_counts_count(&l->counts, MST_STANDS_BEHIND) == 0;

	if (idle || l->phase != MST_PHASE_RUNNING)
		return;
	give_up_donor(l);
	look_at_takers(l);
	if (h->state == MST_TRANSFER_IDLE && !l->end_due && somebody_waits(l))
		seek_donor(l);
	mst_store_pin(&l->store, first_needed(l));
}

uint64_t mst_transfer_deadline(const struct mst_ledger *l)
{
	const struct mst_transfer *h = &l->transfer;
	const struct mst_counts *c = &l->counts;
	uint64_t due = MST_NEVER;

	if (l->phase != MST_PHASE_RUNNING)
		return due;
	if (h->state == MST_TRANSFER_ASKED)
		due = after(h->asked_ns, giving_ns(l));
	for (uint32_t rank = mst_counts_next(c, MST_STANDS_BEHIND, 0); rank != MST_RANK_NONE;
	     rank = mst_counts_next(c, MST_STANDS_BEHIND, rank + 1)) {
		const struct mst_member *m = &l->member[rank];
		uint64_t over = over_ns(l, m);
		bool waits = m->behind == MST_BEHIND_WAITS && h->state == MST_TRANSFER_IDLE &&
			     !l->end_due;
		if ((waits || m->behind == MST_BEHIND_TAKES) && over < due)
			due = over;
	}
	return due;
}
