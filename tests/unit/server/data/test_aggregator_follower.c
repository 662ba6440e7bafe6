/* SPDX-License-Identifier: MIT */
/* What a server that is not the leader keeps to itself; and how little of one worker can be under
 * way at a time, wherever what it reports has to wait. */
#include "tests/unit/server/data/aggregator_case.h"

#include <errno.h>
#include <string.h>

#include "tests/ut.h"

static void begin_follower(bool is_follower)
{
	agg_follower = is_follower;
	agg_begin(true);
}

static void work_off(void)
{
	while (mst_aggregator_work(agg_aggregator))
		;
}

static void a_followers_answer_has_no_record(void)
{
	for (int is_follower = 0; is_follower < 2; is_follower++) {
		begin_follower(is_follower);
		agg_count(0);
		agg_commit();
		agg_release(0, 2);
		work_off();
		const struct mst_put *last = &agg_note[agg_note_count - 1].put;
		size_t to = last->offset + last->bytes;
		CU_ASSERT_EQUAL(to == agg_cfg.layout.down_record, is_follower);
		const struct mst_lane_answer *a = agg_written_at(agg_note_count - 1,
								 agg_cfg.layout.down_answer);
		CU_ASSERT(a->number == 1 && a->version == 3 && a->where == MST_WHERE_COPIED);
		agg_end();
	}
}

static void the_jobs_end_is_the_leaders_to_tell(void)
{
	for (int is_follower = 0; is_follower < 2; is_follower++) {
		begin_follower(is_follower);
		agg_note_count = 0;
		agg_fail();
		CU_ASSERT_EQUAL(agg_note_count == 0, is_follower);
		agg_note_count = 0;
		agg_evict(0); /* the end of its own session is told; and why, in the job's words */
		CU_ASSERT_EQUAL_FATAL(agg_note_count, 1);
		const struct mst_lane_session *word = agg_written_at(
			0, agg_cfg.layout.down_session[MST_SESSION_OF_WORKER]);
		CU_ASSERT(word->state == MST_SESSION_ENDED && word->error == -EHOSTDOWN);
		agg_end();
	}
}

static void go_on(struct mst_aggregator_cfg *cfg)
{
	cfg->goes_on = true;
}

/* All servers of a job use the same words, or a worker would believe whichever comes first. */
static void workers_of_a_lost_server_may_come_back(void)
{
	struct mst_decision lost = { .kind = MST_DO_FINISH, .finish.why = MST_FINISH_SERVER };

	for (int is_follower = 0; is_follower < 2; is_follower++) {
		agg_adjust = go_on;
		begin_follower(is_follower);
		agg_decide(&lost);
		agg_note_count = 0;
		agg_evict(0);
		const struct mst_lane_session *word = agg_written_at(
			0, agg_cfg.layout.down_session[MST_SESSION_OF_WORKER]);
		CU_ASSERT(word->state == MST_SESSION_ENDED && word->error == MST_AGAIN);
		agg_end();
	}
	agg_adjust = go_on;
	begin_follower(true);
	agg_note_count = 0;
	agg_evict(0);
	const struct mst_lane_session *word = agg_written_at(
		0, agg_cfg.layout.down_session[MST_SESSION_OF_WORKER]);
	CU_ASSERT(word->state == MST_SESSION_ENDED && word->error == MST_AGAIN);
	agg_end();
}

static void asks_alone_go_to_the_leader(void)
{
	begin_follower(true);
	agg_ask(0);
	CU_ASSERT_EQUAL_FATAL(agg_event_count, 1);
	CU_ASSERT(agg_said(0, MST_EV_LOST, 0) && agg_event[0].error == -EPROTO);
	agg_evict(0);
	agg_end();
}

static void a_second_ask_before_the_first_is_answered_ends_the_session(void)
{
	begin_follower(false);
	agg_ask(0);
	CU_ASSERT(agg_said(0, MST_EV_ASK, 0));
	agg_ask(0);
	CU_ASSERT(agg_said(1, MST_EV_LOST, 0) && agg_event[1].error == -EPROTO);
	agg_ask(1);
	agg_release(1, 2);
	work_off();
	agg_event_count = 0;
	agg_ask(1);
	CU_ASSERT(agg_said(0, MST_EV_ASK, 1));
	agg_evict(0);
	agg_end();
}

static void a_grant_is_given_up_once(void)
{
	begin_follower(false);
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	CU_ASSERT(agg_said(0, MST_EV_ABANDONED, 0));
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	CU_ASSERT(agg_said(1, MST_EV_LOST, 0) && agg_event[1].error == -EPROTO);
	agg_evict(0);
	agg_end();
}

