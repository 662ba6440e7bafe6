/* SPDX-License-Identifier: MIT */
/* The store: which buffers are free, which are held, and how many may be (PROTOCOL 7). */
#include "common/wire/lane.h"
#include "server/core/ledger/store.h"
#include "tests/ut.h"

#define COUNT 4u

struct shelf {
	struct mst_store store;
	struct mst_store_buffer buffer[COUNT];
};

/* So many of four buffers are kept, and versions 0 .. @newest were taken one after the other. */
static void shelf_fill(struct shelf *s, uint32_t kept, uint64_t newest)
{
	uint32_t buffer;

	mst_store_init(&s->store, s->buffer, COUNT, kept);
	for (uint64_t version = 0; version <= newest; version++)
		CU_ASSERT_FATAL(mst_store_take(&s->store, version, &buffer));
}

static uint32_t buffer_of(const struct shelf *s, uint64_t version)
{
	uint32_t buffer = COUNT;

	CU_ASSERT_FATAL(mst_store_find(&s->store, version, &buffer));
	CU_ASSERT_FATAL(buffer < COUNT);
	return buffer;
}

static bool gone(const struct shelf *s, uint64_t version)
{
	uint32_t buffer;

	return !mst_store_find(&s->store, version, &buffer);
}

static void new_store_has_nothing(void)
{
	struct shelf s;

	mst_store_init(&s.store, s.buffer, COUNT, 1);
	CU_ASSERT_EQUAL(s.store.newest, MST_VERSION_NONE);
	CU_ASSERT(gone(&s, 0));
	CU_ASSERT(gone(&s, MST_VERSION_NONE));
}

/* Where the start state is written before version 0 is taken. */
static void first_version_is_in_the_first_buffer(void)
{
	struct shelf s;

	shelf_fill(&s, 1, 0);
	CU_ASSERT_EQUAL(buffer_of(&s, 0), 0);
	CU_ASSERT_EQUAL(s.store.newest, 0);
}

static void newest_version_is_never_overwritten(void)
{
	struct shelf s;

	for (uint64_t newest = 0; newest < 12; newest++) {
		uint32_t buffer;
		shelf_fill(&s, 1, newest);
		uint32_t before = buffer_of(&s, newest);
		CU_ASSERT_FATAL(mst_store_take(&s.store, newest + 1, &buffer));
		CU_ASSERT_NOT_EQUAL(buffer, before);
		CU_ASSERT_EQUAL(s.store.newest, newest + 1);
	}
}

static void history_is_kept(void)
{
	struct shelf s;

	shelf_fill(&s, 3, 8);
	CU_ASSERT_NOT_EQUAL(buffer_of(&s, 8), buffer_of(&s, 7));
	CU_ASSERT_NOT_EQUAL(buffer_of(&s, 7), buffer_of(&s, 6));
	CU_ASSERT_NOT_EQUAL(buffer_of(&s, 6), buffer_of(&s, 8));
	CU_ASSERT(gone(&s, 5));
	CU_ASSERT(gone(&s, 9));
}

/* Its bytes may still lie there; but the next commit may begin to overwrite them. */
static void old_version_is_gone_though_nobody_has_overwritten_it(void)
{
	struct shelf s;

	shelf_fill(&s, 1, 1);
	CU_ASSERT_EQUAL(s.buffer[0].version, 0);
	CU_ASSERT(gone(&s, 0));
}

static void held_version_stays(void)
{
	struct shelf s;
	uint32_t buffer;

	shelf_fill(&s, 1, 0);
	uint32_t held = buffer_of(&s, 0);
	mst_store_hold(&s.store, held, MST_HOLD_LASTING);
	for (uint64_t version = 1; version < 10; version++) {
		CU_ASSERT_FATAL(mst_store_take(&s.store, version, &buffer));
		CU_ASSERT_NOT_EQUAL(buffer, held);
		CU_ASSERT_EQUAL(buffer_of(&s, 0), held);
	}
}

static void buffer_is_free_when_the_last_has_let_go(void)
{
	struct shelf s;

	shelf_fill(&s, 1, 0);
	mst_store_hold(&s.store, 0, MST_HOLD_LASTING);
	mst_store_hold(&s.store, 0, MST_HOLD_LASTING);
	uint32_t buffer;
	CU_ASSERT(mst_store_take(&s.store, 1, &buffer));
	mst_store_let_go(&s.store, 0, MST_HOLD_LASTING);
	CU_ASSERT_EQUAL(buffer_of(&s, 0), 0);
	mst_store_let_go(&s.store, 0, MST_HOLD_LASTING);
	CU_ASSERT(gone(&s, 0));
}

