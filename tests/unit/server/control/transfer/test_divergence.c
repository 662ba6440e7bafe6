/* SPDX-License-Identifier: MIT */
/* Workers that have something else than the others after a version, at the leader. The test plays
 * the workers: what each says that it has, when, and what it is told. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/control/transfer/divergence.h"
#include "tests/unit/server/control/transfer/worker_case.h"
#include "tests/ut.h"

#define WORKERS (MST_STATE_GROUPS + 6u)

struct peer {
	struct worker_case at; /* stands first */
	uint32_t told;
	struct mst_differs last;
};

static struct mst_server_options options;
static struct mst_base base;
static struct mst_divergence divergence;
static struct peer worker[WORKERS];
static bool present[WORKERS];

static void hear(struct worker_case *w, const struct mst_message *m)
{
	struct peer *p = (struct peer *)w;

	CU_ASSERT_EQUAL_FATAL(m->kind, MST_MSG_DIFFERS);
	p->told++;
	p->last = m->differs;
}

static void joins(uint32_t rank, uint32_t incarnation)
{
	struct peer *p = &worker[rank];

	*p = (struct peer){ .told = 0 };
	worker_case_join(&p->at, &base.front, (struct mst_identity){ rank, incarnation }, hear);
	present[rank] = true;
}

static void begin(uint32_t workers)
{
	options = (struct mst_server_options){ .job = "test",
					       .workers = workers,
					       .owner = MUSTER_WORKERS_OWN };
	base.job = (struct mst_job){
		.o = &options, .front = &base.front, .state = MST_JOB_RUNNING, .present = present
	};
	memset(present, 0, sizeof(present));
	divergence = (struct mst_divergence){ .base = &base };
	CU_ASSERT_EQUAL_FATAL(mst_divergence_init(&divergence), 0);
	worker_case_open(&base.front, WORKERS);
	for (uint32_t rank = 0; rank < workers; rank++)
		joins(rank, 1);
}

static void end(void)
{
	mst_divergence_fini(&divergence);
	mst_frontend_close(&base.front);
}

static const char *compares(uint32_t rank, const struct mst_comparison *said)
{
	const char *wrong = mst_divergence_compare(&divergence, worker[rank].at.conn, said);

	mst_frontend_step(&base.front, 1);
	return wrong;
}

/* A worker says its rate. */
static void has_rate(uint32_t rank, uint64_t version, const char *rate)
{
	static struct mst_comparison said;
	struct mst_claim_part *part = &said.part[0];

	memset(&said, 0, sizeof(said));
	said.version = version;
	said.each = 1;
	said.part_count = 1;
	(void)snprintf(part->name, sizeof(part->name), "lr");
	(void)snprintf(part->value, sizeof(part->value), "%s", rate);
	for (const char *at = rate; *at != '\0'; at++)
		part->digest = part->digest * 31 + (unsigned char)*at;
	CU_ASSERT_PTR_NULL(compares(rank, &said));
}

/* A worker says what it has of eight tensors: only the tensor @other is not as all have it. */
static void has_tensors(uint32_t rank, uint64_t version, uint32_t other, bool takes, bool last)
{
	static struct mst_comparison said;

	said = (struct mst_comparison){
		.version = version, .takes = takes, .last = last, .first = 8, .each = 2, .count = 4
	};
	for (uint32_t i = 0; i < said.count; i++)
		said.digest[i] = 100 * (i + 1) + (i == other);
	CU_ASSERT_PTR_NULL(compares(rank, &said));
}

#define NONE 99u

static bool is_told(uint32_t rank, uint64_t version, uint32_t from)
{
	const struct peer *p = &worker[rank];

	return p->told == 1 && p->last.version == version && p->last.from == from;
}

/* ---- cases ---- */

static void equal_ranks_are_told_nothing(void)
{
	begin(3);
	for (uint64_t version = 16; version <= 160; version += 16) {
		for (uint32_t rank = 0; rank < 3; rank++) {
			has_rate(rank, version, "0.1");
			has_tensors(rank, version, NONE, false, false);
		}
	}
	for (uint32_t rank = 0; rank < 3; rank++)
		CU_ASSERT_EQUAL(worker[rank].told, 0);
	CU_ASSERT_EQUAL(base.job.differences, 0);
	end();
}

