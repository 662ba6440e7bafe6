/* SPDX-License-Identifier: MIT */
/* options.clip: the factor of a contribution depends on its norm alone, and not on how it was
 * handed over. */
#include <math.h>
#include <string.h>

#include "client/local/clip.h"
#include "common/base/rand.h"
#include "common/kernels/sum.h"
#include "tests/ut.h"

#define ELEMS 30001u /* seven blocks and a rest */

static float wide[ELEMS], gradient[ELEMS], scrap[ELEMS];
static struct mst_clip clip;

static void begin(double limit, enum muster_type type)
{
	CU_ASSERT_EQUAL_FATAL(mst_clip_init(&clip, limit, ELEMS, type), 0);
	mst_sum_store(gradient, type, wide, ELEMS);
	mst_clip_begin(&clip);
}

/* Return: the factor; 1: the header says none. */
static float end(uint32_t flags, double weight)
{
	struct mst_lane_header header = { .weight = weight, .flags = flags };

	mst_clip_end(&clip, gradient, &header);
	mst_clip_fini(&clip);
	CU_ASSERT_EQUAL(header.flags & ~MST_HEADER_CLIPPED, flags);
	return header.flags & MST_HEADER_CLIPPED ? header.clip : 1;
}

static float in_place(double limit, enum muster_type type, uint32_t flags, double weight)
{
	begin(limit, type);
	return end(flags, weight);
}

static void fill(struct mst_rand *rand)
{
	for (size_t i = 0; i < ELEMS; i++)
		wide[i] = (float)mst_rand_unit(rand) - 0.5f;
}

/* Hands a range over in one of the ways of the library. One that is sent from memory of the
 * caller's leaves in the gradient only what is kept; the rest of it is never there. */
static void hand_over(struct mst_rand *rand, const struct mst_range *range, enum muster_type type)
{
	size_t size = mst_type_bytes(type), at = range->begin * size;
	size_t bytes = (range->end - range->begin) * size;

	if (mst_rand_below(rand, 2) == 0) {
		mst_clip_range(&clip, range, (char *)gradient + at);
		return;
	}
	memcpy(scrap, (char *)gradient + at, bytes);
	memset((char *)gradient + at, 0x7f, bytes);
	mst_clip_range(&clip, range, scrap);
	CU_ASSERT(mst_clip_keep(&clip, range, scrap, gradient) <= bytes);
}

static void ranges_do_not_matter(void)
{
	struct mst_rand rand;

	mst_rand_seed(&rand, 5);
	for (unsigned round = 0; round < 60; round++) {
		enum muster_type type = (enum muster_type)(round % 3);
		uint64_t last = ELEMS;
		fill(&rand);
		float whole = in_place(3, type, 0, 1);
		CU_ASSERT(whole > 0 && whole < 1);
		begin(3, type);
		/* from the end; what is left at the beginning lies in place */
		while (last > 0 && mst_rand_below(&rand, 6) != 0) {
			uint64_t count = 1 + mst_rand_below(&rand, round % 2 ? 900 : 15000);
			struct mst_range range = { last > count ? last - count : 0, last };
			hand_over(&rand, &range, type);
			last = range.begin;
		}
		CU_ASSERT_EQUAL(end(0, 1), whole);
	}
}

static void the_factor_is_the_limit_over_the_norm(void)
{
	for (size_t i = 0; i < ELEMS; i++)
		wide[i] = i == 5 ? 3 : i == 29999 ? 4 : 0;
	for (int type = 0; type < 3; type++) {
		CU_ASSERT_EQUAL(in_place(1, (enum muster_type)type, 0, 8), 0.2f);
		/* of a sum over eight samples, their mean */
		CU_ASSERT_EQUAL(in_place(0.5, (enum muster_type)type, MST_HEADER_SUM, 8), 0.8f);
	}
}

static void what_is_not_longer_is_untouched(void)
{
	memset(wide, 0, sizeof(wide));
	CU_ASSERT_EQUAL(in_place(1, MUSTER_F32, 0, 1), 1);
	wide[7] = 5;
	CU_ASSERT_EQUAL(in_place(5, MUSTER_F32, 0, 1), 1);
	CU_ASSERT_EQUAL(in_place(40, MUSTER_F32, MST_HEADER_SUM, 0.125), 1);
	CU_ASSERT(in_place(4.99, MUSTER_F32, 0, 1) < 1);
	CU_ASSERT_EQUAL(in_place(1, MUSTER_F32, MST_HEADER_EMPTY, 1), 1);
}

static void every_factor_is_a_normal_number_above_zero(void)
{
	memset(wide, 0, sizeof(wide));
	wide[3] = 3e38f;
	CU_ASSERT(isnormal(in_place(1e-300, MUSTER_F32, 0, 1)));
	wide[3] = INFINITY;
	CU_ASSERT_EQUAL(in_place(1, MUSTER_F32, 0, 1), 1);
	wide[3] = NAN;
	CU_ASSERT_EQUAL(in_place(1, MUSTER_F32, 0, 1), 1);
}

static CU_TestInfo cases[] = {
	{ "ranges do not matter", ranges_do_not_matter },
	{ "the factor is the limit over the norm", the_factor_is_the_limit_over_the_norm },
	{ "what is not longer is untouched", what_is_not_longer_is_untouched },
	{ "every factor is a normal number above zero",
	  every_factor_is_a_normal_number_above_zero },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client: clip", cases);
}
