/* SPDX-License-Identifier: MIT */
/*
 * Saved time over random histories, against a plain account that looks at every rank with every
 * commit; and that the statistics do not.
 */
#include <math.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "server/core/statistics/statistics.h"
#include "tests/ut.h"

#define RANKS 70u /* the sets of the statistics have more than one word */
#define NONE UINT64_MAX

static struct mst_statistics *statistics;
static struct mst_rule rule;
static struct mst_rand dice;
static uint64_t now_ns, version, last_commit_ns;

/* ---- the plain account ---- */

struct plain_rank {
	bool live;
	uint32_t incarnation;
	uint64_t given, given_ns, handed_in_ns, took_ns[2];
};

struct plain_step {
	uint64_t step_ns, saved_ns;
	bool saves;
};

static struct plain_rank plain[RANKS];
static struct plain_step steps[1024]; /* of the versions that a history makes */
static uint64_t saved_ns;
static bool saves;

static void plain_saved(struct plain_step *step, uint64_t took_ns)
{
	uint64_t more_ns = took_ns > step->step_ns ? took_ns - step->step_ns : 0;

	if (!step->saves || more_ns <= step->saved_ns)
		return;
	saved_ns += more_ns - step->saved_ns;
	step->saved_ns = more_ns;
}

static void plain_commit(void)
{
	struct plain_step *step = &steps[version];

	*step = (struct plain_step){ .step_ns = now_ns - last_commit_ns };
	step->saves = rule.release == MST_RELEASE_COMMIT && !rule.preempt;
	saves &= step->saves;
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		const struct plain_rank *r = &plain[rank];
		if (r->live && r->given != NONE && r->given + 1 < version && r->took_ns[1] != NONE)
			plain_saved(step,
				    r->took_ns[0] < r->took_ns[1] ? r->took_ns[0] : r->took_ns[1]);
	}
}

static void plain_gradient(struct plain_rank *r, uint64_t tag)
{
	uint64_t since_ns = r->given_ns;

	if (r->handed_in_ns != NONE && r->handed_in_ns > since_ns)
		since_ns = r->handed_in_ns;
	if (r->given == tag) {
		r->took_ns[1] = r->took_ns[0];
		r->took_ns[0] = now_ns - since_ns;
		if (tag < version)
			plain_saved(&steps[tag + 1], r->took_ns[0]);
	}
	r->handed_in_ns = now_ns;
}

/* ---- what goes by, in both ---- */

static void decide(struct mst_decision d, const struct mst_record *record)
{
	mst_statistics_decided(statistics, &(struct mst_statistics_decision){ &d, record, &rule },
			       now_ns);
}

static struct mst_identity of(uint32_t rank)
{
	return (struct mst_identity){ rank, plain[rank].incarnation };
}

static void admit(uint32_t rank)
{
	plain[rank] = (struct plain_rank){ .incarnation = plain[rank].incarnation + 1,
					   .given = NONE,
					   .handed_in_ns = NONE,
					   .took_ns = { NONE, NONE } };
	decide((struct mst_decision){ .kind = MST_DO_ADMIT, .who = of(rank) }, NULL);
}

static void give(uint32_t rank, uint64_t given)
{
	plain[rank].live = true;
	plain[rank].given = given;
	plain[rank].given_ns = now_ns;
	decide((struct mst_decision){ .kind = MST_DO_RELEASE,
				      .who = of(rank),
				      .answer = { .version = given } },
	       NULL);
}

static void evict(uint32_t rank)
{
	plain[rank].live = false;
	decide((struct mst_decision){ .kind = MST_DO_EVICT, .who = of(rank) }, NULL);
}

static void judge(uint32_t rank, uint64_t tag)
{
	struct mst_decision d = { .kind = MST_DO_VERDICT, .who = of(rank) };

	plain_gradient(&plain[rank], tag);
	d.verdict.tag = tag;
	d.verdict.verdict = tag < version ? MUSTER_LATE : MUSTER_COUNTED;
	d.verdict.counted_in = tag < version ? 0 : version + 1;
	decide(d, NULL);
}

