/* SPDX-License-Identifier: MIT */
/* The ledger and workers that come back from an earlier generation, or into the one that runs
 * (PROTOCOL 11). */
#include <errno.h>

#include "common/base/clock.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/unit/server/core/ledger/transfer_case.h"
#include "tests/ut.h"

/* Ids of generations: of this one, and of earlier ones. */
#define OWN 7u
#define X 11u
#define Y 22u
#define Z 33u

static const struct mst_claimed nothing;

static struct mst_claimed claim(uint64_t number, uint64_t version, uint64_t made, uint64_t before)
{
	return (struct mst_claimed){ .number = number,
				     .version = version,
				     .made = made,
				     .made_before = before,
				     .samples = 100 * (double)version };
}

static struct mst_ledger_cfg cfg_of(uint32_t workers)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", workers);

	cfg.generation_id = OWN;
	return cfg;
}

/* Its last session had this incarnation. */
static void come(struct ledger_job *j, uint32_t rank, const struct mst_claimed *claimed,
		 uint32_t incarnation, bool comes_back)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };

	ev.join.rank = (int32_t)rank;
	ev.join.comes_back = comes_back;
	ev.join.claimed = *claimed;
	ev.join.incarnation = incarnation;
	job_event(j, &ev);
}

/* It comes, and says START, with a whole copy of its version or without. */
static void enter_as(struct ledger_job *j, uint32_t rank, const struct mst_claimed *claimed,
		     bool offers, bool comes_back)
{
	come(j, rank, claimed, 1, comes_back);
	job_link(j, rank, 0);
	job_start(j, rank, offers);
}

static void enter(struct ledger_job *j, uint32_t rank, const struct mst_claimed *claimed)
{
	enter_as(j, rank, claimed, claimed->number > 0, false);
}

/* All have been at the newest start that one of them has an outcome of. */
static void open_with(struct ledger_job *j, const struct mst_claimed *claimed, uint32_t workers)
{
	struct mst_ledger_cfg cfg = cfg_of(workers);
	uint64_t seen = 0;

	job_open(j, &cfg);
	for (uint32_t rank = 0; rank < workers; rank++)
		seen = claimed[rank].number > seen ? claimed[rank].number : seen;
	for (uint32_t rank = 0; rank < workers; rank++) {
		struct mst_claimed one = claimed[rank];
		one.seen = seen;
		enter(j, rank, &one);
	}
}

/* What it was told to send has come. */
static void bring(struct ledger_job *j, uint32_t rank, bool bare)
{
	static const struct mst_lane_share share[] = { { .rank = 1, .count = 2, .weight = 3 } };
	struct mst_ledger_event ev = { .kind = MST_EV_STATE, .who = j->worker[rank].who };

	ev.brought = (struct mst_brought){
		.bare = bare, .samples = 3, .lr_scale = 0.5, .share_count = 1, .share = share
	};
	job_event(j, &ev);
}

static bool began_at(const struct ledger_job *j, uint64_t number, uint64_t version)
{
	struct mst_generation_view view = mst_ledger_generation(j->ledger);

	return mst_ledger_started(j->ledger) && view.number == number && view.began == version &&
	       job_version(j) == version;
}

static bool is_answered(const struct ledger_job *j, uint32_t rank, uint64_t version,
			enum mst_where where)
{
	const struct mst_decision *d = job_last(j, MST_DO_RELEASE, (int)rank);

	return d != NULL && d->answer.version == version && d->answer.where == where;
}

/* ---- which version it begins with ---- */

static void job_without_claims_is_generation_one(void)
{
	const struct mst_claimed claimed[] = { nothing, nothing };
	struct mst_ledger_cfg cfg = cfg_of(2);
	struct ledger_job j;

	open_with(&j, claimed, 2);
	CU_ASSERT(began_at(&j, 1, 0));
	CU_ASSERT_EQUAL(mst_ledger_generation(j.ledger).newest.number, 0);
	job_close(&j);
	cfg.generation_id = 0; /* they are not counted */
	transfer_case_begin(&j, &cfg);
	CU_ASSERT(began_at(&j, 0, 0));
	job_close(&j);
}

