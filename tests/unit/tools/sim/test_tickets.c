/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/ut.h"
#include "tools/sim/tickets.h"

#define WORKERS 3u

static struct mst_sim_tickets *d;
static uint64_t asks[WORKERS], seq[WORKERS];
static uint32_t incarnation[WORKERS];
/* What the last event has decided, a response each, and of RELEASE rank and version. */
static char said[64];
static enum mst_finish_why ended_why;

static void note(const struct mst_decision *one)
{
	size_t used = strlen(said), left = sizeof(said) - used;

	if (one->kind == MST_DO_ADMIT)
		incarnation[one->who.rank] = one->who.incarnation;
	if (one->kind == MST_DO_RELEASE)
		snprintf(said + used, left, "%u@%u ", one->who.rank, (unsigned)one->answer.version);
	else if (one->kind == MST_DO_VERDICT)
		snprintf(said + used, left,
			 one->verdict.verdict == MUSTER_COUNTED ? "counted " : "late ");
	else if (one->kind == MST_DO_COMMIT)
		snprintf(said + used, left, "commit%u ", (unsigned)one->commit.version);
	else if (one->kind == MST_DO_FINISH)
		snprintf(said + used, left, "finish ");
	else if (one->kind == MST_DO_REFUSE)
		snprintf(said + used, left, "refuse ");
	if (one->kind == MST_DO_FINISH)
		ended_why = one->finish.why;
}

static void handle(struct mst_ledger_event ev)
{
	struct mst_decision one;

	said[0] = '\0';
	mst_sim_tickets_handle(d, &ev);
	while (mst_sim_tickets_next(d, &one))
		note(&one);
}

static void of(enum mst_ledger_event_kind kind, uint32_t rank)
{
	handle((struct mst_ledger_event){ .kind = kind, .who = { rank, incarnation[rank] } });
}

static void join(uint32_t rank)
{
	handle((struct mst_ledger_event){ .kind = MST_EV_JOIN, .join.rank = (int32_t)rank });
	asks[rank] = 1;
	seq[rank] = 0;
}

static void push(uint32_t rank, uint64_t tag)
{
	struct mst_ledger_event ev = { .kind = MST_EV_FULL, .who = { rank, incarnation[rank] } };

	ev.full.header = (struct mst_lane_header){ .seq = ++seq[rank],
						   .tag = tag,
						   .ask = { ++asks[rank], tag } };
	handle(ev);
}

static void open_job(uint32_t quorum, uint64_t commits)
{
	struct mst_ledger_cfg cfg = { .workers = WORKERS, .commits_max = commits };

	CU_ASSERT_FATAL(mst_sim_tickets_new(&cfg, quorum, &d) == 0);
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		join(rank);
		of(MST_EV_START, rank);
	}
}

static void all_begin_when_all_have_started(void)
{
	open_job(2, 0);
	CU_ASSERT_STRING_EQUAL(said, "0@0 1@0 2@0 ");
	mst_sim_tickets_free(d);
}

/* Three tickets of step 1: rank 0 waits for one, and rank 1 takes two. */
static void whoever_comes_first_takes_a_ticket(void)
{
	open_job(2, 0);
	push(0, 0);
	CU_ASSERT_STRING_EQUAL(said, "counted ");
	push(1, 0);
	CU_ASSERT_STRING_EQUAL(said, "counted commit1 0@1 1@1 ");
	push(1, 1);
	CU_ASSERT_STRING_EQUAL(said, "counted 1@1 ");
	mst_sim_tickets_free(d);
}

/* Rank 2 has computed on step 0, which is over; its ticket is of step 1, that is over, too. */
static void what_is_older_than_the_step_is_dropped(void)
{
	open_job(2, 0);
	push(0, 0);
	push(1, 0);
	push(2, 0);
	CU_ASSERT_STRING_EQUAL(said, "late 2@1 ");
	push(0, 1);
	CU_ASSERT_STRING_EQUAL(said, "counted ");
	push(1, 1);
	CU_ASSERT_STRING_EQUAL(said, "counted commit2 0@2 1@2 ");
	push(2, 1);
	CU_ASSERT_STRING_EQUAL(said, "late 2@2 ");
	mst_sim_tickets_free(d);
}

/* Old tickets stand before new ones. */
static void a_ticket_of_an_earlier_step_comes_first(void)
{
	open_job(1, 0);
	push(0, 0);
	CU_ASSERT_STRING_EQUAL(said, "counted commit1 0@1 ");
	push(0, 1);
	CU_ASSERT_STRING_EQUAL(said, "counted commit2 0@1 ");
	push(0, 1);
	CU_ASSERT_STRING_EQUAL(said, "late 0@1 ");
	push(0, 1);
	CU_ASSERT_STRING_EQUAL(said, "late 0@2 ");
	mst_sim_tickets_free(d);
}

static void the_dead_take_no_tickets(void)
{
	open_job(2, 0);
	push(0, 0);
	of(MST_EV_LOST, 0);
	push(1, 0);
	CU_ASSERT_STRING_EQUAL(said, "counted commit1 1@1 ");
	push(0, 0); /* of the session that is over */
	CU_ASSERT_STRING_EQUAL(said, "");
	join(1);
	CU_ASSERT_STRING_EQUAL(said, "refuse ");
	join(0);
	of(MST_EV_START, 0);
	CU_ASSERT_STRING_EQUAL(said, "0@1 ");
	mst_sim_tickets_free(d);
}

static void the_job_ends_at_its_commits(void)
{
	open_job(1, 2);
	push(0, 0);
	push(0, 1);
	CU_ASSERT_STRING_EQUAL(said, "counted commit2 finish ");
	CU_ASSERT_EQUAL(ended_why, MST_FINISH_COMMITS);
	push(1, 0);
	CU_ASSERT_STRING_EQUAL(said, "");
	mst_sim_tickets_free(d);
}

static CU_TestInfo cases[] = {
	{ "all begin when all have started", all_begin_when_all_have_started },
	{ "whoever comes first takes a ticket", whoever_comes_first_takes_a_ticket },
	{ "what is older than the step is dropped", what_is_older_than_the_step_is_dropped },
	{ "a ticket of an earlier step comes first", a_ticket_of_an_earlier_step_comes_first },
	{ "the dead take no tickets", the_dead_take_no_tickets },
	{ "the job ends at its commits", the_job_ends_at_its_commits },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_tickets", cases);
}
