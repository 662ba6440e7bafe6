/* SPDX-License-Identifier: MIT */
/* What a server says beforehand that it allocates, against what its allocations add up to. The
 * allocator is counted by the linker. */
#include <stdint.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "server/cluster/follower.h"
#include "server/cluster/leader.h"
#include "server/cluster/peer.h"
#include "server/core/policy/rule.h"
#include "server/data/recording.h"
#include "server/data/server.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

#define SESSIONS_PER_RANK 4u
/* Bytes of structs of a fixed size, and of what the transport keeps for each link. */
#define SMALL_BYTES 16384u

static uint64_t taken; /* bytes that were asked for */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	taken += bytes;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	taken += count * bytes;
	return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *p, size_t bytes)
{
	taken += bytes;
	return __real_realloc(p, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	taken += bytes;
	return __real_aligned_alloc(align, bytes);
}

static struct mst_recording *recording;

static void notify(void *ctx)
{
	(void)ctx;
}

struct job_figures {
	uint32_t workers, servers, history, partials, runs;
	uint64_t elems;
	bool follower, records;
	const char *optimizer; /* NULL: sgd */
};

static void fill_ledger(const struct job_figures *f, struct mst_ledger_cfg *out)
{
	struct mst_rule rule = { .divide = true, .min_workers = 1 };
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_rule_parse("bsp", &rule, &why), 0);
	*out = (struct mst_ledger_cfg){
		.workers = f->workers,
		.shards = f->servers,
		.slots = 2,
		.buffers = 4,
		.history = f->history,
		.owner = f->history > 0 ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN,
		.in_place = true,
		.rule = rule,
		.lease_ns = MST_SECOND,
		.join_until_ns = MST_NEVER,
	};
	out->optimizer = optim_case_of(out->owner);
	if (f->optimizer != NULL)
		out->optimizer.row = mst_optim_find(f->optimizer);
}

static void fill(const struct job_figures *f, struct mst_server_cfg *out)
{
	struct mst_lane_figures figures = { f->elems, 4, 4, 2, f->workers, f->servers > 1 };

	*out = (struct mst_server_cfg){ .transport = &mst_shm,
					.notify = notify,
					.peers = f->follower ? 2 : f->servers - 1,
					.leader = "@nobody",
					.records = f->records,
					.recording = f->records ? recording : NULL };
	fill_ledger(f, &out->ledger);
	out->aggregator = (struct mst_aggregator_cfg){
		.follower = f->follower,
		.owner = out->ledger.owner,
		.shards = 2,
		.elems = f->elems,
		.vector = f->elems,
		.chunk_elems = 1024,
		.group = 8,
		.partials = f->partials,
		.workers = f->workers,
		.slots = 2,
		.sessions_max = SESSIONS_PER_RANK * f->workers,
		.buffers = mst_ledger_buffers(&out->ledger),
		.entries_max = mst_ledger_entries(&out->ledger),
		.optimizer = out->ledger.optimizer,
		.table = { .tensors = f->runs, .runs = f->runs },
	};
	mst_lane_layout(&figures, &out->aggregator.layout);
	out->server_lease_ns = 3 * MST_SECOND;
	if (f->servers > 1)
		out->decider = f->follower ? mst_follower_make : mst_leader_make;
}

/* Return: what its making allocates. */
static uint64_t make(const struct mst_server_cfg *cfg)
{
	struct mst_server *server;

	taken = 0;
	CU_ASSERT_EQUAL_FATAL(mst_server_new(cfg, &server, UT_UNREAD), 0);
	uint64_t made = taken;
	mst_server_free(server);
	return made;
}

/* What is published is no memory of the allocator. */
static void check(const struct job_figures *f)
{
	struct mst_server_cfg cfg;

	fill(f, &cfg);
	uint64_t links = f->workers * sizeof(void *); /* of the transport's table */
	uint64_t said = mst_server_bytes(&cfg) - mst_server_published(&cfg);
	uint64_t made = make(&cfg);
	CU_ASSERT(made <= said + links + SMALL_BYTES);
	CU_ASSERT(said <= made + SMALL_BYTES);
}

static void a_server_allocates_what_it_says(void)
{
	check(&(struct job_figures){ .workers = 1, .servers = 1, .elems = 64 });
	check(&(struct job_figures){ .workers = 40, .servers = 1, .partials = 3, .elems = 100000 });
	check(&(struct job_figures){ .workers = 1, .servers = 1, .elems = 65536, .runs = 65536 });
	check(&(struct job_figures){
		.workers = 1, .servers = 1, .elems = 65536, .runs = 60000, .optimizer = "lars" });
	check(&(struct job_figures){ .workers = 40, .servers = 1, .history = 100, .elems = 64 });
	check(&(struct job_figures){ .workers = 1000, .servers = 1, .partials = 100, .elems = 64 });
	check(&(struct job_figures){ .workers = 1000, .servers = 1, .history = 50, .elems = 64 });
}

/* Its ring belongs to the program, which makes it once for all data sides. */
static void a_recorder_takes_what_it_says(void)
{
	taken = 0;
	CU_ASSERT_EQUAL_FATAL(mst_recording_new(&recording), 0);
	CU_ASSERT(taken + MST_RECORDING_TEXT_BYTES <= mst_recording_bytes() + SMALL_BYTES);
	CU_ASSERT(mst_recording_bytes() <= taken + MST_RECORDING_TEXT_BYTES + SMALL_BYTES);
	check(&(struct job_figures){
		.workers = 4000, .servers = 1, .partials = 100, .elems = 64, .records = true });
	mst_recording_free(recording);
}

/* There is more than one copy of the records between servers: the other copies lie in links. */
static void with_others_it_allocates_no_more_than_it_says(void)
{
	for (unsigned follower = 0; follower < 2; follower++) {
		struct job_figures f = {
			.workers = 200, .servers = 3, .elems = 20000, .follower = follower > 0
		};
		struct mst_server_cfg cfg;
		fill(&f, &cfg);
		uint64_t lines = mst_peers_bytes(follower > 0 ? 1 : cfg.peers,
						 mst_peer_window(f.workers, 2));
		CU_ASSERT(make(&cfg) <=
			  mst_server_bytes(&cfg) - mst_server_published(&cfg) + lines);
	}
}

static CU_TestInfo cases[] = {
	{ "a server allocates what it says", a_server_allocates_what_it_says },
	{ "a recorder takes what it says", a_recorder_takes_what_it_says },
	{ "with others it allocates no more than it says",
	  with_others_it_allocates_no_more_than_it_says },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("server_bytes", cases);
}