static void newest_claim_is_what_the_next_generation_begins_with(void)
{
	for (uint32_t newest = 0; newest < 3; newest++) {
		struct mst_claimed claimed[] = { claim(3, 40, X, X), claim(3, 40, X, X),
						 claim(3, 40, X, X) };
		struct ledger_job j;

		claimed[newest] = claim(3, 41, X, X);
		open_with(&j, claimed, 3);
		bring(&j, newest, false);
		CU_ASSERT(began_at(&j, 4, 41));
		CU_ASSERT_EQUAL(mst_ledger_samples(j.ledger), 4100);
		CU_ASSERT(is_answered(&j, newest, 41, MST_WHERE_KEEP));
		job_close(&j);
	}
}

/* What was made after that, by servers that are lost, was told to nobody who is left in the line
 * that goes on. */
static void later_generation_comes_before_a_higher_version(void)
{
	for (uint32_t later = 0; later < 2; later++) {
		struct mst_claimed claimed[] = { claim(2, 9, X, X), claim(2, 9, X, X) };
		struct ledger_job j;

		claimed[later] = claim(3, 8, Y, X);
		open_with(&j, claimed, 2);
		bring(&j, later, false);
		CU_ASSERT(began_at(&j, 4, 8));
		CU_ASSERT_EQUAL(mst_ledger_generation(j.ledger).newest.made, Y);
		job_close(&j);
	}
}

static void order_of_ranks_does_not_decide_between_two_lines(void)
{
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct mst_claimed claimed[2];
		struct ledger_job j;

		claimed[rank] = claim(2, 9, X, Z);
		claimed[1 - rank] = claim(2, 9, Y, Z);
		open_with(&j, claimed, 2);
		bring(&j, 1 - rank, false);
		CU_ASSERT_EQUAL(mst_ledger_generation(j.ledger).newest.made, Y);
		job_close(&j);
	}
}

/* The third rank's claim, of history 2. */
static uint64_t begins_with(uint64_t number, uint64_t version, uint32_t workers)
{
	struct mst_claimed claimed[] = { claim(1, 7, X, X), claim(1, 7, X, X), claim(1, 6, X, X),
					 nothing };
	struct ledger_job j;

	claimed[workers - 1] = claim(number, version, number > 1 ? Y : X, X);
	open_with(&j, claimed, workers);
	if (!mst_ledger_started(j.ledger))
		bring(&j, job_last(&j, MST_DO_SEND_STATE, -1)->who.rank, false);
	uint64_t version_begun = mst_ledger_generation(j.ledger).began;
	job_close(&j);
	return version_begun;
}

static void claim_further_ahead_than_versions_are_kept_is_void(void)
{
	CU_ASSERT_EQUAL(begins_with(1, 9, 3), 9);
	CU_ASSERT_EQUAL(begins_with(1, 10, 3), 7);
	CU_ASSERT_EQUAL(begins_with(1, UINT64_C(1) << 60, 3), 7);
	/* of two nobody knows which is wrong, and a later generation has its own versions */
	CU_ASSERT_EQUAL(begins_with(1, 10, 2), 10);
	CU_ASSERT_EQUAL(begins_with(2, 10, 3), 10);
}

static void claim_ahead_of_late_ones_is_not_void(void)
{
	struct mst_claimed late = claim(1, 7, X, X);
	struct ledger_job j;

	late.taken = true;
	const struct mst_claimed claimed[] = { late, late, claim(1, 100, X, X), late };
	open_with(&j, claimed, 4);
	bring(&j, 2, false);
	CU_ASSERT(began_at(&j, 2, 100));
	job_close(&j);
}

