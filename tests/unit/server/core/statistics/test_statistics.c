/* SPDX-License-Identifier: MIT */
/* The statistics over histories written by hand: what is said of them can be computed on paper. */
#include <math.h>
#include <string.h>

#include "common/base/clock.h"
#include "server/core/statistics/statistics.h"
#include "tests/ut.h"

#define RANKS 4u

static struct mst_statistics *statistics;
static struct mst_rule rule;
static struct mst_status status;
static struct mst_status_rank row;

static const struct mst_rule backup = { .quorum = -1, .release = MST_RELEASE_COMMIT };

/* ---- what goes by; all times in ms ---- */

static void decide(struct mst_decision d, const struct mst_record *record, uint64_t ms)
{
	mst_statistics_decided(statistics, &(struct mst_statistics_decision){ &d, record, &rule },
			       ms * MST_MS);
}

static struct mst_identity of(uint32_t rank)
{
	return (struct mst_identity){ rank, 1 };
}

static void give(uint32_t rank, uint64_t version, uint64_t ms)
{
	decide((struct mst_decision){ .kind = MST_DO_RELEASE,
				      .who = of(rank),
				      .answer = { .version = version } },
	       NULL, ms);
}

static void commit(uint64_t version, uint64_t ms)
{
	struct mst_record record = { .version = version, .samples = 32, .loss = (double)NAN };

	decide((struct mst_decision){ .kind = MST_DO_COMMIT, .commit = { .version = version } },
	       &record, ms);
}

static void judge(uint32_t rank, uint64_t tag, enum muster_verdict verdict, uint64_t ms)
{
	struct mst_decision d = { .kind = MST_DO_VERDICT, .who = of(rank) };

	mst_statistics_job(statistics, ms * MST_MS, &status);
	d.verdict.tag = tag;
	d.verdict.verdict = verdict;
	d.verdict.counted_in = verdict == MUSTER_COUNTED ? status.version + 1 : 0;
	decide(d, NULL, ms);
}

static void happen(struct mst_ledger_event ev, uint64_t ms)
{
	mst_statistics_event(statistics, &ev, ms * MST_MS);
}

/* All have joined at 0, and have version 0. */
static void begin(struct mst_rule by)
{
	rule = by;
	CU_ASSERT_EQUAL_FATAL(mst_statistics_new(RANKS, &statistics), 0);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		decide((struct mst_decision){ .kind = MST_DO_ADMIT, .who = of(rank) }, NULL, 0);
	decide((struct mst_decision){ .kind = MST_DO_START }, NULL, 0);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		give(rank, 0, 0);
}

/* The figures of a rank that computes, or waits to be answered. */
static const struct mst_status_rank *look(uint32_t rank, bool asks, uint64_t ms)
{
	struct mst_member_view view = {
		.incarnation = 1, .live = true, .started = true, .awaited = !asks, .asks = asks
	};

	memset(&row, 0, sizeof(row));
	row.rank = rank;
	mst_statistics_rank(statistics, &view, ms * MST_MS, &row);
	return &row;
}

static uint64_t saved_ms(uint64_t ms)
{
	mst_statistics_job(statistics, ms * MST_MS, &status);
	CU_ASSERT_NOT_EQUAL(status.saved_ns, MST_NOT_KNOWN);
	return status.saved_ns / MST_MS;
}

/* Ranks 0 to 2 make step after step of 10 ms, up to version @last; rank 3 is busy. */
static void steps_of_10_ms(uint64_t first, uint64_t last, uint64_t ms)
{
	for (uint64_t version = first; version <= last; version++) {
		ms += 10;
		for (uint32_t rank = 0; rank < 3; rank++)
			judge(rank, version - 1, MUSTER_COUNTED, ms);
		commit(version, ms);
		for (uint32_t rank = 0; rank < 3; rank++)
			give(rank, version, ms);
	}
}

static void change(struct mst_rule to, uint64_t version, uint64_t ms)
{
	rule = to;
	decide((struct mst_decision){ .kind = MST_DO_POLICY,
				      .policy = { .version = version, .whole = true } },
	       NULL, ms);
}

/* ---- promises ---- */

static const struct mst_rule async = { .quorum = 1,
				       .window = MST_WINDOW_MAX,
				       .release = MST_RELEASE_PUSH };

