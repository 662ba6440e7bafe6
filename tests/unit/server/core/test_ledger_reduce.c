/* SPDX-License-Identifier: MIT */
/* The ledger and the reduce phase: when a version may be applied, and with which factor. */
#include "common/base/clock.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/unit/server/core/ledger_job.h"
#include "tests/ut.h"

/* A job of two servers whose mean is clipped to 2. */
static void begin(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);

	cfg.shards = 2;
	cfg.optimizer.parameter[MST_SGD_CLIP] = 2;
	job_born(j, &cfg);
}

static void reduced(struct ledger_job *j, uint32_t shard, uint64_t version, double squares)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REDUCED };

	ev.reduced.shard = shard;
	ev.reduced.version = version;
	mst_exact_add(&ev.reduced.squares, squares);
	job_event(j, &ev);
}

/* The last decision of that kind. */
static const struct mst_decision *last_apply(const struct ledger_job *j)
{
	for (size_t i = j->seen_count; i > 0; i--)
		if (j->seen[i - 1].kind == MST_DO_APPLY)
			return &j->seen[i - 1];
	return NULL;
}

static void a_version_is_applied_when_all_servers_have_reduced_it(void)
{
	struct ledger_job j;

	begin(&j);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 0);
	reduced(&j, 1, 1, 16);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 0);
	reduced(&j, 0, 1, 9);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_APPLY, -1), 1);
	CU_ASSERT(last_apply(&j)->apply.version == 1 && last_apply(&j)->apply.factor == 0.4f);
	job_close(&j);
}

static void a_short_mean_stays_as_it_is(void)
{
	struct ledger_job j;

	begin(&j);
	job_push(&j, 0);
	reduced(&j, 0, 1, 1);
	reduced(&j, 1, 1, 3);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_APPLY, -1), 1);
	CU_ASSERT_EQUAL(last_apply(&j)->apply.factor, 1);
	job_close(&j);
}

/* The squares of one version are not those of the next. */
static void versions_are_applied_in_order(void)
{
	struct ledger_job j;

	begin(&j);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	reduced(&j, 0, 1, 4);
	reduced(&j, 1, 1, 0);
	reduced(&j, 1, 2, 9);
	reduced(&j, 0, 2, 16);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_APPLY, -1), 2);
	CU_ASSERT(last_apply(&j)->apply.version == 2 && last_apply(&j)->apply.factor == 0.4f);
	job_close(&j);
}

/* Twice, too early, of a version that there is not: none of it may make a version. */
static void what_no_server_can_have_reduced_changes_nothing(void)
{
	struct ledger_job j;

	begin(&j);
	reduced(&j, 1, 1, 1);
	job_push(&j, 0);
	reduced(&j, 1, 2, 100);
	reduced(&j, 1, 0, 100);
	reduced(&j, 1, 1, 4);
	reduced(&j, 1, 1, 100);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 0);
	reduced(&j, 0, 1, 0);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_APPLY, -1), 1);
	CU_ASSERT_EQUAL(last_apply(&j)->apply.factor, 1);
	job_close(&j);
}

/* ---- norms of tensors ---- */

static void begin_lamb(struct ledger_job *j, uint32_t shards)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);

	cfg.shards = shards;
	cfg.optimizer = (struct mst_optimizer){ .row = mst_optim_find("lamb") };
	job_born(j, &cfg);
}

static void report(struct ledger_job *j, uint32_t shard, uint32_t sum, bool spans, double squares)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REDUCED };

	ev.reduced.shard = shard;
	ev.reduced.version = 1;
	ev.reduced.sum = sum;
	ev.reduced.spans = spans;
	if (squares != 0)
		mst_exact_add(&ev.reduced.squares, squares);
	job_event(j, &ev);
}

/* @squares: of the parameters at the left and at the right; those of directions are 1 and 0. */
static void edges(struct ledger_job *j, uint32_t shard, bool spans, double left, double right)
{
	report(j, shard, MST_EDGE_LEFT_THETA, spans, left);
	report(j, shard, MST_EDGE_LEFT_DIRECTION, spans, 0);
	report(j, shard, MST_EDGE_RIGHT_THETA, spans, right);
	report(j, shard, MST_EDGE_RIGHT_DIRECTION, spans, 1);
}

/* The first border cuts a tensor, the second and the third the same one, the last none. */
static void a_tensor_that_borders_cut_has_one_trust_ratio(void)
{
	struct ledger_job j;

	begin_lamb(&j, 5);
	job_push(&j, 0);
	edges(&j, 4, false, 0, 0);
	edges(&j, 2, true, 0, 7);
	edges(&j, 0, false, 1000, 9);
	edges(&j, 3, false, 8, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 0);
	edges(&j, 1, false, 16, 17);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_APPLY, -1), 1);
	const float *trust = last_apply(&j)->apply.trust;
	CU_ASSERT_EQUAL(trust[0], 5);
	CU_ASSERT_EQUAL(trust[1], 4); /* the root of 32 over 2 */
	CU_ASSERT_EQUAL(trust[2], 4);
	CU_ASSERT_EQUAL(trust[3], 1);
	CU_ASSERT_EQUAL(last_apply(&j)->apply.factor, 1);
	job_close(&j);
}

static void sums_that_are_not_next_change_nothing(void)
{
	struct ledger_job j;

	begin_lamb(&j, 2);
	job_push(&j, 0);
	edges(&j, 1, false, 16, 0);
	edges(&j, 1, false, 1000, 0);
	report(&j, 0, MST_EDGE_RIGHT_THETA, false, 1000);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 0);
	edges(&j, 0, false, 0, 9);
	CU_ASSERT_EQUAL(last_apply(&j)->apply.trust[0], 5);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a version is applied when all servers have reduced it",
	  a_version_is_applied_when_all_servers_have_reduced_it },
	{ "a short mean stays as it is", a_short_mean_stays_as_it_is },
	{ "versions are applied in order", versions_are_applied_in_order },
	{ "what no server can have reduced changes nothing",
	  what_no_server_can_have_reduced_changes_nothing },
	{ "a tensor that borders cut has one trust ratio",
	  a_tensor_that_borders_cut_has_one_trust_ratio },
	{ "sums that are not next change nothing", sums_that_are_not_next_change_nothing },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_reduce", cases);
}
