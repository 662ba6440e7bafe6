/* SPDX-License-Identifier: MIT */
/* The sets of versions that a worker brings to the start of a generation. */
#include <math.h>
#include <string.h>

#include "server/control/generations/sets.h"
#include "tests/ut.h"

#define WORKERS 130u /* two pieces of a set, and two shares */
#define HISTORY 3u
#define X 11u
#define Y 22u

static struct mst_job_sets sets;
static struct mst_set_piece piece;
static struct mst_brought brought;
static struct mst_counted_list list;

/* A piece of @version: @count shares from @first on, of @total; their ranks are these numbers. */
static struct mst_set_piece *of(uint64_t version, uint32_t first, uint32_t count, uint32_t total)
{
	piece = (struct mst_set_piece){ .version = version,
					.made = X,
					.weight = 10,
					.lr_scale = 0.5,
					.window = 4,
					.first = first,
					.total = total,
					.count = count };
	for (uint32_t i = 0; i < count; i++)
		piece.share[i] = (struct mst_lane_share){ .rank = first + i,
							  .count = 1,
							  .weight = 1 };
	return &piece;
}

/* A set that has one rank alone. */
static struct mst_set_piece *one(uint64_t version, uint64_t made, uint32_t rank, uint32_t count)
{
	(void)of(version, 0, 1, 1);
	piece.made = made;
	piece.share[0] = (struct mst_lane_share){ .rank = rank, .count = count, .weight = count };
	return &piece;
}

static bool takes(const struct mst_set_piece *p)
{
	return mst_job_sets_take(&sets, p, WORKERS, HISTORY) == NULL;
}

static bool refuses(const struct mst_set_piece *p)
{
	const char *wrong = mst_job_sets_take(&sets, p, WORKERS, HISTORY);
	bool refused = wrong != NULL && strstr(wrong, "broke the protocol") != NULL;

	mst_job_sets_forget(&sets);
	return refused;
}

static void pieces_in_their_order_are_the_sets(void)
{
	CU_ASSERT(takes(of(7, 0, 0, 0)));
	CU_ASSERT(takes(of(8, 0, 64, WORKERS)));
	CU_ASSERT_FALSE(mst_job_sets_newest(&sets, 8, &brought)); /* not all of it */
	CU_ASSERT(takes(of(8, 64, 64, WORKERS)));
	CU_ASSERT(takes(of(8, 128, 2, WORKERS)));
	CU_ASSERT_TRUE_FATAL(mst_job_sets_newest(&sets, 8, &brought));
	CU_ASSERT_EQUAL(brought.samples, 10);
	CU_ASSERT_EQUAL(brought.lr_scale, 0.5);
	CU_ASSERT_EQUAL_FATAL(brought.share_count, WORKERS);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		CU_ASSERT_EQUAL(brought.share[rank].rank, rank);
	CU_ASSERT(takes(of(9, 0, 1, 1)));
	CU_ASSERT_FALSE(mst_job_sets_newest(&sets, 8, &brought));
	CU_ASSERT_TRUE(mst_job_sets_newest(&sets, 9, &brought));
	CU_ASSERT_FALSE(mst_job_sets_newest(&sets, 10, &brought));
	mst_job_sets_fini(&sets);
}

static void no_set_has_come_at_first(void)
{
	const struct mst_claimed claimed = { .number = 1, .version = 7, .made = X };

	CU_ASSERT_FALSE(mst_job_sets_newest(&sets, 0, &brought));
	list.count = 9;
	mst_job_sets_counted(&sets, 5, &claimed, &list);
	CU_ASSERT_EQUAL(list.count, 0);
	mst_job_sets_fini(&sets);
}

static void as_many_versions_are_taken_as_workers_keep_and_the_last(void)
{
	for (uint64_t version = 5; version <= 5 + HISTORY; version++)
		CU_ASSERT(takes(of(version, 0, 1, 1)));
	CU_ASSERT(refuses(of(6 + HISTORY, 0, 1, 1)));
}

