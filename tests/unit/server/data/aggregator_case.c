/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/data/aggregator_case.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixtures.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

#define BUFFERS 4u
#define PUTS 64
#define EVENTS 64

/* ---- a link that only takes notes ---- */

struct agg_note agg_note[PUTS];
int agg_note_count, agg_put_rc;
bool agg_link_full;
int agg_link_refuses;
void (*agg_on_put)(void);

static int put(struct mst_link *to, const struct mst_put *put)
{
	const char *src = put->src;
	size_t bytes = put->bytes < sizeof(agg_note->written) ? put->bytes
							      : sizeof(agg_note->written);
	bool outbound = src >= (char *)to->outbound &&
			src < (char *)to->outbound + to->outbound_bytes;

	if (agg_link_full)
		return -EAGAIN;
	if (agg_link_refuses > 0) {
		agg_link_refuses--;
		return -EAGAIN;
	}
	if (agg_on_put != NULL)
		agg_on_put();
	CU_ASSERT_FATAL(agg_note_count < PUTS);
	agg_note[agg_note_count].rank = ((const struct mst_session *)to->user)->who.rank;
	agg_note[agg_note_count].put = *put;
	memcpy(agg_note[agg_note_count++].written, src, bytes);
	return outbound || put->signal ? agg_put_rc : 1;
}

/* ---- an aggregator, and what it says ---- */

uint32_t agg_shards = 1, agg_workers = AGG_RANKS;
bool agg_follower, agg_unguarded;
struct mst_saving agg_saving;
int agg_saving_count;
uint64_t agg_lent_version;
const float *agg_lent;
int agg_lent_count;
double agg_clips;
void (*agg_adjust)(struct mst_aggregator_cfg *cfg);
struct mst_aggregator *agg_aggregator;
struct mst_aggregator_cfg agg_cfg;
struct mst_session agg_session[AGG_RANKS];
struct mst_link agg_link[AGG_RANKS];
struct mst_ledger_event agg_event[EVENTS];
int agg_event_count, agg_over_count, agg_worked;
static struct mst_lane_share share[AGG_RANKS];
static bool started; /* START has been decided */
static struct mst_record record = { .version = 3,
				    .total = AGG_SAMPLES,
				    .scalar = { 1 },
				    .average = 0.5f,
				    .share_count = AGG_RANKS,
				    .share = share };

static void take_event(void *ctx, const struct mst_ledger_event *ev)
{
	(void)ctx;
	CU_ASSERT_FATAL(agg_event_count < EVENTS);
	agg_event[agg_event_count++] = *ev;
}

static void take_over(void *ctx, struct mst_session *s)
{
	(void)ctx;
	CU_ASSERT(s->over && s->busy == 0);
	agg_over_count++;
}

static void take_saving(void *ctx, const struct mst_saving *what)
{
	(void)ctx;
	agg_saving = *what;
	agg_saving_count++;
}

static void take_lent(void *ctx, uint64_t version, const float *average)
{
	(void)ctx;
	agg_lent_version = version;
	agg_lent = average;
	agg_lent_count++;
}

static void take_worked(void *ctx)
{
	(void)ctx;
	agg_worked++;
}

