/* SPDX-License-Identifier: MIT */
/* What a worker claims when it comes back, and that nothing is given to the program after that. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "client/session/lineage.h"
#include "tests/ut.h"

#define RUN "0123456789abcdef"
#define OWN 7u
#define X 11u
#define Y 22u

static struct mst_lineage lineage;
static struct mst_returning claimed;

static struct mst_generation of(uint64_t number, uint64_t id, uint64_t began, uint64_t made,
				uint64_t made_before)
{
	return (struct mst_generation){ .run = RUN,
					.number = number,
					.id = id,
					.began = began,
					.made = made,
					.made_before = made_before };
}

static void join(const struct mst_generation *generation, uint32_t incarnation)
{
	static struct mst_welcome welcome;

	welcome.generation = *generation;
	welcome.start_number = generation->number;
	welcome.incarnation = incarnation;
	welcome.workers = welcome.workers_given = 4;
	welcome.record_ranks = 6;
	mst_lineage_session(&lineage, &welcome);
}

/* It is welcomed to a start that is to have this number, of the leader with this id. */
static void join_start(uint64_t number, uint64_t id)
{
	static struct mst_welcome welcome;

	welcome.generation = (struct mst_generation){ .run = RUN, .id = id };
	welcome.start_number = number;
	welcome.incarnation = 9;
	mst_lineage_session(&lineage, &welcome);
}

static const struct mst_generation none; /* has begun */

static bool takes_claim(const struct mst_generation *begun)
{
	return mst_lineage_claim(&lineage, begun, &claimed);
}

/* The first generation, of a worker that owns. */
static void begin(void)
{
	const struct mst_generation first = of(1, OWN, 0, 0, 0);

	mst_lineage_init(&lineage, true);
	join(&first, 1);
}

static bool claims(uint64_t number, uint64_t version, uint64_t made, uint64_t made_before)
{
	return takes_claim(&none) && claimed.number == number && claimed.version == version &&
	       claimed.made == made && claimed.made_before == made_before;
}

static void worker_without_an_outcome_claims_nothing(void)
{
	static const struct mst_returning nothing;

	begin();
	claimed.version = 9;
	CU_ASSERT_FALSE(takes_claim(&none));
	CU_ASSERT_EQUAL(memcmp(&claimed, &nothing, sizeof(nothing)), 0);
}

static bool has_only_seen(const struct mst_generation *begun, uint64_t number, uint64_t id)
{
	return takes_claim(begun) && claimed.number == 0 && claimed.version == 0 &&
	       strcmp(claimed.run, RUN) == 0 && claimed.seen == number && claimed.seen_id == id &&
	       claimed.incarnation > 0;
}

/* Else a rank that is late at the first steps counts as a new process when it comes back. */
static void worker_without_an_outcome_claims_that_it_was_in_a_generation(void)
{
	const struct mst_generation first = of(1, OWN, 0, 0, 0), third = of(3, Y, 5, X, X);

	begin();
	CU_ASSERT_FALSE(takes_claim(&first)); /* it has not said START */
	begin();
	mst_lineage_start(&lineage);
	CU_ASSERT(has_only_seen(&first, 1, OWN));
	join_start(2, X);
	CU_ASSERT(has_only_seen(&none, 1, OWN));
	join_start(2, X);
	mst_lineage_start(&lineage);
	CU_ASSERT(has_only_seen(&none, 2, X)); /* which need not have begun */
	join_start(2, Y);
	mst_lineage_start(&lineage);
	CU_ASSERT(has_only_seen(&third, 3, Y)); /* another rank knew of a later start */
	join_start(4, X);
	mst_lineage_start(&lineage);
	mst_lineage_begins(&lineage, &third);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 6, 60));
	CU_ASSERT(claims(3, 6, Y, X));
}

static void job_that_counts_no_generations_gives_nothing_to_claim(void)
{
	mst_lineage_init(&lineage, true);
	join(&none, 1);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 5, 50));
	CU_ASSERT_FALSE(takes_claim(&none));
}

static void last_outcome_is_what_is_claimed(void)
{
	begin();
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 0, 0));
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 1, 10));
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 1, 10)); /* more verdicts */
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 2, 25));
	CU_ASSERT(claims(1, 2, OWN, OWN));
	CU_ASSERT_STRING_EQUAL(claimed.run, RUN);
	CU_ASSERT_EQUAL(claimed.samples, 25);
	CU_ASSERT_EQUAL(claimed.incarnation, 1);
}

