/* SPDX-License-Identifier: MIT */
/* Events and decisions on their way between servers: what comes back is what went, and what no
 * server can have said is refused. */
#include <errno.h>
#include <string.h>

#include "server/cluster/entry.h"
#include "tests/ut.h"

static const struct mst_entry_limits limits = { .workers = 5, .slots = 2, .buffers = 4 };
static const struct mst_identity who = { 3, 7 };
static struct mst_peer_entry entry;
static struct mst_ledger_event event;
static struct mst_order order;

static bool there_and_back(const struct mst_ledger_event *ev)
{
	mst_entry_of_event(ev, &entry);
	memset(&event, 0xff, sizeof(event));
	return mst_entry_event(&entry, &limits, 2, &event) && event.kind == ev->kind &&
	       event.who.rank == who.rank && event.who.incarnation == who.incarnation;
}

static void a_report_comes_back_with_its_server(void)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LINKED, .who = who };

	CU_ASSERT(there_and_back(&ev));
	CU_ASSERT_EQUAL(event.shard, 2);
	ev = (struct mst_ledger_event){ .kind = MST_EV_FULL, .who = who };
	ev.full.header = (struct mst_lane_header){
		9, 8, 7, 0.5, 0.25, 3.5, { 4, 3 }, 1, 2, 17, 0.5f, 0, MST_HEADER_SIZE, { 0 }
	};
	CU_ASSERT(there_and_back(&ev));
	CU_ASSERT_EQUAL(event.full.shard, 2);
	CU_ASSERT_EQUAL(memcmp(&event.full.header, &ev.full.header, sizeof(ev.full.header)), 0);
	ev = (struct mst_ledger_event){ .kind = MST_EV_ABANDONED, .who = who };
	ev.abandoned.slot = 1;
	ev.abandoned.epoch = 1234567890123;
	CU_ASSERT(there_and_back(&ev));
	CU_ASSERT(event.abandoned.shard == 2 && event.abandoned.slot == 1 &&
		  event.abandoned.epoch == 1234567890123);
	ev = (struct mst_ledger_event){ .kind = MST_EV_ANSWERED, .who = who };
	ev.answered.number = 42;
	CU_ASSERT(there_and_back(&ev));
	CU_ASSERT(event.answered.shard == 2 && event.answered.number == 42);
	ev = (struct mst_ledger_event){ .kind = MST_EV_LOST, .who = who, .error = -EPROTO };
	CU_ASSERT(there_and_back(&ev));
	CU_ASSERT_EQUAL(event.error, -EPROTO);
	ev = (struct mst_ledger_event){ .kind = MST_EV_UNLINKED, .who = who };
	CU_ASSERT(there_and_back(&ev));
	CU_ASSERT_EQUAL(event.shard, 2);
}

static bool refused_event(uint32_t kind, uint32_t rank, uint32_t incarnation, int32_t code)
{
	entry = (struct mst_peer_entry){
		.kind = kind, .rank = rank, .incarnation = incarnation, .code = code
	};
	return !mst_entry_event(&entry, &limits, 1, &event);
}

static void a_report_that_cannot_be_is_refused(void)
{
	CU_ASSERT(!refused_event(MST_PEER_LINKED, 4, 1, 0));
	CU_ASSERT(refused_event(MST_PEER_LINKED, 5, 1, 0));
	CU_ASSERT(refused_event(MST_PEER_LINKED, 4, 0, 0));
	CU_ASSERT(refused_event(0, 4, 1, 0));
	CU_ASSERT(refused_event(MST_PEER_START, 4, 1, 0)); /* a decision */
	CU_ASSERT(refused_event(MST_PEER_LOST, 4, 1, 0));  /* for no reason */
	CU_ASSERT(!refused_event(MST_PEER_LOST, 4, 1, -EPIPE));
	CU_ASSERT(refused_event(MST_PEER_FULL, 4, 1, 0)); /* a header without its members */
	entry.header.size = MST_HEADER_SIZE_MIN - 1;
	CU_ASSERT(!mst_entry_event(&entry, &limits, 1, &event));
	entry.header.size = MST_HEADER_SIZE_MIN;
	CU_ASSERT(mst_entry_event(&entry, &limits, 1, &event));
}

static const struct mst_record record = { .divisor = 3,
					  .scalar = { 0.125f, 2, 3, 4 },
					  .average = 0.5f };

