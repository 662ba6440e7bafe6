/* SPDX-License-Identifier: MIT */
/* Lanes: where records and gradients lie in the inbound regions, and what announces them. */
#include <string.h>

#include "common/wire/lane.h"
#include "tests/ut.h"

static struct mst_lane_layout layout(uint64_t elems, uint32_t slots, uint32_t workers)
{
	struct mst_lane_figures figures = { elems, 4, 2, slots, workers, false };
	struct mst_lane_layout out;

	mst_lane_layout(&figures, &out);
	return out;
}

struct extent {
	size_t at, bytes, align;
};

/* Are they aligned, apart, a cache line each at least, and inside @bytes? In rising order. */
static void check_extents(const struct extent *e, size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		size_t end = i + 1 < count ? e[i + 1].at : bytes;
		CU_ASSERT_EQUAL(e[i].at % e[i].align, 0);
		CU_ASSERT(e[i].at + e[i].bytes <= end);
		CU_ASSERT(end - e[i].at >= 64);
	}
}

static void records_lie_apart(void)
{
	struct mst_lane_layout l = layout(1001, 2, 5);
	const struct extent up[] = {
		{ l.up_ask, 24, 64 },
		{ l.up_header[0], sizeof(struct mst_lane_header), 64 },
		{ l.up_header[1], sizeof(struct mst_lane_header), 64 },
		{ l.up_gradient[0], 4004 + 63 * 64, 4096 },
		{ l.up_gradient[1], 4004 + 63 * 64, 4096 },
	};
	const struct extent down[] = {
		{ l.down_session[0], 16, 64 },
		{ l.down_session[1], 16, 64 },
		{ l.down_hint, 8, 64 },
		{ l.down_mark, 8 * MST_MARK_WORDS, 64 },
		{ l.down_verdict[1], 24, 64 },
		{ l.down_grant[1], 8, 64 },
		{ l.down_verdict[0], 24, 64 },
		{ l.down_grant[0], 8, 64 },
		{ l.down_answer, 32, 64 },
		{ l.down_record, sizeof(struct mst_lane_record) + 5 * 16, 64 },
		{ l.down_result, 2002, 4096 },
	};

	CU_ASSERT_EQUAL(l.slot_bytes, 4004);
	CU_ASSERT_EQUAL(l.result_bytes, 2002);
	check_extents(up, sizeof(up) / sizeof(up[0]), l.up_bytes);
	check_extents(down, sizeof(down) / sizeof(down[0]), l.down_bytes);
	CU_ASSERT_EQUAL(l.down_record - l.down_verdict[0], 3 * 64); /* all of it one write */
}

/* For any of them may be summed together. */
static void check_lines(uint64_t elems)
{
	struct mst_lane_layout l = layout(elems, 2, 5);
	bool taken[64] = { false };

	for (uint32_t rank = 0; rank < MST_WORKERS_MAX; rank++) {
		size_t first = mst_lane_gradient(&l, 0, rank),
		       second = mst_lane_gradient(&l, 1, rank);

		if (rank % 64 == 0)
			memset(taken, 0, sizeof(taken));
		CU_ASSERT(first % 64 == 0 && !taken[first % 4096 / 64]);
		taken[first % 4096 / 64] = true;
		CU_ASSERT(first >= l.up_gradient[0]);
		CU_ASSERT(first + l.slot_bytes <= l.up_gradient[1]);
		CU_ASSERT(second >= l.up_gradient[1]);
		CU_ASSERT(second + l.slot_bytes <= l.up_bytes);
	}
}

static void gradients_of_64_ranks_lie_on_lines_of_their_own(void)
{
	check_lines(1);
	check_lines(1001);
	check_lines((1 << 20) - 1);
	check_lines(1 << 20);
}

static void large_gradients_of_16_ranks_lie_pages_apart(void)
{
	struct mst_lane_layout small = layout((1 << 20) - 1, 2, 5), large = layout(1 << 20, 2, 5);
	uint32_t taken = 0;

	for (uint32_t rank = 100; rank < 116; rank++) {
		CU_ASSERT(mst_lane_gradient(&small, 0, rank) - small.up_gradient[0] < 4096);
		size_t into = mst_lane_gradient(&large, 0, rank) - large.up_gradient[0];
		CU_ASSERT_FATAL(into < 16 * 8192);
		taken |= 1u << into / 8192;
	}
	CU_ASSERT_EQUAL(taken, 0xffff);
}

/* A worker maps the parts of a gradient side by side. */
static void parts_of_a_gradient_begin_alike_on_pages(void)
{
	static const uint64_t elems[] = { 4096, 1048576, 5 << 20, (5 << 20) + 77 };
	size_t huge = (size_t)2 << 20, first = 0;

	for (size_t i = 0; i < 4; i++) {
		struct mst_lane_figures figures = { elems[i], 4, 2, MST_SLOTS_MAX, 64, true };
		struct mst_lane_layout l;
		mst_lane_layout(&figures, &l);
		for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++) {
			size_t at = mst_lane_gradient(&l, slot, 63);
			size_t end = slot + 1 < MST_SLOTS_MAX ? mst_lane_gradient(&l, slot + 1, 0)
							      : l.up_bytes;
			if (i == 0 && slot == 0)
				first = at % huge;
			CU_ASSERT_EQUAL(at % 4096, 0);
			CU_ASSERT(end - at >= (l.slot_bytes + 4095) / 4096 * 4096);
			if (l.slot_bytes >= huge)
				CU_ASSERT_EQUAL(at % huge, first);
		}
	}
}