static void each_policy_has_its_own_figures(void)
{
	begin(async);
	judge(0, 0, MUSTER_COUNTED, 10);
	commit(1, 10);
	judge(1, 0, MUSTER_COUNTED, 14);
	commit(2, 14);
	change(backup, 3, 14);
	judge(2, 0, MUSTER_LATE, 15);
	judge(3, 1, MUSTER_LATE, 16);
	judge(0, 2, MUSTER_COUNTED, 20);
	CU_ASSERT_EQUAL(mst_statistics_dropped(statistics), 0);
	commit(3, 24);
	CU_ASSERT_EQUAL(mst_statistics_dropped(statistics), 2);
	judge(1, 2, MUSTER_LATE, 25);
	commit(4, 30);
	CU_ASSERT_EQUAL(mst_statistics_dropped(statistics), 0);
	mst_statistics_job(statistics, 30 * MST_MS, &status);
	CU_ASSERT_EQUAL_FATAL(status.policy_count, 2);
	const struct mst_status_policy *one = &status.under[0], *other = &status.under[1];
	CU_ASSERT(one->since == 1 && one->versions == 2 && one->counted == 2 && one->late == 0);
	CU_ASSERT_EQUAL(one->step_mean_ns, 4 * MST_MS);
	CU_ASSERT(other->since == 3 && other->versions == 2 && other->counted == 1);
	CU_ASSERT(other->late == 3 && other->dropped == 2);
	CU_ASSERT_EQUAL(other->step_mean_ns, 8 * MST_MS);
	mst_statistics_free(statistics);
}

static void nothing_is_dropped_from_one_window_of_0_to_another(void)
{
	begin((struct mst_rule){ .quorum = 0 });
	commit(1, 10);
	change(backup, 2, 10);
	judge(3, 0, MUSTER_LATE, 12);
	commit(2, 20);
	CU_ASSERT_EQUAL(mst_statistics_dropped(statistics), 0);
	mst_statistics_free(statistics);
}

static void nothing_happens_under_a_policy_after_the_end(void)
{
	begin(async);
	commit(1, 10);
	decide((struct mst_decision){ .kind = MST_DO_FINISH }, NULL, 20);
	change(backup, 2, 30);
	mst_statistics_job(statistics, 40 * MST_MS, &status);
	CU_ASSERT_EQUAL(status.policy_count, 1);
	mst_statistics_free(statistics);
}

static void the_last_policies_are_kept(void)
{
	begin(async);
	for (uint64_t version = 1; version <= MST_STATUS_POLICIES + 2; version++) {
		commit(version, 10 * version);
		change(version % 2 ? backup : async, version + 1, 10 * version);
	}
	mst_statistics_job(statistics, 1000 * MST_MS, &status);
	CU_ASSERT_EQUAL_FATAL(status.policy_count, MST_STATUS_POLICIES);
	for (uint32_t i = 0; i < MST_STATUS_POLICIES; i++)
		CU_ASSERT_EQUAL(status.under[i].since, i + 4);
	mst_statistics_free(statistics);
}

static void a_gradient_takes_from_being_given_its_version(void)
{
	begin(backup);
	steps_of_10_ms(1, 5, 0);
	judge(3, 0, MUSTER_LATE, 53);
	give(3, 5, 54);
	steps_of_10_ms(6, 6, 50);
	judge(3, 5, MUSTER_LATE, 74);
	CU_ASSERT_EQUAL(look(0, true, 74)->ready_mean_ns, 10 * MST_MS);
	CU_ASSERT_EQUAL(look(3, true, 74)->ready_mean_ns, (53 + 20) * MST_MS / 2);
	CU_ASSERT_EQUAL(row.ready_max_ns, 53 * MST_MS);
	CU_ASSERT_EQUAL(row.behind_mean_ns, (43 + 14) * MST_MS / 2);
	CU_ASSERT_EQUAL(row.late, 2);
	CU_ASSERT_EQUAL(row.recent_missed, 2);
	mst_statistics_free(statistics);
}