static bool goes(const struct mst_decision *d)
{
	return mst_entry_of_decision(d, &record, &entry) &&
	       mst_entry_order(&entry, &limits, &order) && order.decision.kind == d->kind;
}

static void an_order_comes_with_its_figures(void)
{
	struct mst_decision d = { .kind = MST_DO_COUNT, .who = who };

	d.count.slot = 1;
	d.count.coefficient = 0.75f;
	d.count.repeats = true;
	CU_ASSERT(goes(&d));
	CU_ASSERT(order.decision.count.repeats && order.decision.who.incarnation == 7 &&
		  order.decision.count.slot == 1 && order.decision.count.coefficient == 0.75f);
	d = (struct mst_decision){ .kind = MST_DO_REGRANT, .who = who };
	d.grant.slot = 1;
	d.grant.epoch = 99;
	CU_ASSERT(goes(&d));
	CU_ASSERT(order.decision.grant.slot == 1 && order.decision.grant.epoch == 99);
	d = (struct mst_decision){ .kind = MST_DO_COMMIT };
	d.commit.version = 12;
	d.commit.buffer = 3;
	d.commit.read = MST_BUFFER_NONE;
	CU_ASSERT(goes(&d));
	CU_ASSERT_EQUAL(order.decision.commit.read, MST_BUFFER_NONE);
	d.commit.read = 1000; /* more than there are buffers */
	CU_ASSERT_FALSE(goes(&d));
	d.commit.read = 2;
	CU_ASSERT(goes(&d));
	CU_ASSERT_EQUAL(order.decision.commit.read, 2);
	CU_ASSERT(order.decision.commit.version == 12 && order.decision.commit.buffer == 3 &&
		  order.record.divisor == 3);
	CU_ASSERT(memcmp(order.record.scalar, record.scalar, sizeof(record.scalar)) == 0);
	CU_ASSERT_EQUAL(order.record.average, 0.5f);
	d.kind = MST_DO_START;
	CU_ASSERT(goes(&d));
	CU_ASSERT_EQUAL(order.decision.commit.buffer, 3);
}

static void an_answer_and_an_end_come_too(void)
{
	struct mst_decision d = { .kind = MST_DO_RELEASE, .who = who };

	d.answer.number = 5;
	d.answer.version = 6;
	d.answer.newest = 8;
	d.answer.buffer = 2;
	d.answer.where = MST_WHERE_COPIED;
	CU_ASSERT(goes(&d));
	CU_ASSERT_EQUAL(memcmp(&order.decision.answer, &d.answer, sizeof(d.answer)), 0);
	for (int why = MST_EVICT_LEFT; why <= MST_EVICT_OUTNUMBERED; why++) {
		d = (struct mst_decision){ .kind = MST_DO_EVICT,
					   .who = who,
					   .evict = (enum mst_evict_why)why };
		CU_ASSERT(goes(&d));
		CU_ASSERT_EQUAL(order.decision.evict, (enum mst_evict_why)why);
	}
	d = (struct mst_decision){ .kind = MST_DO_FINISH };
	d.finish.why = MST_FINISH_SERVER;
	d.finish.version = 77;
	CU_ASSERT(goes(&d));
	CU_ASSERT(order.decision.finish.why == MST_FINISH_SERVER &&
		  order.decision.finish.version == 77);
	d = (struct mst_decision){ .kind = MST_DO_APPLY };
	d.apply.version = 12;
	d.apply.factor = 0.25f;
	d.apply.trust[MST_SERVERS_MAX - 2] = 3;
	d.apply.scalar[MST_SCALARS_MAX - 1] = 5;
	CU_ASSERT(goes(&d));
	CU_ASSERT_EQUAL(order.decision.apply.scalar[MST_SCALARS_MAX - 1], 5);
	CU_ASSERT(order.decision.apply.version == 12 && order.decision.apply.factor == 0.25f);
	CU_ASSERT_EQUAL(memcmp(order.decision.apply.trust, d.apply.trust, sizeof(d.apply.trust)),
			0);
	d = (struct mst_decision){ .kind = MST_DO_SETTLE };
	CU_ASSERT(goes(&d));
	d = (struct mst_decision){ .kind = MST_DO_LEND, .commit.version = 7 };
	CU_ASSERT(goes(&d));
	CU_ASSERT_EQUAL(order.decision.commit.version, 7);
}

