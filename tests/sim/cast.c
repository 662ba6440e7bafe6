/* SPDX-License-Identifier: MIT */
#include "tests/sim/cast.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/admin.h"
#include "server/options.h"
#include "tests/sim/heap.h"
#include "tests/sim/net.h"
#include "tests/sim/stream.h"

/* A world in which anybody still runs by then has lost somebody. */
#define HORIZON_NS (200 * MST_SECOND)
#define CONTROL_NAP_NS (100 * MST_MS)
#define NOBODY_NS (60 * MST_SECOND)

static struct {
	struct sim_plan *plan;
	struct sim_process *server;
	struct worker *worker[SIM_WORKERS_MAX]; /* the youngest of each rank */
	struct sim_process *processes;

	struct mst_server_options options;
	struct mst_options parsed;
	struct mst_admin *admin;
	struct mst_server *data;
	bool stop_data, data_runs;
	unsigned shards_run;
	struct sim_bell shard_bell[MST_SHARDS_MAX];
	bool to_stop, stopped; /* as by a signal */
	struct sim_bell data_over;
} cast;

struct sim_process *cast_server(void)
{
	return cast.server;
}

struct worker *cast_worker(uint32_t rank)
{
	return cast.worker[rank];
}

struct worker *cast_owner(const struct sim_process *p)
{
	for (uint32_t rank = 0; rank < cast.plan->workers; rank++) {
		for (struct worker *w = cast.worker[rank]; w != NULL; w = w->next) {
			if (w->process == p)
				return w;
		}
	}
	return NULL;
}

/* ---- the server: a fiber for each of its threads ---- */

static void data_main(void *arg)
{
	(void)arg;
	while (!cast.stop_data) {
		uint64_t now_ns = mst_now_ns();
		if (mst_server_step(cast.data, now_ns))
			sim_sleep(sim_between(200, cast.plan->slow_server ? 200000 : 3000));
		else
			mst_server_wait(cast.data, now_ns);
	}
	cast.data_runs = false;
	sim_ring(&cast.data_over);
}

/* A fiber for each further shard's thread. */
static void shard_main(void *arg)
{
	const struct sim_bell *bell = arg;
	uint32_t shard = (uint32_t)(bell - cast.shard_bell);

	while (!cast.stop_data) {
		if (mst_server_shard_step(cast.data, shard))
			sim_sleep(sim_between(200, cast.plan->slow_server ? 200000 : 3000));
		else
			(void)sim_wait(&cast.shard_bell[shard], MST_SECOND);
	}
	cast.shards_run--;
	sim_ring(&cast.data_over);
}

void cast_ring_shards(void)
{
	for (uint32_t i = 1; i < MST_SHARDS_MAX; i++)
		sim_ring(&cast.shard_bell[i]);
}

static void start_data(void)
{
	if (cast.data != NULL || mst_admin_server(cast.admin) == NULL)
		return;
	cast.data = mst_admin_server(cast.admin);
	cast.data_runs = true;
	sim_spawn(cast.server, data_main, NULL);
	for (uint32_t i = 1; i < mst_server_shards(cast.data); i++) {
		cast.shards_run++;
		sim_spawn(cast.server, shard_main, &cast.shard_bell[i]);
	}
}

static void stop_data(void)
{
	cast.stop_data = true;
	while (cast.data_runs || cast.shards_run > 0) {
		mst_server_wake(cast.data);
		cast_ring_shards();
		(void)sim_wait(&cast.data_over, MST_SECOND);
	}
}

static void set(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void set(const char *name, const char *fmt, ...)
{
	char value[64];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, args);
	va_end(args);
	int rc = mst_options_set(&cast.parsed, name, value);
	MST_ASSERT(rc == 0);
}