static void the_one_of_three_that_differs_is_told_with_both_values(void)
{
	begin(3);
	has_rate(1, 16, "0.2"); /* also where it is the first that says something */
	has_rate(0, 16, "0.1");
	CU_ASSERT_EQUAL(worker[1].told, 0); /* not before all have said what they have */
	has_rate(2, 16, "0.1");
	CU_ASSERT(is_told(1, 16, 0));
	CU_ASSERT_STRING_EQUAL(worker[1].last.why, "lr: 0.2, and 0.1 at rank 0");
	CU_ASSERT_EQUAL(worker[1].last.kernels, 0);
	CU_ASSERT_EQUAL(worker[0].told + worker[2].told, 0);
	end();
}

static void of_two_both_are_told(void)
{
	begin(2);
	has_rate(1, 16, "0.2");
	has_rate(0, 16, "0.1");
	CU_ASSERT(is_told(1, 16, 0));
	CU_ASSERT(is_told(0, 16, 1));
	CU_ASSERT_STRING_EQUAL(worker[0].last.why, "lr: 0.1, and 0.2 at rank 1");
	CU_ASSERT_EQUAL(base.job.differences, 2);
	end();
}

/* A difference lasts, so to say it each time would be too much. */
static void a_rank_is_told_once_and_counted_each_time(void)
{
	begin(3);
	for (uint64_t version = 16; version <= 64; version += 16) {
		for (uint32_t rank = 0; rank < 3; rank++)
			has_rate(rank, version, rank == 2 ? "0.2" : "0.1");
	}
	CU_ASSERT(is_told(2, 16, 0));
	CU_ASSERT_EQUAL(base.job.differences, 4);
	end();
}

static void tensors_are_named(void)
{
	begin(3);
	for (uint32_t rank = 0; rank < 3; rank++)
		has_tensors(rank, 32, rank == 0 ? 1 : NONE, false, false);
	CU_ASSERT(is_told(0, 32, 1));
	CU_ASSERT_STRING_EQUAL(worker[0].last.why, "tensors 10 to 11: not those of rank 1");
	end();
}

static void other_versions_and_other_tensors_are_not_compared(void)
{
	begin(2);
	has_rate(0, 16, "0.1");
	has_rate(1, 32, "0.2");
	has_tensors(0, 48, NONE, false, false);
	has_rate(1, 48, "0.2");
	CU_ASSERT_EQUAL(base.job.differences, 0);
	end();
}

/* One that stands still may not hide what the others have. */
static void a_rank_that_says_nothing_is_waited_for_until_most_are_further(void)
{
	begin(5);
	for (uint32_t rank = 0; rank < 4; rank++)
		has_rate(rank, 16, rank == 3 ? "0.2" : "0.1");
	CU_ASSERT_EQUAL(worker[3].told, 0);
	has_rate(0, 32, "0.1");
	has_rate(1, 32, "0.1");
	CU_ASSERT_EQUAL(worker[3].told, 0);
	has_rate(2, 32, "0.1");
	CU_ASSERT(is_told(3, 16, 0));
	has_rate(4, 16, "0.3"); /* and what comes later is compared all the same */
	CU_ASSERT(is_told(4, 16, 0));
	end();
}

/* One of two that differ is right, and the third knows which. */
static void a_rank_that_decides_who_is_right_is_waited_for(void)
{
	begin(3);
	for (uint64_t version = 16; version <= 160; version += 16) {
		has_rate(0, version, "0.1");
		has_rate(1, version, "0.2");
	}
	CU_ASSERT_EQUAL(worker[0].told + worker[1].told, 0);
	has_rate(2, 16, "0.1");
	CU_ASSERT(is_told(1, 16, 0));
	CU_ASSERT_EQUAL(worker[0].told, 0);
	end();
}