static void recent_figures_forget(void)
{
	uint64_t ms = 0;

	begin(backup);
	for (uint64_t version = 1; version <= 50; version++) {
		commit(version, ms += 10);
		judge(3, version - 1, MUSTER_LATE, ms + 7);
		give(3, version, ms + 7);
	}
	CU_ASSERT_EQUAL(look(3, true, ms)->recent_missed, MST_STATISTICS_RECENT);
	CU_ASSERT_EQUAL(row.recent_behind_ns, 7 * MST_MS);
	for (uint64_t version = 51; version <= 50 + MST_STATISTICS_RECENT; version++) {
		judge(3, version - 1, MUSTER_COUNTED, ms + 19);
		commit(version, ms += 20);
		give(3, version, ms);
	}
	mst_statistics_job(statistics, ms * MST_MS, &status);
	CU_ASSERT_EQUAL(status.recent_step_ns, 20 * MST_MS);
	CU_ASSERT(status.step_mean_ns < 15 * MST_MS);
	CU_ASSERT_EQUAL(look(3, true, ms)->recent_missed, 0);
	CU_ASSERT_EQUAL(row.recent_came, MST_STATISTICS_RECENT);
	CU_ASSERT_EQUAL(row.recent_behind_ns, 0);
	CU_ASSERT_EQUAL(row.late, 50);
	CU_ASSERT_EQUAL(row.behind_mean_ns, 7 * MST_MS);
	mst_statistics_free(statistics);
}

/* Rank 3 is stopped; the others wait for it. */
static void who_holds_the_step_is_busy_and_who_waits_is_not(void)
{
	begin((struct mst_rule){ .release = MST_RELEASE_COMMIT });
	for (uint32_t rank = 0; rank < 4; rank++)
		judge(rank, 0, MUSTER_COUNTED, 10);
	commit(1, 10);
	for (uint32_t rank = 0; rank < 4; rank++)
		give(rank, 1, 11);
	happen((struct mst_ledger_event){ .kind = MST_EV_HEARTBEAT, .who = of(3) }, 12);
	for (uint32_t rank = 0; rank < 3; rank++)
		judge(rank, 1, MUSTER_COUNTED, 20);
	CU_ASSERT_EQUAL(look(0, true, 500)->busy_ns, 0);
	CU_ASSERT_EQUAL(row.waiting_ns, 0);
	CU_ASSERT_EQUAL(row.handed_in_ns, 480 * MST_MS);
	CU_ASSERT_EQUAL(look(3, false, 500)->busy_ns, 489 * MST_MS);
	CU_ASSERT_EQUAL(row.waiting_ns, 490 * MST_MS);
	CU_ASSERT_EQUAL(row.heard_ns, 488 * MST_MS);
	CU_ASSERT_EQUAL(row.handed_in_ns, 490 * MST_MS);
	mst_statistics_free(statistics);
}

/* Where a worker goes on without asking, it is busy from its last gradient on. */
static void who_goes_on_by_itself_is_busy_since_then(void)
{
	begin((struct mst_rule){ .quorum = 1, .release = MST_RELEASE_PUSH });
	judge(0, 0, MUSTER_COUNTED, 30);
	CU_ASSERT_EQUAL(look(0, false, 100)->busy_ns, 70 * MST_MS);
	judge(0, 0, MUSTER_COUNTED, 110);
	CU_ASSERT_EQUAL(look(0, false, 110)->ready_mean_ns, (30 + 80) * MST_MS / 2);
	mst_statistics_free(statistics);
}

static void the_dead_are_not_heard(void)
{
	struct mst_ledger_event late = { .kind = MST_EV_HEARTBEAT, .who = of(2) };

	begin(backup);
	happen(late, 100);
	CU_ASSERT_EQUAL(look(2, true, 150)->heard_ns, 50 * MST_MS);
	decide((struct mst_decision){ .kind = MST_DO_ADMIT, .who = { 2, 2 } }, NULL, 200);
	happen(late, 300);
	CU_ASSERT_EQUAL(look(2, true, 350)->heard_ns, 150 * MST_MS);
	CU_ASSERT_EQUAL(row.handed_in_ns, MST_NEVER);
	CU_ASSERT_EQUAL(row.busy_ns, 0);
	mst_statistics_free(statistics);
}

static void leave(uint32_t rank, enum mst_evict_why why)
{
	decide((struct mst_decision){ .kind = MST_DO_EVICT, .who = of(rank), .evict = why }, NULL,
	       100);
}