static void a_grant_given_up_is_granted_anew(void)
{
	begin_follower(true);
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	agg_regrant(0);
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 1);
	CU_ASSERT_EQUAL(agg_note[0].put.imm, mst_imm(MST_IMM_GRANT, 0, 2));
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 0, 2));
	CU_ASSERT(agg_said(1, MST_EV_ABANDONED, 0));
	agg_end();
}

/* The immediate's bits are all that tells an abandon of this grant from one of the grant before. */
static void an_immediate_of_another_grant_ends_the_session(void)
{
	struct mst_lane_header header = {
		.seq = 1, .epoch = 2, .weight = 1, .size = MST_HEADER_SIZE
	};

	begin_follower(true);
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	agg_regrant(0);
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	CU_ASSERT(agg_said(1, MST_EV_LOST, 0) && agg_event[1].error == -EPROTO);
	agg_evict(0);
	agg_end();

	begin_follower(true);
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	agg_regrant(0);
	memcpy((char *)agg_link[0].inbound + agg_cfg.layout.up_header[0], &header, sizeof(header));
	agg_arrive(0, mst_imm(MST_IMM_HEADER, 0, 3));
	CU_ASSERT(agg_said(1, MST_EV_LOST, 0) && agg_event[1].error == -EPROTO);
	agg_evict(0);
	agg_end();
}

/* What the header itself says is another slot's, or of another grant with the same low bits; or it
 * is shorter than any. */
static void a_header_of_another_grant_ends_the_session(void)
{
	static const struct mst_lane_header wrong[] = {
		{ .seq = 1, .epoch = 1, .weight = 1, .slot = 1, .size = MST_HEADER_SIZE },
		{ .seq = 1,
		  .epoch = 1 + MST_IMM_EPOCH_MASK + UINT64_C(1),
		  .weight = 1,
		  .size = MST_HEADER_SIZE },
		/* No release fills so little. */
		{ .seq = 1, .epoch = 1, .weight = 1, .size = MST_HEADER_SIZE_MIN - 1 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin_follower(true);
		memcpy((char *)agg_link[0].inbound + agg_cfg.layout.up_header[0], &wrong[i],
		       sizeof(wrong[i]));
		agg_arrive(0, mst_imm(MST_IMM_HEADER, 0, 1));
		CU_ASSERT_EQUAL(agg_event_count, 1);
		CU_ASSERT(agg_said(0, MST_EV_LOST, 0) && agg_event[0].error == -EPROTO);
		agg_evict(0);
		agg_end();
	}
}

static void a_header_of_a_later_release_is_taken(void)
{
	struct mst_lane_header header = {
		.seq = 1, .epoch = 1, .weight = 1, .size = sizeof(header)
	};

	memset(header.reserved, 0xff, sizeof(header.reserved));
	begin_follower(true);
	memcpy((char *)agg_link[0].inbound + agg_cfg.layout.up_header[0], &header, sizeof(header));
	agg_arrive(0, mst_imm(MST_IMM_HEADER, 0, 1));
	CU_ASSERT_FATAL(agg_said(0, MST_EV_FULL, 0));
	CU_ASSERT_EQUAL(agg_event[0].full.header.size, MST_HEADER_SIZE);
	CU_ASSERT_EQUAL(agg_event[0].full.header.reserved[0], 0);
	agg_end();
}

static void push_asking(uint32_t slot)
{
	struct mst_lane_header header = { .seq = slot + 1,
					  .epoch = 1,
					  .weight = 1,
					  .slot = (uint16_t)slot,
					  .flags = MST_HEADER_ASK,
					  .size = MST_HEADER_SIZE };

	memcpy((char *)agg_link[0].inbound + agg_cfg.layout.up_header[slot], &header,
	       sizeof(header));
	agg_arrive(0, mst_imm(MST_IMM_HEADER, slot, 1));
}

static void a_header_is_no_second_ask(void)
{
	begin_follower(true);
	push_asking(0);
	CU_ASSERT(agg_said(0, MST_EV_FULL, 0));
	push_asking(1);
	CU_ASSERT_EQUAL(agg_event_count, 2);
	CU_ASSERT(agg_said(1, MST_EV_LOST, 0) && agg_event[1].error == -EPROTO);
	agg_evict(0);
	agg_end();
}

static void an_immediate_of_no_slot_ends_the_session(void)
{
	begin_follower(false);
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, agg_cfg.slots, 0)); /* memory there is zero */
	CU_ASSERT(agg_said(0, MST_EV_LOST, 0) && agg_event[0].error == -EPROTO);
	agg_arrive(1, mst_imm(MST_IMM_HEADER, MST_SLOTS_MAX, 1));
	CU_ASSERT(agg_said(1, MST_EV_LOST, 1) && agg_event[1].error == -EPROTO);
	agg_evict(0);
	agg_evict(1);
	agg_end();
}