static void it_is_waited_for_as_long_as_half_of_the_reports_are_older(void)
{
	begin(3);
	for (uint64_t version = 1; version <= MST_COMPARISONS_KEPT / 2; version++) {
		has_rate(0, version, "0.1");
		has_rate(1, version, "0.2");
	}
	CU_ASSERT_EQUAL(worker[0].told + worker[1].told, 0);
	for (uint32_t rank = 0; rank < 2; rank++)
		has_rate(rank, 1000, rank == 0 ? "0.1" : "0.2");
	CU_ASSERT(is_told(0, 1, 1) && is_told(1, 1, 0));
	end();
}

/* As one that has taken a state meanwhile, which is of a later version. */
static void a_rank_that_has_passed_a_version_is_not_waited_for(void)
{
	begin(3);
	has_rate(0, 16, "0.1");
	has_rate(1, 16, "0.2");
	has_rate(2, 32, "0.1");
	CU_ASSERT(is_told(0, 16, 1) && is_told(1, 16, 0));
	end();
}

/* It said more before it heard that it differs. */
static void one_that_differs_does_not_decide_what_is_right(void)
{
	begin(3);
	for (uint64_t version = 16; version <= 48; version += 16) {
		has_rate(0, version, "0.1");
		has_rate(1, version, "0.2");
	}
	has_rate(2, 16, "0.1");
	CU_ASSERT(is_told(1, 16, 0));
	present[1] = present[2] = false;
	mst_divergence_lost(&divergence);
	CU_ASSERT_EQUAL(worker[0].told, 0);
	CU_ASSERT_EQUAL(worker[1].told, 1);
	end();
}

static void what_a_rank_said_before_it_took_a_state_decides_nothing(void)
{
	begin(3);
	has_rate(1, 32, "0.2");
	mst_divergence_took(&divergence, 1);
	has_rate(0, 32, "0.1");
	present[2] = false;
	mst_divergence_lost(&divergence);
	CU_ASSERT_EQUAL(worker[0].told + worker[1].told, 0);
	has_rate(1, 32, "0.1"); /* its state is of an older version */
	CU_ASSERT_EQUAL(worker[0].told + worker[1].told, 0);
	has_rate(1, 48, "0.2");
	has_rate(0, 48, "0.1");
	CU_ASSERT(is_told(0, 48, 1) && is_told(1, 48, 0));
	end();
}

static void a_rank_that_has_left_is_not_waited_for(void)
{
	begin(3);
	has_rate(0, 16, "0.1");
	has_rate(1, 16, "0.2");
	present[2] = false;
	mst_divergence_lost(&divergence);
	CU_ASSERT(is_told(0, 16, 1) && is_told(1, 16, 0));
	end();
}

static void one_that_has_taken_a_state_is_told_again(void)
{
	begin(3);
	for (uint32_t rank = 0; rank < 3; rank++)
		has_rate(rank, 16, rank == 1 ? "0.2" : "0.1");
	has_rate(1, 32, "0.2"); /* before it has the state; nobody else has said anything yet */
	CU_ASSERT(is_told(1, 16, 0));
	mst_divergence_took(&divergence, 1);
	has_rate(0, 32, "0.1");
	has_rate(2, 32, "0.1");
	CU_ASSERT(is_told(1, 16, 0));
	for (uint32_t rank = 0; rank < 3; rank++)
		has_rate(rank, 48, rank == 1 ? "0.3" : "0.1");
	CU_ASSERT_EQUAL(worker[1].told, 2);
	end();
}

static void a_new_session_is_another_state(void)
{
	begin(3);
	for (uint32_t rank = 0; rank < 3; rank++)
		has_rate(rank, 16, rank == 1 ? "0.2" : "0.1");
	mst_frontend_hang_up(&base.front, worker[1].at.conn);
	joins(1, 2);
	for (uint32_t rank = 0; rank < 3; rank++)
		has_rate(rank, 32, rank == 1 ? "0.2" : "0.1");
	CU_ASSERT(is_told(1, 32, 0));
	end();
}

/* The lower rank of the two is not told: the other one takes its state. */
static void one_that_takes_takes_that_of_the_lowest(void)
{
	begin(2);
	has_tensors(1, 16, 2, true, false);
	has_tensors(0, 16, NONE, true, false);
	CU_ASSERT(is_told(1, 16, 0));
	CU_ASSERT_EQUAL(worker[0].told, 0);
	CU_ASSERT_EQUAL(divergence.strays,
			1); /* the data side, which is not there, is to hear it */
	end();
}