static void nothing_changes_where_no_buffer_is_free(void)
{
	struct shelf s;
	uint32_t buffer = 42;

	shelf_fill(&s, 1, 0);
	for (uint64_t version = 1; version < COUNT; version++) {
		mst_store_hold(&s.store, buffer_of(&s, version - 1), MST_HOLD_LASTING);
		CU_ASSERT_FATAL(mst_store_take(&s.store, version, &buffer));
	}
	buffer = 42;
	CU_ASSERT_FALSE(mst_store_take(&s.store, COUNT, &buffer));
	CU_ASSERT_EQUAL(buffer, 42);
	CU_ASSERT_EQUAL(s.store.newest, COUNT - 1);
	uint32_t held = buffer_of(&s, 1);
	mst_store_let_go(&s.store, held, MST_HOLD_LASTING);
	CU_ASSERT(mst_store_take(&s.store, COUNT, &buffer));
	CU_ASSERT_EQUAL(buffer, held);
}

static void spare_is_what_neither_history_nor_others_need(void)
{
	struct shelf s;

	shelf_fill(&s, 1, 1);
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, 1), 3);
	mst_store_hold(&s.store, 1,
		       MST_HOLD_LASTING); /* the requester's own hold does not count against it */
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, 1), 3);
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, 0), 2);
	mst_store_hold(&s.store, 1, MST_HOLD_LASTING); /* nor does a second one */
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, 0), 2);
	shelf_fill(&s, 3, 3);
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, 3), 1);
}

static void what_shards_copy_is_spare_later(void)
{
	struct shelf s;

	shelf_fill(&s, 1, 2);
	uint32_t held = buffer_of(&s, 2), other = (held + 1) % COUNT;
	mst_store_hold(&s.store, held, MST_HOLD_PASSING);
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, other), COUNT - 2);
	CU_ASSERT_EQUAL(mst_store_spare_later(&s.store, other), COUNT - 1);
	mst_store_hold(&s.store, held, MST_HOLD_LASTING);
	CU_ASSERT_EQUAL(mst_store_spare_later(&s.store, other), COUNT - 2);
	CU_ASSERT_EQUAL(mst_store_spare_later(&s.store, held), COUNT - 1);
	CU_ASSERT(mst_store_let_go(&s.store, held, MST_HOLD_LASTING));
	CU_ASSERT_EQUAL(mst_store_spare_later(&s.store, other), COUNT - 1);
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, other), COUNT - 2);
	mst_store_hold(&s.store, held, MST_HOLD_PASSING);
	CU_ASSERT_FALSE(mst_store_let_go(&s.store, held, MST_HOLD_PASSING));
	CU_ASSERT(mst_store_let_go(&s.store, held, MST_HOLD_PASSING)); /* nobody holds it now */
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, other), COUNT - 1);
}

/* Held and kept now, it will be held when it is kept no more. */
static void held_version_that_is_kept_counts_twice(void)
{
	struct shelf s;

	shelf_fill(&s, 2, 2);
	mst_store_hold(&s.store, buffer_of(&s, 1), MST_HOLD_LASTING);
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, buffer_of(&s, 2)), 1);
	mst_store_hold(&s.store, buffer_of(&s, 2), MST_HOLD_LASTING);
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, buffer_of(&s, 2)), 1);
}

static void spare_is_never_less_than_nothing(void)
{
	struct shelf s;

	shelf_fill(&s, 3, 2);
	for (uint64_t version = 0; version < 3; version++)
		mst_store_hold(&s.store, buffer_of(&s, version), MST_HOLD_LASTING);
	CU_ASSERT_EQUAL(mst_store_spare(&s.store, buffer_of(&s, 2)), 0);
}

/* What the ledger builds on: if it lets one hold only where two are spare, commits go on for ever,
 * whatever is held. */
static void commits_go_on_where_holders_leave_two(void)
{
	struct shelf s;
	uint32_t buffer;

	for (uint32_t kept = 1; kept < COUNT; kept++) {
		shelf_fill(&s, kept, 0);
		for (uint64_t version = 1; version < 20; version++) {
			uint32_t newest = buffer_of(&s, version - 1);
			if (mst_store_spare(&s.store, newest) >= 2)
				mst_store_hold(&s.store, newest, MST_HOLD_LASTING);
			CU_ASSERT_FATAL(mst_store_take(&s.store, version, &buffer));
		}
	}
}

static CU_TestInfo cases[] = {
	{ "a new store has nothing", new_store_has_nothing },
	{ "the first version is in the first buffer", first_version_is_in_the_first_buffer },
	{ "the newest version is never overwritten", newest_version_is_never_overwritten },
	{ "the history is kept", history_is_kept },
	{ "an old version is gone, though nobody has overwritten it",
	  old_version_is_gone_though_nobody_has_overwritten_it },
	{ "a held version stays", held_version_stays },
	{ "a buffer is free when the last has let go", buffer_is_free_when_the_last_has_let_go },
	{ "nothing changes where no buffer is free", nothing_changes_where_no_buffer_is_free },
	{ "spare is what neither history nor others need",
	  spare_is_what_neither_history_nor_others_need },
	{ "what shards copy is spare later", what_shards_copy_is_spare_later },
	{ "a held version that is kept counts twice", held_version_that_is_kept_counts_twice },
	{ "spare is never less than nothing", spare_is_never_less_than_nothing },
	{ "commits go on where holders leave two", commits_go_on_where_holders_leave_two },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("store", cases);
}