static void version_that_was_taken_over_is_said_to_be(void)
{
	begin();
	CU_ASSERT_TRUE(mst_lineage_taken(&lineage, 5, 50));
	CU_ASSERT(claims(1, 5, OWN, OWN) && claimed.taken == 1);
	begin();
	CU_ASSERT_TRUE(mst_lineage_taken(&lineage, 5, 50));
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 6, 60));
	CU_ASSERT(claims(1, 6, OWN, OWN) && claimed.taken == 0);
}

static void no_generation_has_made_the_first_version_of_all(void)
{
	begin();
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 0, 0));
	CU_ASSERT(claims(1, 0, 0, 0));
	begin();
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 0, 0));
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 1, 1));
	CU_ASSERT(claims(1, 1, OWN, 0));
}

/* What has been claimed is what the program has. */
static void outcome_after_the_claim_is_not_given(void)
{
	begin();
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 3, 30));
	CU_ASSERT(claims(1, 3, OWN, OWN));
	CU_ASSERT_FALSE(mst_lineage_outcome(&lineage, 4, 40));
	CU_ASSERT_FALSE(mst_lineage_outcome(&lineage, 3, 30));
	CU_ASSERT(claims(1, 3, OWN, OWN)); /* as often as servers are tried */
	CU_ASSERT_EQUAL(claimed.samples, 30);
}

static void next_session_gives_outcomes_again(void)
{
	const struct mst_generation next = of(2, X, 3, OWN, OWN);

	begin();
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 3, 30));
	CU_ASSERT(claims(1, 3, OWN, OWN));
	join(&next, 5);
	CU_ASSERT(claims(1, 3, OWN, OWN)); /* it is lost before it has given any */
	CU_ASSERT_EQUAL(claimed.incarnation, 5);
	join(&next, 6);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 4, 40));
	CU_ASSERT(claims(2, 4, X, OWN));
	CU_ASSERT_EQUAL(claimed.incarnation, 6);
}

/* KEEP brings no new bytes. */
static void version_that_is_kept_keeps_the_name_of_its_maker(void)
{
	const struct mst_generation next = of(4, X, 3, OWN, Y), after = of(5, Y, 3, OWN, Y);

	begin();
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 3, 30));
	CU_ASSERT(claims(1, 3, OWN, OWN));
	join(&next, 2);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 3, 30));
	CU_ASSERT(claims(4, 3, OWN, Y));
	join(&after, 3);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 3, 30));
	CU_ASSERT(claims(5, 3, OWN, Y));
}

/* While a start is under way the welcome names no generation. */
static void generation_that_begins_after_the_welcome_is_claimed(void)
{
	const struct mst_generation unknown = { .number = 0 }, next = of(2, X, 3, OWN, OWN);

	begin();
	for (uint64_t version = 1; version <= 3; version++)
		CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, version, 0));
	CU_ASSERT(claims(1, 3, OWN, OWN));
	join(&unknown, 2);
	CU_ASSERT_EQUAL(mst_lineage_maker(&lineage, 3), OWN); /* for the sets that it sends */
	CU_ASSERT(claims(1, 3, OWN, OWN));
	join(&unknown, 3);
	mst_lineage_begins(&lineage, &next);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 4, 40));
	CU_ASSERT(claims(2, 4, X, OWN));
}

static void makers_of_the_last_versions_are_known(void)
{
	const struct mst_generation next = of(2, X, 3, OWN, OWN), unknown = { .number = 0 };

	begin();
	for (uint64_t version = 1; version <= 3; version++)
		CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, version, 0));
	join(&next, 2);
	for (uint64_t version = 4; version <= 6; version++)
		CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, version, 0));
	join(&unknown, 3);
	for (uint64_t version = 1; version <= 6; version++)
		CU_ASSERT_EQUAL(mst_lineage_maker(&lineage, version), version > 3 ? X : OWN);
	CU_ASSERT_EQUAL(mst_lineage_maker(&lineage, 7), 0);
	CU_ASSERT_EQUAL(mst_lineage_maker(&lineage, 6 + MST_COUNTED_MAX), 0);
}