static void set_options(const struct sim_plan *p)
{
	char why[512];
	int rc = mst_options_init(&cast.parsed, mst_server_table, &cast.options);

	MST_ASSERT(rc == 0);
	set("listen", "127.0.0.1:17077");
	set("job", "sim");
	set("workers", "%" PRIu32, p->workers);
	set("policy", "%s", p->policy);
	set("owner", p->owner == MUSTER_WORKERS_OWN ? "workers" : "servers");
	if (p->owner == MUSTER_SERVERS_OWN)
		set("optimizer", "%s", p->optimizer);
	set("lr-scale", p->lr_linear ? "linear" : "none");
	set("commits", "%" PRIu64, p->commits);
	set("group", "%" PRIu32, p->group);
	set("buffers", "%" PRIu32, p->buffers);
	set("history", "%" PRIu32, p->history);
	if (p->slots != 0)
		set("slots", "%" PRIu32, p->slots);
	set("lease", "%" PRIu64 "ms", p->lease_ns / MST_MS);
	set("patience", "%" PRIu64 "ms", p->patience_ns / MST_MS);
	set("join-timeout", "%" PRIu64 "ms", p->join_ns / MST_MS);
	set("chunk", "4K");
	set("shards", "%" PRIu32, p->shards);
	set("memory", "1G");
	rc = mst_options_set(&cast.parsed, "force", "true");
	MST_ASSERT(rc == 0);
	rc = mst_server_options_check(&cast.options, why, sizeof(why));
	if (rc != 0)
		obs_violated("the server does not take its options: %s", why);
}

static bool workers_are_home(void)
{
	bool home = true;

	for (uint32_t rank = 0; rank < cast.plan->workers; rank++) {
		for (struct worker *w = cast.worker[rank]; w != NULL; w = w->next)
			home &= w->process->fibers == 0;
	}
	return home;
}

/* A server to whom nobody has come waits, until somebody ends it. */
static void end_if_nobody_came(void)
{
	if (!obs_began() && sim_now() > NOBODY_NS && workers_are_home())
		mst_admin_stop(cast.admin, "nobody came", mst_now_ns());
}

void cast_stop_server(void)
{
	cast.to_stop = true;
	sim_ring(&cast.server->control);
}

static void stop_if_told(void)
{
	if (!cast.to_stop || cast.stopped)
		return;
	cast.stopped = true;
	mst_admin_stop(cast.admin, "the server was ended by signal 15", mst_now_ns());
}

static void control_main(void *arg)
{
	struct mst_admin_cfg cfg = { .options = &cast.options,
				     .stream = &sim_stream,
				     .transport = cast.plan->far ? &sim_far : &sim_near };
	char why[512];

	(void)arg;
	int rc = mst_admin_new(&cfg, &cast.admin, why, sizeof(why));
	if (rc != 0) {
		if (!cast.server->dead)
			obs_violated("the server does not start: %s", why);
		return;
	}
	while (mst_admin_over(cast.admin) == 0 && !cast.server->dead) {
		mst_admin_step(cast.admin, mst_now_ns());
		start_data();
		end_if_nobody_came();
		stop_if_told();
		if (!sim_wait(&cast.server->control, CONTROL_NAP_NS))
			continue;
		sim_sleep(sim_between(500, 10000));
	}
	stop_data();
	mst_admin_free(cast.admin);
	sim_say("the server has ended");
}

/* ---- workers ---- */

void cast_enter(uint32_t rank, bool again)
{
	struct worker *w = sim_alloc(sizeof(*w));
	char name[24];

	if (again && cast.plan->workers == 0)
		return;
	(void)snprintf(name, sizeof(name), "worker %" PRIu32, rank);
	w->seen = (struct obs_worker){ .rank = rank, .last_version = UINT64_MAX };
	w->seen.excused = sim_plan_hits(cast.plan, (int)rank) ||
			  sim_plan_hits(cast.plan, SIM_SERVER);
	w->manners = &cast.plan->manners[rank];
	w->comes_again = again;
	w->process = sim_process_new(name);
	w->next = cast.worker[rank];
	cast.worker[rank] = w;
	sim_spawn(w->process, life_main, w);
}

/* ---- what goes over the links ---- */

static void watch_up(const struct worker *w, const struct mst_put *put)
{
	if (mst_imm_kind(put->imm) == MST_IMM_HEADER &&
	    put->bytes == sizeof(struct mst_lane_header)) {
		struct mst_lane_header header;
		memcpy(&header, put->src, sizeof(header));
		obs_header(&w->seen, &header);
	} else if (mst_imm_kind(put->imm) == MST_IMM_ABANDON) {
		obs_abandon(&w->seen, mst_imm_slot(put->imm));
	}
}