static void who_makes_a_void_claim_is_as_new(void)
{
	const struct mst_claimed claimed[] = { claim(1, 7, X, X), claim(1, 7, X, X) };
	const struct mst_claimed absurd = claim(1, 1000, X, X);
	struct mst_ledger_cfg cfg = cfg_of(3);
	struct ledger_job j;

	job_open(&j, &cfg);
	enter_as(&j, 0, &claimed[0], true, true);
	enter_as(&j, 1, &claimed[1], true, true);
	enter_as(&j, 2, &absurd, true, true);
	CU_ASSERT(began_at(&j, 2, 7));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1);
	job_close(&j);
}

/* ---- who gets what ---- */

static void all_that_have_it_keep_it_and_nothing_is_sent(void)
{
	const struct mst_claimed claimed[] = { claim(2, 9, X, X), claim(2, 9, X, X) };
	struct ledger_job j;

	open_with(&j, claimed, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 0);
	CU_ASSERT(is_answered(&j, 0, 9, MST_WHERE_KEEP));
	CU_ASSERT(is_answered(&j, 1, 9, MST_WHERE_KEEP));
	transfer_case_versions(&j, 2, 1);
	CU_ASSERT_EQUAL(job_version(&j), 10);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_VERDICT, 0)->verdict.counted_in, 10);
	CU_ASSERT(is_answered(&j, 0, 10, MST_WHERE_COPIED));
	job_close(&j);
}

/* A worker that had it from one generation has the same bytes as one that had it from the next. */
static void who_has_the_same_version_of_an_earlier_generation_keeps_it(void)
{
	const struct mst_claimed claimed[] = { claim(4, 9, X, X), claim(2, 9, X, X) };
	struct ledger_job j;

	open_with(&j, claimed, 2);
	CU_ASSERT(began_at(&j, 5, 9));
	CU_ASSERT(is_answered(&j, 1, 9, MST_WHERE_KEEP));
	job_close(&j);
}

static void who_is_one_version_behind_gets_the_newest_as_an_answer(void)
{
	const struct mst_claimed claimed[] = { claim(2, 8, X, X), claim(2, 9, X, X) };
	struct ledger_job j;

	open_with(&j, claimed, 2);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 1);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SEND_STATE, 1), 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_SEND_STATE, 1)->commit.version, 9);
	bring(&j, 1, false);
	CU_ASSERT(is_answered(&j, 0, 9, MST_WHERE_COPIED));
	CU_ASSERT(is_answered(&j, 1, 9, MST_WHERE_KEEP));
	job_close(&j);
}

static void record_of_the_first_version_is_what_was_brought(void)
{
	const struct mst_claimed claimed[] = { claim(2, 8, X, X), claim(2, 9, X, X) };
	struct ledger_job j;

	open_with(&j, claimed, 2);
	bring(&j, 1, false);
	const struct mst_record *r = mst_ledger_record_of(j.ledger, 9);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(r->samples, 3);
	CU_ASSERT_EQUAL(r->total, 900);
	CU_ASSERT_EQUAL(r->lr_scale, 0.5);
	CU_ASSERT_EQUAL_FATAL(r->share_count, 1);
	CU_ASSERT_EQUAL(r->share[0].rank, 1);
	CU_ASSERT_EQUAL(r->share[0].count, 2);
	job_close(&j);
}

static void whole_copy_is_asked_for_first(void)
{
	const struct mst_claimed newest = claim(2, 9, X, X), old = claim(2, 8, X, X);
	struct mst_ledger_cfg cfg = cfg_of(3);
	struct ledger_job j;

	job_open(&j, &cfg);
	enter_as(&j, 0, &newest, false, false);
	enter_as(&j, 1, &old, true, false);
	enter_as(&j, 2, &newest, true, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 2), 1);
	job_close(&j);
}

