/* SPDX-License-Identifier: MIT */
/* An aggregator and versions that are saved: they do not change while they are, and nothing else
 * becomes different by it. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/optim/optim_case.h"
#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

#define BYTES (AGG_ELEMS * sizeof(float))

static float *gradient(uint32_t rank)
{
	size_t at = mst_lane_gradient(&agg_cfg.layout, 0, rank);

	return (float *)(void *)((char *)agg_link[rank].inbound + at);
}

static void work_off(void)
{
	while (agg_work_all())
		;
}

static void saves(struct mst_aggregator_cfg *cfg)
{
	cfg->owner = MUSTER_SERVERS_OWN;
	cfg->optimizer = optim_case_sgd(1, 0.5);
	cfg->averages = true;
	cfg->saves = true;
}

static void begin(uint32_t shards)
{
	struct mst_decision start = { .kind = MST_DO_START, .commit.buffer = 0 };

	agg_adjust = saves;
	agg_shards = shards;
	agg_begin_with(true, 700);
	agg_decide(&start);
	for (uint32_t rank = 0; rank < AGG_RANKS; rank++)
		for (uint32_t i = 0; i < AGG_ELEMS; i++)
			gradient(rank)[i] = (float)((i * 7 + rank * 31) % 1000) / 8;
}

/* The commit of that version, of one rank. */
static void make(uint64_t version, uint32_t buffer)
{
	agg_count_of((uint32_t)version - 1, 0);
	agg_commit_to(version, buffer);
}

static const float *version_in(uint32_t buffer)
{
	return (const void *)((const char *)agg_cfg.published +
			      buffer * mst_version_stride(AGG_ELEMS, MUSTER_F32));
}

static float *copy_of(const void *vector)
{
	float *copy = malloc(BYTES);

	CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
	memcpy(copy, vector, BYTES);
	return copy;
}

static void a_version_is_saved_when_it_has_been_made(void)
{
	begin(1);
	make(1, 1);
	agg_save(1, 1);
	CU_ASSERT_EQUAL(agg_saving_count, 0);
	work_off();
	CU_ASSERT_EQUAL_FATAL(agg_saving_count, 1);
	CU_ASSERT_EQUAL(agg_saving.version, 1);
	CU_ASSERT_FALSE(agg_saving.spoilt);
	CU_ASSERT_PTR_EQUAL(agg_saving.result, version_in(1));
	CU_ASSERT_PTR_NULL(agg_saving.theta); /* results are f32 */
	CU_ASSERT_PTR_NOT_NULL_FATAL(agg_saving.state[0]);
	/* at a rate of 1, from 0 on, the parameters are the momentum turned round */
	for (uint32_t i = 0; i < AGG_ELEMS; i++)
		if (agg_saving.state[0][i] != -version_in(1)[i])
			CU_FAIL_FATAL("the momentum is of another version");
	/* half of it, the other half is of the start state, which is 0 */
	for (uint32_t i = 0; i < AGG_ELEMS; i++)
		if (agg_saving.average[i] != version_in(1)[i] / 2)
			CU_FAIL_FATAL("the average is another one");
	agg_end();
}

/* The commits after it are decided before it is made, and after. */
static void what_is_saved_does_not_change(void)
{
	for (int early = 0; early < 2; early++) {
		begin(3);
		make(1, 1);
		work_off();
		agg_save(1, 1);
		if (early)
			make(2, 2);
		work_off();
		CU_ASSERT_EQUAL_FATAL(agg_saving_count, 1);
		float *state = copy_of(agg_saving.state[0]), *result = copy_of(agg_saving.result);
		float *average = copy_of(agg_saving.average);
		for (uint32_t i = 0; i < AGG_ELEMS; i++)
			if (state[i] != gradient(0)[i])
				CU_FAIL_FATAL("the momentum is of another version");
		if (!early)
			make(2, 2);
		make(3, 0);
		make(4, 2);
		work_off();
		CU_ASSERT_EQUAL(memcmp(state, agg_saving.state[0], BYTES), 0);
		CU_ASSERT_EQUAL(memcmp(result, agg_saving.result, BYTES), 0);
		CU_ASSERT_EQUAL(memcmp(average, agg_saving.average, BYTES), 0);
		free(average);
		free(state);
		free(result);
		agg_end();
	}
}

/* Some versions of a job, which saves two of them or none. Return: the last, the caller's. */
static float *run_to_the_end(bool saves)
{
	begin(2);
	for (uint64_t version = 1; version <= 6; version++) {
		/* buffers 1, 2 and 0 in turn; what is saved is not overwritten meanwhile */
		make(version, (uint32_t)(version % 3));
		if (saves && version % 3 == 1) {
			agg_save(version, (uint32_t)(version % 3));
			work_off();
			mst_aggregator_saved(agg_aggregator, version);
		}
		if (version % 2 == 0)
			work_off();
	}
	work_off();
	float *last = copy_of(version_in(0));
	agg_end();
	return last;
}

static void a_job_that_saves_makes_the_same_versions(void)
{
	float *plain = run_to_the_end(false), *saved = run_to_the_end(true);

	CU_ASSERT_EQUAL(memcmp(plain, saved, BYTES), 0);
	free(plain);
	free(saved);
}

static void lend(uint64_t version)
{
	agg_decide(&(struct mst_decision){ .kind = MST_DO_LEND, .commit.version = version });
}