static void what_is_found_in_a_sum_is_reported(void)
{
	const struct mst_ledger_event settled = { .kind = MST_EV_SETTLED };
	struct mst_ledger_event ev = { .kind = MST_EV_SPOILT }, got;

	ev.spoilt = (struct mst_spoilt){ .version = 9,
					 .element = UINT64_C(1) << 40,
					 .kind = MST_SPOIL_SUM,
					 .rank = 2,
					 .rank_end = 4 };
	mst_entry_of_event(&ev, &entry);
	CU_ASSERT(mst_entry_event(&entry, &limits, 3, &got));
	CU_ASSERT(got.kind == MST_EV_SPOILT && got.spoilt.version == 9 &&
		  got.spoilt.element == UINT64_C(1) << 40 && got.spoilt.kind == MST_SPOIL_SUM &&
		  got.spoilt.rank == 2 && got.spoilt.rank_end == 4);
	entry.spoilt.kind = MST_SPOIL_STEP + 1;
	CU_ASSERT(!mst_entry_event(&entry, &limits, 3, &got));
	mst_entry_of_event(&ev, &entry);
	entry.spoilt.rank = 5;
	CU_ASSERT(!mst_entry_event(&entry, &limits, 3, &got));
	mst_entry_of_event(&ev, &entry);
	entry.spoilt.rank_end = 6;
	CU_ASSERT(!mst_entry_event(&entry, &limits, 3, &got));
	mst_entry_of_event(&settled, &entry);
	CU_ASSERT(mst_entry_event(&entry, &limits, 3, &got));
	CU_ASSERT(got.kind == MST_EV_SETTLED && got.shard == 3);
}

static void what_the_leader_alone_does_stays_there(void)
{
	static const enum mst_decision_kind own[] = { MST_DO_ADMIT,      MST_DO_REFUSE,
						      MST_DO_SEND_STATE, MST_DO_VERDICT,
						      MST_DO_ADVISE,     MST_DO_POLICY };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		struct mst_decision d = { .kind = own[i], .who = who };
		CU_ASSERT(!goes(&d));
	}
}

/* A good entry of that kind with one figure past its limit. */
#define REFUSED(of, field, value)                                                                  \
	do {                                                                                       \
		entry = (struct mst_peer_entry){ .kind = (of), .rank = 4, .incarnation = 1 };      \
		CU_ASSERT(mst_entry_order(&entry, &limits, &order));                               \
		entry.field = (value);                                                             \
		CU_ASSERT(!mst_entry_order(&entry, &limits, &order));                              \
	} while (0)

static void an_order_that_cannot_be_is_refused(void)
{
	REFUSED(MST_PEER_START, commit.buffer, 4);
	REFUSED(MST_PEER_COMMIT, commit.buffer, 4);
	REFUSED(MST_PEER_COUNT, slot, 2);
	REFUSED(MST_PEER_COUNT, rank, 5);
	REFUSED(MST_PEER_COUNT, incarnation, 0);
	REFUSED(MST_PEER_REGRANT, slot, 2);
	REFUSED(MST_PEER_RELEASE, answer.where, MST_WHERE_NOWHERE + 1);
	REFUSED(MST_PEER_RELEASE, answer.buffer, 4);
	REFUSED(MST_PEER_RELEASE, rank, 5);
	REFUSED(MST_PEER_EVICT, code, MST_EVICT_OUTNUMBERED + 1);
	REFUSED(MST_PEER_EVICT, code, -1);
	REFUSED(MST_PEER_EVICT, rank, 5);
	REFUSED(MST_PEER_FINISH, code, MST_FINISH_SUPERSEDED + 1);
	REFUSED(MST_PEER_FINISH, code, -1);
	REFUSED(MST_PEER_FINISH, kind, MST_PEER_LOST); /* a report */
	REFUSED(MST_PEER_SETTLE, kind, MST_PEER_REDUCED);
	REFUSED(MST_PEER_FINISH, kind, MST_PEER_KINDS);
}

static CU_TestInfo cases[] = {
	{ "a report comes back with its server", a_report_comes_back_with_its_server },
	{ "a report that cannot be is refused", a_report_that_cannot_be_is_refused },
	{ "an order comes with its figures", an_order_comes_with_its_figures },
	{ "an answer and an end come too", an_answer_and_an_end_come_too },
	{ "what is found in a sum is reported", what_is_found_in_a_sum_is_reported },
	{ "what the leader alone does stays there", what_the_leader_alone_does_stays_there },
	{ "an order that cannot be is refused", an_order_that_cannot_be_is_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("entry", cases);
}