/* Rank 0 has the newest version, and rank 1 claims this. */
static void begin_two(struct ledger_job *j, const struct mst_claimed *claimed, bool bare,
		      bool comes_back)
{
	const struct mst_claimed newest = claim(2, 9, X, Y);
	struct mst_ledger_cfg cfg = cfg_of(2);

	job_open(j, &cfg);
	enter_as(j, 0, &newest, !bare, true);
	enter_as(j, 1, claimed, claimed->number > 0, comes_back);
	if (!mst_ledger_started(j->ledger))
		bring(j, 0, bare);
	CU_ASSERT(began_at(j, 3, 9));
	CU_ASSERT(is_answered(j, 0, 9, MST_WHERE_KEEP));
}

static bool takes_a_state(const struct mst_claimed *claimed, bool bare)
{
	struct ledger_job j;

	begin_two(&j, claimed, bare, true);
	bool takes = job_count(&j, MST_DO_BEHIND, 1) == 1 && job_count(&j, MST_DO_WANT, 0) == 1 &&
		     job_count(&j, MST_DO_RELEASE, 1) == 0;
	job_close(&j);
	return takes;
}

static bool goes(const struct mst_claimed *claimed, bool bare)
{
	struct ledger_job j;

	begin_two(&j, claimed, bare, false);
	bool gone = job_evicted(&j, 1, MST_EVICT_APART) && job_count(&j, MST_DO_RELEASE, 1) == 0;
	job_close(&j);
	return gone;
}

static void all_others_take_a_state_or_go(void)
{
	const struct mst_claimed others[] = {
		nothing,
		claim(2, 7, Y, Y),  /* two versions behind */
		claim(1, 9, Y, Y),  /* another version of that number */
		claim(1, 8, Z, Z),  /* the same, of the one before */
		claim(1, 12, Y, Y), /* a version that is void */
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		CU_ASSERT(takes_a_state(&others[i], false));
		CU_ASSERT(goes(&others[i], false));
	}
}

/* Nobody knows which version is the one before. */
static void nobody_is_one_behind_if_the_maker_of_the_version_before_is_unknown(void)
{
	const struct mst_claimed claimed[] = { claim(2, 9, X, 0), claim(2, 8, Y, 0) };
	struct ledger_job j;

	open_with(&j, claimed, 2);
	bring(&j, 0, false);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_APART));
	job_close(&j);
}

/* No generation has made it, and a run has one. */
static void who_has_the_first_version_of_the_run_is_one_behind_the_next(void)
{
	const struct mst_claimed claimed[] = { claim(1, 1, X, 0), claim(1, 0, 0, 0) };
	struct ledger_job j;

	open_with(&j, claimed, 2);
	bring(&j, 0, false);
	CU_ASSERT(is_answered(&j, 0, 1, MST_WHERE_KEEP));
	CU_ASSERT(is_answered(&j, 1, 1, MST_WHERE_COPIED));
	job_close(&j);
}

static void without_a_whole_copy_who_is_one_behind_takes_a_state_too(void)
{
	const struct mst_claimed behind = claim(2, 8, Y, Y);
	struct ledger_job j;

	CU_ASSERT(takes_a_state(&behind, true));
	CU_ASSERT(goes(&behind, true));
	begin_two(&j, &behind, false, false);
	CU_ASSERT(is_answered(&j, 1, 9, MST_WHERE_COPIED)); /* and with one it does not */
	job_close(&j);
}

/* ---- who brings it ---- */

static void another_brings_it_if_the_first_is_lost(void)
{
	const struct mst_claimed claimed[] = { claim(2, 9, X, X), claim(2, 9, X, X),
					       claim(2, 8, X, X) };
	struct ledger_job j;

	open_with(&j, claimed, 3);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 0), 1);
	job_tell(&j, 0, MST_EV_LOST);
	enter(&j, 0, &nothing);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 1), 1);
	bring(&j, 1, false);
	CU_ASSERT(began_at(&j, 3, 9));
	job_close(&j);
}

