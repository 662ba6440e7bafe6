/* SPDX-License-Identifier: MIT */
/* Which change of policy holds at the start of a generation, of what workers bring and of what a
 * checkpoint has. */
#include <stdio.h>
#include <string.h>

#include "server/core/policy/in_force.h"
#include "tests/ut.h"

#define WORKERS 5u

static struct mst_in_force_claims claims;
static const struct mst_in_force nothing;

static struct mst_in_force change(uint64_t number, const char *policy)
{
	struct mst_in_force of = { .number = number };

	(void)snprintf(of.policy, sizeof(of.policy), "%s", policy);
	return of;
}

static void begin(void)
{
	mst_in_force_claims_fini(&claims);
	CU_ASSERT_EQUAL_FATAL(mst_in_force_claims_init(&claims, WORKERS), 0);
}

static void brings(uint32_t rank, uint64_t number, const char *policy)
{
	struct mst_in_force of = change(number, policy);

	mst_in_force_claim(&claims, rank, &of);
}

static bool holds(const struct mst_in_force *kept, uint64_t number, const char *policy)
{
	struct mst_in_force found = mst_in_force_choose(&claims, kept);

	return found.number == number && strcmp(found.policy, policy) == 0;
}

/* Rank @rank brings this, and is not believed; UINT32_MAX: nobody is. */
static bool is_alone(uint32_t rank, const char *policy)
{
	struct mst_in_force chosen = mst_in_force_choose(&claims, &nothing), what;
	uint32_t who = UINT32_MAX;

	if (!mst_in_force_not_believed(&claims, &chosen, &what, &who))
		return rank == UINT32_MAX;
	return who == rank && strcmp(what.policy, policy) == 0;
}

static void nobody_brings_anything(void)
{
	struct mst_in_force kept = change(3, "async");

	begin();
	CU_ASSERT(holds(&nothing, 0, ""));
	CU_ASSERT(holds(&kept, 3, "async"));
	brings(1, 0, "");
	CU_ASSERT(holds(&nothing, 0, ""));
	CU_ASSERT(is_alone(UINT32_MAX, ""));
}

static void newest_change_holds(void)
{
	begin();
	brings(0, 1, "backup:3");
	brings(1, 2, "backup:2");
	CU_ASSERT(holds(&nothing, 2, "backup:2"));
	brings(2, 2, "backup:2");
	brings(3, 0, "");
	CU_ASSERT(holds(&nothing, 2, "backup:2"));
	brings(3, 1, "backup:3");
	CU_ASSERT(holds(&nothing, 2, "backup:2"));
	CU_ASSERT(is_alone(UINT32_MAX, ""));
}

static void later_change_of_workers_comes_before_that_of_the_checkpoint(void)
{
	struct mst_in_force kept = change(2, "kasync:2");

	begin();
	brings(0, 1, "backup:3");
	CU_ASSERT(holds(&kept, 2, "kasync:2"));
	brings(1, 3, "bsp");
	CU_ASSERT(holds(&kept, 3, "bsp"));
	brings(1, 2, "bsp"); /* which cannot be */
	CU_ASSERT(holds(&kept, 2, "kasync:2"));
}

static void of_three_one_that_is_alone_is_not_believed(void)
{
	begin();
	brings(4, 9, "async");
	brings(0, 1, "backup:3");
	CU_ASSERT(holds(&nothing, 9, "async")); /* of two nobody can tell */
	brings(1, 1, "backup:3");
	CU_ASSERT(holds(&nothing, 1, "backup:3"));
	CU_ASSERT(is_alone(4, "async"));
	brings(2, 1, "async");
	CU_ASSERT(holds(&nothing, 1, "backup:3"));
	brings(3, 9, "async"); /* another one says the same */
	CU_ASSERT(holds(&nothing, 9, "async"));
	CU_ASSERT(is_alone(UINT32_MAX, ""));
	begin();
	brings(4, 1, "async");
	brings(0, 0, "");
	brings(1, 0, "");
	CU_ASSERT(holds(&nothing, 0, ""));
	CU_ASSERT(is_alone(4, "async"));
}

