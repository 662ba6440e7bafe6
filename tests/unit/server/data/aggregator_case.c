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

struct note note[PUTS];
int note_count, answers_to;
bool full;
void (*on_put)(void);

static int put(struct mst_link *to, const struct mst_put *put)
{
	const char *src = put->src;
	size_t bytes = put->bytes < sizeof(note->cells) ? put->bytes : sizeof(note->cells);
	bool outbound = src >= (char *)to->outbound &&
			src < (char *)to->outbound + to->outbound_bytes;

	if (full)
		return -EAGAIN;
	if (on_put != NULL)
		on_put();
	CU_ASSERT_FATAL(note_count < PUTS);
	note[note_count].rank = ((const struct mst_session *)to->user)->who.rank;
	note[note_count].put = *put;
	memcpy(note[note_count++].cells, src, bytes);
	return outbound || put->signal ? answers_to : 1;
}

/* ---- an aggregator, and what it says ---- */

uint32_t shards = 1;
bool member, unguarded;
double clips;
struct mst_aggregator *aggregator;
struct mst_aggregator_cfg cfg;
struct mst_session session[RANKS];
struct mst_link link[RANKS];
struct mst_ledger_event event[EVENTS];
int event_count, over_count, worked;
static const struct mst_rule rule = { .window = 7 };
static struct mst_lane_share share[RANKS];
static struct mst_record record = {
	.version = 3, .scalar = { 1 }, .share_count = RANKS, .share = share
};

static void take_event(void *ctx, const struct mst_ledger_event *ev)
{
	(void)ctx;
	CU_ASSERT_FATAL(event_count < EVENTS);
	event[event_count++] = *ev;
}

static void take_over(void *ctx, struct mst_session *s)
{
	(void)ctx;
	CU_ASSERT(s->over && s->busy == 0);
	over_count++;
}

static void take_worked(void *ctx)
{
	(void)ctx;
	worked++;
}

void begin_with(bool maps, uint64_t chunk_elems)
{
	struct mst_lane_figures figures = { ELEMS, 4, 4, 2, RANKS, false };
	struct mst_aggregator_up up = { .event = take_event,
					.over = take_over,
					.worked = take_worked };

	fix_net_begin(put, NULL);
	fix_transport.maps = maps;
	answers_to = maps ? 1 : 0;
	full = false;
	note_count = event_count = over_count = worked = 0;
	cfg = (struct mst_aggregator_cfg){ .shards = shards,
					   .member = member,
					   .owner = MUSTER_WORKERS_OWN,
					   .first = 1000000,
					   .elems = ELEMS,
					   .guards = !unguarded,
					   .chunk_elems = chunk_elems,
					   .group = GROUP,
					   .workers = RANKS,
					   .slots = 2,
					   .sessions_max = 2 * RANKS,
					   .buffers = BUFFERS,
					   .entries_max = 2 * RANKS,
					   .partials = 2 };
	if (clips != 0) {
		cfg.owner = MUSTER_SERVERS_OWN;
		cfg.optimizer = optim_case_sgd(1, 0);
		cfg.optimizer.parameter[MST_SGD_CLIP] = clips;
	}
	mst_lane_layout(&figures, &cfg.layout);
	cfg.published = calloc(BUFFERS, mst_version_stride(ELEMS, MUSTER_F32));
	CU_ASSERT_EQUAL_FATAL(mst_aggregator_new(&cfg, &up, &aggregator), 0);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		session[rank] = (struct mst_session){ .who = { rank, 1 }, .link = &link[rank] };
		link[rank] = (struct mst_link){ .ops = &fix_transport };
		link[rank].outbound_bytes = maps ? cfg.layout.down_bytes : cfg.layout.down_result;
		link[rank].outbound = calloc(1, cfg.layout.down_bytes);
		link[rank].window = maps ? link[rank].outbound : NULL;
		link[rank].inbound = calloc(1, cfg.layout.up_bytes);
		mst_aggregator_admit(aggregator, &session[rank]);
	}
}

void begin(bool maps)
{
	begin_with(maps, CHUNK);
}

bool work_all(void)
{
	bool any = mst_aggregator_work(aggregator);

	for (uint32_t i = 1; i < cfg.shards; i++)
		any |= mst_shard_step(mst_aggregator_shard(aggregator, i));
	return any;
}