static void what_one_has_brought_outlives_it(void)
{
	const struct mst_claimed claimed[] = { claim(2, 9, X, X), claim(2, 9, X, X),
					       claim(2, 8, X, X) };
	struct ledger_job j;

	open_with(&j, claimed, 3);
	job_tell(&j, 2, MST_EV_LOST);
	bring(&j, 0, false);
	job_tell(&j, 0, MST_EV_LOST);
	enter(&j, 0, &nothing);
	job_forget(&j);
	enter(&j, 2, &claimed[2]);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 0);
	CU_ASSERT(is_answered(&j, 2, 9, MST_WHERE_COPIED));
	job_close(&j);
}

/* The only one that had the newest version has sent it, and is gone with it: the next newest is in
 * no buffer yet. */
static void what_was_sent_before_is_not_taken_for_what_is_asked_for_now(void)
{
	const struct mst_claimed claimed[] = { claim(2, 9, X, X), claim(2, 8, X, X),
					       claim(2, 7, X, X) };
	struct ledger_job j;

	open_with(&j, claimed, 3);
	job_tell(&j, 2, MST_EV_LOST);
	bring(&j, 0, false);
	job_tell(&j, 0, MST_EV_LOST);
	enter(&j, 0, &nothing);
	enter(&j, 2, &claimed[2]);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SEND_STATE, 1), 1);
	job_tell(&j, 2, MST_EV_LOST);
	enter(&j, 2, &claimed[2]);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	bring(&j, 1, false);
	CU_ASSERT(began_at(&j, 3, 8));
	CU_ASSERT(is_answered(&j, 2, 8, MST_WHERE_COPIED));
	job_close(&j);
}

/* Two lines have a version of this number. */
static void version_of_another_line_is_not_taken_for_the_newest(void)
{
	const struct mst_claimed claimed[] = { claim(2, 9, X, Z), claim(2, 8, Z, Z),
					       claim(2, 8, Z, Z) };
	const struct mst_claimed later = claim(2, 9, Y, Z);
	struct ledger_job j;

	open_with(&j, claimed, 3);
	job_tell(&j, 2, MST_EV_LOST);
	bring(&j, 0, false);
	enter(&j, 2, &later);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SEND_STATE, 2), 1);
	bring(&j, 2, false);
	CU_ASSERT(began_at(&j, 3, 9));
	CU_ASSERT(is_answered(&j, 1, 9, MST_WHERE_COPIED));
	job_close(&j);
}

/* ---- ranks and incarnations ---- */

static void incarnations_go_on_from_the_claims(void)
{
	const struct mst_claimed claimed = claim(2, 9, X, X);
	struct mst_ledger_cfg cfg = cfg_of(2);
	struct ledger_job j;

	job_open(&j, &cfg);
	come(&j, 0, &claimed, 5, false);
	CU_ASSERT_EQUAL(j.worker[0].who.incarnation, 6);
	come(&j, 1, &nothing, 0, false);
	CU_ASSERT_EQUAL(j.worker[1].who.incarnation, 1);
	job_tell(&j, 0, MST_EV_LOST);
	come(&j, 0, &claimed, 3, false); /* that of a session before the last */
	CU_ASSERT_EQUAL(j.worker[0].who.incarnation, 7);
	job_close(&j);
}

static int refusal(const struct ledger_job *j)
{
	const struct mst_decision *d = job_last(j, MST_DO_REFUSE, -1);

	return d != NULL ? d->join.error : 0;
}

static void claim_takes_the_place_of_a_newcomer_before_the_start(void)
{
	const struct mst_claimed claimed = claim(2, 9, X, X);
	struct mst_ledger_cfg cfg = cfg_of(2);
	struct ledger_job j;

	job_open(&j, &cfg);
	for (int i = 0; i < 4; i++) { /* which have used up some incarnations */
		job_tell(&j, 0, MST_EV_LOST);
		come(&j, 0, &nothing, 0, false);
	}
	come(&j, 0, &claimed, 1, false);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_LOST));
	CU_ASSERT_EQUAL(refusal(&j), 0);
	CU_ASSERT_EQUAL(j.worker[0].who.incarnation, 5);
	come(&j, 0, &nothing, 0, false); /* and not the other way round */
	CU_ASSERT_EQUAL(refusal(&j), -EEXIST);
	job_close(&j);
}

