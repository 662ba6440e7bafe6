/* SPDX-License-Identifier: MIT */
/* Workers, near and far, that come and go, fall behind, stray, give, take, lie, rest and fall
 * silent, by chance. Whatever happens, each gets every version in order or from a state on, and
 * nobody waits for ever. */
#include <errno.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "server/core/ledger/state/behind.h"
#include "server/core/ledger/state/state.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

#define WORKERS 5u
#define SEEDS 200u
#define STEPS 400
#define PATIENCE_NS (10 * MST_SECOND)
/* Each donor may take two patiences, then who waits does, and then who takes; and there may be two
 * rounds of that. */
#define LONGEST_NS (2 * (WORKERS + 2) * 2 * PATIENCE_NS)

/* What a worker knows. */
struct taker {
	uint64_t has;    /* the version that it has */
	uint64_t number; /* of the state that it is sent; 0: none */
	uint64_t version;
};

static struct comers {
	struct ledger_job job;
	struct mst_rand rand;
	struct taker taker[WORKERS];
	struct mst_identity donor;
	uint64_t wanted; /* the number of the asking; 0: nobody is asked */
	uint64_t handed; /* states that were taken, in all worlds */
	bool mixes;      /* some workers are far, and the others map */
	bool over;
} w;

static bool chance(uint64_t of)
{
	return mst_rand_below(&w.rand, of) == 0;
}

/* ---- what the ledger decides ---- */

static void released(const struct mst_decision *d)
{
	struct taker *t = &w.taker[d->who.rank];
	uint64_t next = t->has == MST_VERSION_NONE ? 0 : t->has + 1;

	CU_ASSERT_FATAL(d->answer.version == next || d->answer.version == t->has);
	CU_ASSERT_FATAL(t->number == 0);
	t->has = d->answer.version;
}

/* A worker that has the state can go on from there. */
static void handed(const struct mst_decision *d)
{
	uint64_t version = d->state.version;

	CU_ASSERT_FATAL(w.taker[d->who.rank].has == MST_VERSION_NONE ||
			version >= w.taker[d->who.rank].has);
	CU_ASSERT_FATAL(version == job_version(&w.job) ||
			mst_ledger_record_of(w.job.ledger, version + 1) != NULL);
	w.taker[d->who.rank].number = d->state.number;
	w.taker[d->who.rank].version = version;
	w.wanted = 0;
}

static void decided(const struct mst_decision *d)
{
	if (d->kind == MST_DO_ADMIT)
		w.taker[d->who.rank] = (struct taker){ .has = MST_VERSION_NONE };
	else if (d->kind == MST_DO_EVICT)
		w.taker[d->who.rank].number = 0;
	else if (d->kind == MST_DO_RELEASE)
		released(d);
	else if (d->kind == MST_DO_HAND)
		handed(d);
	else if (d->kind == MST_DO_HANDED)
		w.wanted = 0;
	else if (d->kind == MST_DO_FINISH)
		w.over = true;
	if (d->kind == MST_DO_WANT) {
		w.donor = d->who;
		w.wanted = d->state.number;
		CU_ASSERT_FALSE_FATAL(job_member(&w.job, d->who.rank).rests);
		CU_ASSERT_FALSE_FATAL(w.job.ledger->member[d->who.rank].strays);
	}
}

/* What was pinned is let go with the next event at the latest. */
static void look(void)
{
	const struct mst_ledger *l = w.job.ledger;
	uint32_t behind = 0;

	job_tick(&w.job);
	for (size_t i = 0; i < w.job.seen_count; i++)
		decided(&w.job.seen[i]);
	job_forget(&w.job);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		behind += job_member(&w.job, rank).behind;
	CU_ASSERT_FATAL(w.over || behind > 0 || l->store.pin == MST_VERSION_NONE);
	CU_ASSERT_FATAL(w.over || behind > 0 || l->transfer.state == MST_TRANSFER_IDLE);
}

/* ---- what workers do ---- */

static void enter(uint32_t rank)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };

	ev.join.rank = (int32_t)rank;
	ev.join.comes_back = true;
	job_event(&w.job, &ev);
	if (!job_member(&w.job, rank).live)
		return;
	if (w.mixes && chance(3))
		job_link_far(&w.job, rank, 0);
	else
		job_link(&w.job, rank, 0);
	job_start(&w.job, rank, false);
}

