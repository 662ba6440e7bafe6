/* SPDX-License-Identifier: MIT */
/* Which callers of a TLS listener have to go. */
#include <string.h>

#include "common/transport/tls/callers.h"
#include "tests/ut.h"

#define MAX 8u
#define OF_GROUP 4u
#define MOMENT 100u

static struct mst_caller_place place[MAX];
static struct mst_callers callers;

static void begin(void)
{
	memset(place, 0, sizeof(place));
	callers = (struct mst_callers){
		.max = MAX, .max_of_group = OF_GROUP, .moment_ns = MOMENT, .place = place
	};
}

static void crowd_makes_room_for_its_own(void)
{
	uint32_t goes;

	begin();
	for (uint32_t i = 0; i < OF_GROUP; i++)
		(void)mst_callers_enter(&callers, 7, i);
	CU_ASSERT(mst_callers_room(&callers, 8, 10, &goes));
	CU_ASSERT_EQUAL(goes, MST_CALLERS_NONE);
	CU_ASSERT_FALSE(mst_callers_room(&callers, 7, MOMENT - 1, &goes));
	CU_ASSERT(mst_callers_room(&callers, 7, MOMENT, &goes));
	CU_ASSERT_EQUAL_FATAL(goes, 0);
	mst_callers_leave(&callers, goes);
	CU_ASSERT(mst_callers_room(&callers, 7, MOMENT, &goes));
	CU_ASSERT_EQUAL(goes, MST_CALLERS_NONE);
}

static void the_address_with_the_most_makes_room_for_others(void)
{
	uint32_t goes;

	begin();
	uint32_t lonely = mst_callers_enter(&callers, 1, 0);
	for (uint32_t i = 0; i < 3; i++)
		(void)mst_callers_enter(&callers, 2, 1);
	uint32_t crowd = mst_callers_enter(&callers, 3, 2);
	for (uint32_t i = 0; i < 3; i++)
		(void)mst_callers_enter(&callers, 3, 3);
	CU_ASSERT_EQUAL(callers.count, MAX);
	CU_ASSERT(mst_callers_room(&callers, 4, 1000, &goes));
	CU_ASSERT_EQUAL(goes, crowd);
	CU_ASSERT_NOT_EQUAL(goes, lonely);
}

static void ports_and_hosts_of_a_network_are_one_group(void)
{
	begin();
	callers.seed = 12345;
	uint32_t v4 = mst_callers_group(&callers, "10.0.0.1:1000");
	uint32_t v6 = mst_callers_group(&callers, "[2001:db8::1]:1000");
	CU_ASSERT_EQUAL(mst_callers_group(&callers, "10.0.0.1:2"), v4);
	CU_ASSERT_NOT_EQUAL(mst_callers_group(&callers, "10.0.0.2:1000"), v4);
	CU_ASSERT_EQUAL(mst_callers_group(&callers, "[2001:db8::ffff:2]:3"), v6);
	CU_ASSERT_NOT_EQUAL(mst_callers_group(&callers, "[2001:db8:0:1::1]:1000"), v6);
	callers.seed = 54321;
	CU_ASSERT_NOT_EQUAL(mst_callers_group(&callers, "10.0.0.1:1000"), v4);
}

static void an_address_with_few_is_served_before_a_crowd(void)
{
	begin();
	uint32_t lonely = mst_callers_enter(&callers, 1, 0);
	uint32_t old = mst_callers_enter(&callers, 2, 1), young = mst_callers_enter(&callers, 2, 2);
	CU_ASSERT(mst_callers_precedes(&callers, lonely, young));
	CU_ASSERT_FALSE(mst_callers_precedes(&callers, young, lonely));
	CU_ASSERT(mst_callers_precedes(&callers, young, old));
	CU_ASSERT_FALSE(mst_callers_precedes(&callers, old, young));
}

static CU_TestInfo cases[] = {
	{ "an address with few is served before a crowd, whose newest is the first",
	  an_address_with_few_is_served_before_a_crowd },
	{ "a crowd makes room for its own, after a moment", crowd_makes_room_for_its_own },
	{ "the address with the most makes room for others",
	  the_address_with_the_most_makes_room_for_others },
	{ "ports of a host, and hosts of a network of IPv6, are one group",
	  ports_and_hosts_of_a_network_are_one_group },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("tls callers", cases);
}
