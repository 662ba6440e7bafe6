/* SPDX-License-Identifier: MIT */
#include "tests/unit/session_case.h"

#include <math.h>
#include <string.h>

#include "tests/ut.h"

struct mst_worker w;
struct mst_lane_header sent;
struct mst_lane_ask asked;
struct muster_outcome out;

static uint32_t window;

void begin(const struct session_kind *kind)
{
	struct mst_worker_cfg cfg = { .elems = 100,
				      .slots = kind->slots,
				      .workers = WORKERS,
				      .buffers = BUFFERS,
				      .servers = kind->servers > 0 ? kind->servers : 1,
				      .in_order = kind->workers_own };

	window = kind->window;
	memset(&sent, 0, sizeof(sent));
	memset(&asked, 0, sizeof(asked));
	CU_ASSERT_EQUAL_FATAL(mst_worker_init(&w, &cfg), 0);
}

void begin_working(const struct session_kind *kind)
{
	begin(kind);
	mst_worker_start(&w);
	CU_ASSERT_EQUAL_FATAL(answer(0, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL_FATAL(take(), 0);
}

void end(void)
{
	mst_worker_fini(&w);
}

int push(bool keep)
{
	struct muster_contribution c = { .weight = 32, .loss = NAN, .full = true, .keep = keep };
	uint64_t ticket = 0, before = w.tickets.sent;
	int rc = mst_worker_push(&w, &c, &sent, &ticket);

	if (rc >= 0)
		CU_ASSERT_EQUAL(ticket, before + 1);
	return rc;
}

void fill_and_push(bool keep)
{
	int slot = mst_worker_fill(&w);

	CU_ASSERT_FATAL(slot >= 0);
	CU_ASSERT_EQUAL_FATAL(push(keep), 1);
	CU_ASSERT_EQUAL(sent.slot, (uint32_t)slot);
}

bool wait_asks(void)
{
	return mst_worker_wait_asks(&w, &asked);
}

int take(void)
{
	CU_ASSERT_EQUAL_FATAL(mst_worker_misses(&w), 0);
	return mst_worker_take(&w, &out);
}

int grant(uint32_t slot)
{
	return mst_worker_granted(&w, 0, slot, w.slot[slot].epoch + 1);
}

int judge(uint64_t ticket, enum muster_verdict verdict, uint64_t counted_in)
{
	struct mst_lane_verdict v = { ticket, counted_in, (uint32_t)verdict, 0 };
	uint32_t slot = 0;

	while (slot < w.cfg.slots - 1 && w.slot[slot].ticket != ticket)
		slot++;
	return mst_worker_judged(&w, 0, slot, &v);
}

int answer_of(const struct mst_lane_answer *a, uint32_t share_count, uint32_t rank)
{
	uint8_t landing[sizeof(struct mst_lane_record) + WORKERS * sizeof(struct mst_lane_share)];
	struct mst_lane_record record = { .version = a->version,
					  .weight = 32.0 * share_count,
					  .lr_scale = 0.5,
					  .window = window,
					  .share_count = share_count };

	memcpy(landing, &record, sizeof(record));
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct mst_lane_share share = { rank + i, 1, 32 };
		memcpy(landing + sizeof(record) + i * sizeof(share), &share, sizeof(share));
	}
	return mst_worker_answered(&w, 0, a, landing);
}

int answer(uint64_t version, enum mst_where where)
{
	struct mst_lane_answer a = { .number = w.ask_number,
				     .version = version,
				     .newest = version,
				     .where = (uint32_t)where,
				     .buffer = (uint32_t)version % BUFFERS };

	return answer_of(&a, version > 0 ? 2 : 0, 0);
}

int answer_behind(uint64_t version, uint64_t newest)
{
	struct mst_lane_answer a = { w.ask_number, version, newest, MST_WHERE_IN_PLACE, 1 };

	return answer_of(&a, 1, 0);
}
