/* SPDX-License-Identifier: MIT */
/* What the control side is told of the ledger's decisions and of what it refuses. */
#include <math.h>

#include "common/base/clock.h"
#include "server/core/policy/rule.h"
#include "server/data/decider.h"
#include "tests/ut.h"

#define WORKERS 2u
#define NOTES 64

static struct mst_decider *decider;
static struct mst_notice note[NOTES];
static int note_count;
static uint64_t seq[WORKERS];
static uint64_t version; /* that gradients are computed on */

static void take_note(void *ctx, const struct mst_notice *notice)
{
	(void)ctx;
	CU_ASSERT_FATAL(note_count < NOTES);
	note[note_count++] = *notice;
}

static int noted(enum mst_notice_kind kind)
{
	int count = 0;

	for (int i = 0; i < note_count; i++)
		count += note[i].kind == kind;
	return count;
}

static void happen(const struct mst_ledger_event *ev)
{
	struct mst_orders orders;

	decider->ops->handle(decider, ev, MST_SECOND);
	while (decider->ops->next(decider, &orders, MST_SECOND))
		decider->ops->done(decider, &orders, MST_SECOND);
}

static void tell(uint32_t rank, enum mst_ledger_event_kind kind)
{
	happen(&(struct mst_ledger_event){ .kind = kind, .who = { rank, 1 } });
}

static struct mst_claimed claimed; /* what workers bring from the generation before */

static void enter(uint32_t rank)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };

	ev.join.rank = (int32_t)rank;
	ev.join.claimed = claimed;
	happen(&ev);
	tell(rank, MST_EV_LINKED);
	tell(rank, MST_EV_START);
}

/* Norms are measured, and a job of two workers gets its first version. */
static void begin(enum mst_loss on_loss)
{
	struct mst_ledger_cfg cfg = { .workers = WORKERS,
				      .shards = 1,
				      .slots = 1,
				      .buffers = 4,
				      .history = 2,
				      .owner = MUSTER_WORKERS_OWN,
				      .lease_ns = MST_SECOND,
				      .join_until_ns = MST_NEVER,
				      .norm_limit = 100,
				      .generation_id = claimed.number > 0 ? 7 : 0 };
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_rule_parse("bsp", &cfg.rule, &why), 0);
	cfg.rule.on_loss = on_loss;
	cfg.rule.min_workers = 1;
	CU_ASSERT_EQUAL_FATAL(mst_local_new(&cfg, NULL, &decider), 0);
	decider->note = take_note;
	note_count = 0;
	version = 0;
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		seq[rank] = 0;
		enter(rank);
	}
	CU_ASSERT_EQUAL_FATAL(noted(MST_NOTE_STARTED), 1);
}

static void end(void)
{
	decider->ops->free(decider);
}

/* A gradient whose squares have that sum. */
static void push(uint32_t rank, double squares)
{
	struct mst_ledger_event ev = { .kind = MST_EV_FULL, .who = { rank, 1 } };

	seq[rank]++;
	ev.full.header = (struct mst_lane_header){
		.seq = seq[rank], .epoch = seq[rank], .tag = version, .weight = 1
	};
	ev.full.squares = squares;
	happen(&ev);
}

static void all_refused(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		push((uint32_t)i % WORKERS, (double)INFINITY);
}

static void it_is_told_that_all_gradients_are_refused_and_ever_less_often(void)
{
	begin(MST_LOSS_SHRINK);
	all_refused(5);
	CU_ASSERT_EQUAL(noted(MST_NOTE_ALL_REFUSED), 0);
	all_refused(1);
	CU_ASSERT_EQUAL(noted(MST_NOTE_ALL_REFUSED), 1);
	CU_ASSERT_EQUAL(note[note_count - 1].refused.count, 6);
	CU_ASSERT_EQUAL(note[note_count - 1].refused.version, 1);
	all_refused(6 + 12 + 24 + 47);
	CU_ASSERT_EQUAL(noted(MST_NOTE_ALL_REFUSED), 4);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		push(rank, 1);
	version = 1;
	all_refused(6);
	CU_ASSERT_EQUAL(noted(MST_NOTE_ALL_REFUSED), 5);
	end();
}

static void one_that_is_counted_begins_the_row_anew(void)
{
	begin(MST_LOSS_SHRINK);
	all_refused(5);
	push(0, 1);
	for (int i = 0; i < 5; i++)
		push(1, (double)INFINITY);
	CU_ASSERT_EQUAL(noted(MST_NOTE_ALL_REFUSED), 0);
	push(1, (double)INFINITY);
	CU_ASSERT_EQUAL(noted(MST_NOTE_ALL_REFUSED), 1);
	end();
}

static void it_is_told_whether_a_session_has_been_ended_or_may_not_be(void)
{
	begin(MST_LOSS_SHRINK);
	tell(1, MST_EV_EVICT);
	CU_ASSERT(noted(MST_NOTE_EVICTED) == 1 && noted(MST_NOTE_EVICT_REFUSED) == 0);
	end();

	begin(MST_LOSS_FAIL);
	tell(1, MST_EV_EVICT);
	CU_ASSERT(noted(MST_NOTE_EVICTED) == 0 && noted(MST_NOTE_EVICT_REFUSED) == 1);
	CU_ASSERT(note[note_count - 1].who.rank == 1 && noted(MST_NOTE_FINISHED) == 0);
	end();
}

static void samples_of_earlier_generations_are_told(void)
{
	struct mst_status_rank rank[WORKERS];
	struct mst_snapshot snapshot = { .rank = rank };
	struct mst_request request = { .kind = MST_REQ_SNAPSHOT, .snapshot = &snapshot };

	claimed = (struct mst_claimed){
		.number = 1, .version = 40, .made = 11, .made_before = 11, .samples = 4000
	};
	begin(MST_LOSS_SHRINK);
	claimed = (struct mst_claimed){ 0 };
	decider->ops->request(decider, &request, MST_SECOND);
	CU_ASSERT_EQUAL(snapshot.status.version, 40);
	CU_ASSERT_EQUAL(snapshot.status.samples, 4000);
	version = 40;
	for (uint32_t of = 0; of < WORKERS; of++)
		push(of, 1);
	decider->ops->request(decider, &request, MST_SECOND);
	CU_ASSERT_EQUAL(snapshot.status.version, 41);
	CU_ASSERT_EQUAL(snapshot.status.samples, 4000 + WORKERS);
	end();
}

static CU_TestInfo cases[] = {
	{ "it is told that all gradients are refused, and ever less often",
	  it_is_told_that_all_gradients_are_refused_and_ever_less_often },
	{ "one that is counted begins the row anew", one_that_is_counted_begins_the_row_anew },
	{ "it is told whether a session has been ended, or may not be",
	  it_is_told_whether_a_session_has_been_ended_or_may_not_be },
	{ "samples of earlier generations are told", samples_of_earlier_generations_are_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("local_decider", cases);
}