static void commit(void)
{
	struct mst_record record = { .version = ++version, .samples = 1, .loss = (double)NAN };

	plain_commit();
	last_commit_ns = now_ns;
	decide((struct mst_decision){ .kind = MST_DO_COMMIT, .commit = { .version = version } },
	       &record);
}

static void begin(uint32_t ranks)
{
	rule = (struct mst_rule){ .quorum = -1, .release = MST_RELEASE_COMMIT };
	now_ns = last_commit_ns = MST_SECOND;
	version = saved_ns = 0;
	saves = true;
	CU_ASSERT_EQUAL_FATAL(mst_statistics_new(ranks, &statistics), 0);
	decide((struct mst_decision){ .kind = MST_DO_START }, NULL);
}

/* ---- random histories ---- */

static uint64_t below(uint64_t end)
{
	return mst_rand_below(&dice, end);
}

/* Versions that a ledger may still have, the newest most often. */
static uint64_t some_version(void)
{
	uint64_t back = below(4) > 0 ? 0 : below(4);

	return back < version ? version - back : version;
}

static void something(void)
{
	uint32_t rank = (uint32_t)below(RANKS);
	const struct plain_rank *r = &plain[rank];
	uint64_t what = below(100);

	now_ns += below(5 * MST_MS);
	if (what < 15)
		commit();
	else if (what < 17)
		admit(rank);
	else if (what < 19 && r->live)
		evict(rank);
	else if (what < 60 && r->incarnation > 0)
		give(rank, some_version());
	else if (r->given != NONE && r->incarnation > 0)
		judge(rank, below(8) > 0 ? r->given : some_version());
}

static void is_as_the_plain_account_says(void)
{
	struct mst_status status;

	mst_statistics_job(statistics, now_ns, &status);
	CU_ASSERT_EQUAL_FATAL(status.saved_ns != MST_NOT_KNOWN, saves);
	CU_ASSERT_EQUAL_FATAL(status.saved_ns, saves ? saved_ns : MST_NOT_KNOWN);
}

/* In one history of four the rule changes to one under which saved time is not defined. */
static void saved_time_is_that_of_a_look_at_every_rank(void)
{
	uint64_t saved_once = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		mst_rand_seed(&dice, seed);
		begin(RANKS);
		for (uint32_t rank = 0; rank < RANKS; rank++)
			admit(rank);
		for (int i = 0; i < 5000; i++) {
			if (i == 4000 && seed % 4 == 0)
				rule.release = MST_RELEASE_PUSH;
			something();
			is_as_the_plain_account_says();
		}
		saved_once += saved_ns;
		CU_ASSERT_FATAL(version < sizeof(steps) / sizeof(steps[0]));
		mst_statistics_free(statistics);
	}
	CU_ASSERT(saved_once > MST_SECOND);
}

/* ---- cost ---- */

static void commit_empty(int times)
{
	for (int i = 0; i < times; i++) {
		struct mst_record record = { .version = ++version };
		decide((struct mst_decision){ .kind = MST_DO_COMMIT }, &record);
	}
}

/* Processor time of commits while all ranks are busy with version 0, the least of some rounds. The
 * second commit is the first that finds them with an older version. */
static uint64_t commits_ns(uint32_t ranks)
{
	uint64_t least_ns = NONE;

	for (int round = 0; round < 3; round++) {
		begin(ranks);
		for (uint32_t rank = 0; rank < ranks; rank++)
			decide((struct mst_decision){ .kind = MST_DO_RELEASE, .who = { rank, 0 } },
			       NULL);
		commit_empty(2);
		uint64_t begin_ns = mst_thread_ns();
		commit_empty(1000);
		uint64_t took_ns = mst_thread_ns() - begin_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
		mst_statistics_free(statistics);
	}
	return least_ns;
}

/* A look at every rank would make the second 1000 times as long. */
static void a_commit_does_not_look_at_every_rank(void)
{
	uint64_t few_ns = commits_ns(4), many_ns = commits_ns(4000);

	CU_ASSERT(many_ns < 100 * few_ns);
}

static CU_TestInfo cases[] = {
	{ "saved time is that of a look at every rank",
	  saved_time_is_that_of_a_look_at_every_rank },
	{ "a commit does not look at every rank", a_commit_does_not_look_at_every_rank },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("saved time", cases);
}