/* Histories may be longer than the list of versions that a worker is told. */
static void no_more_versions_are_taken_than_a_worker_is_told(void)
{
	for (uint64_t version = 0; version < MST_COUNTED_MAX; version++)
		CU_ASSERT_PTR_NULL(mst_job_sets_take(&sets, of(version, 0, 1, 1), WORKERS, 5000));
	CU_ASSERT_PTR_NOT_NULL(
		mst_job_sets_take(&sets, of(MST_COUNTED_MAX, 0, 1, 1), WORKERS, 5000));
	mst_job_sets_fini(&sets);
}

/* ---- what a worker may send that is broken ---- */

static void begin(void)
{
	CU_ASSERT(takes(of(7, 0, 2, 2)));
	CU_ASSERT(takes(of(8, 0, 64, WORKERS)));
}

static void set_with_a_gap_is_refused(void)
{
	CU_ASSERT(refuses(of(7, 1, 1, 2))); /* without a beginning */
	begin();
	CU_ASSERT(refuses(of(8, 65, 64, WORKERS)));
	begin();
	CU_ASSERT(refuses(of(8, 63, 64, WORKERS)));
	begin();
	CU_ASSERT(refuses(of(8, 0, 64, WORKERS))); /* again */
	begin();
	CU_ASSERT(refuses(of(8, 64, 0, WORKERS))); /* and for ever */
	begin();
	CU_ASSERT(refuses(of(8, 64, 64, WORKERS - 1))); /* of another set, */
	begin();
	CU_ASSERT(refuses(of(9, 64, 64, WORKERS))); /* of another version, */
	begin();
	CU_ASSERT(refuses(of(9, 0, 1, 1))); /* or before all of it has come */
	CU_ASSERT(refuses(of(7, 0, 0, 1)));
}

static void set_of_more_than_all_ranks_is_refused(void)
{
	CU_ASSERT(refuses(of(7, 0, 64, WORKERS + 1)));
	CU_ASSERT(refuses(of(7, 0, 64, UINT32_MAX)));
	CU_ASSERT(refuses(of(7, 0, 2, 1)));
	begin();
	CU_ASSERT(takes(of(8, 64, 64, WORKERS)));
	CU_ASSERT(refuses(of(8, 128, 3, WORKERS)));
	begin();
	CU_ASSERT(refuses(one(8, X, WORKERS, 1)));
}

static void versions_that_do_not_follow_each_other_are_refused(void)
{
	static const uint64_t wrong[] = { 0, 6, 7, 9, UINT64_MAX };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT(takes(of(7, 0, 2, 2)));
		CU_ASSERT(refuses(of(wrong[i], 0, 1, 1)));
	}
}

static bool refuses_share(uint32_t rank, uint32_t count, double weight)
{
	(void)of(7, 0, 2, 2);
	piece.share[0].rank = 5;
	piece.share[1].rank = rank;
	piece.share[1].count = count;
	piece.share[1].weight = weight;
	return refuses(&piece);
}

static void share_that_cannot_be_is_refused(void)
{
	CU_ASSERT_FALSE(refuses_share(6, 1, 1));
	CU_ASSERT_FALSE(refuses_share(6, 1, 0));
	CU_ASSERT(refuses_share(5, 1, 1)); /* twice, */
	CU_ASSERT(refuses_share(4, 1, 1)); /* or not in order */
	CU_ASSERT(refuses_share(WORKERS, 1, 1));
	CU_ASSERT(refuses_share(UINT32_MAX, 1, 1));
	CU_ASSERT(refuses_share(6, 0, 1));
	CU_ASSERT(refuses_share(6, 1, -1));
	CU_ASSERT(refuses_share(6, 1, (double)NAN));
	CU_ASSERT(refuses_share(6, 1, (double)INFINITY));
}

static void figures_that_are_not_finite_are_refused(void)
{
	of(7, 0, 1, 1)->weight = -1;
	CU_ASSERT(refuses(&piece));
	of(7, 0, 1, 1)->weight = (double)NAN;
	CU_ASSERT(refuses(&piece));
	of(7, 0, 1, 1)->weight = (double)INFINITY;
	CU_ASSERT(refuses(&piece));
	of(7, 0, 1, 1)->lr_scale = (double)NAN;
	CU_ASSERT(refuses(&piece));
}