static void the_largest_record_fits(void)
{
	struct mst_lane_layout l = layout(1, MST_SLOTS_MAX, MST_WORKERS_MAX);

	CU_ASSERT(l.down_result - l.down_record >=
		  sizeof(struct mst_lane_record) + MST_WORKERS_MAX * sizeof(struct mst_lane_share));
}

static void credits_cover_what_can_be_unpolled(void)
{
	for (uint32_t slots = 1; slots <= MST_SLOTS_MAX; slots++) {
		struct mst_lane_layout l = layout(10, slots, 3);
		CU_ASSERT(l.up_credits >= 2 * slots + 1);
		CU_ASSERT(l.down_credits >= 2 * slots + 2);
	}
}

static void an_immediate_keeps_its_parts(void)
{
	uint32_t imm = mst_imm(MST_IMM_VERDICT, 3, UINT64_C(0x1fedcba9));

	CU_ASSERT_EQUAL(mst_imm_kind(imm), MST_IMM_VERDICT);
	CU_ASSERT_EQUAL(mst_imm_slot(imm), 3);
	CU_ASSERT_EQUAL(mst_imm_epoch(imm), 0xedcba9);
}

/* ---- room for later releases ---- */

static void what_a_peer_has_not_filled_is_zero(void)
{
	struct mst_lane_header h;
	struct mst_lane_record r;

	memset(&h, 0xff, sizeof(h));
	h.size = MST_HEADER_SIZE_MIN;
	CU_ASSERT_TRUE(mst_lane_header_trim(&h));
	CU_ASSERT(h.sum == UINT32_MAX && h.size == MST_HEADER_SIZE_MIN);
	for (size_t i = MST_HEADER_SIZE_MIN; i < sizeof(h); i++)
		CU_ASSERT_EQUAL(((const uint8_t *)&h)[i], 0);
	memset(&r, 0xff, sizeof(r));
	r.size = MST_RECORD_SIZE_MIN;
	CU_ASSERT_TRUE(mst_lane_record_trim(&r));
	CU_ASSERT(r.share_count == UINT32_MAX && r.size == MST_RECORD_SIZE_MIN);
	for (size_t i = MST_RECORD_SIZE_MIN; i < sizeof(r); i++)
		CU_ASSERT_EQUAL(((const uint8_t *)&r)[i], 0);
}

static void what_is_not_known_here_is_ignored(void)
{
	static const uint32_t more[] = { MST_HEADER_SIZE + 1, 128, UINT32_MAX };
	struct mst_lane_header h;
	struct mst_lane_record r;

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		memset(&h, 0xff, sizeof(h));
		h.size = more[i];
		CU_ASSERT_TRUE(mst_lane_header_trim(&h));
		CU_ASSERT(h.size == MST_HEADER_SIZE && h.reserved[0] == 0);
		memset(&r, 0xff, sizeof(r));
		r.size = more[i];
		CU_ASSERT_TRUE(mst_lane_record_trim(&r));
		CU_ASSERT(r.size == MST_RECORD_SIZE && r.reserved[0] == 0);
	}
}

static void less_than_every_release_fills_is_refused(void)
{
	for (uint32_t size = 0; size < MST_HEADER_SIZE_MIN; size++) {
		struct mst_lane_header h = { .size = size };
		CU_ASSERT_FALSE(mst_lane_header_trim(&h));
	}
	for (uint32_t size = 0; size < MST_RECORD_SIZE_MIN; size++) {
		struct mst_lane_record r = { .size = size };
		CU_ASSERT_FALSE(mst_lane_record_trim(&r));
	}
}

static CU_TestInfo cases[] = {
	{ "records have a line each, gradients and result a page", records_lie_apart },
	{ "gradients of 64 ranks lie on lines of their own",
	  gradients_of_64_ranks_lie_on_lines_of_their_own },
	{ "large gradients of 16 ranks lie pages apart",
	  large_gradients_of_16_ranks_lie_pages_apart },
	{ "parts of a gradient begin alike, on pages", parts_of_a_gradient_begin_alike_on_pages },
	{ "the record of the largest job fits", the_largest_record_fits },
	{ "credits cover all that can be unpolled", credits_cover_what_can_be_unpolled },
	{ "what a peer has not filled of a record is zero", what_a_peer_has_not_filled_is_zero },
	{ "what this release does not know of a record is ignored",
	  what_is_not_known_here_is_ignored },
	{ "a record with less than every release fills is refused",
	  less_than_every_release_fills_is_refused },
	{ "an immediate keeps kind, slot and epoch", an_immediate_keeps_its_parts },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("lane", cases);
}