/* Its worker asked the leader without having heard from here. */
static void an_answer_behind_another_ends_the_session(void)
{
	begin_follower(true);
	agg_release(0, 2);
	agg_event_count = 0;
	agg_release(0, 2);
	CU_ASSERT(agg_said(0, MST_EV_LOST, 0) && agg_event[0].error == -EPROTO);
	agg_evict(0);
	work_off();
	agg_end();
}

/* Rank 0's slot 0 is full. */
static void push(void)
{
	struct mst_lane_header header = {
		.seq = 1, .epoch = 1, .weight = 1, .size = MST_HEADER_SIZE
	};

	memcpy((char *)agg_link[0].inbound + agg_cfg.layout.up_header[0], &header, sizeof(header));
	agg_arrive(0, mst_imm(MST_IMM_HEADER, 0, 1));
}

static void count_it(void)
{
	push();
	agg_decide(&(struct mst_decision){ .kind = MST_DO_COUNT, .who = { 0, 1 } });
}

static void start_in(uint32_t buffer)
{
	agg_decide(&(struct mst_decision){ .kind = MST_DO_START,
					   .commit = { .version = 2, .buffer = buffer } });
}

/* Whatever a leader orders that is none, a follower must be able to tell before it does it. */
static bool validates(struct mst_decision d)
{
	d.who.incarnation = d.who.incarnation != 0 ? d.who.incarnation : 1;
	return mst_aggregator_validates(agg_aggregator, &d);
}

static void nothing_is_counted_that_was_not_reported(void)
{
	struct mst_decision one = { .kind = MST_DO_COUNT };

	begin_follower(true);
	CU_ASSERT_FALSE(validates(one));
	push();
	CU_ASSERT(validates(one));
	one.who.incarnation = 2;
	CU_ASSERT_FALSE(validates(one));
	one.who.incarnation = 1;
	agg_decide(&(struct mst_decision){ .kind = MST_DO_COUNT, .who = { 0, 1 } });
	CU_ASSERT_FALSE(validates(one)); /* once */
	agg_commit();
	work_off();
	agg_end();
}

static void a_commit_is_of_something_and_into_another_buffer(void)
{
	struct mst_decision it = { .kind = MST_DO_COMMIT, .commit = { .version = 3, .buffer = 2 } };

	begin_follower(true);
	start_in(1);
	CU_ASSERT_FALSE(validates(it));
	count_it();
	CU_ASSERT(validates(it));
	it.commit.buffer = 1;
	CU_ASSERT_FALSE(validates(it));
	it.commit.buffer = 2;
	it.commit.version = 4;
	CU_ASSERT_FALSE(validates(it)); /* one is left out */
	it.commit.version = 2;
	CU_ASSERT_FALSE(validates(it)); /* it is there */
	it.commit.version = 3;
	agg_commit();
	CU_ASSERT_FALSE(validates(it)); /* nothing is left of it */
	work_off();
	agg_end();
}

static void a_slot_is_granted_anew_once_it_has_been_used(void)
{
	struct mst_decision it = { .kind = MST_DO_REGRANT, .grant = { .slot = 0, .epoch = 2 } };

	begin_follower(true);
	CU_ASSERT_FALSE(validates(it));
	push();
	CU_ASSERT(validates(it));
	it.grant.epoch = 3;
	CU_ASSERT_FALSE(validates(it));
	agg_end();
}

static void a_slot_is_granted_anew_once(void)
{
	struct mst_decision it = { .kind = MST_DO_REGRANT, .grant = { .slot = 0, .epoch = 2 } };

	begin_follower(true);
	start_in(1);
	count_it();
	CU_ASSERT(validates(it));
	agg_regrant(0); /* waits for the slot's last read */
	CU_ASSERT_FALSE(validates(it));
	CU_ASSERT_FALSE(validates((struct mst_decision){ .kind = MST_DO_COUNT }));
	agg_commit();
	work_off();
	CU_ASSERT_FALSE(validates(it));
	agg_end();
}