void agg_begin_with(bool maps, uint64_t chunk_elems)
{
	struct mst_lane_figures figures = { AGG_ELEMS, 4, 4, 2, AGG_RANKS, false };
	struct mst_aggregator_up up = { .event = take_event,
					.over = take_over,
					.worked = take_worked,
					.save = take_saving,
					.lend = take_lent };

	fix_net_begin(put, NULL);
	fix_transport.maps = maps;
	agg_put_rc = maps ? 1 : 0;
	agg_link_full = false;
	agg_link_refuses = 0;
	agg_note_count = agg_event_count = agg_over_count = agg_worked = agg_saving_count = 0;
	agg_lent_count = 0;
	agg_cfg = (struct mst_aggregator_cfg){ .shards = agg_shards,
					       .follower = agg_follower,
					       .owner = MUSTER_WORKERS_OWN,
					       .first = 1000000,
					       .elems = AGG_ELEMS,
					       .guards = !agg_unguarded,
					       .chunk_elems = chunk_elems,
					       .group = AGG_GROUP,
					       .workers = agg_workers,
					       .slots = 2,
					       .sessions_max = 2 * AGG_RANKS,
					       .buffers = BUFFERS,
					       .entries_max = 2 * AGG_RANKS,
					       .partials = 2 };
	if (agg_clips != 0) {
		agg_cfg.owner = MUSTER_SERVERS_OWN;
		agg_cfg.optimizer = optim_case_sgd(1, 0);
		agg_cfg.optimizer.parameter[MST_SGD_CLIP] = agg_clips;
	}
	if (agg_adjust != NULL)
		agg_adjust(&agg_cfg);
	mst_lane_layout(&figures, &agg_cfg.layout);
	agg_cfg.published = calloc(1, mst_aggregator_published(&agg_cfg));
	CU_ASSERT_EQUAL_FATAL(mst_aggregator_new(&agg_cfg, &up, &agg_aggregator), 0);
	for (uint32_t rank = 0; rank < AGG_RANKS; rank++) {
		agg_session[rank] = (struct mst_session){ .who = { rank, 1 },
							  .link = &agg_link[rank] };
		agg_link[rank] = (struct mst_link){ .ops = &fix_transport };
		agg_link[rank].outbound_bytes = maps ? agg_cfg.layout.down_bytes
						     : agg_cfg.layout.down_result;
		agg_link[rank].outbound = calloc(1, agg_cfg.layout.down_bytes);
		agg_link[rank].remote_mapping = maps ? agg_link[rank].outbound : NULL;
		agg_link[rank].inbound = calloc(1, agg_cfg.layout.up_bytes);
		mst_aggregator_admit(agg_aggregator, &agg_session[rank]);
	}
}

void agg_begin(bool maps)
{
	agg_begin_with(maps, AGG_CHUNK);
}

bool agg_work_all(void)
{
	bool any = mst_aggregator_work(agg_aggregator);

	for (uint32_t i = 1; i < agg_cfg.shards; i++)
		any |= mst_shard_step(mst_aggregator_shard(agg_aggregator, i));
	return any;
}

void agg_end(void)
{
	mst_aggregator_hang_up(agg_aggregator, -ENOTCONN);
	while (agg_work_all())
		;
	CU_ASSERT_EQUAL(agg_over_count, AGG_RANKS);
	CU_ASSERT_EQUAL(fix_net.detached, AGG_RANKS);
	mst_aggregator_free(agg_aggregator);
	free(agg_cfg.published);
	for (uint32_t rank = 0; rank < AGG_RANKS; rank++) {
		free(agg_link[rank].outbound);
		free(agg_link[rank].inbound);
	}
	agg_shards = 1;
	agg_workers = AGG_RANKS;
	agg_follower = agg_unguarded = false;
	agg_clips = 0;
	agg_adjust = NULL;
	started = false;
}

void agg_decide(const struct mst_decision *d)
{
	started |= d->kind == MST_DO_START;
	mst_aggregator_execute(agg_aggregator, d, &record);
}

void agg_answer_to(uint32_t rank, uint64_t number)
{
	agg_decide(&(struct mst_decision){ .kind = MST_DO_RELEASE,
					   .who = { rank, 1 },
					   .answer = { .number = number,
						       .version = 3,
						       .newest = 3,
						       .buffer = 2,
						       .where = MST_WHERE_COPIED } });
	while (mst_aggregator_work(agg_aggregator))
		;
}

void agg_evict(uint32_t rank)
{
	agg_decide(&(struct mst_decision){
		.kind = MST_DO_EVICT, .who = { rank, 1 }, .evict = MST_EVICT_LOST });
}

void agg_arrive(uint32_t rank, uint32_t imm)
{
	mst_aggregator_arrived(agg_aggregator, &(struct mst_net_event){ .kind = MST_ARRIVED,
									.link = &agg_link[rank],
									.imm = imm });
}

void agg_ask(uint32_t rank)
{
	agg_arrive(rank, mst_imm(MST_IMM_ASK, 0, 0));
}

void agg_report_sent(uint32_t rank, uint64_t cookie)
{
	mst_aggregator_arrived(agg_aggregator, &(struct mst_net_event){ .kind = MST_SENT,
									.link = &agg_link[rank],
									.cookie = cookie });
}

bool agg_said(int i, enum mst_ledger_event_kind kind, uint32_t rank)
{
	return i < agg_event_count && agg_event[i].kind == kind && agg_event[i].who.rank == rank;
}

