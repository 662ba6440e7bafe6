/* SPDX-License-Identifier: MIT */
/* A device that is too small for a job is found out by its figures; needs no device. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/transport/verbs/verbs.h"
#include "tests/ut.h"

/* As soft-RoCE has them, more or less. */
static const struct ibv_device_attr roomy = {
	.max_mr_size = UINT64_MAX,
	.max_qp = 1 << 20,
	.max_qp_wr = 1 << 20,
	.max_cq = 1 << 20,
	.max_cqe = 32767,
	.max_mr = 1 << 19,
	.max_pd = 1 << 20,
};

static struct mst_verbs_need need_of(uint32_t links)
{
	return (struct mst_verbs_need){
		.links = links, .rails = 1, .here = 1, .lanes = { 1 << 20, 1 << 20, 5, 12 }
	};
}

static struct mst_reason why; /* what does not fit */

static bool fits(const struct ibv_device_attr *has, const struct mst_verbs_need *need)
{
	int rc = mst_verbs_limits_check("mlx5_0", has, need, &why);

	CU_ASSERT(rc == 0 || rc == -ENOSPC);
	return rc == 0;
}

/* The sentence has all of these words. */
static void expect_words(const char *const *word)
{
	for (; *word != NULL; word++) {
		if (strstr(why.text, *word) == NULL)
			printf("\n\"%s\" has no \"%s\"\n", why.text, *word);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, *word));
	}
}
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void a_device_with_room_is_taken(void)
{
	struct mst_verbs_need need = need_of(4096);

	CU_ASSERT(fits(&roomy, &need));
	need.lanes.up_credits = need.lanes.down_credits = MST_VERBS_CREDITS_MAX;
	CU_ASSERT(fits(&roomy, &need));
}

static void each_limit_is_met_exactly(void)
{
	const struct mst_verbs_need need = need_of(100);
	/* 5 credits and the region exchange; 8 pieces, twice 12 credits and 64, to a power of
	 * two. */
	const uint32_t receives = 6, sends = 128;
	struct ibv_device_attr least = {
		.max_mr_size = (1 << 20) + 4096,
		.max_qp = 200,
		.max_qp_wr = (int)sends,
		.max_cq = 100,
		.max_cqe = (int)(receives + sends) + 1,
		.max_mr = 201,
		.max_pd = 101,
	};
	int *limit[] = { &least.max_qp, &least.max_cq, &least.max_cqe, &least.max_mr,
			 &least.max_pd };

	CU_ASSERT(fits(&least, &need));
	for (size_t i = 0; i < sizeof(limit) / sizeof(limit[0]); i++) {
		--*limit[i];
		CU_ASSERT_FALSE(fits(&least, &need));
		++*limit[i];
	}
	least.max_mr_size--;
	CU_ASSERT_FALSE(fits(&least, &need));
	least.max_mr_size++;
	least.max_qp_wr = MST_QUEUE_SENDS_MIN; /* a shorter queue of sends will do */
	CU_ASSERT(fits(&least, &need));
	least.max_qp_wr--;
	CU_ASSERT_FALSE(fits(&least, &need));
}

static void the_reason_has_figures_and_the_fix(void)
{
	struct ibv_device_attr small = roomy;
	struct mst_verbs_need need = need_of(40);

	small.max_qp = 64;
	CU_ASSERT_FALSE(fits(&small, &need));
	expect_words(WORDS("mlx5_0", "64 queue pairs", "40 workers", "80", "--workers"));
	small.max_qp = 80;
	CU_ASSERT(fits(&small, &need));
	small.max_cqe = 100;
	CU_ASSERT_FALSE(fits(&small, &need));
	expect_words(WORDS("mlx5_0", "100 entries of a completion queue", "135", "--slots"));
	small.max_cqe = 135;
	small.max_mr_size = 1 << 20;
	CU_ASSERT_FALSE(fits(&small, &need));
	expect_words(WORDS("mlx5_0", "1048576 bytes", "1052672", "--slots"));
}

static void two_rails_over_one_device_need_twice_as_much(void)
{
	struct ibv_device_attr small = roomy;
	struct mst_verbs_need need = need_of(40);

	small.max_qp = 80;
	need.rails = 2;
	CU_ASSERT(fits(&small, &need));
	need.here = 2;
	CU_ASSERT_FALSE(fits(&small, &need));
}

static void a_figure_that_the_driver_does_not_tell_keeps_nobody_out(void)
{
	struct ibv_device_attr silent = { .max_qp_wr = 1024 };
	struct mst_verbs_need need = need_of(40);

	CU_ASSERT(fits(&silent, &need));
}

static uint64_t total_ns(struct mst_verbs_tries tries)
{
	return (UINT64_C(4096) << tries.timer) * (tries.retries + 1u);
}

static void tries_fill_the_time_and_no_more(void)
{
	struct mst_verbs_tries usual = mst_verbs_tries(2 * MST_SECOND);

	CU_ASSERT(usual.timer == 16 && usual.retries == 6); /* 1.9 s */
	for (uint64_t ns = 33000; ns < 7200 * MST_SECOND; ns += ns / 100) {
		struct mst_verbs_tries t = mst_verbs_tries(ns);
		if (total_ns(t) > ns || total_ns(t) < ns / 5 * 4 || t.retries > 6)
			CU_FAIL("a time that is not filled");
	}
}

/* By trying all of them. */
static void no_other_tries_are_nearer(void)
{
	for (uint64_t ns = MST_SECOND; ns <= MST_LINK_TIMEOUT_MAX_NS; ns += ns / 50) {
		uint64_t best = 0;
		for (unsigned k = 0; k < 31 * 7; k++) {
			struct mst_verbs_tries t = { (uint8_t)(1 + k / 7), (uint8_t)(k % 7) };
			if (total_ns(t) <= ns && total_ns(t) > best)
				best = total_ns(t);
		}
		CU_ASSERT_EQUAL(total_ns(mst_verbs_tries(ns)), best);
	}
}

static void tries_are_some_at_any_time(void)
{
	struct mst_verbs_tries none = mst_verbs_tries(0), most = mst_verbs_tries(UINT64_MAX);

	CU_ASSERT(none.timer == 1 && none.retries == 0); /* a timer of 0 would never give up */
	CU_ASSERT(most.timer == 31 && most.retries == 6);
}

static CU_TestInfo cases[] = {
	{ "a device with room is taken", a_device_with_room_is_taken },
	{ "each limit is met exactly", each_limit_is_met_exactly },
	{ "the sentence has figures and the fix", the_reason_has_figures_and_the_fix },
	{ "two rails over one device need twice as much",
	  two_rails_over_one_device_need_twice_as_much },
	{ "a figure that the driver does not tell keeps nobody out",
	  a_figure_that_the_driver_does_not_tell_keeps_nobody_out },
	{ "tries fill the time and no more", tries_fill_the_time_and_no_more },
	{ "no other tries are nearer", no_other_tries_are_nearer },
	{ "tries are some at any time", tries_are_some_at_any_time },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("verbs limits", cases);
}