/* Rank 0 pushes its i-th contribution. Return: may it be counted? It is, if so. */
static bool push_once_more(uint32_t i)
{
	uint32_t slot = i % 2;
	struct mst_lane_header header = { i + 1, i / 2 + 1, .weight = 1, .slot = (uint16_t)slot,
					  .size = MST_HEADER_SIZE };
	struct mst_decision it = { .kind = MST_DO_COUNT, .who = { 0, 1 }, .count.slot = slot };

	memcpy((char *)agg_link[0].inbound + agg_cfg.layout.up_header[slot], &header,
	       sizeof(header));
	agg_arrive(0, mst_imm(MST_IMM_HEADER, slot, header.epoch));
	if (!validates(it))
		return false;
	agg_decide(&it);
	agg_decide(&(struct mst_decision){ .kind = MST_DO_REGRANT,
					   .who = { 0, 1 },
					   .grant = { .slot = slot, .epoch = header.epoch + 1 } });
	work_off();
	return true;
}

/* There is memory for so many, though a rank that contributes again uses its slots again. */
static void a_set_has_no_more_entries_than_there_is_memory_for(void)
{
	begin_follower(true);
	for (uint32_t i = 0; i < agg_cfg.entries_max; i++)
		CU_ASSERT(push_once_more(i));
	CU_ASSERT_FALSE(push_once_more(agg_cfg.entries_max));
	agg_commit();
	work_off();
	agg_end();
}

static void a_job_starts_and_ends_once(void)
{
	begin_follower(true);
	CU_ASSERT(validates((struct mst_decision){ .kind = MST_DO_START }));
	start_in(1);
	CU_ASSERT_FALSE(validates((struct mst_decision){ .kind = MST_DO_START }));
	CU_ASSERT_FALSE(validates((struct mst_decision){ .kind = MST_DO_APPLY }));
	CU_ASSERT(validates((struct mst_decision){ .kind = MST_DO_FINISH }));
	push();
	agg_fail();
	CU_ASSERT_FALSE(validates((struct mst_decision){ .kind = MST_DO_FINISH }));
	CU_ASSERT_FALSE(validates((struct mst_decision){ .kind = MST_DO_COUNT }));
	agg_end();

	begin_follower(true);
	agg_fail();
	CU_ASSERT_FALSE(validates((struct mst_decision){ .kind = MST_DO_START }));
	agg_end();
}

static void an_older_session_of_a_rank_ends_before_a_newer(void)
{
	struct mst_decision it = { .kind = MST_DO_EVICT, .who = { 0, 2 } };

	begin_follower(true);
	CU_ASSERT_FALSE(validates(it));
	it.who.incarnation = 1;
	CU_ASSERT(validates(it));
	agg_evict(0);
	it.who.incarnation = 2; /* its link may not be up yet */
	CU_ASSERT(validates(it));
	agg_end();
}

static CU_TestInfo cases[] = {
	{ "a follower's answer has no record", a_followers_answer_has_no_record },
	{ "the job's end is the leader's to tell", the_jobs_end_is_the_leaders_to_tell },
	{ "workers of a lost server may come back", workers_of_a_lost_server_may_come_back },
	{ "asks alone go to the leader", asks_alone_go_to_the_leader },
	{ "a second ask before the first is answered ends the session",
	  a_second_ask_before_the_first_is_answered_ends_the_session },
	{ "a grant is given up once", a_grant_is_given_up_once },
	{ "a grant given up is granted anew", a_grant_given_up_is_granted_anew },
	{ "an immediate of another grant ends the session",
	  an_immediate_of_another_grant_ends_the_session },
	{ "a header of a later release is taken", a_header_of_a_later_release_is_taken },
	{ "a header of another grant, or too short a one, ends the session",
	  a_header_of_another_grant_ends_the_session },
	{ "a header is no second ask", a_header_is_no_second_ask },
	{ "an immediate of no slot ends the session", an_immediate_of_no_slot_ends_the_session },
	{ "an answer after another ends the session", an_answer_behind_another_ends_the_session },
	{ "nothing is counted that was not reported", nothing_is_counted_that_was_not_reported },
	{ "a commit is of something, and into another buffer",
	  a_commit_is_of_something_and_into_another_buffer },
	{ "a slot is granted anew once it has been used",
	  a_slot_is_granted_anew_once_it_has_been_used },
	{ "a slot is granted anew once", a_slot_is_granted_anew_once },
	{ "a set has no more entries than there is memory for",
	  a_set_has_no_more_entries_than_there_is_memory_for },
	{ "a job starts and ends once", a_job_starts_and_ends_once },
	{ "an older session of a rank ends before a newer",
	  an_older_session_of_a_rank_ends_before_a_newer },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator follower", cases);
}
