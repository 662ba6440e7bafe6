/* SPDX-License-Identifier: MIT */
/* The ledger where workers of one job use several networks: near ones map the server's memory, and
 * what far ones get is sent to them (PROTOCOL 7). */
#include <errno.h>

#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

static struct mst_ledger_cfg mixed(const char *policy, uint32_t workers, uint32_t buffers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.in_place = true;
	cfg.buffers = buffers;
	return cfg;
}

/* The version that the worker was answered with last; MST_VERSION_NONE: it was not. */
static uint64_t given(const struct ledger_job *j, uint32_t rank)
{
	const struct mst_decision *d = job_last(j, MST_DO_RELEASE, (int)rank);

	return d != NULL ? d->answer.version : MST_VERSION_NONE;
}

static enum mst_where where(const struct ledger_job *j, uint32_t rank)
{
	const struct mst_decision *d = job_last(j, MST_DO_RELEASE, (int)rank);

	return d != NULL ? d->answer.where : MST_WHERE_NOWHERE;
}

/* A gradient of rank 0 makes a version. Where is it? All that is copied is copied at once. */
static enum mst_where next_is(struct ledger_job *j)
{
	job_push(j, 0);
	for (uint32_t rank = 0; rank < j->cfg.workers; rank++)
		job_answered(j, rank);
	return where(j, 0);
}

/* All have begun near, and rank @rank comes back far. */
static void born_and_one_far(struct ledger_job *j, const struct mst_ledger_cfg *cfg, uint32_t rank)
{
	job_born(j, cfg);
	CU_ASSERT_EQUAL(next_is(j), MST_WHERE_IN_PLACE);
	job_lose(j, rank, -ECONNRESET);
	job_enter_far(j, rank);
}

/* Rank 2 goes, and comes back near. */
static void leaves(struct ledger_job *j)
{
	job_leave(j, 2, j->worker[2].seq);
}

static void is_lost(struct ledger_job *j)
{
	job_lose(j, 2, -ECONNRESET);
}

static void is_evicted(struct ledger_job *j)
{
	job_tell(j, 2, MST_EV_EVICT);
}

static void breaks_the_protocol(struct ledger_job *j)
{
	job_start(j, 2, false); /* once more */
}

static void near_ones_are_copied_to_while_one_is_far(void)
{
	static void (*const ends[])(struct ledger_job * j) = { leaves, is_lost, is_evicted,
							       breaks_the_protocol };
	struct mst_ledger_cfg cfg = mixed("async", 3, 4);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct ledger_job j;
		born_and_one_far(&j, &cfg, 2);
		CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_COPIED);
		CU_ASSERT_EQUAL(where(&j, 2), MST_WHERE_COPIED);
		ends[i](&j);
		CU_ASSERT_FALSE(job_member(&j, 2).live);
		CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_IN_PLACE);
		job_enter(&j, 2); /* now it is near */
		CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_IN_PLACE);
		CU_ASSERT_EQUAL(where(&j, 2), MST_WHERE_IN_PLACE);
		job_close(&j);
	}
}

static void near_ones_are_copied_to_until_the_last_far_one_has_gone(void)
{
	struct mst_ledger_cfg cfg = mixed("async", 3, 4);
	struct ledger_job j;

	born_and_one_far(&j, &cfg, 1);
	is_lost(&j);
	job_enter_far(&j, 2);
	CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_COPIED);
	is_lost(&j);
	CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_COPIED);
	job_lose(&j, 1, -ECONNRESET);
	CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_IN_PLACE);
	job_close(&j);
}

/* Only the leader says so, whenever its links come up. */
static void links_come_up_in_any_order(void)
{
	struct mst_ledger_cfg cfg = mixed("async", 2, 4);

	cfg.shards = 3;
	for (uint32_t first = 0; first < 3; first++) {
		struct ledger_job j;
		job_born(&j, &cfg);
		job_lose(&j, 1, -ECONNRESET);
		job_join(&j, 1);
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t shard = (first + i) % 3;
			if (shard == MST_SHARD_LEAD)
				job_link_far(&j, 1, shard);
			else
				job_link(&j, 1, shard);
		}
		job_start(&j, 1, false);
		CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_COPIED);
		CU_ASSERT_EQUAL(where(&j, 1), MST_WHERE_COPIED);
		job_close(&j);
	}
}