const void *agg_written_at(int i, size_t offset)
{
	return agg_note[i].written + offset - agg_note[i].put.offset;
}

void agg_count_of(uint32_t rank, uint32_t slot)
{
	struct mst_lane_header header = { .seq = slot + 1,
					  .epoch = 1,
					  .weight = 1,
					  .slot = (uint16_t)slot,
					  .size = MST_HEADER_SIZE };

	memcpy((char *)agg_link[rank].inbound + agg_cfg.layout.up_header[slot], &header,
	       sizeof(header));
	agg_arrive(rank, mst_imm(MST_IMM_HEADER, slot, 1));
	agg_decide(&(struct mst_decision){ .kind = MST_DO_COUNT,
					   .who = { rank, 1 },
					   .count = { .slot = slot, .coefficient = 1 } });
}

void agg_fill(uint32_t rank, uint32_t slot)
{
	float *g = (float *)(void *)((char *)agg_link[rank].inbound +
				     agg_cfg.layout.up_gradient[slot]);

	for (uint32_t i = 0; i < AGG_ELEMS; i++)
		g[i] = (float)(rank * 7919 + slot * 31 + i * 104729 % 65537) * 1e-3f / 3.0f;
}

void agg_count(uint32_t slot)
{
	agg_count_of(0, slot);
}

void agg_judge(uint32_t slot)
{
	agg_decide(&(struct mst_decision){ .kind = MST_DO_VERDICT,
					   .who = { 0, 1 },
					   .verdict = { .seq = slot + 1,
							.slot = slot,
							.verdict = MUSTER_COUNTED,
							.counted_in = 3 } });
}

void agg_regrant(uint32_t slot)
{
	agg_decide(&(struct mst_decision){
		.kind = MST_DO_REGRANT, .who = { 0, 1 }, .grant = { .slot = slot, .epoch = 2 } });
}

/* A case that is not about the start need not start the job. */
static void commit_to(uint64_t version, uint32_t buffer)
{
	if (!started)
		agg_decide(&(struct mst_decision){ .kind = MST_DO_START,
						   .commit.version = version - 1 });
	record.divisor = 1;
	agg_decide(&(struct mst_decision){ .kind = MST_DO_COMMIT,
					   .commit = { .version = version, .buffer = buffer } });
}

void agg_commit(void)
{
	commit_to(3, 2);
}

void agg_commit_to(uint64_t version, uint32_t buffer)
{
	record.scalar[MST_SCALAR_RATE] = 1;
	commit_to(version, buffer);
	record.scalar[MST_SCALAR_RATE] = 0;
}

void agg_save(uint64_t version, uint32_t buffer)
{
	agg_decide(&(struct mst_decision){ .kind = MST_DO_SAVE,
					   .commit = { .version = version, .buffer = buffer } });
}

void agg_release(uint32_t rank, uint32_t buffer)
{
	agg_decide(&(struct mst_decision){ .kind = MST_DO_RELEASE,
					   .who = { rank, 1 },
					   .answer = { .number = 1,
						       .version = 3,
						       .newest = 3,
						       .buffer = buffer,
						       .where = MST_WHERE_COPIED } });
}

void agg_fail(void)
{
	agg_decide(&(struct mst_decision){ .kind = MST_DO_FINISH,
					   .finish = { .why = MST_FINISH_TOO_FEW } });
}

bool agg_is_part(int i, uint64_t first, uint64_t elems)
{
	return agg_note[i].put.offset == agg_cfg.layout.down_result + first * sizeof(float) &&
	       agg_note[i].put.bytes == elems * sizeof(float) && agg_note[i].put.signal;
}

int agg_report_parts_sent(uint32_t rank)
{
	int agg_count_of = 0, said_before = agg_event_count;

	for (int i = 0; i < agg_note_count; i++) {
		if (agg_note[i].rank != rank || !agg_note[i].put.signal)
			continue;
		CU_ASSERT_EQUAL(agg_event_count, said_before);
		agg_report_sent(rank, agg_note[i].put.cookie);
		agg_count_of++;
	}
	return agg_count_of;
}

const float *agg_result(void)
{
	return (const float *)(const void *)((char *)agg_cfg.published +
					     2 * mst_version_stride(AGG_ELEMS, MUSTER_F32));
}