static void is_gone(uint32_t rank, enum mst_rank_state state, uint64_t at)
{
	CU_ASSERT_EQUAL(look(rank, false, 100)->state, state);
	CU_ASSERT_EQUAL(row.gone_at, at);
}

static void the_version_at_the_end_of_a_session_is_kept(void)
{
	begin(backup);
	steps_of_10_ms(1, 3, 0);
	is_gone(0, MST_RANK_LIVE, MST_NOT_KNOWN);
	leave(0, MST_EVICT_LEFT);
	leave(1, MST_EVICT_ASKED);
	commit(4, 100);
	judge(2, 4, MUSTER_COUNTED, 100); /* in version 5, which is being made */
	leave(2, MST_EVICT_LEFT);
	commit(5, 100);
	leave(3, MST_EVICT_LEASE);
	is_gone(0, MST_RANK_LEFT, 3);
	is_gone(1, MST_RANK_EVICTED, 3);
	is_gone(2, MST_RANK_LEFT, 5);
	is_gone(3, MST_RANK_LOST, 5);
	decide((struct mst_decision){ .kind = MST_DO_ADMIT, .who = { 3, 2 } }, NULL, 100);
	is_gone(3, MST_RANK_JOINED, MST_NOT_KNOWN);
	decide((struct mst_decision){ .kind = MST_DO_FINISH }, NULL, 100);
	decide((struct mst_decision){ .kind = MST_DO_EVICT, .who = { 3, 2 } }, NULL, 110);
	is_gone(3, MST_RANK_LEFT, MST_NOT_KNOWN);
	mst_statistics_free(statistics);
}

static void versions_behind_are_counted(void)
{
	begin(backup);
	steps_of_10_ms(1, 5, 0);
	CU_ASSERT_EQUAL(look(0, false, 50)->behind_by, 0);
	CU_ASSERT_EQUAL(look(3, false, 50)->behind_by, 5);
	mst_statistics_free(statistics);
}

/* Steps take 10 ms, and one rank takes 50 ms for a gradient. So each step that is known saves 40
 * ms. */
static void a_constant_straggler_saves_all_it_would_have_cost(void)
{
	uint64_t ms = 0, version = 0;

	begin(backup);
	for (int round = 0; round < 12; round++) {
		steps_of_10_ms(version + 1, version + 5, ms);
		ms += 50;
		judge(3, version, MUSTER_LATE, ms);
		version += 5;
		give(3, version, ms);
		/* Each of the first two gradients makes one step known, its own. Each gradient
		 * after them makes five steps known. */
		uint64_t known = round < 2 ? 1 + (uint64_t)round : 2 + 5 * ((uint64_t)round - 1);
		CU_ASSERT_EQUAL(saved_ms(ms), 40 * known);
	}
	mst_statistics_free(statistics);
}

/* The worker got its version 5 ms after the step had begun. If all had waited for each other, it
 * would have got the version when the step began. */
static void what_it_waited_for_its_version_is_not_saved(void)
{
	begin(backup);
	steps_of_10_ms(1, 1, 0);
	judge(3, 0, MUSTER_LATE, 15);
	CU_ASSERT_EQUAL(saved_ms(15), 5);
	give(3, 1, 15);
	steps_of_10_ms(2, 2, 10);
	judge(3, 1, MUSTER_LATE, 27);
	CU_ASSERT_EQUAL(saved_ms(27), 5 + 2);
	mst_statistics_free(statistics);
}

static void of_a_step_the_longest_counts(void)
{
	begin((struct mst_rule){ .quorum = 2, .release = MST_RELEASE_COMMIT });
	commit(1, 10);
	judge(2, 0, MUSTER_LATE, 25);
	CU_ASSERT_EQUAL(saved_ms(25), 15);
	judge(3, 0, MUSTER_LATE, 40);
	CU_ASSERT_EQUAL(saved_ms(40), 30);
	judge(1, 0, MUSTER_LATE, 41);
	CU_ASSERT_EQUAL(saved_ms(41), 31);
	mst_statistics_free(statistics);
}

