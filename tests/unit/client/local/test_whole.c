/* SPDX-License-Identifier: MIT */
/* Whether what a worker holds is whole, as marks tell it when there are no servers any more. */
#include <string.h>

#include "client/local/contiguous.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define SERVERS 3u
#define BUFFERS 4u
#define STRIDE 4096u
#define HELD 7u /* the version */

static struct mst_links links;
static struct mst_contiguous view;
static struct mst_link link_of[SERVERS];
static _Alignas(64) char published[SERVERS][BUFFERS * STRIDE + 4096];
static _Alignas(64) char inbound[SERVERS][4096];
static float into[8], arrived[8];
static struct mst_region region;
static struct mst_held held;

static void begin(bool maps, enum mst_where where)
{
	fix_net_begin(NULL, NULL);
	fix_transport.maps = maps;
	memset(published, 0, sizeof(published));
	memset(inbound, 0, sizeof(inbound));
	links = (struct mst_links){ .transport = &fix_transport, .count = SERVERS, .marked = true };
	for (uint32_t k = 0; k < SERVERS; k++) {
		link_of[k] = (struct mst_link){ .inbound = inbound[k],
						.shared = maps ? published[k] : NULL };
		links.part[k] = (struct mst_part){ .link = &link_of[k],
						   .number = k,
						   .marks = BUFFERS * STRIDE,
						   .layout.down_mark = 128 };
	}
	view = (struct mst_contiguous){ .links = &links,
					.copied.at = (char *)arrived,
					.published.at = (char *)arrived };
	held = (struct mst_held){ .version = HELD, .where = where, .buffer = 2 };
}

static bool is_whole(void)
{
	return mst_contiguous_whole(&view, &held);
}

static void mark_buffer(uint32_t server, uint32_t buffer, uint64_t version)
{
	memcpy(published[server] + BUFFERS * STRIDE + 8 * (size_t)buffer, &version, 8);
}

static void mark_lane(uint32_t server, uint32_t rail, uint64_t version)
{
	memcpy(inbound[server] + 128 + 8 * (size_t)rail, &version, 8);
}

static void a_version_in_place_is_whole_while_every_server_says_so(void)
{
	begin(true, MST_WHERE_IN_PLACE);
	for (uint32_t k = 0; k < SERVERS; k++) {
		CU_ASSERT_FALSE(is_whole());
		mark_buffer(k, held.buffer, HELD);
	}
	CU_ASSERT_TRUE(is_whole());
	mark_buffer(0, held.buffer + 1, HELD + 1); /* the next version is elsewhere */
	CU_ASSERT_TRUE(is_whole());
	for (uint32_t k = 0; k < SERVERS; k++) {
		mark_buffer(k, held.buffer, HELD + BUFFERS);
		CU_ASSERT_FALSE(is_whole()); /* one part is torn */
		mark_buffer(k, held.buffer, HELD);
	}
	CU_ASSERT_TRUE(is_whole());
}

/* Version 0 is in a buffer whose word is 0. */
static void the_first_version_can_be_whole(void)
{
	begin(true, MST_WHERE_IN_PLACE);
	held.version = 0;
	CU_ASSERT_TRUE(is_whole());
	mark_buffer(1, held.buffer, 3);
	CU_ASSERT_FALSE(is_whole());
}

static void a_copy_is_whole_while_no_server_writes_the_next(void)
{
	for (int maps = 0; maps < 2; maps++) {
		begin(maps != 0, MST_WHERE_COPIED);
		for (uint32_t k = 0; k < SERVERS; k++)
			mark_lane(k, 0, HELD);
		CU_ASSERT_TRUE(is_whole());
		for (uint32_t k = 0; k < SERVERS; k++) {
			mark_lane(k, 0, HELD + 1);
			CU_ASSERT_FALSE(is_whole()); /* one part is torn */
			mark_lane(k, 0, HELD);
		}
		CU_ASSERT_TRUE(is_whole());
	}
}

/* A rail may be ahead of the others, and one that the link does not have brings nothing. */
static void a_copy_is_torn_once_any_rail_brings_the_next(void)
{
	begin(false, MST_WHERE_COPIED);
	for (uint32_t k = 0; k < SERVERS; k++)
		for (uint32_t rail = 0; rail < 2; rail++)
			mark_lane(k, rail, HELD);
	CU_ASSERT_TRUE(is_whole());
	mark_lane(2, 1, HELD + 1);
	CU_ASSERT_FALSE(is_whole());
	mark_lane(2, 1, HELD);
	mark_lane(1, MST_MARK_WORDS - 1, HELD + 1);
	CU_ASSERT_FALSE(is_whole());
}

static void nothing_is_known_of_a_copy_over_a_link_without_order(void)
{
	begin(false, MST_WHERE_COPIED);
	for (uint32_t k = 0; k < SERVERS; k++)
		mark_lane(k, 0, HELD);
	link_of[1].unordered = true;
	CU_ASSERT_FALSE(is_whole());
}

static void what_is_in_no_result_is_not_whole(void)
{
	begin(true, MST_WHERE_KEEP); /* as at first: nothing is held */
	CU_ASSERT_FALSE(is_whole());
	begin(true, MST_WHERE_NOWHERE);
	CU_ASSERT_FALSE(is_whole());
	begin(true, MST_WHERE_COPIED);
	CU_ASSERT_TRUE(is_whole());
	held.taken = true;
	CU_ASSERT_FALSE(is_whole());
}

static void without_marks_nothing_is_known(void)
{
	begin(true, MST_WHERE_COPIED);
	links.marked = false;
	CU_ASSERT_FALSE(is_whole());
}

/* That memory is the program's from an outcome until the next ask. Over a transport that maps the
 * library has copied it there, and the version is where it was. */
static void memory_of_the_callers_is_never_taken_for_a_version(void)
{
	begin(true, MST_WHERE_COPIED);
	view.result_into = (char *)into;
	CU_ASSERT_PTR_EQUAL(mst_contiguous_result(&view, &held), into);
	CU_ASSERT_PTR_EQUAL(mst_contiguous_arrived(&view, &held), arrived);
	CU_ASSERT_TRUE(is_whole());
	mark_lane(1, 0, HELD + 1);
	CU_ASSERT_FALSE(is_whole());
	begin(false, MST_WHERE_COPIED);
	view.result_into = (char *)into;
	links.result_into = &region;
	CU_ASSERT_PTR_EQUAL(mst_contiguous_result(&view, &held), into);
	CU_ASSERT_PTR_NULL(mst_contiguous_arrived(&view, &held));
	CU_ASSERT_FALSE(is_whole());
}

static CU_TestInfo cases[] = {
	{ "a version in place is whole while every server says so",
	  a_version_in_place_is_whole_while_every_server_says_so },
	{ "the first version can be whole", the_first_version_can_be_whole },
	{ "a copy is whole while no server writes the next",
	  a_copy_is_whole_while_no_server_writes_the_next },
	{ "a copy is torn once any rail brings the next",
	  a_copy_is_torn_once_any_rail_brings_the_next },
	{ "nothing is known of a copy over a link without order",
	  nothing_is_known_of_a_copy_over_a_link_without_order },
	{ "what is in no result is not whole", what_is_in_no_result_is_not_whole },
	{ "without marks nothing is known", without_marks_nothing_is_known },
	{ "memory of the caller's is never taken for a version",
	  memory_of_the_callers_is_never_taken_for_a_version },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("whole results", cases);
}