static void what_another_has_sent_is_forgotten(void)
{
	begin();
	mst_job_sets_forget(&sets);
	CU_ASSERT_FALSE(mst_job_sets_newest(&sets, 8, &brought));
	CU_ASSERT(takes(of(3, 0, 1, 1)));
	CU_ASSERT_TRUE(mst_job_sets_newest(&sets, 3, &brought));
	CU_ASSERT_EQUAL(brought.share_count, 1);
	mst_job_sets_fini(&sets);
}

/* ---- what workers are told ---- */

/* Rank 5 is in versions 7, 9 and 10, twice in the last. */
static uint32_t counted_for(uint32_t rank, uint64_t version, uint64_t made)
{
	const struct mst_claimed claimed = { .number = 1, .version = version, .made = made };

	CU_ASSERT(takes(one(7, X, 5, 1)));
	CU_ASSERT(takes(one(8, X, 6, 1)));
	CU_ASSERT(takes(one(9, Y, 5, 1)));
	CU_ASSERT(takes(one(10, Y, 5, 2)));
	mst_job_sets_counted(&sets, rank, &claimed, &list);
	mst_job_sets_fini(&sets);
	return list.count;
}

static void versions_after_its_own_that_a_rank_is_in_are_told(void)
{
	CU_ASSERT_EQUAL_FATAL(counted_for(5, 7, X), 2);
	CU_ASSERT_EQUAL(list.row[0].version, 9);
	CU_ASSERT_EQUAL(list.row[0].made, Y);
	CU_ASSERT_EQUAL(list.row[0].count, 1);
	CU_ASSERT_EQUAL(list.row[0].window, 4);
	CU_ASSERT_EQUAL(list.row[1].version, 10);
	CU_ASSERT_EQUAL(list.row[1].count, 2);
	CU_ASSERT_EQUAL_FATAL(counted_for(5, 9, Y), 1);
	CU_ASSERT_EQUAL(list.row[0].version, 10);
	CU_ASSERT_EQUAL(counted_for(5, 10, Y), 0);
	CU_ASSERT_EQUAL(counted_for(6, 7, X), 1);
	CU_ASSERT_EQUAL(counted_for(6, 8, X), 0);
	CU_ASSERT_EQUAL(counted_for(0, 7, X), 0);
	CU_ASSERT_EQUAL(counted_for(WORKERS - 1, 7, X), 0);
}

/* A gradient that another line has counted is not in this one. */
static void rank_of_another_line_is_told_nothing(void)
{
	CU_ASSERT_EQUAL(counted_for(5, 7, Y), 0);
	CU_ASSERT_EQUAL(counted_for(5, 9, X), 0);
	CU_ASSERT_EQUAL(counted_for(5, 6, X), 0); /* before all that have come */
	CU_ASSERT_EQUAL(counted_for(5, 11, Y), 0);
}

static CU_TestInfo cases[] = {
	{ "pieces in their order are the sets", pieces_in_their_order_are_the_sets },
	{ "no set has come at first", no_set_has_come_at_first },
	{ "as many versions are taken as workers keep, and the last",
	  as_many_versions_are_taken_as_workers_keep_and_the_last },
	{ "no more versions are taken than a worker is told",
	  no_more_versions_are_taken_than_a_worker_is_told },
	{ "a set with a gap is refused", set_with_a_gap_is_refused },
	{ "a set of more than all ranks is refused", set_of_more_than_all_ranks_is_refused },
	{ "versions that do not follow each other are refused",
	  versions_that_do_not_follow_each_other_are_refused },
	{ "a share that cannot be is refused", share_that_cannot_be_is_refused },
	{ "figures that are not finite are refused", figures_that_are_not_finite_are_refused },
	{ "what another has sent is forgotten", what_another_has_sent_is_forgotten },
	{ "versions after its own that a rank is in are told",
	  versions_after_its_own_that_a_rank_is_in_are_told },
	{ "a rank of another line is told nothing", rank_of_another_line_is_told_nothing },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sets of versions that workers bring", cases);
}
