/* SPDX-License-Identifier: MIT */
/* --norm-limit: what is refused because its norm is far beyond the others, and who can move the
 * median that it is held against; and contributions whose data are not what was pushed. */
#include <math.h>

#include "server/core/ledger/outliers.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

#define RANKS 5u
#define INF ((double)INFINITY)

static struct mst_outliers o;

static void begin(double limit)
{
	CU_ASSERT_EQUAL_FATAL(mst_outliers_init(&o, limit, RANKS), 0);
}

static bool judge(uint32_t rank, double norm)
{
	return mst_outliers_judge(&o, rank, norm);
}

static void nothing_is_judged_before_three_ranks_have_a_norm(void)
{
	begin(2);
	CU_ASSERT_TRUE(isnan(mst_outliers_median(&o)));
	CU_ASSERT_FALSE(judge(0, 1));
	CU_ASSERT_FALSE(judge(0, 1000)); /* the same rank again is no second one */
	CU_ASSERT_FALSE(judge(1, 1e9));
	CU_ASSERT_FALSE(judge(2, 1));
	CU_ASSERT_TRUE(judge(3, 1e9)); /* 1, 1000, 1e9: the median is 1000 */
	mst_outliers_fini(&o);
}

static void the_limit_itself_is_not_beyond_it(void)
{
	begin(2);
	for (uint32_t rank = 0; rank < 4; rank++)
		judge(rank, 3);
	CU_ASSERT_FALSE(judge(4, 6));
	CU_ASSERT_TRUE(judge(4, nextafter(6, 7)));
	mst_outliers_fini(&o);
}

/* Two liars of five: whatever they say, and however often, the median is one of the others'. */
static void fewer_than_half_cannot_move_the_median_beyond_the_others(void)
{
	static const double lies[] = { 0, 1e-300, 1e300, INF, (double)NAN, 5 };

	begin(2);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		judge(rank, 10 + rank); /* 10, 11, 12 are honest */
	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t k = 0; k < 6; k++) {
			for (uint32_t often = 0; often < 100; often++) {
				judge(3, lies[i]);
				judge(4, lies[k]);
			}
			CU_ASSERT(mst_outliers_median(&o) >= 10);
			CU_ASSERT(mst_outliers_median(&o) <= 12);
		}
	CU_ASSERT_FALSE(judge(0, 19));
	CU_ASSERT_TRUE(judge(1, 1e9));
	mst_outliers_fini(&o);
}

static void where_all_grow_nobody_is_refused_for_good(void)
{
	uint32_t refused = 0;

	begin(2);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		judge(rank, 1);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			refused += judge(rank, 1000);
	CU_ASSERT_EQUAL(refused, 3); /* then three of five have the new size */
	mst_outliers_fini(&o);
}

static void zeroes_limit_nothing(void)
{
	begin(2);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		CU_ASSERT_FALSE(judge(rank, 0));
	CU_ASSERT_FALSE(judge(0, 1000));
	mst_outliers_fini(&o);
}

static void what_is_not_finite_is_refused_and_not_kept(void)
{
	begin(2);
	CU_ASSERT_TRUE(judge(0, INF));
	CU_ASSERT_TRUE(judge(0, (double)NAN));
	CU_ASSERT_TRUE(isnan(mst_outliers_median(&o)));
	mst_outliers_fini(&o);
}

static void a_rank_that_is_gone_has_no_voice(void)
{
	begin(2);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		judge(rank, rank < 3 ? 100 : 1);
	CU_ASSERT_EQUAL(mst_outliers_median(&o), 100);
	mst_outliers_forget(&o, 0);
	mst_outliers_forget(&o, 0);
	CU_ASSERT_EQUAL(mst_outliers_median(&o), 1);
	mst_outliers_fini(&o);
}

static void without_a_limit_nothing_is_kept(void)
{
	begin(0);
	CU_ASSERT_EQUAL(mst_outliers_bytes(0, RANKS), 0);
	CU_ASSERT_FALSE(judge(0, INF));
	CU_ASSERT_TRUE(isnan(mst_outliers_median(&o)));
	mst_outliers_forget(&o, 0);
	mst_outliers_fini(&o);
}

/* ---- the ledger ---- */

static void push(struct ledger_job *j, uint32_t rank, double squares, bool damaged)
{
	struct mst_lane_header h = job_header(j, rank);
	struct mst_ledger_event ev = { .kind = MST_EV_FULL,
				       .who = { rank, job_member(j, rank).incarnation } };

	ev.full.header = h;
	ev.full.squares = squares / j->cfg.shards;
	for (uint32_t shard = 0; shard < j->cfg.shards; shard++) {
		ev.full.shard = shard;
		ev.full.damaged = damaged && shard == j->cfg.shards - 1;
		job_event(j, &ev);
	}
}

/* The norm is that of all servers' parts. */
static void an_outlier_is_refused_once_and_its_worker_goes_on(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 4);
	struct ledger_job j;

	cfg.norm_limit = 3;
	cfg.shards = 2;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 3; rank++)
		push(&j, rank, 4, false);
	job_forget(&j);
	push(&j, 3, 100, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 3), 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_OUTLIER);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_VERDICT, 3)->verdict.norm, 10);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_COUNT, 3), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_REGRANT, 3), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	CU_ASSERT_EQUAL(mst_ledger_norm_median(j.ledger), 2);
	job_close(&j);
}

static void what_is_damaged_on_one_server_is_refused_as_a_whole(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	cfg.shards = 2;
	job_born(&j, &cfg);
	push(&j, 0, 0, true);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 0), 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_DAMAGED);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "nothing is judged before three ranks have a norm",
	  nothing_is_judged_before_three_ranks_have_a_norm },
	{ "the limit itself is not beyond it", the_limit_itself_is_not_beyond_it },
	{ "fewer than half cannot move the median beyond the others",
	  fewer_than_half_cannot_move_the_median_beyond_the_others },
	{ "where all grow nobody is refused for good", where_all_grow_nobody_is_refused_for_good },
	{ "a median of 0 limits nothing", zeroes_limit_nothing },
	{ "what is not finite is refused, and not kept",
	  what_is_not_finite_is_refused_and_not_kept },
	{ "a rank that is gone has no voice", a_rank_that_is_gone_has_no_voice },
	{ "without a limit nothing is kept", without_a_limit_nothing_is_kept },
	{ "an outlier is refused once, and its worker goes on",
	  an_outlier_is_refused_once_and_its_worker_goes_on },
	{ "what is damaged on one server is refused as a whole",
	  what_is_damaged_on_one_server_is_refused_as_a_whole },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("outliers", cases);
}