static void a_difference_at_the_end_is_noted(void)
{
	begin(3);
	for (uint32_t rank = 0; rank < 3; rank++)
		has_tensors(rank, 40, rank == 1 ? 1 : NONE, false, false);
	CU_ASSERT_STRING_EQUAL(base.job.apart.text, "");
	for (uint32_t rank = 0; rank < 3; rank++)
		has_tensors(rank, 41, rank == 1 ? 1 : NONE, false, true);
	CU_ASSERT_STRING_EQUAL(base.job.apart.text,
			       "the ranks have not ended with the same state: after version 41 "
			       "rank 1 differs from rank 0");
	end();
}

/* A rank has said it before, as of any version, when it says it as the last one. */
static void a_difference_at_the_end_is_noted_also_where_it_was_known(void)
{
	begin(3);
	for (uint32_t last = 0; last < 2; last++) {
		CU_ASSERT_STRING_EQUAL(base.job.apart.text, "");
		for (uint32_t rank = 0; rank < 3; rank++)
			has_tensors(rank, 48, rank == 1 ? 1 : NONE, false, last != 0);
	}
	CU_ASSERT_STRING_EQUAL(base.job.apart.text,
			       "the ranks have not ended with the same state: after version 48 "
			       "rank 1 differs from rank 0");
	CU_ASSERT(is_told(1, 48, 0));
	CU_ASSERT_EQUAL(base.job.differences, 1);
	end();
}

/* A worker says what it has of a section of one large tensor: all have the same. */
static void has_section(uint32_t rank, uint64_t version, uint32_t section, bool last)
{
	static struct mst_comparison said;

	said = (struct mst_comparison){ .version = version,
					.last = last,
					.each = 1,
					.section = section,
					.count = 1,
					.digest = { 100 + section } };
	CU_ASSERT_PTR_NULL(compares(rank, &said));
}

/* Rank 0 says one section of a version as that of any version, and then all sections of it as
 * those of the last version. Rank 1 does the same after it. */
static void sections_of_a_tensor_are_not_compared_with_each_other(void)
{
	begin(2);
	for (uint32_t rank = 0; rank < 2; rank++) {
		has_section(rank, 32, 3, false);
		for (uint32_t section = 1; section <= 4; section++)
			has_section(rank, 32, section, true);
	}
	CU_ASSERT_EQUAL(base.job.differences, 0);
	CU_ASSERT_STRING_EQUAL(base.job.apart.text, "");
	CU_ASSERT_EQUAL(divergence.comparisons.count, 4);
	end();
}

/* Versions that there are not push out what this rank alone has said, and nothing else. */
static void a_rank_cannot_push_out_what_others_have_said(void)
{
	begin(3);
	has_rate(0, 16, "0.1");
	has_rate(2, 16, "0.2");
	for (uint64_t version = 1000; version < 1100; version++)
		has_rate(1, version, "7");
	CU_ASSERT(divergence.comparisons.count <= MST_COMPARISONS_LONE + 1);
	has_rate(1, 16, "0.1");
	CU_ASSERT(is_told(2, 16, 0));
	end();
}

static void more_states_than_are_kept_are_told_too(void)
{
	char rate[8];

	begin(WORKERS);
	options.workers = WORKERS;
	for (uint32_t version = 1; version <= 100; version++) {
		for (uint32_t rank = 0; rank < WORKERS; rank++) {
			(void)snprintf(rate, sizeof(rate), "%" PRIu32, rank);
			has_rate(rank, version, rate);
		}
	}
	CU_ASSERT_EQUAL(base.job.differences, 100 * WORKERS);
	CU_ASSERT_EQUAL(divergence.comparisons.count, MST_COMPARISONS_KEPT);
	end();
}

