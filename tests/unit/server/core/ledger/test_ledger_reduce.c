/* SPDX-License-Identifier: MIT */
/* The ledger and the reduce phase: when a version may be applied, and with which factor. */
#include <errno.h>

#include "common/base/clock.h"
#include "common/optim/kernels.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
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

/* ---- the distance that a rate depends on ---- */

/* The rate is 0.1, and at most 0.2 over the square of the distance. */
static void begin_distance(struct ledger_job *j, uint32_t workers, uint32_t shards)
{
	struct mst_ledger_cfg cfg = job_cfg("async", workers);

	cfg.shards = shards;
	cfg.distance = 0.2;
	job_born(j, &cfg);
}

/* The buffer that a version was written to; the first is in the first. */
static uint32_t buffer_of(const struct ledger_job *j, uint64_t version)
{
	for (size_t i = 0; i < j->seen_count; i++) {
		const struct mst_decision *d = &j->seen[i];

		if (d->kind == MST_DO_COMMIT && d->commit.version == version)
			return d->commit.buffer;
	}
	return version == 0 ? 0 : MST_BUFFER_NONE;
}

static void a_rate_is_set_when_the_distance_is_known(void)
{
	struct ledger_job j;

	begin_distance(&j, 2, 2);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_COMMIT, -1)->commit.read, buffer_of(&j, 0));
	reduced(&j, 0, 1, 5);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 0);
	reduced(&j, 1, 1, 3);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_APPLY, -1), 1);
	CU_ASSERT_EQUAL(last_apply(&j)->apply.factor, 1);
	CU_ASSERT_EQUAL(last_apply(&j)->apply.scalar[MST_SCALAR_RATE], 0.025f);
	const struct mst_record *r = mst_ledger_record_of(j.ledger, 1);
	CU_ASSERT_FATAL(r != NULL);
	CU_ASSERT(r->lr_scale == 0.25 && r->scalar[MST_SCALAR_RATE] == 0.025f);
	job_push(&j, 1);
	reduced(&j, 0, 2, 0);
	reduced(&j, 1, 2, 0);
	CU_ASSERT_EQUAL(last_apply(&j)->apply.scalar[MST_SCALAR_RATE], 0.1f);
	job_close(&j);
}

/* Else the record of the version, which its rate belongs in, might be gone. */
static void versions_with_a_distance_are_made_one_at_a_time(void)
{
	struct ledger_job j;

	begin_distance(&j, 3, 1);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	reduced(&j, 0, 1, 0);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	reduced(&j, 0, 2, 1);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	reduced(&j, 0, 3, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 3);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, -1), 3);
	job_close(&j);
}

/* However many versions come meanwhile, and whether or not the worker still reads it. */
static void a_version_stays_while_a_gradient_on_it_may_come(void)
{
	struct ledger_job j;

	begin_distance(&j, 2, 1);
	uint32_t first = buffer_of(&j, 0);
	job_answered(&j, 1);
	for (uint64_t version = 1; version <= 20; version++) {
		job_push(&j, 0);
		reduced(&j, 0, version, 1);
		job_answered(&j, 0);
		CU_ASSERT_NOT_EQUAL(buffer_of(&j, version), first);
	}
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 21);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_COMMIT, -1)->commit.read, first);
	reduced(&j, 0, 21, 1);
	job_answered(&j, 1);
	bool again = false;
	for (uint64_t version = 22; version <= 40; version++) {
		job_push(&j, 0);
		reduced(&j, 0, version, 1);
		job_answered(&j, 0);
		again |= buffer_of(&j, version) == first;
	}
	CU_ASSERT(again); /* nobody needs it any more */
	job_close(&j);
}

static void what_a_lost_worker_has_read_stays_until_the_commit(void)
{
	struct ledger_job j;

	begin_distance(&j, 3, 1);
	job_push(&j, 0);
	job_push(&j, 1); /* counted: it waits for the distance of the first */
	job_lose(&j, 1, -ECONNRESET);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	reduced(&j, 0, 1, 1);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_COMMIT, -1)->commit.read, buffer_of(&j, 0));
	job_close(&j);
}

/* It may have computed for long on a version, been given another, and pushed then. */
static void a_gradient_on_an_older_version_than_the_last_is_stale(void)
{
	struct ledger_job j;

	begin_distance(&j, 2, 1);
	job_push(&j, 0);
	reduced(&j, 0, 1, 0);
	CU_ASSERT_EQUAL(j.worker[0].have, 1);
	struct mst_lane_header h = job_header(&j, 0);
	h.tag = 0;
	job_full_all(&j, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_STALE);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void the_end_waits_for_the_last_distance(void)
{
	struct ledger_job j;

	begin_distance(&j, 2, 1);
	job_push(&j, 0);
	job_push(&j, 1);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_FALSE(job_finished(&j, MST_FINISH_ASKED));
	reduced(&j, 0, 1, 0);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	reduced(&j, 0, 2, 0);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	job_close(&j);
}

/* The sums of the norms of tensors come first. */
static void a_distance_comes_after_the_norms_of_tensors(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	cfg.optimizer = (struct mst_optimizer){ .row = mst_optim_find("lamb"),
						.parameter = { [MST_ADAM_LR] = 0.1 } };
	cfg.distance = 0.2;
	job_born(&j, &cfg);
	job_push(&j, 0);
	edges(&j, 0, false, 0, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 0);
	report(&j, 0, MST_EDGE_SUMS, false, 8);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_APPLY, -1), 1);
	CU_ASSERT_EQUAL(last_apply(&j)->apply.scalar[MST_SCALAR_RATE], 0.025f);
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
	{ "a rate is set when the distance is known", a_rate_is_set_when_the_distance_is_known },
	{ "versions with a distance are made one at a time",
	  versions_with_a_distance_are_made_one_at_a_time },
	{ "a version stays while a gradient on it may come",
	  a_version_stays_while_a_gradient_on_it_may_come },
	{ "what a lost worker has read stays until the commit",
	  what_a_lost_worker_has_read_stays_until_the_commit },
	{ "a gradient on an older version than the last is stale",
	  a_gradient_on_an_older_version_than_the_last_is_stale },
	{ "the end waits for the last distance", the_end_waits_for_the_last_distance },
	{ "a distance comes after the norms of tensors",
	  a_distance_comes_after_the_norms_of_tensors },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_reduce", cases);
}
