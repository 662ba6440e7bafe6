/* SPDX-License-Identifier: MIT */
/* Links are made while their owner does something else; what nobody takes is freed. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "server/control/members/link_maker.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define LONG_NS (60 * MST_SECOND)

static atomic_bool
	held[256]; /* by the token's first byte: the listener answers only when it is not */
static atomic_int wakes, inside;
static struct mst_link links[256];

static int answer(struct mst_link_listener *listener, const struct mst_link_request *request,
		  struct mst_link **out, struct mst_reason *why)
{
	(void)listener;
	uint8_t first = request->token[0];

	atomic_fetch_add(&inside, 1);
	while (atomic_load(&held[first]))
		mst_sleep_ns(MST_MS / 4);
	atomic_fetch_sub(&inside, 1);
	if (first == 13)
		return mst_reason_fail(why, -ENOMEM, "not with this one");
	links[first].ops = &fix_transport;
	*out = &links[first];
	return 0;
}

static const struct mst_link_listener_ops listener_ops = { .answer = answer };
static struct mst_link_listener listener = { .ops = &fix_transport };

static void wake(void *ctx)
{
	CU_ASSERT_PTR_EQUAL(ctx, &wakes);
	atomic_fetch_add(&wakes, 1);
}

static bool takes(struct mst_link_maker *m, struct mst_link_made *made)
{
	uint64_t end_ns = mst_now_ns() + LONG_NS;

	while (!mst_link_maker_take(m, made))
		if (mst_now_ns() >= end_ns)
			return false;
	return true;
}

static void its_owner_goes_on_meanwhile(void)
{
	struct mst_link_request request = { .token = { 7 } };
	struct mst_link_made made;
	struct mst_link_maker *m;

	atomic_store(&wakes, 0);
	CU_ASSERT_EQUAL_FATAL(mst_link_maker_new(wake, &wakes, &m), 0);
	for (int i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(mst_link_maker_count(m), 0);
		atomic_store(&held[7], true);
		mst_link_maker_make(m, fix_transport.listener, &listener,
				    &request); /* which would not come back */
		CU_ASSERT_EQUAL(mst_link_maker_count(m), 1);
		CU_ASSERT_FALSE(mst_link_maker_take(m, &made));
		atomic_store(&held[7], false);
		CU_ASSERT_TRUE_FATAL(takes(m, &made));
		CU_ASSERT_PTR_EQUAL(made.link, &links[7]);
		CU_ASSERT(made.error == 0 && made.token[0] == 7);
	}
	mst_link_maker_free(m);
	CU_ASSERT_EQUAL(atomic_load(&wakes), 3);
	CU_ASSERT_EQUAL(atomic_load(&fix_net.freed), 0);
}

/* The sentence comes from the thread that has made the call. */
static void a_failure_comes_with_its_reason(void)
{
	struct mst_link_request request = { .token = { 13 } };
	struct mst_link_made made;
	struct mst_link_maker *m;

	for (int aside = 0; aside < 2; aside++) {
		CU_ASSERT_EQUAL_FATAL(mst_link_maker_new(aside ? wake : NULL, &wakes, &m), 0);
		mst_link_maker_make(m, fix_transport.listener, &listener, &request);
		CU_ASSERT_TRUE_FATAL(takes(m, &made));
		CU_ASSERT_PTR_NULL(made.link);
		CU_ASSERT_EQUAL(made.error, -ENOMEM);
		CU_ASSERT_STRING_EQUAL(made.why.text, "not with this one");
		mst_link_maker_free(m);
	}
}

static void without_a_thread_it_is_made_at_once(void)
{
	struct mst_link_request request = { .token = { 9 } };
	struct mst_link_made made;
	struct mst_link_maker *m;

	CU_ASSERT_EQUAL_FATAL(mst_link_maker_new(NULL, NULL, &m), 0);
	mst_link_maker_make(m, fix_transport.listener, &listener, &request);
	CU_ASSERT_TRUE(mst_link_maker_take(m, &made));
	CU_ASSERT_PTR_EQUAL(made.link, &links[9]);
	CU_ASSERT_FALSE(mst_link_maker_take(m, &made));
	mst_link_maker_free(m);
}

static bool become(const atomic_int *what, int value)
{
	uint64_t end_ns = mst_now_ns() + LONG_NS;

	while (atomic_load(what) != value)
		if (mst_now_ns() >= end_ns)
			return false;
	return true;
}

/* As many as the maker takes are under way; the last that was asked for is there first. */
static void a_large_one_keeps_no_small_one_waiting(void)
{
	struct mst_link_made made;
	struct mst_link_maker *m;

	CU_ASSERT_EQUAL_FATAL(mst_link_maker_new(wake, &wakes, &m), 0);
	for (uint8_t i = 0; i < MST_ANSWERS_MAX; i++) {
		CU_ASSERT_TRUE(mst_link_maker_has_room(m));
		atomic_store(&held[i], true);
		mst_link_maker_make(m, fix_transport.listener, &listener,
				    &(struct mst_link_request){ .token = { i } });
	}
	CU_ASSERT_FALSE(mst_link_maker_has_room(m));
	CU_ASSERT_TRUE(become(&inside, (int)MST_ANSWERS_MAX));
	for (uint8_t i = MST_ANSWERS_MAX; i-- > 0;) {
		CU_ASSERT_FALSE(mst_link_maker_take(m, &made));
		atomic_store(&held[i], false);
		CU_ASSERT_TRUE_FATAL(takes(m, &made));
		CU_ASSERT(made.link == &links[i] && made.token[0] == i);
		CU_ASSERT_EQUAL(mst_link_maker_count(m), i);
	}
	mst_link_maker_free(m);
}