/* However many have something of their own before, what most ranks have is right. */
static void most_ranks_are_right_also_among_more_states_than_are_kept(void)
{
	char rate[8];

	begin(WORKERS);
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		bool odd = rank < MST_STATE_GROUPS + 3;
		(void)snprintf(rate, sizeof(rate), "%" PRIu32, odd ? rank : 99);
		has_rate(rank, 16, rate);
	}
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		CU_ASSERT_EQUAL(worker[rank].told, rank < MST_STATE_GROUPS + 3);
	CU_ASSERT_EQUAL(worker[0].last.from, MST_STATE_GROUPS + 3);
	end();
}

static void what_cannot_be_compared_breaks_the_protocol(void)
{
	static struct mst_comparison said;

	begin(2);
	said = (struct mst_comparison){ .version = 16, .each = 0, .count = 1 };
	CU_ASSERT_PTR_NOT_NULL(compares(0, &said));
	said = (struct mst_comparison){ .version = 16, .each = 1, .count = 1, .part_count = 1 };
	CU_ASSERT_PTR_NOT_NULL(compares(0, &said));
	options.owner = MUSTER_SERVERS_OWN;
	said = (struct mst_comparison){ .version = 16, .each = 1, .count = 1 };
	CU_ASSERT_PTR_NOT_NULL(compares(0, &said));
	end();
}

static void of_two_both_hear_that_one_came_late_with_other_kernels(void)
{
	begin(2);
	worker[1].at.conn->other_kernels = true;
	for (uint32_t rank = 0; rank < 2; rank++)
		has_tensors(rank, 41, rank == 1 ? 1 : NONE, false, true);
	CU_ASSERT(is_told(0, 41, 1) && is_told(1, 41, 0));
	CU_ASSERT(worker[0].last.kernels == 1 && worker[1].last.kernels == 1);
	CU_ASSERT_STRING_EQUAL(base.job.apart.text, "");
	end();
}

static CU_TestInfo cases[] = {
	{ "of two both hear that one came late with other kernels",
	  of_two_both_hear_that_one_came_late_with_other_kernels },
	{ "equal ranks are told nothing", equal_ranks_are_told_nothing },
	{ "the one of three that differs is told, with both values",
	  the_one_of_three_that_differs_is_told_with_both_values },
	{ "of two that differ both are told", of_two_both_are_told },
	{ "a rank is told once, and counted each time", a_rank_is_told_once_and_counted_each_time },
	{ "tensors that differ are named", tensors_are_named },
	{ "other versions and other tensors are not compared",
	  other_versions_and_other_tensors_are_not_compared },
	{ "a rank that says nothing is waited for until most are further",
	  a_rank_that_says_nothing_is_waited_for_until_most_are_further },
	{ "a rank that decides who is right is waited for",
	  a_rank_that_decides_who_is_right_is_waited_for },
	{ "it is waited for as long as half of the reports are older",
	  it_is_waited_for_as_long_as_half_of_the_reports_are_older },
	{ "a rank that has passed a version is not waited for",
	  a_rank_that_has_passed_a_version_is_not_waited_for },
	{ "one that differs does not decide what is right",
	  one_that_differs_does_not_decide_what_is_right },
	{ "what a rank said before it took a state decides nothing",
	  what_a_rank_said_before_it_took_a_state_decides_nothing },
	{ "a rank that has left is not waited for", a_rank_that_has_left_is_not_waited_for },
	{ "one that has taken a state is told again", one_that_has_taken_a_state_is_told_again },
	{ "a new session is another state", a_new_session_is_another_state },
	{ "one that takes takes the state of the lowest rank",
	  one_that_takes_takes_that_of_the_lowest },
	{ "a difference at the end of the job is noted", a_difference_at_the_end_is_noted },
	{ "a difference at the end of the job is noted also where it was known",
	  a_difference_at_the_end_is_noted_also_where_it_was_known },
	{ "sections of a tensor are not compared with each other",
	  sections_of_a_tensor_are_not_compared_with_each_other },
	{ "a rank cannot push out what others have said",
	  a_rank_cannot_push_out_what_others_have_said },
	{ "all of many that differ are counted", more_states_than_are_kept_are_told_too },
	{ "most ranks are right also among more states than are kept",
	  most_ranks_are_right_also_among_more_states_than_are_kept },
	{ "what cannot be compared breaks the protocol",
	  what_cannot_be_compared_breaks_the_protocol },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("divergence", cases);
}