/* A rank that stood still once has cost that once. */
static void one_long_gradient_stands_for_no_other(void)
{
	begin(backup);
	steps_of_10_ms(1, 1, 0);
	judge(3, 0, MUSTER_LATE, 12);
	give(3, 1, 12);
	steps_of_10_ms(2, 1000, 10);
	judge(3, 1, MUSTER_LATE, 10012);
	CU_ASSERT_EQUAL(saved_ms(10012), 2 + 9990);
	give(3, 1000, 10012);
	steps_of_10_ms(1001, 1002, 10000);
	CU_ASSERT_EQUAL(saved_ms(10020), 2 + 9990 + 2); /* the shorter one, 12 ms */
	mst_statistics_free(statistics);
}

static void what_never_comes_saves_nothing(void)
{
	begin(backup);
	steps_of_10_ms(1, 100, 0);
	CU_ASSERT_EQUAL(saved_ms(1000), 0);
	decide((struct mst_decision){ .kind = MST_DO_EVICT,
				      .who = of(3),
				      .evict = MST_EVICT_LEASE },
	       NULL, 1000);
	steps_of_10_ms(101, 200, 1000);
	CU_ASSERT_EQUAL(saved_ms(2000), 0);
	mst_statistics_free(statistics);
}

static void a_late_gradient_that_counts_later_saves_as_well(void)
{
	begin((struct mst_rule){
		.quorum = 3, .window = UINT32_MAX, .release = MST_RELEASE_COMMIT });
	steps_of_10_ms(1, 3, 0);
	judge(3, 0, MUSTER_COUNTED, 35);
	CU_ASSERT_EQUAL(saved_ms(35), 25);
	mst_statistics_free(statistics);
}

static bool is_told(struct mst_rule by)
{
	begin(by);
	steps_of_10_ms(1, 2, 0);
	judge(3, 0, MUSTER_STALE, 30);
	mst_statistics_job(statistics, 30 * MST_MS, &status);
	mst_statistics_free(statistics);
	return status.saved_ns != MST_NOT_KNOWN;
}

static void where_it_cannot_be_known_nothing_is_told(void)
{
	CU_ASSERT(is_told((struct mst_rule){ .release = MST_RELEASE_COMMIT }));
	CU_ASSERT(is_told((struct mst_rule){ .quorum = 3, .release = MST_RELEASE_COMMIT }));
	CU_ASSERT(!is_told(
		(struct mst_rule){ .quorum = 3, .release = MST_RELEASE_COMMIT, .preempt = true }));
	CU_ASSERT(!is_told((struct mst_rule){ .release = MST_RELEASE_COMMIT, .collect = true }));
	CU_ASSERT(!is_told((struct mst_rule){ .quorum = 1, .release = MST_RELEASE_PUSH }));
	CU_ASSERT(!is_told((struct mst_rule){ .quorum = 1, .release = MST_RELEASE_BOUND }));
}

static void nor_after_one_step_of_such_a_policy(void)
{
	begin(backup);
	steps_of_10_ms(1, 2, 0);
	judge(3, 0, MUSTER_LATE, 29);
	CU_ASSERT_EQUAL(saved_ms(29), 19);
	rule.release = MST_RELEASE_PUSH;
	steps_of_10_ms(3, 3, 20);
	rule.release = MST_RELEASE_COMMIT;
	steps_of_10_ms(4, 4, 30);
	mst_statistics_job(statistics, 40 * MST_MS, &status);
	CU_ASSERT_EQUAL(status.saved_ns, MST_NOT_KNOWN);
	mst_statistics_free(statistics);
}

static void staleness_is_of_what_was_counted(void)
{
	begin((struct mst_rule){ .quorum = 1, .window = 4, .release = MST_RELEASE_PUSH });
	for (uint64_t version = 1; version <= 10; version++)
		commit(version, version * 10);
	for (int i = 0; i < 98; i++)
		judge(1, 10, MUSTER_COUNTED, 101);
	judge(1, 8, MUSTER_COUNTED, 102);
	judge(1, 7, MUSTER_COUNTED, 103);
	judge(1, 2, MUSTER_STALE, 104);
	CU_ASSERT_DOUBLE_EQUAL(look(1, true, 104)->staleness_mean, 5.0 / 100, 1e-12);
	CU_ASSERT_EQUAL(row.staleness_p99, 2);
	CU_ASSERT_EQUAL(look(2, true, 104)->staleness_p99, 0);
	mst_statistics_free(statistics);
}

