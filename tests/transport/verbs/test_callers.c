/* SPDX-License-Identifier: MIT */
/* Connection requests of several rails, of which some never come: who makes room for the next. */
#include "common/transport/verbs/callers.h"

#include <string.h>

#include "tests/ut.h"

#define PLACES 64u

static struct mst_verbs_coming coming[PLACES];

static void put(uint32_t place, uint8_t address, uint64_t since_ns)
{
	coming[place] = (struct mst_verbs_coming){ .here = true, .since_ns = since_ns };
	coming[place].from.address[15] = address;
}

static void nobody_half_come_gives_up_nothing(void)
{
	memset(coming, 0, sizeof(coming));
	CU_ASSERT_EQUAL(mst_verbs_callers_yield(coming, PLACES), -1);
}

/* One stranger has all places but one, and comes again and again; the honest caller came first. */
static void a_flood_of_one_address_does_not_evict_another(void)
{
	put(0, 1, 1);
	for (uint32_t i = 1; i < PLACES; i++)
		put(i, 2, 1 + i);
	for (uint32_t i = 0; i < 10 * PLACES; i++) {
		int place = mst_verbs_callers_yield(coming, PLACES);
		CU_ASSERT_FATAL(place > 0);
		CU_ASSERT_EQUAL(coming[place].from.address[15], 2);
		put((uint32_t)place, 2, 1000 + i);
	}
	CU_ASSERT_EQUAL(coming[0].from.address[15], 1);
}

static void the_oldest_of_the_address_with_the_most_yields(void)
{
	memset(coming, 0, sizeof(coming));
	put(3, 7, 50);
	put(4, 9, 30);
	put(5, 9, 20);
	put(6, 9, 40);
	put(7, 7, 10);
	CU_ASSERT_EQUAL(mst_verbs_callers_yield(coming, PLACES), 5);
}

static void of_equally_many_the_oldest_yields(void)
{
	memset(coming, 0, sizeof(coming));
	put(1, 1, 30);
	put(2, 2, 10);
	put(9, 3, 20);
	CU_ASSERT_EQUAL(mst_verbs_callers_yield(coming, PLACES), 2);
	coming[2].here = false; /* the rest of a place that is not in use means nothing */
	CU_ASSERT_EQUAL(mst_verbs_callers_yield(coming, PLACES), 9);
}

/* All of its requests take one place, however many rails each of them says there are. */
static void a_further_rail_is_known_by_its_token_alone(void)
{
	uint8_t token[MST_TOKEN_LEN];

	memset(coming, 0, sizeof(coming));
	put(3, 7, 50);
	put(4, 9, 30);
	memset(coming[3].token, 3, MST_TOKEN_LEN);
	memset(coming[4].token, 4, MST_TOKEN_LEN);
	memcpy(token, coming[4].token, MST_TOKEN_LEN);
	CU_ASSERT_EQUAL(mst_verbs_callers_find(coming, PLACES, token), 4);
	token[MST_TOKEN_LEN - 1]++;
	CU_ASSERT_EQUAL(mst_verbs_callers_find(coming, PLACES, token), -1);
	memcpy(token, coming[4].token, MST_TOKEN_LEN);
	coming[4].here = false;
	CU_ASSERT_EQUAL(mst_verbs_callers_find(coming, PLACES, token), -1);
}

static CU_TestInfo cases[] = {
	{ "where nobody is half come nothing is given up", nobody_half_come_gives_up_nothing },
	{ "a flood of one address does not evict another's caller between its rails",
	  a_flood_of_one_address_does_not_evict_another },
	{ "the oldest of the address with the most yields",
	  the_oldest_of_the_address_with_the_most_yields },
	{ "of addresses with equally many the oldest yields", of_equally_many_the_oldest_yields },
	{ "a further rail is known by its token alone",
	  a_further_rail_is_known_by_its_token_alone },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("verbs callers", cases);
}
