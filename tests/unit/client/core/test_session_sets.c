/* SPDX-License-Identifier: MIT */
/* The records of the last versions that a worker was given. */
#include <errno.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind own = { .slots = 1, .workers_own = true, .history = 3 };
static const struct session_kind own_one = { .slots = 1, .workers_own = true };
static const struct session_kind servers_own = { .slots = 1, .history = 2 };

/* Each version has another set: one share, of rank version % 3. */
static int answer(uint64_t version, enum mst_where where)
{
	struct mst_lane_answer a = { session_worker.ask_number, version, version, (uint32_t)where,
				     1 };

	return session_answer_of(&a, 1, (uint32_t)(version % SESSION_WORKERS));
}

static void begin(const struct session_kind *kind)
{
	session_begin(kind);
	mst_worker_start(&session_worker);
	CU_ASSERT_EQUAL_FATAL(answer(0, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL_FATAL(session_take(), 0);
}

/* The worker is given the versions up to @last, one by one. */
static void give_up_to(uint64_t last)
{
	for (uint64_t v = session_worker.given + 1; v <= last; v++) {
		CU_ASSERT_FATAL(session_wait_asks());
		CU_ASSERT_EQUAL_FATAL(answer(v, MST_WHERE_IN_PLACE), 0);
		CU_ASSERT_EQUAL_FATAL(session_take(), 0);
	}
}

static bool has(uint64_t version)
{
	const struct mst_held *set = mst_worker_set_of(&session_worker, version);

	return set != NULL && set->version == version && set->share_count == 1 &&
	       set->share[0].rank == version % SESSION_WORKERS && set->share[0].weight == 32 &&
	       set->weight == 32 && set->lr_scale == 0.5;
}

static void the_last_ones_are_there(void)
{
	begin(&own);
	give_up_to(2);
	CU_ASSERT(has(0) && has(1) && has(2));
	give_up_to(9);
	CU_ASSERT(has(7) && has(8) && has(9));
	CU_ASSERT_PTR_NULL(mst_worker_set_of(&session_worker, 10));
	CU_ASSERT_PTR_NULL(mst_worker_set_of(&session_worker, MST_VERSION_NONE));
	session_end();
}

static void without_a_history_the_last_one_is(void)
{
	begin(&own_one);
	give_up_to(5);
	CU_ASSERT(has(5));
	session_end();
}

static void one_that_no_outcome_has_brought_is_not(void)
{
	begin(&own);
	give_up_to(4);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(answer(5, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_PTR_NULL(mst_worker_set_of(&session_worker, 5));
	CU_ASSERT(has(2) && has(3) && has(4)); /* and takes nobody's place */
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(has(5));
	session_end();
}

static void before_the_first_outcome_there_is_none(void)
{
	session_begin(&own);
	mst_worker_start(&session_worker);
	CU_ASSERT_PTR_NULL(mst_worker_set_of(&session_worker, 0));
	CU_ASSERT_EQUAL(answer(0, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_PTR_NULL(mst_worker_set_of(&session_worker, 0));
	session_end();
}

/* A newer answer may replace one that nobody has been given. */
static void one_that_was_replaced_takes_no_place(void)
{
	begin(&servers_own);
	give_up_to(4);
	for (uint64_t v = 10; v < 20; v++) {
		CU_ASSERT_FATAL(mst_worker_pull(&session_worker, &session_asked));
		CU_ASSERT_EQUAL_FATAL(answer(v, MST_WHERE_IN_PLACE), 0);
	}
	CU_ASSERT(has(3) && has(4));
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(has(4) && has(19));
	CU_ASSERT_PTR_NULL(mst_worker_set_of(&session_worker, 18));
	session_end();
}

static void the_same_version_again_takes_no_place(void)
{
	begin(&own);
	give_up_to(4);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_FATAL(session_wait_asks());
		CU_ASSERT_EQUAL_FATAL(answer(4, MST_WHERE_KEEP), 0);
		CU_ASSERT_EQUAL(session_take(), 0);
	}
	CU_ASSERT(has(2) && has(3) && has(4));
	session_end();
}

static void an_outcome_has_its_set_from_there(void)
{
	begin(&own);
	give_up_to(4);
	CU_ASSERT_PTR_EQUAL(session_out.set, mst_worker_set_of(&session_worker, 4)->share);
	CU_ASSERT_EQUAL(session_out.set_len, 1);
	session_end();
}

static void a_record_that_is_refused_changes_none(void)
{
	begin(&own_one);
	give_up_to(4);
	CU_ASSERT(session_wait_asks());
	const struct mst_lane_answer next = { session_worker.ask_number, 5, 5, MST_WHERE_IN_PLACE,
					      1 };
	for (int i = 0; i < 3; i++) { /* of a rank that cannot be, after one that can */
		CU_ASSERT_EQUAL(session_answer_of(&next, 2, SESSION_WORKERS - 1), -EPROTO);
		session_worker.answered = 0;
	}
	CU_ASSERT(has(4));
	CU_ASSERT_EQUAL(session_worker.held.share[0].rank, 1);
	CU_ASSERT_EQUAL(answer(5, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(has(5));
	session_end();
}

static void a_state_of_another_brings_none(void)
{
	begin(&own);
	give_up_to(2);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(mst_worker_took(&session_worker, 20), 0);
	CU_ASSERT_PTR_NULL(mst_worker_set_of(&session_worker, 20));
	CU_ASSERT(has(0) && has(1) && has(2));
	CU_ASSERT_EQUAL(answer(21, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(has(1) && has(2) && has(21));
	session_end();
}

/* ---- room for another session ---- */

static void put(struct mst_sets *s, uint64_t version)
{
	struct muster_share *share = mst_sets_place(s, version, version);

	for (uint32_t i = 0; i < s->room; i++)
		share[i] = (struct muster_share){ i, (uint32_t)version, (double)version };
	mst_sets_keep(s, &(struct mst_held){
				 .version = version, .share_count = s->room, .share = share });
}

static bool keeps(const struct mst_sets *s, uint64_t version, uint32_t shares)
{
	const struct mst_held *held = mst_sets_find(s, version);

	if (held == NULL || held->share_count != shares)
		return false;
	for (uint32_t i = 0; i < shares; i++)
		if (held->share[i].rank != i || held->share[i].count != version)
			return false;
	return true;
}

static void what_is_there_stays_when_it_grows(void)
{
	struct mst_sets s;

	CU_ASSERT_EQUAL_FATAL(mst_sets_init(&s, &(struct mst_sets_figures){ 2, 3 }), 0);
	for (uint64_t v = 1; v <= 5; v++)
		put(&s, v);
	CU_ASSERT_EQUAL(mst_sets_fit(&s, &(struct mst_sets_figures){ 4, 7 }), 0);
	CU_ASSERT(keeps(&s, 4, 3) && keeps(&s, 5, 3));
	put(&s, 6);
	put(&s, 7);
	CU_ASSERT(keeps(&s, 4, 3) && keeps(&s, 5, 3) && keeps(&s, 6, 7) && keeps(&s, 7, 7));
	put(&s, 8);
	put(&s, 9);
	CU_ASSERT(keeps(&s, 5, 3) && keeps(&s, 9, 7));
	mst_sets_fini(&s);
}

static void what_is_dropped_gives_its_place(void)
{
	struct mst_sets s;

	CU_ASSERT_EQUAL_FATAL(mst_sets_init(&s, &(struct mst_sets_figures){ 2, 3 }), 0);
	for (uint64_t v = 1; v <= 5; v++)
		put(&s, v);
	const struct mst_held *newest = mst_sets_go_back(&s, 4);
	CU_ASSERT_PTR_NOT_NULL_FATAL(newest);
	CU_ASSERT_PTR_NULL(mst_sets_find(&s, 5));
	mst_sets_keep(
		&s, &(struct mst_held){
			    .version = 4, .window = 7, .share_count = 3, .share = newest->share });
	put(&s, 6);
	CU_ASSERT(keeps(&s, 3, 3) && keeps(&s, 4, 3) && keeps(&s, 6, 3));
	CU_ASSERT_EQUAL(mst_sets_find(&s, 4)->window, 7);
	CU_ASSERT_PTR_NULL(mst_sets_go_back(&s, 5)); /* that is not there */
	CU_ASSERT_PTR_NULL(mst_sets_find(&s, 6));
	CU_ASSERT_PTR_NULL(mst_sets_go_back(&s, MST_VERSION_NONE));
	CU_ASSERT_PTR_NULL(mst_sets_find(&s, 4));
	put(&s, 1);
	CU_ASSERT(keeps(&s, 1, 3));
	mst_sets_fini(&s);
}

static void nothing_is_allocated_for_less(void)
{
	struct mst_sets s;

	CU_ASSERT_EQUAL_FATAL(mst_sets_init(&s, &(struct mst_sets_figures){ 2, 3 }), 0);
	put(&s, 1);
	const struct mst_held *before = mst_sets_find(&s, 1);
	CU_ASSERT_EQUAL(mst_sets_fit(&s, &(struct mst_sets_figures){ 0, 1 }), 0);
	CU_ASSERT_PTR_EQUAL(mst_sets_find(&s, 1), before);
	CU_ASSERT_PTR_NULL(mst_sets_find(&s, MST_VERSION_NONE)); /* of empty cells */
	CU_ASSERT(keeps(&s, 1, 3));
	mst_sets_fini(&s);
}

static CU_TestInfo cases[] = {
	{ "the last versions that were given are there", the_last_ones_are_there },
	{ "without a history the last one is", without_a_history_the_last_one_is },
	{ "one that no outcome has brought is not there", one_that_no_outcome_has_brought_is_not },
	{ "before the first outcome there is none", before_the_first_outcome_there_is_none },
	{ "one that was replaced takes no place", one_that_was_replaced_takes_no_place },
	{ "the same version again takes no place", the_same_version_again_takes_no_place },
	{ "an outcome has its set from there", an_outcome_has_its_set_from_there },
	{ "a record that is refused changes none", a_record_that_is_refused_changes_none },
	{ "a state of another worker brings none", a_state_of_another_brings_none },
	{ "what is there stays when it grows", what_is_there_stays_when_it_grows },
	{ "what is dropped gives its place", what_is_dropped_gives_its_place },
	{ "nothing is allocated for less", nothing_is_allocated_for_less },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session: sets", cases);
}
