/* SPDX-License-Identifier: MIT */
/* Which server a worker calls silent, by what it has read. */
#include "client/core/silence.h"
#include "common/base/clock.h"
#include "tests/ut.h"

#define LEASE MST_SECOND

static struct mst_silence s;
static struct mst_silent silent;
static uint64_t now_ns;

static void begin(uint32_t servers)
{
	now_ns = 1000;
	mst_silence_begin(&s, servers, LEASE, now_ns);
}

/* An eighth of a lease, in which a beat comes with these figures, if @beats. */
static void pass(bool beats, uint64_t leader, uint64_t follower)
{
	struct mst_beat beat = { .count = 2, .server = { { leader }, { follower } } };

	now_ns += LEASE / 8;
	mst_silence_look(&s, now_ns);
	if (beats)
		mst_silence_beat(&s, &beat);
	mst_silence_read(&s, now_ns);
}

static bool is_silent(uint32_t server)
{
	return mst_silence_find(&s, LEASE, &silent) && silent.server == server;
}

static void server_that_goes_on_is_not_silent(void)
{
	begin(1);
	for (uint64_t i = 1; i < 100; i++)
		pass(i % 4 == 0, i, 0);
	CU_ASSERT_FALSE(mst_silence_find(&s, LEASE, &silent));
}

static void server_without_a_beat_is_silent_after_a_lease(void)
{
	begin(1);
	for (uint64_t i = 1; i < 8; i++) {
		pass(false, 0, 0);
		CU_ASSERT_FALSE(mst_silence_find(&s, LEASE, &silent));
	}
	pass(false, 0, 0);
	CU_ASSERT(is_silent(0));
	CU_ASSERT_EQUAL(silent.for_ns, LEASE);
}

/* Else a control thread that lives lets a data thread that hangs look healthy for ever. */
static void beats_without_progress_are_no_sign_of_life(void)
{
	begin(1);
	pass(true, 7, 0);
	for (uint64_t i = 0; i < 7; i++)
		pass(true, 7, 0);
	CU_ASSERT_FALSE(mst_silence_find(&s, LEASE, &silent));
	pass(true, 7, 0);
	CU_ASSERT(is_silent(0));
	pass(true, 8, 0);
	CU_ASSERT_FALSE(mst_silence_find(&s, LEASE, &silent));
}

static void what_comes_on_a_link_is_a_sign_of_life(void)
{
	begin(2);
	for (uint64_t i = 0; i < 20; i++) {
		pass(true, i, 0);
		mst_silence_moved(&s, 1u << 1);
	}
	CU_ASSERT_FALSE(mst_silence_find(&s, LEASE, &silent));
}

static void follower_that_stands_still_is_named(void)
{
	begin(2);
	for (uint64_t i = 1; i < 12; i++)
		pass(true, i, 3);
	CU_ASSERT(is_silent(1));
}

/* Only the leader could tell. */
static void follower_is_not_blamed_for_a_silent_leader(void)
{
	begin(2);
	for (uint64_t i = 1; i < 4; i++)
		pass(true, i, 1);
	for (uint64_t i = 0; i < 20; i++)
		pass(false, 0, 0);
	CU_ASSERT(is_silent(0));
}

/* It wakes, and has not read yet what came while it slept; or there is nothing, for all slept. */
static void worker_that_slept_calls_nobody_silent(void)
{
	begin(1);
	pass(true, 1, 0);
	now_ns += 20 * LEASE;
	mst_silence_look(&s, now_ns);
	mst_silence_read(&s, now_ns);
	CU_ASSERT_FALSE(mst_silence_find(&s, LEASE, &silent));
	for (uint64_t i = 2; i < 7; i++)
		pass(false, 0, 0);
	CU_ASSERT_FALSE(mst_silence_find(&s, LEASE, &silent));
	pass(false, 0, 0);
	pass(false, 0, 0);
	CU_ASSERT(is_silent(0));
}

static CU_TestInfo cases[] = {
	{ "a server that goes on is not silent", server_that_goes_on_is_not_silent },
	{ "a server without a beat is silent after a lease",
	  server_without_a_beat_is_silent_after_a_lease },
	{ "beats without progress are no sign of life",
	  beats_without_progress_are_no_sign_of_life },
	{ "what comes on a link is a sign of life", what_comes_on_a_link_is_a_sign_of_life },
	{ "a follower that stands still is named", follower_that_stands_still_is_named },
	{ "a follower is not blamed for a silent leader",
	  follower_is_not_blamed_for_a_silent_leader },
	{ "a worker that slept calls nobody silent", worker_that_slept_calls_nobody_silent },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("silence", cases);
}