static void go(uint32_t rank)
{
	if (chance(3))
		job_leave(&w.job, rank, w.job.worker[rank].seq);
	else if (chance(2))
		job_tell(&w.job, rank, MST_EV_EVICT);
	else
		job_lose(&w.job, rank, -EPIPE);
}

static void rest(uint32_t rank)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .who = w.job.worker[rank].who };

	ev.rests = !job_member(&w.job, rank).rests;
	job_event(&w.job, &ev);
}

static void push(uint32_t rank)
{
	struct mst_member_view m = job_member(&w.job, rank);

	if (!m.started || m.asks || w.taker[rank].has == MST_VERSION_NONE ||
	    w.job.ledger->member[rank].state == MST_MEMBER_LEAVING)
		return;
	job_answered(&w.job, rank);
	job_push(&w.job, rank);
}

/* Mostly what it has; or nothing, or what it cannot have. */
static void give(void)
{
	struct mst_ledger_event ev = { .kind = MST_EV_GIVEN, .who = w.donor };

	if (w.wanted == 0)
		return;
	ev.given.number = w.wanted;
	ev.given.version = w.taker[w.donor.rank].has;
	if (chance(6))
		ev.given.version = MST_VERSION_NONE;
	else if (chance(20))
		ev.given.version += 1 + mst_rand_below(&w.rand, 3);
	else if (chance(10))
		ev.given.number--;
	w.wanted = 0;
	job_event(&w.job, &ev);
}

static void take(uint32_t rank)
{
	struct taker *t = &w.taker[rank];
	struct mst_ledger_event ev = { .kind = MST_EV_TAKEN, .who = w.job.worker[rank].who };

	if (t->number == 0)
		return;
	ev.given.number = t->number;
	t->has = w.job.worker[rank].have = t->version;
	t->number = 0;
	w.handed++;
	job_event(&w.job, &ev);
}

static void step(void)
{
	uint32_t rank = (uint32_t)mst_rand_below(&w.rand, WORKERS);
	bool live = job_member(&w.job, rank).live;

	if (!live && chance(4))
		enter(rank);
	else if (live && chance(60))
		go(rank);
	else if (live && chance(60))
		rest(rank);
	else if (live && chance(80))
		job_tell(&w.job, rank, MST_EV_STRAYS);
	else if (chance(15))
		give();
	else if (chance(5))
		take(rank);
	else if (chance(25))
		job_wait(&w.job, PATIENCE_NS / 8, -1);
	else if (rank != 4 || chance(6)) /* a straggler */
		push(rank);
	look();
}

/* ---- promises ---- */

/* From now on nobody gives, and nobody takes. */
static void nobody_waits_for_ever(bool pushing)
{
	for (uint64_t ns = 0; ns < LONGEST_NS && !w.over; ns += PATIENCE_NS / 2) {
		for (uint32_t rank = 0; rank < WORKERS && pushing && !w.over; rank++) {
			push(rank);
			look();
		}
		job_wait(&w.job, PATIENCE_NS / 2, -1);
		look();
	}
	for (uint32_t rank = 0; rank < WORKERS && !w.over; rank++)
		CU_ASSERT_FALSE(mst_behind_holds(&w.job.ledger->member[rank]));
}

static void live(uint64_t seed)
{
	static const char *const policies[] = { "bsp", "backup:3", "backup:4" };
	struct mst_ledger_cfg cfg = job_cfg(policies[seed % 3], WORKERS);

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = 2;
	w.mixes = cfg.in_place = seed / 2 % 2 == 0;
	cfg.catch_up = 1 + (uint32_t)(seed % 8);
	cfg.rule.patience_ns = PATIENCE_NS;
	cfg.join_until_ns = MST_NEVER;
	w.over = false;
	w.wanted = 0;
	mst_rand_seed(&w.rand, seed);
	job_open(&w.job, &cfg);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		enter(rank);
	look();
	for (int i = 0; i < STEPS && !w.over; i++)
		step();
	nobody_waits_for_ever(seed % 2 == 0);
	job_close(&w.job);
}

static void each_version_comes_in_order_and_nobody_waits_for_ever(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		live(seed);
	CU_ASSERT(w.handed > SEEDS); /* it is about something */
}

static CU_TestInfo cases[] = {
	{ "each version comes in order, and nobody waits for ever",
	  each_version_comes_in_order_and_nobody_waits_for_ever },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_transfer_random", cases);
}