/* Rank 1 computes for long on version 0, which it reads in place: with three buffers there is room
 * for nothing else that is held for long. */
static void near_straggler_holds_a_far_one_up_until_its_next_ask(void)
{
	struct mst_ledger_cfg cfg = mixed("async", 3, 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_lose(&j, 2, -ECONNRESET);
	job_enter_far(&j, 2);
	for (uint64_t version = 1; version <= 5; version++) { /* commits wait for nobody */
		CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_COPIED);
		CU_ASSERT_EQUAL(job_version(&j), version);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	}
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(where(&j, 1), MST_WHERE_COPIED);
	CU_ASSERT_EQUAL(where(&j, 2), MST_WHERE_COPIED);
	CU_ASSERT_EQUAL(given(&j, 2), 5);
	job_answered(&j, 1);
	job_answered(&j, 2);
	for (uint64_t version = 6; version <= 25; version++) { /* rank 1 computes for longer */
		job_push(&j, 2);
		CU_ASSERT_EQUAL(given(&j, 2), version);
		job_answered(&j, 2);
	}
	job_close(&j);
}

/* Two buffers are being copied at any time, so that two are never spare. */
static void far_one_does_not_wait_for_shards_that_copy(void)
{
	struct mst_ledger_cfg cfg = mixed("async", 4, 4);
	struct ledger_job j;

	born_and_one_far(&j, &cfg, 3);
	job_push(&j, 0);
	job_answered(&j, 3);
	job_ask(&j, 1);
	job_ask(&j, 2);
	job_answered(&j, 0);
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t rank = i % 3;
		job_push(&j, rank);
		job_push(&j, 3);
		CU_ASSERT_EQUAL(given(&j, 3), job_version(&j));
		job_answered(&j, 3);
		job_answered(&j, (rank + 1) % 3);
	}
	job_close(&j);
}

/* Versions 2 and 3 are on their way to ranks 2 and 3 for ever, so rank 4 waits. */
static void slow_links_hold_up_far_ones_alone(void)
{
	struct mst_ledger_cfg cfg = mixed("async", 5, 4);
	struct ledger_job j;

	born_and_one_far(&j, &cfg, 2);
	job_lose(&j, 3, -ECONNRESET);
	job_enter_far(&j, 3);
	job_lose(&j, 4, -ECONNRESET);
	job_enter_far(&j, 4);
	CU_ASSERT_EQUAL(next_is(&j), MST_WHERE_COPIED);
	job_ask(&j, 1);
	job_answered(&j, 1);
	job_push(&j, 2);
	job_push(&j, 3);
	job_forget(&j);
	job_push(&j, 4);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 4), 0);
	for (uint32_t i = 0; i < 20; i++) {
		uint64_t before = job_version(&j);
		job_push(&j, i % 2);
		CU_ASSERT_EQUAL(given(&j, i % 2), before + 1);
		job_answered(&j, i % 2);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 4), 0);
	job_lose(&j, 2, -ECONNRESET);
	CU_ASSERT_EQUAL(given(&j, 4), job_version(&j));
	job_close(&j);
}