void end(void)
{
	mst_aggregator_hang_up(aggregator);
	while (work_all())
		;
	CU_ASSERT_EQUAL(over_count, RANKS);
	CU_ASSERT_EQUAL(fix_net.detached, RANKS);
	mst_aggregator_free(aggregator);
	free(cfg.published);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		free(link[rank].outbound);
		free(link[rank].inbound);
	}
	shards = 1;
	member = unguarded = false;
	clips = 0;
}

void decide(const struct mst_decision *d)
{
	mst_aggregator_execute(aggregator, d, &record, &rule);
}

void answer_to(uint32_t rank, uint64_t number)
{
	decide(&(struct mst_decision){ .kind = MST_DO_RELEASE,
				       .who = { rank, 1 },
				       .answer = { .number = number,
						   .version = 3,
						   .newest = 3,
						   .buffer = 2,
						   .where = MST_WHERE_COPIED } });
	while (mst_aggregator_work(aggregator))
		;
}

void evict(uint32_t rank)
{
	decide(&(struct mst_decision){
		.kind = MST_DO_EVICT, .who = { rank, 1 }, .evict = MST_EVICT_LOST });
}

void arrive(uint32_t rank, uint32_t imm)
{
	mst_aggregator_arrived(
		aggregator,
		&(struct mst_net_event){ .kind = MST_ARRIVED, .link = &link[rank], .imm = imm });
}

void ask(uint32_t rank)
{
	arrive(rank, mst_imm(MST_IMM_ASK, 0, 0));
}

void report_sent(uint32_t rank, uint64_t cookie)
{
	mst_aggregator_arrived(
		aggregator,
		&(struct mst_net_event){ .kind = MST_SENT, .link = &link[rank], .cookie = cookie });
}

bool said(int i, enum mst_ledger_event_kind kind, uint32_t rank)
{
	return i < event_count && event[i].kind == kind && event[i].who.rank == rank;
}

const void *cell_at(int i, size_t offset)
{
	return note[i].cells + offset - note[i].put.offset;
}

void count_of(uint32_t rank, uint32_t slot)
{
	struct mst_lane_header header = {
		.seq = slot + 1, .epoch = 1, .weight = 1, .slot = (uint16_t)slot
	};

	memcpy((char *)link[rank].inbound + cfg.layout.up_header[slot], &header, sizeof(header));
	arrive(rank, mst_imm(MST_IMM_HEADER, slot, 1));
	decide(&(struct mst_decision){ .kind = MST_DO_COUNT,
				       .who = { rank, 1 },
				       .count = { .slot = slot, .coefficient = 1 } });
}

void count(uint32_t slot)
{
	count_of(0, slot);
}

void judge(uint32_t slot)
{
	decide(&(struct mst_decision){ .kind = MST_DO_VERDICT,
				       .who = { 0, 1 },
				       .verdict = { .seq = slot + 1,
						    .slot = slot,
						    .verdict = MUSTER_COUNTED,
						    .counted_in = 3 } });
}

void regrant(uint32_t slot)
{
	decide(&(struct mst_decision){
		.kind = MST_DO_REGRANT, .who = { 0, 1 }, .grant = { .slot = slot, .epoch = 2 } });
}

void commit(void)
{
	record.divisor = 1;
	decide(&(struct mst_decision){ .kind = MST_DO_COMMIT,
				       .commit = { .version = 3, .buffer = 2 } });
}

void release(uint32_t rank, uint32_t buffer)
{
	decide(&(struct mst_decision){ .kind = MST_DO_RELEASE,
				       .who = { rank, 1 },
				       .answer = { .number = 1,
						   .version = 3,
						   .newest = 3,
						   .buffer = buffer,
						   .where = MST_WHERE_COPIED } });
}

void fail(void)
{
	decide(&(struct mst_decision){ .kind = MST_DO_FINISH,
				       .finish = { .why = MST_FINISH_TOO_FEW } });
}

bool is_part(int i, uint64_t first, uint64_t elems)
{
	return note[i].put.offset == cfg.layout.down_result + first * sizeof(float) &&
	       note[i].put.bytes == elems * sizeof(float) && note[i].put.signal;
}

int report_parts_sent(uint32_t rank)
{
	int count_of = 0, said_before = event_count;

	for (int i = 0; i < note_count; i++) {
		if (note[i].rank != rank || !note[i].put.signal)
			continue;
		CU_ASSERT_EQUAL(event_count, said_before);
		report_sent(rank, note[i].put.cookie);
		count_of++;
	}
	return count_of;
}