/* They were lost while changes were on their way. */
static void where_each_is_alone_only_the_newest_is_not_believed(void)
{
	begin();
	brings(2, 3, "bsp");
	brings(4, 2, "backup:2");
	CU_ASSERT(holds(&nothing, 3, "bsp"));
	brings(0, 1, "backup:3");
	CU_ASSERT(holds(&nothing, 2, "backup:2"));
	CU_ASSERT(is_alone(2, "bsp"));
	brings(1, 0, "");
	CU_ASSERT(holds(&nothing, 2, "backup:2"));
	brings(3, 0, ""); /* two that agree: that is not all that can be told */
	CU_ASSERT(holds(&nothing, 0, ""));
	CU_ASSERT(is_alone(2, "bsp"));
}

static void older_change_that_is_alone_is_not_told_of(void)
{
	begin();
	brings(0, 1, "backup:3");
	brings(1, 2, "backup:2");
	brings(2, 2, "backup:2");
	CU_ASSERT(is_alone(UINT32_MAX, ""));
}

/* Two servers that did not know of each other have been asked. */
static void of_two_with_one_number_more_witnesses_decide(void)
{
	struct mst_in_force kept = change(1, "zzz");

	for (uint32_t turn = 0; turn < WORKERS; turn++) {
		begin();
		for (uint32_t i = 0; i < WORKERS; i++)
			brings((turn + i) % WORKERS, 1, i < 3 ? "ksync:2" : "backup:2");
		CU_ASSERT(holds(&nothing, 1, "ksync:2"));
		mst_in_force_unclaim(&claims, turn);
		CU_ASSERT(holds(&nothing, 1, "backup:2")); /* the order of ranks does not */
		CU_ASSERT(holds(&kept, 1, "zzz"));
	}
}

static void force_is_part_of_a_change(void)
{
	struct mst_in_force forced = { 1, 1, "backup:1" };

	begin();
	brings(0, 1, "backup:1");
	mst_in_force_claim(&claims, 1, &forced);
	mst_in_force_claim(&claims, 2, &forced);
	CU_ASSERT_EQUAL(mst_in_force_choose(&claims, &nothing).forced, 1);
}

static void who_is_gone_brings_nothing(void)
{
	begin();
	brings(0, 2, "backup:2");
	brings(0, 1, "backup:3"); /* in place of that */
	CU_ASSERT(holds(&nothing, 1, "backup:3"));
	mst_in_force_unclaim(&claims, 0);
	mst_in_force_unclaim(&claims, 0);
	CU_ASSERT(holds(&nothing, 0, ""));
	CU_ASSERT_EQUAL(claims.claims, 0);
}

/* A rank that joins again and again with something else takes no room. */
static void there_is_always_room(void)
{
	char text[16];

	begin();
	for (uint32_t i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof(text), "backup:%u", i);
		brings(i % WORKERS, i + 1, text);
	}
	CU_ASSERT_EQUAL(claims.claims, WORKERS);
	CU_ASSERT(claims.rows_end <= WORKERS);
	CU_ASSERT(is_alone(999 % WORKERS, "backup:999"));
}

static void change_that_cannot_be(void)
{
	struct mst_in_force fine = change(UINT32_MAX, "bsp"),
			    late = change(UINT64_C(1) << 32, "bsp");
	struct mst_in_force bare = change(1, ""), odd = change(0, "bsp"), forced = { .forced = 1 };

	CU_ASSERT(mst_in_force_is_sane(&nothing) && mst_in_force_is_sane(&fine));
	CU_ASSERT(!mst_in_force_is_sane(&late) && !mst_in_force_is_sane(&bare));
	CU_ASSERT(!mst_in_force_is_sane(&odd) && !mst_in_force_is_sane(&forced));
}

static CU_TestInfo cases[] = {
	{ "nobody brings anything", nobody_brings_anything },
	{ "the newest change holds", newest_change_holds },
	{ "a later change of workers comes before that of the checkpoint",
	  later_change_of_workers_comes_before_that_of_the_checkpoint },
	{ "of three, one that is alone is not believed",
	  of_three_one_that_is_alone_is_not_believed },
	{ "where each is alone, only the newest is not believed",
	  where_each_is_alone_only_the_newest_is_not_believed },
	{ "an older change that is alone is not told of",
	  older_change_that_is_alone_is_not_told_of },
	{ "of two with one number more witnesses decide",
	  of_two_with_one_number_more_witnesses_decide },
	{ "force is part of a change", force_is_part_of_a_change },
	{ "who is gone brings nothing", who_is_gone_brings_nothing },
	{ "there is always room", there_is_always_room },
	{ "a change that cannot be", change_that_cannot_be },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int rc = ut_main("the policy in force", cases);

	mst_in_force_claims_fini(&claims);
	return rc;
}
