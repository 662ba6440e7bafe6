/* SPDX-License-Identifier: MIT */
/* An eventcount: no opening is lost, whatever the order of the looks. */
#include <pthread.h>
#include <stdbool.h>

#include "common/base/clock.h"
#include "common/base/eventcount.h"
#include "tests/ut.h"

#define ROUNDS 20000u

struct eventcount_pair {
	struct mst_eventcount eventcount[2];
	_Atomic uint32_t turn;
	_Atomic uint32_t late; /* waits that ran out of time */
};

struct player {
	struct eventcount_pair *pair;
	uint32_t self;
};

static bool is_my_turn(const struct player *p, uint32_t round)
{
	return atomic_load_explicit(&p->pair->turn, memory_order_acquire) == 2 * round + p->self;
}

static void await_turn(const struct player *p, uint32_t round)
{
	while (!is_my_turn(p, round)) {
		struct mst_eventcount *eventcount = &p->pair->eventcount[p->self];
		uint64_t began = mst_now_ns();
		mst_eventcount_shut(eventcount);
		if (is_my_turn(p, round))
			mst_eventcount_leave(eventcount);
		else
			mst_eventcount_wait(eventcount, 60 * MST_SECOND);
		if (mst_now_ns() - began >= 60 * MST_SECOND)
			atomic_fetch_add(&p->pair->late, 1);
	}
}

static void *play(void *arg)
{
	const struct player *p = arg;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		await_turn(p, round);
		atomic_fetch_add_explicit(&p->pair->turn, 1, memory_order_release);
		mst_eventcount_open(&p->pair->eventcount[1 - p->self]);
	}
	return NULL;
}

static void two_that_take_turns_never_miss_one(void)
{
	static struct eventcount_pair pair;
	struct player player[2] = { { &pair, 0 }, { &pair, 1 } };
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, play, &player[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(atomic_load(&pair.turn), 2 * ROUNDS);
	CU_ASSERT_EQUAL(atomic_load(&pair.late), 0);
}

static void a_wait_ends_with_its_time(void)
{
	struct mst_eventcount eventcount = { 0 };
	uint64_t began = mst_now_ns();

	mst_eventcount_shut(&eventcount);
	while (mst_now_ns() - began < 20 * MST_MS) { /* it may return early */
		mst_eventcount_wait(&eventcount, 20 * MST_MS);
		mst_eventcount_shut(&eventcount);
	}
	CU_ASSERT(mst_now_ns() - began < 60 * MST_SECOND);
}

static void an_opening_before_the_wait_counts(void)
{
	struct mst_eventcount eventcount = { 0 };
	uint64_t began = mst_now_ns();

	mst_eventcount_shut(&eventcount);
	mst_eventcount_open(&eventcount);
	mst_eventcount_wait(&eventcount, 120 * MST_SECOND);
	CU_ASSERT(mst_now_ns() - began < 60 * MST_SECOND);
}

static CU_TestInfo cases[] = {
	{ "two that take turns never miss one", two_that_take_turns_never_miss_one },
	{ "a wait ends with its time", a_wait_ends_with_its_time },
	{ "an opening before the wait counts", an_opening_before_the_wait_counts },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("eventcount", cases);
}