static void claim_takes_the_place_of_its_own_last_session(void)
{
	const struct mst_claimed claimed[] = { claim(2, 9, X, X), claim(2, 9, X, X) };
	const struct mst_claimed own = claim(3, 10, OWN, X);
	struct ledger_job j;

	open_with(&j, claimed, 2);
	transfer_case_versions(&j, 2, 1);
	uint32_t incarnation = j.worker[1].who.incarnation;
	come(&j, 1, &own, incarnation - 1, false); /* another process has the rank meanwhile */
	CU_ASSERT_EQUAL(refusal(&j), -EEXIST);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 1), 0);
	come(&j, 1, &own, incarnation, false);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_LOST));
	CU_ASSERT_EQUAL(j.worker[1].who.incarnation, incarnation + 1);
	job_close(&j);
}

/* ---- into the generation that runs ---- */

/* Three have begun with version 9, two have made it 11, and rank 2 was lost at @version. */
static void run_without_one(struct ledger_job *j, int version)
{
	const struct mst_claimed claimed[] = { claim(2, 9, X, Y), claim(2, 9, X, Y),
					       claim(2, 9, X, Y) };

	open_with(j, claimed, 3);
	transfer_case_versions(j, 3, version - 9);
	job_lose(j, 2, -EPIPE);
	transfer_case_versions(j, 2, 11 - version);
	CU_ASSERT_EQUAL(job_version(j), 11);
	job_forget(j);
}

static void come_back(struct ledger_job *j, uint64_t version, uint64_t made)
{
	const struct mst_claimed claimed = claim(version > 9 ? 3 : 2, version, made, 0);

	enter_as(j, 2, &claimed, true, false);
	transfer_case_versions(j, 2, 1); /* it is answered from the next step on */
}

static void who_comes_back_into_the_running_generation_goes_on(void)
{
	for (int version = 10; version <= 11; version++) {
		struct ledger_job j;

		run_without_one(&j, version);
		come_back(&j, (uint64_t)version, OWN);
		CU_ASSERT(is_answered(&j, 2, (uint64_t)version + 1, MST_WHERE_COPIED));
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 0);
		job_close(&j);
	}
}

static void who_comes_back_after_the_history_is_too_late(void)
{
	const struct mst_claimed first = claim(2, 9, X, Y);
	struct ledger_job j;

	run_without_one(&j, 9);
	transfer_case_versions(&j, 2, 4);
	enter_as(&j, 2, &first, true, false);
	transfer_case_versions(&j, 2, 1);
	CU_ASSERT(job_evicted(&j, 2, MST_EVICT_STALE));
	job_close(&j);
}

/* What is claimed was made by a generation that this one does not know of, or is no version. */
static void claim_of_another_line_does_not_go_on(void)
{
	const struct mst_claimed off[] = {
		claim(3, 10, X, X),   /* made apart from this generation */
		claim(3, 20, OWN, X), /* which is not made yet */
		claim(2, 9, Z, Y),    /* not what this generation has begun with, */
		claim(2, 8, Z, Z),    /* and not the one before */
	};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		struct ledger_job j;

		run_without_one(&j, 10);
		transfer_case_versions(&j, 2, 5); /* the first one is gone */
		enter_as(&j, 2, &off[i], true, false);
		CU_ASSERT_EQUAL(refusal(&j), -ESTALE);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
		job_close(&j);
	}
}

/* ---- servers own ---- */