/* Also while another version is being saved, and while versions are saved one after the other. */
static void an_average_that_is_lent_does_not_change(void)
{
	for (int saves_first = 0; saves_first < 2; saves_first++) {
		begin(3);
		make(1, 1);
		if (saves_first)
			agg_save(1, 1);
		lend(1);
		make(2, 2);
		if (!saves_first)
			agg_save(2, 2);
		work_off();
		CU_ASSERT_EQUAL_FATAL(agg_lent_count, 1);
		CU_ASSERT_EQUAL(agg_lent_version, 1);
		float *lent = copy_of(agg_lent), *saved = copy_of(agg_saving.average);
		for (uint32_t i = 0; i < AGG_ELEMS; i++)
			if (lent[i] != version_in(1)[i] / 2)
				CU_FAIL_FATAL("the average is another one");
		CU_ASSERT_EQUAL(memcmp(lent, saved, BYTES) == 0, saves_first);
		make(3, 0);
		make(4, 2);
		work_off();
		CU_ASSERT_EQUAL(memcmp(lent, agg_lent, BYTES), 0);
		CU_ASSERT_EQUAL(memcmp(saved, agg_saving.average, BYTES), 0);
		free(lent);
		free(saved);
		agg_end();
	}
}

/* Some versions, whose averages are lent and saved, or not. Return: the last average, a copy. */
static float *average_at_the_end(bool lends)
{
	begin(2);
	for (uint64_t version = 1; version <= 6; version++) {
		make(version, (uint32_t)(version % 3));
		if (lends && version % 2 == 1)
			lend(version);
		if (lends && version % 3 == 1)
			agg_save(version, (uint32_t)(version % 3));
		work_off();
		if (version % 2 == 0)
			mst_aggregator_returned(agg_aggregator);
		if (lends && version % 3 == 0)
			mst_aggregator_saved(agg_aggregator, version - 2);
	}
	lend(6);
	work_off();
	float *last = copy_of(agg_lent);
	agg_end();
	return last;
}

static void lending_changes_no_average(void)
{
	float *plain = average_at_the_end(false), *lent = average_at_the_end(true);

	CU_ASSERT_EQUAL(memcmp(plain, lent, BYTES), 0);
	free(plain);
	free(lent);
}

static void a_follower_lends_to_one_reader_at_a_time(void)
{
	struct mst_decision d = { .kind = MST_DO_LEND, .commit.version = 1 };

	agg_follower = true;
	agg_adjust = saves;
	agg_shards = 1;
	agg_begin_with(true, 700);
	CU_ASSERT_FALSE(mst_aggregator_validates(agg_aggregator, &d)); /* before the start */
	agg_end();
	agg_follower = true;
	begin(1);
	make(1, 1);
	CU_ASSERT_TRUE(mst_aggregator_validates(agg_aggregator, &d));
	lend(1);
	CU_ASSERT_FALSE(mst_aggregator_validates(agg_aggregator, &d));
	work_off();
	mst_aggregator_returned(agg_aggregator);
	CU_ASSERT_TRUE(mst_aggregator_validates(agg_aggregator, &d));
	agg_end();
}

static void the_average_of_a_version_that_is_not_finite_is_not_lent(void)
{
	begin(2);
	gradient(0)[9000] = (float)(1e300 * 1e300);
	make(1, 1);
	lend(1);
	work_off();
	CU_ASSERT_EQUAL_FATAL(agg_lent_count, 1);
	CU_ASSERT_PTR_NULL(agg_lent);
	agg_end();
}

static void a_version_that_is_not_finite_is_told_to_be_spoilt(void)
{
	begin(2);
	gradient(0)[9000] = (float)(1e300 * 1e300);
	make(1, 1);
	agg_save(1, 1);
	work_off();
	CU_ASSERT_EQUAL_FATAL(agg_saving_count, 1);
	CU_ASSERT_TRUE(agg_saving.spoilt);
	CU_ASSERT_PTR_NULL(agg_saving.result);
	agg_end();
}

static void a_follower_is_told_to_save_one_version_at_a_time(void)
{
	struct mst_decision save = { .kind = MST_DO_SAVE, .commit = { .version = 1, .buffer = 1 } };

	agg_follower = true;
	begin(1);
	CU_ASSERT_FALSE(mst_aggregator_validates(agg_aggregator, &save)); /* it is not there yet */
	make(1, 1);
	CU_ASSERT_TRUE(mst_aggregator_validates(agg_aggregator, &save));
	save.commit.buffer = 0;
	CU_ASSERT_FALSE(mst_aggregator_validates(agg_aggregator, &save));
	save.commit.buffer = 1;
	agg_save(1, 1);
	CU_ASSERT_FALSE(mst_aggregator_validates(agg_aggregator, &save));
	work_off();
	mst_aggregator_saved(agg_aggregator, 1);
	CU_ASSERT_TRUE(mst_aggregator_validates(agg_aggregator, &save));
	agg_end();
}

static CU_TestInfo cases[] = {
	{ "a version is saved when it has been made", a_version_is_saved_when_it_has_been_made },
	{ "what is saved does not change", what_is_saved_does_not_change },
	{ "a job that saves makes the same versions", a_job_that_saves_makes_the_same_versions },
	{ "an average that is lent does not change", an_average_that_is_lent_does_not_change },
	{ "lending changes no average", lending_changes_no_average },
	{ "a follower lends to one reader at a time", a_follower_lends_to_one_reader_at_a_time },
	{ "the average of a version that is not finite is not lent",
	  the_average_of_a_version_that_is_not_finite_is_not_lent },
	{ "a version that is not finite is told to be spoilt",
	  a_version_that_is_not_finite_is_told_to_be_spoilt },
	{ "a follower is told to save one version at a time",
	  a_follower_is_told_to_save_one_version_at_a_time },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator_save", cases);
}
