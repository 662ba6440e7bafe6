/* SPDX-License-Identifier: MIT */
#include "tests/unit/client/core/session_case.h"

#include <math.h>
#include <string.h>

#include "tests/ut.h"

struct mst_worker session_worker;
struct mst_lane_header session_sent;
struct mst_lane_ask session_asked;
struct muster_outcome session_out;

static uint32_t window;

void session_begin(const struct session_kind *kind)
{
	struct mst_worker_cfg cfg = { .elems = 100,
				      .slots = kind->slots,
				      .workers = SESSION_WORKERS,
				      .buffers = SESSION_BUFFERS,
				      .servers = kind->servers > 0 ? kind->servers : 1,
				      .in_order = kind->workers_own,
				      .history = kind->history };

	window = kind->window;
	memset(&session_sent, 0, sizeof(session_sent));
	memset(&session_asked, 0, sizeof(session_asked));
	CU_ASSERT_EQUAL_FATAL(mst_worker_init(&session_worker, &cfg), 0);
}

void session_begin_working(const struct session_kind *kind)
{
	session_begin(kind);
	mst_worker_start(&session_worker);
	CU_ASSERT_EQUAL_FATAL(session_answer(0, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL_FATAL(session_take(), 0);
}

void session_end(void)
{
	mst_worker_fini(&session_worker);
}

int session_push(bool keep)
{
	struct muster_contribution c = {
		.size = sizeof(c), .weight = 32, .full = true, .keep = keep
	};
	uint64_t ticket = 0, before = session_worker.tickets.sent;
	int rc = mst_worker_push(&session_worker, &c, &session_sent, &ticket);

	if (rc >= 0)
		CU_ASSERT_EQUAL(ticket, before + 1);
	return rc;
}

void session_fill_and_push(bool keep)
{
	int slot = mst_worker_fill(&session_worker);

	CU_ASSERT_FATAL(slot >= 0);
	CU_ASSERT_EQUAL_FATAL(session_push(keep), 1);
	CU_ASSERT_EQUAL(session_sent.slot, (uint32_t)slot);
}

bool session_wait_asks(void)
{
	return mst_worker_wait_asks(&session_worker, &session_asked);
}

int session_take(void)
{
	CU_ASSERT_EQUAL_FATAL(mst_worker_misses(&session_worker), 0);
	return mst_worker_take(&session_worker, &session_out);
}

int session_grant(uint32_t slot)
{
	return mst_worker_granted(&session_worker, 0, slot, session_worker.slot[slot].epoch + 1);
}

int session_judge(uint64_t ticket, enum muster_verdict verdict, uint64_t counted_in)
{
	struct mst_lane_verdict v = { ticket, counted_in, (uint32_t)verdict, 0 };
	uint32_t slot = 0;

	while (slot < session_worker.cfg.slots - 1 && session_worker.slot[slot].ticket != ticket)
		slot++;
	return mst_worker_judged(&session_worker, 0, slot, &v);
}

int session_answer_of(const struct mst_lane_answer *a, uint32_t share_count, uint32_t rank)
{
	uint8_t inbound[sizeof(struct mst_lane_record) +
			SESSION_WORKERS * sizeof(struct mst_lane_share)];
	struct mst_lane_record record = { .version = a->version,
					  .weight = 32.0 * share_count,
					  .samples = 64.0 * (double)a->version,
					  .lr_scale = 0.5,
					  .window = window,
					  .share_count = share_count,
					  .size = MST_RECORD_SIZE };

	memcpy(inbound, &record, sizeof(record));
	for (uint32_t i = 0; i < SESSION_WORKERS; i++) {
		struct mst_lane_share share = { rank + i, 1, 32 };
		memcpy(inbound + sizeof(record) + i * sizeof(share), &share, sizeof(share));
	}
	return mst_worker_answered(&session_worker, 0, a, inbound);
}

int session_answer(uint64_t version, enum mst_where where)
{
	struct mst_lane_answer a = { .number = session_worker.ask_number,
				     .version = version,
				     .newest = version,
				     .where = (uint32_t)where,
				     .buffer = (uint32_t)version % SESSION_BUFFERS };

	return session_answer_of(&a, version > 0 ? 2 : 0, 0);
}

int session_answer_behind(uint64_t version, uint64_t newest)
{
	struct mst_lane_answer a = { session_worker.ask_number, version, newest, MST_WHERE_IN_PLACE,
				     1 };

	return session_answer_of(&a, 1, 0);
}