static void servers_that_own_start_from_a_checkpoint_only(void)
{
	const struct mst_claimed claimed = claim(2, 9, X, X);
	struct mst_kept_rank ranks[2] = { { .incarnation = 3 }, { .incarnation = 9 } };
	struct mst_kept kept = { .version = 7, .samples = 70, .ranks = 2, .rank = ranks };

	for (int has = 0; has < 2; has++) {
		struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
		struct ledger_job j;

		cfg.generation_id = OWN;
		cfg.kept = has ? &kept : NULL;
		job_open(&j, &cfg);
		enter(&j, 0, &claimed);
		enter(&j, 1, &nothing);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 0);
		CU_ASSERT_EQUAL(mst_ledger_started(j.ledger), has);
		if (has) {
			CU_ASSERT(began_at(&j, 3, 7));
			CU_ASSERT_EQUAL(mst_ledger_generation(j.ledger).newest.version, 7);
			CU_ASSERT_EQUAL(mst_ledger_samples(j.ledger), 70);
			CU_ASSERT(is_answered(&j, 0, 7, MST_WHERE_COPIED));
			CU_ASSERT_EQUAL(j.worker[0].who.incarnation, 4);
		} else {
			job_wait(&j, cfg.join_until_ns, -1);
			CU_ASSERT(job_finished(&j, MST_FINISH_NOT_BEGUN));
		}
		job_close(&j);
	}
}

static CU_TestInfo cases[] = {
	{ "a job without claims is generation one", job_without_claims_is_generation_one },
	{ "the newest claim is what the next generation begins with",
	  newest_claim_is_what_the_next_generation_begins_with },
	{ "a later generation comes before a higher version",
	  later_generation_comes_before_a_higher_version },
	{ "the order of ranks does not decide between two lines",
	  order_of_ranks_does_not_decide_between_two_lines },
	{ "a claim further ahead than versions are kept is void",
	  claim_further_ahead_than_versions_are_kept_is_void },
	{ "a claim ahead of late ones is not void", claim_ahead_of_late_ones_is_not_void },
	{ "who makes a void claim is as new", who_makes_a_void_claim_is_as_new },
	{ "all that have it keep it, and nothing is sent",
	  all_that_have_it_keep_it_and_nothing_is_sent },
	{ "who has the same version of an earlier generation keeps it",
	  who_has_the_same_version_of_an_earlier_generation_keeps_it },
	{ "who is one version behind gets the newest as an answer",
	  who_is_one_version_behind_gets_the_newest_as_an_answer },
	{ "the record of the first version is what was brought",
	  record_of_the_first_version_is_what_was_brought },
	{ "a whole copy is asked for first", whole_copy_is_asked_for_first },
	{ "all others take a state, or go", all_others_take_a_state_or_go },
	{ "nobody is one behind if the maker of the version before is unknown",
	  nobody_is_one_behind_if_the_maker_of_the_version_before_is_unknown },
	{ "who has the first version of the run is one before the next",
	  who_has_the_first_version_of_the_run_is_one_behind_the_next },
	{ "without a whole copy who is one behind takes a state, too",
	  without_a_whole_copy_who_is_one_behind_takes_a_state_too },
	{ "another brings it if the first is lost", another_brings_it_if_the_first_is_lost },
	{ "what one has brought outlives it", what_one_has_brought_outlives_it },
	{ "what was sent before is not taken for what is asked for now",
	  what_was_sent_before_is_not_taken_for_what_is_asked_for_now },
	{ "a version of another line is not taken for the newest",
	  version_of_another_line_is_not_taken_for_the_newest },
	{ "incarnations go on from the claims", incarnations_go_on_from_the_claims },
	{ "a claim takes the place of a newcomer before the start",
	  claim_takes_the_place_of_a_newcomer_before_the_start },
	{ "a claim takes the place of its own last session",
	  claim_takes_the_place_of_its_own_last_session },
	{ "who comes back into the running generation goes on",
	  who_comes_back_into_the_running_generation_goes_on },
	{ "who comes back after the history is too late",
	  who_comes_back_after_the_history_is_too_late },
	{ "a claim of another line does not go on", claim_of_another_line_does_not_go_on },
	{ "servers that own start from a checkpoint only",
	  servers_that_own_start_from_a_checkpoint_only },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, returns", cases);
}