/* Version 1 is on its way to rank 2, and a shard copies it to rank 1. */
static void room_is_there_when_a_link_is_done_though_a_shard_copies(void)
{
	struct mst_ledger_cfg cfg = mixed("async", 4, 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (uint32_t rank = 2; rank < 4; rank++) {
		job_lose(&j, rank, -ECONNRESET);
		job_enter_far(&j, rank);
	}
	job_push(&j, 0);
	job_ask(&j, 1);
	for (uint32_t rank = 0; rank < 4; rank++)
		CU_ASSERT_EQUAL(given(&j, rank), 1);
	job_answered(&j, 0);
	job_answered(&j, 3);
	job_push(&j, 3);
	CU_ASSERT_EQUAL(given(&j, 3), 1); /* it waits */
	job_answered(&j, 2);
	CU_ASSERT_EQUAL(given(&j, 3), 2);
	job_close(&j);
}

/* It asks, and has that version at once. */
static void catches_up_to(struct ledger_job *j, uint32_t rank, uint64_t version)
{
	while (j->worker[rank].have < version) {
		uint64_t next = j->worker[rank].have + 1;
		job_answered(j, rank);
		job_ask(j, rank);
		CU_ASSERT_EQUAL_FATAL(j->worker[rank].have, next);
	}
}

/* Where workers own, a worker needs each version. Found by random histories: that of rank 4 goes
 * when a shard has copied it to rank 1, while versions 2 and 3 are on their way for ever. */
static void version_goes_while_room_for_it_is_waited_for(void)
{
	struct mst_ledger_cfg cfg = mixed("backup:1", 5, 3);
	struct ledger_job j;

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = 3;
	job_open(&j, &cfg);
	for (uint32_t rank = 0; rank < 5; rank++)
		rank < 2 ? job_enter(&j, rank) : job_enter_far(&j, rank);
	next_is(&j);
	job_ask(&j, 1);
	job_push(&j, 0);
	catches_up_to(&j, 2, 2);
	job_push(&j, 0);
	catches_up_to(&j, 3, 3);
	job_ask(&j, 4);
	CU_ASSERT_EQUAL(j.worker[4].have, 0);
	for (int i = 0; i < 3; i++) {
		job_answered(&j, 0);
		job_push(&j, 0);
	}
	CU_ASSERT_EQUAL(job_version(&j), 6);
	CU_ASSERT(job_member(&j, 4).live);
	job_answered(&j, 1);
	CU_ASSERT(job_evicted(&j, 4, MST_EVICT_STALE));
	job_close(&j);
}

/* Each version is on its way until its worker asks again. The buffers that keep what gradients are
 * computed on are enough for that. */
static void nobody_waits_for_room_where_rates_depend_on_a_distance(void)
{
	struct mst_ledger_cfg cfg = mixed("async", 5, 3);
	struct mst_ledger_event ev = { .kind = MST_EV_REDUCED };
	struct ledger_job j;

	cfg.distance = 0.2;
	job_born(&j, &cfg);
	for (uint32_t rank = 1; rank < 5; rank++) {
		job_lose(&j, rank, -ECONNRESET);
		job_enter_far(&j, rank);
	}
	for (uint64_t version = 1; version <= 20; version++) {
		uint32_t rank = version < 5 ? 0 : (uint32_t)version % 5;
		ev.reduced.version = version;
		job_push(&j, rank);
		job_event(&j, &ev);
		CU_ASSERT_EQUAL(job_version(&j), version);
		CU_ASSERT_EQUAL(given(&j, rank), version);
	}
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "near ones are copied to while one is far", near_ones_are_copied_to_while_one_is_far },
	{ "near ones are copied to until the last far one has gone",
	  near_ones_are_copied_to_until_the_last_far_one_has_gone },
	{ "links come up in any order", links_come_up_in_any_order },
	{ "a near straggler holds a far one up until its next ask",
	  near_straggler_holds_a_far_one_up_until_its_next_ask },
	{ "a far one does not wait for shards that copy",
	  far_one_does_not_wait_for_shards_that_copy },
	{ "slow links hold up far ones alone", slow_links_hold_up_far_ones_alone },
	{ "room is there when a link is done, though a shard copies",
	  room_is_there_when_a_link_is_done_though_a_shard_copies },
	{ "a version goes while room for it is waited for",
	  version_goes_while_room_for_it_is_waited_for },
	{ "nobody waits for room where rates depend on a distance",
	  nobody_waits_for_room_where_rates_depend_on_a_distance },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, several networks", cases);
}