static bool has_seen(uint64_t number, uint64_t id)
{
	return takes_claim(&none) && claimed.seen == number && claimed.seen_id == id;
}

/* Another start must not have its number, though this worker has no outcome of it. */
static void start_is_remembered_from_the_moment_that_start_is_said(void)
{
	begin();
	mst_lineage_start(&lineage);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 3, 30));
	CU_ASSERT_TRUE(has_seen(1, OWN));
	join_start(2, X);
	CU_ASSERT_TRUE(has_seen(1, OWN)); /* a hello is not enough */
	join_start(2, X);
	mst_lineage_start(&lineage);
	CU_ASSERT_TRUE(has_seen(2, X)); /* it is lost before it has given any */
	CU_ASSERT(claims(1, 3, OWN, OWN));
	join_start(5, Y);
	CU_ASSERT_TRUE(has_seen(2, X));
	join_start(5, Y);
	mst_lineage_start(&lineage);
	CU_ASSERT_TRUE(has_seen(5, Y));
	CU_ASSERT(claims(1, 3, OWN, OWN));
}

/* Else the next start does not hear of the one at which START is said. */
static void start_is_not_said_once_the_claim_has_been_taken(void)
{
	begin();
	CU_ASSERT_TRUE(mst_lineage_start(&lineage));
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 3, 30));
	join_start(2, X);
	CU_ASSERT_TRUE(has_seen(1, OWN));
	CU_ASSERT_FALSE(mst_lineage_start(&lineage));
	CU_ASSERT_TRUE(has_seen(1, OWN));
}

static uint64_t shared(struct mst_generation next)
{
	return mst_lineage_shared(&lineage, &next, 6);
}

/* This worker has versions 1 to 3 of OWN, and 4 to 6 of X. */
static void versions_of_another_line_are_told_from_its_own(void)
{
	begin();
	for (uint64_t version = 1; version <= 3; version++)
		CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, version, 0));
	const struct mst_generation next = of(2, X, 3, OWN, OWN);
	join(&next, 2);
	for (uint64_t version = 4; version <= 6; version++)
		CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, version, 0));
	CU_ASSERT_EQUAL(shared(of(3, Y, 6, X, X)), 6);
	CU_ASSERT_EQUAL(shared(of(3, Y, 9, X, X)), 6);
	CU_ASSERT_EQUAL(shared(of(3, Y, 7, X, X)), 6);
	CU_ASSERT_EQUAL(shared(of(3, Y, 5, X, X)), 5); /* its 6 reached nobody else */
	CU_ASSERT_EQUAL(shared(of(3, Y, 4, X, OWN)), 4);
	CU_ASSERT_EQUAL(shared(of(4, Y, 6, 33, X)), 5);  /* another has made 6 */
	CU_ASSERT_EQUAL(shared(of(4, Y, 6, 33, 33)), 4); /* and 5; the one before is not known */
	CU_ASSERT_EQUAL(shared(of(4, Y, 7, 33, 33)), 5);
	CU_ASSERT_EQUAL(shared(of(4, Y, 4, 33, OWN)), 3);
	CU_ASSERT_EQUAL(shared(of(3, Y, 0, 0, 0)), 0);
}

/* A version of a servers' own job does not follow from the one that a worker had before. */
static void where_servers_own_nothing_is_said_of_the_version_before(void)
{
	const struct mst_generation first = of(1, OWN, 0, 0, 0);

	mst_lineage_init(&lineage, false);
	join(&first, 1);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 5, 50));
	CU_ASSERT(claims(1, 5, OWN, 0));
}

/* ---- two threads ---- */

static _Atomic unsigned lost; /* sessions that are to be lost, */
static _Atomic unsigned done; /* and whose claims have been taken */
static struct mst_returning taken;

static void *claimer(void *arg)
{
	const unsigned sessions = *(const unsigned *)arg;

	for (unsigned i = 1; i <= sessions; i++) {
		while (atomic_load(&lost) < i)
			(void)sched_yield();
		(void)mst_lineage_claim(&lineage, &none, &taken);
		atomic_store(&done, i);
	}
	return NULL;
}