/* Grants come one by one, or with an answer. */
static void watch_down(const struct worker *w, uint32_t imm)
{
	bool answers = mst_imm_kind(imm) == MST_IMM_ANSWER;
	uint32_t slots = answers ? mst_imm_grants(imm) : 1u << mst_imm_slot(imm);

	if (!answers && mst_imm_kind(imm) != MST_IMM_GRANT)
		return;
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++) {
		if (slots >> slot & 1u)
			obs_granted(w->seen.rank, w->seen.incarnation, slot);
	}
}

static void watch_put(const struct mst_link *from, bool up, const struct mst_put *put)
{
	const struct mst_link *of_worker = up ? from : sim_link_peer(from);
	const struct worker *w = of_worker != NULL ? cast_owner(sim_link_owner(of_worker)) : NULL;

	if (w == NULL || !put->notify)
		return;
	if (up)
		watch_up(w, put);
	else
		watch_down(w, put->imm);
	enum mst_imm_kind kind = mst_imm_kind(put->imm);
	if (kind != MST_IMM_VERDICT && kind != MST_IMM_GRANT) /* moments of the ledger's */
		faults_moment(w->seen.rank, (uint32_t)kind);
}

/* A version may be written over when its reader has gone on: what is sent again then has been
 * received before, and is thrown away. */
static void watch_spoiled(const struct mst_link *from)
{
	const struct worker *w = cast_owner(sim_link_owner(from));

	if (w != NULL)
		obs_spoiled(&w->seen);
}

/* ---- the play ---- */

static void set_network(const struct sim_plan *p)
{
	sim_manner = (struct sim_manner){ .latency_ns = 2000,
					  .jitter_ns = 3000,
					  .ns_per_kib = 100,
					  .piece_bytes = 1024,
					  .slow_chance = 0.01,
					  .slow_ns = MST_MS,
					  .linger_ns = 20000,
					  .give_up_ns = p->lease_ns,
					  .room = 6 };
	sim_stream_manner = (struct sim_stream_manner){ .latency_ns = 20000,
							.jitter_ns = 30000,
							.room = 65536 };
	if (!p->slow_network)
		return;
	sim_manner.jitter_ns = 300000;
	sim_manner.piece_bytes = 256;
	sim_manner.slow_chance = 0.05;
	sim_manner.slow_ns = 8 * MST_MS;
	sim_manner.linger_ns = MST_MS;
	sim_stream_manner.jitter_ns = 2 * MST_MS;
}

static bool all_home(void)
{
	return cast.server->fibers == 0 && workers_are_home();
}

static void name_the_lost(void)
{
	if (cast.server->fibers > 0)
		obs_violated("after %.0f s the server has not ended (%" PRIu64 " commits)",
			     (double)HORIZON_NS / (double)MST_SECOND, obs_commits());
	for (uint32_t rank = 0; rank < cast.plan->workers; rank++) {
		for (struct worker *w = cast.worker[rank]; w != NULL; w = w->next) {
			if (w->process->fibers > 0)
				obs_violated("after %.0f s rank %" PRIu32 " has not ended",
					     (double)HORIZON_NS / (double)MST_SECOND, rank);
		}
	}
}

bool cast_play(struct sim_plan *plan)
{
	static const struct sim_net_watch watch = { .put = watch_put, .spoiled = watch_spoiled };

	struct sim_heap before = sim_heap_now();
	sim_begin(plan->seed);
	memset(&cast, 0, sizeof(cast));
	cast.plan = plan;
	sim_set_preemption(plan->preemption);
	set_network(plan);
	obs_begin(plan);
	life_begin(plan);
	sim_net_watch(&watch);
	cast.server = sim_process_new("server");
	set_options(plan);
	sim_spawn(cast.server, control_main, NULL);
	for (uint32_t rank = 0; rank < plan->workers; rank++)
		cast_enter(rank, false);
	faults_begin(plan);
	sim_run(HORIZON_NS);
	if (obs_violation() != NULL)
		return false;
	if (!all_home()) {
		name_the_lost();
		return false;
	}
	obs_end();
	mst_options_free(&cast.parsed);
	struct sim_heap after = sim_heap_now();
	if (after.blocks != before.blocks)
		obs_violated("%" PRIu64 " blocks of memory were never freed",
			     after.blocks - before.blocks);
	return obs_violation() == NULL;
}