static void tell_given_up(uint32_t incarnation, uint64_t so_far)
{
	struct mst_ledger_event ev = { .kind = MST_EV_ASK, .who = { 1, incarnation } };

	ev.given_up = so_far;
	happen(ev, 50);
}

static void gradients_given_up_are_counted_across_sessions(void)
{
	begin(backup);
	tell_given_up(1, 0);
	tell_given_up(1, 3);
	tell_given_up(1, 3);
	CU_ASSERT_EQUAL(look(1, true, 60)->given_up, 3);
	decide((struct mst_decision){ .kind = MST_DO_ADMIT, .who = { 1, 2 } }, NULL, 70);
	tell_given_up(1, 9);
	tell_given_up(2, 2);
	tell_given_up(2, 1); /* nonsense: it cannot become less */
	CU_ASSERT_EQUAL(look(1, true, 80)->given_up, 5);
	CU_ASSERT_EQUAL(row.recent_given_up, 5);
	CU_ASSERT_EQUAL(row.recent_missed, 5);
	tell_given_up(2, UINT64_MAX / 2);
	CU_ASSERT_EQUAL(look(1, true, 80)->recent_given_up, MST_STATISTICS_RECENT);
	mst_statistics_free(statistics);
}

/* Every contribution has one verdict, so what was pushed adds up. */
static void samples_that_counted_are_told_of_those_pushed(void)
{
	double samples = 1, all = 0;

	begin(backup);
	for (int verdict = MUSTER_COUNTED; verdict <= MUSTER_DAMAGED; verdict++, samples *= 2) {
		struct mst_decision d = { .kind = MST_DO_VERDICT, .who = of(1) };
		d.verdict.verdict = (enum muster_verdict)verdict;
		d.verdict.counted_in = verdict == MUSTER_COUNTED;
		d.verdict.norm = (double)NAN;
		d.verdict.samples = samples;
		decide(d, NULL, 10);
		all += samples;
	}
	CU_ASSERT_EQUAL(look(1, true, 20)->samples_counted, 1);
	CU_ASSERT_EQUAL(row.samples_pushed, all);
	CU_ASSERT_EQUAL(look(0, true, 20)->samples_pushed, 0);
	mst_statistics_free(statistics);
}

static CU_TestInfo cases[] = {
	{ "samples that counted are told of those pushed",
	  samples_that_counted_are_told_of_those_pushed },
	{ "each policy has its own figures", each_policy_has_its_own_figures },
	{ "nothing is dropped from one window of 0 to another",
	  nothing_is_dropped_from_one_window_of_0_to_another },
	{ "nothing happens under a policy after the end",
	  nothing_happens_under_a_policy_after_the_end },
	{ "the last policies are kept", the_last_policies_are_kept },
	{ "a gradient takes from being given its version until it is there",
	  a_gradient_takes_from_being_given_its_version },
	{ "recent figures forget, others do not", recent_figures_forget },
	{ "who holds a step up is busy, and who waits is not",
	  who_holds_the_step_is_busy_and_who_waits_is_not },
	{ "who goes on without asking is busy since its last gradient",
	  who_goes_on_by_itself_is_busy_since_then },
	{ "of an ended session nothing is heard", the_dead_are_not_heard },
	{ "the version at the end of a session is kept",
	  the_version_at_the_end_of_a_session_is_kept },
	{ "versions behind are counted", versions_behind_are_counted },
	{ "a constant straggler saves what waiting for it would have cost",
	  a_constant_straggler_saves_all_it_would_have_cost },
	{ "what a rank waited for its version is not saved",
	  what_it_waited_for_its_version_is_not_saved },
	{ "of each step the longest counts", of_a_step_the_longest_counts },
	{ "one long gradient stands for no other", one_long_gradient_stands_for_no_other },
	{ "what never comes saves nothing", what_never_comes_saves_nothing },
	{ "a late gradient that counts in a later step saves as well",
	  a_late_gradient_that_counts_later_saves_as_well },
	{ "where saved time cannot be known nothing is told",
	  where_it_cannot_be_known_nothing_is_told },
	{ "nor after one step of such a policy", nor_after_one_step_of_such_a_policy },
	{ "staleness is of what was counted", staleness_is_of_what_was_counted },
	{ "gradients given up are counted, across sessions",
	  gradients_given_up_are_counted_across_sessions },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("statistics", cases);
}