static atomic_int done;

static void do_other_work(void *arg)
{
	const atomic_bool *held_back = arg;

	while (atomic_load(held_back))
		mst_sleep_ns(MST_MS / 4);
	atomic_fetch_add(&done, 1);
}

static bool did(struct mst_link_maker *m)
{
	uint64_t end_ns = mst_now_ns() + LONG_NS;

	while (!mst_link_maker_did(m))
		if (mst_now_ns() >= end_ns)
			return false;
	return true;
}

static void other_work_is_done_meanwhile_too(void)
{
	struct mst_link_request request = { .token = { 7 } };
	struct mst_link_made made;
	struct mst_link_maker *m;
	atomic_bool held_back;

	atomic_store(&done, 0);
	atomic_store(&wakes, 0);
	CU_ASSERT_EQUAL_FATAL(mst_link_maker_new(wake, &wakes, &m), 0);
	for (int i = 1; i <= 3; i++) {
		atomic_store(&held_back, true);
		mst_link_maker_do(m, do_other_work, &held_back); /* which would not come back */
		CU_ASSERT_FALSE(mst_link_maker_did(m));
		mst_link_maker_make(m, fix_transport.listener, &listener, &request);
		CU_ASSERT_TRUE_FATAL(takes(m, &made));
		CU_ASSERT_PTR_EQUAL(made.link, &links[7]);
		CU_ASSERT_FALSE(mst_link_maker_did(m));
		atomic_store(&held_back, false);
		CU_ASSERT_TRUE_FATAL(did(m));
		CU_ASSERT_EQUAL(atomic_load(&done), i);
		CU_ASSERT_FALSE(mst_link_maker_did(m)); /* once only */
		CU_ASSERT_EQUAL(mst_link_maker_count(m), 0);
	}
	mst_link_maker_free(m);
	CU_ASSERT_EQUAL(atomic_load(&wakes), 6);
}

static void without_a_thread_other_work_is_done_at_once(void)
{
	struct mst_link_maker *m;
	atomic_bool held_back;

	atomic_store(&done, 0);
	atomic_store(&held_back, false);
	CU_ASSERT_EQUAL_FATAL(mst_link_maker_new(NULL, NULL, &m), 0);
	mst_link_maker_do(m, do_other_work, &held_back);
	CU_ASSERT_EQUAL(atomic_load(&done), 1);
	CU_ASSERT_TRUE(mst_link_maker_did(m));
	CU_ASSERT_FALSE(mst_link_maker_did(m));
	mst_link_maker_free(m);
}

static void the_end_waits_for_other_work(void)
{
	struct mst_link_maker *m;
	atomic_bool held_back;

	atomic_store(&done, 0);
	atomic_store(&held_back, false);
	CU_ASSERT_EQUAL_FATAL(mst_link_maker_new(wake, &wakes, &m), 0);
	mst_link_maker_do(m, do_other_work, &held_back);
	mst_link_maker_free(m);
	CU_ASSERT_EQUAL(atomic_load(&done), 1);
}

/* Two threads may make the two links at the same time, so each has an entry of its own. */
static void what_nobody_takes_is_freed(void)
{
	struct mst_link_maker *m;

	for (int aside = 0; aside < 2; aside++) {
		fix_net_begin(NULL, NULL);
		CU_ASSERT_EQUAL_FATAL(mst_link_maker_new(aside ? wake : NULL, &wakes, &m), 0);
		for (uint8_t i = 0; i < 2; i++)
			mst_link_maker_make(m, fix_transport.listener, &listener,
					    &(struct mst_link_request){ .token = { i } });
		mst_link_maker_free(m);
		CU_ASSERT_EQUAL(atomic_load(&fix_net.freed), 2);
	}
	mst_link_maker_free(NULL);
}

static CU_TestInfo cases[] = {
	{ "its owner goes on meanwhile", its_owner_goes_on_meanwhile },
	{ "a failure comes with its sentence", a_failure_comes_with_its_reason },
	{ "without a thread it is made at once", without_a_thread_it_is_made_at_once },
	{ "a large one keeps no small one waiting", a_large_one_keeps_no_small_one_waiting },
	{ "other work is done meanwhile, too", other_work_is_done_meanwhile_too },
	{ "without a thread other work is done at once",
	  without_a_thread_other_work_is_done_at_once },
	{ "the end waits for other work", the_end_waits_for_other_work },
	{ "what nobody takes is freed", what_nobody_takes_is_freed },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	fix_transport.listener = &listener_ops;
	return ut_main("link maker", cases);
}