/* The claim is taken at any moment, also between an outcome and the next. */
static void claim_is_the_last_outcome_that_the_program_was_given(void)
{
	unsigned sessions = 300, wrong = 0;
	uint64_t version = 0, given = 0;
	pthread_t thread;

	begin();
	atomic_store(&lost, 0);
	atomic_store(&done, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, claimer, &sessions), 0);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, version, 0));
	for (unsigned i = 1; i <= sessions; i++) {
		atomic_store(&lost, i);
		do {
			version = given + 1;
			bool told = mst_lineage_outcome(&lineage, version, 3 * (double)version);
			given = told ? version : given;
			wrong += told && atomic_load(&done) == i && taken.version < version;
		} while (atomic_load(&done) < i);
		wrong += mst_lineage_outcome(&lineage, given + 1, 0);
		wrong += taken.version != given || taken.samples != 3 * (double)given ||
			 taken.incarnation != i || taken.number != 1;
		const struct mst_generation again = of(1, OWN, 0, 0, 0);
		join(&again, i + 1);
	}
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(wrong, 0);
}

static void claim_tells_the_number_of_workers_of_its_generation(void)
{
	const struct mst_generation next = of(2, X, 5, OWN, OWN);
	const struct mst_welcome welcome = {
		.generation = next, .incarnation = 2, .workers = 8, .record_ranks = 8
	};

	begin();
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, 5, 50));
	CU_ASSERT_TRUE(claims(1, 5, OWN, OWN));
	CU_ASSERT_EQUAL(claimed.workers, 4);
	CU_ASSERT_EQUAL(claimed.record_ranks, 6);
	mst_lineage_session(&lineage, &welcome); /* and no outcome in it */
	CU_ASSERT_TRUE(claims(1, 5, OWN, OWN));
	CU_ASSERT_EQUAL(claimed.workers, 4);
}

static void newest_number_of_workers_is_remembered(void)
{
	const struct mst_workforce newer = { 8, 4, 3 }, older = { 6, 4, 2 }, unknown = { 0, 0, 0 };

	begin();
	CU_ASSERT_EQUAL(lineage.workforce.workers, 4);
	mst_lineage_workforce(&lineage, &newer);
	mst_lineage_workforce(&lineage, &older);
	mst_lineage_workforce(&lineage, &unknown);
	CU_ASSERT_EQUAL(lineage.workforce.workers, 8);
	CU_ASSERT_EQUAL(lineage.workforce.change, 3);
}

static CU_TestInfo cases[] = {
	{ "a worker without an outcome claims nothing", worker_without_an_outcome_claims_nothing },
	{ "a worker without an outcome claims that it was in a generation",
	  worker_without_an_outcome_claims_that_it_was_in_a_generation },
	{ "a job that counts no generations gives nothing to claim",
	  job_that_counts_no_generations_gives_nothing_to_claim },
	{ "the last outcome is what is claimed", last_outcome_is_what_is_claimed },
	{ "a version that was taken over is said to be",
	  version_that_was_taken_over_is_said_to_be },
	{ "no generation has made the first version of all",
	  no_generation_has_made_the_first_version_of_all },
	{ "an outcome after the claim is not given", outcome_after_the_claim_is_not_given },
	{ "the next session gives outcomes again", next_session_gives_outcomes_again },
	{ "a version that is kept keeps the name of its maker",
	  version_that_is_kept_keeps_the_name_of_its_maker },
	{ "a generation that begins after the welcome is claimed",
	  generation_that_begins_after_the_welcome_is_claimed },
	{ "the makers of the last versions are known", makers_of_the_last_versions_are_known },
	{ "a start is remembered from the moment that START is said",
	  start_is_remembered_from_the_moment_that_start_is_said },
	{ "START is not said once the claim has been taken",
	  start_is_not_said_once_the_claim_has_been_taken },
	{ "versions of another line are told from its own",
	  versions_of_another_line_are_told_from_its_own },
	{ "where servers own nothing is said of the version before",
	  where_servers_own_nothing_is_said_of_the_version_before },
	{ "a claim tells the number of workers of its generation",
	  claim_tells_the_number_of_workers_of_its_generation },
	{ "the newest number of workers is remembered", newest_number_of_workers_is_remembered },
	{ "the claim is the last outcome that the program was given",
	  claim_is_the_last_outcome_that_the_program_was_given },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("what a worker claims", cases);
}
