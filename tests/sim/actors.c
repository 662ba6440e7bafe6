/* SPDX-License-Identifier: MIT */
#include "tests/sim/actors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/disk.h"
#include "tests/sim/heap.h"
#include "tests/sim/net.h"
#include "tests/sim/operator.h"
#include "tests/sim/servers.h"
#include "tests/sim/stream.h"

/* A world in which anybody still runs by then has lost somebody. */
#define HORIZON_NS (200 * MST_SECOND)
#define NOBODY_NS (60 * MST_SECOND)
/* Where several servers share a vector it is longer, and travels in about as many pieces. */
#define LONGER_PIECES 4u

static struct {
	struct sim_plan *plan;
	struct sim_worker *worker[SIM_WORKERS_MAX]; /* the youngest of each rank */
} actors;

struct sim_worker *actors_worker(uint32_t rank)
{
	return actors.worker[rank];
}

struct sim_worker *actors_owner(const struct sim_process *p)
{
	for (uint32_t rank = 0; rank < actors.plan->workers; rank++) {
		for (struct sim_worker *w = actors.worker[rank]; w != NULL; w = w->next) {
			if (w->process == p)
				return w;
		}
	}
	return NULL;
}

static bool workers_are_home(void)
{
	bool home = true;

	for (uint32_t rank = 0; rank < actors.plan->workers; rank++) {
		for (struct sim_worker *w = actors.worker[rank]; w != NULL; w = w->next)
			home &= w->process->fibers == 0;
	}
	return home;
}

/* A server to whom nobody has come waits, until somebody ends it. */
static void end_if_nobody_came(void *ctx, uint64_t unused)
{
	(void)ctx;
	(void)unused;
	if (obs_began() || servers_process(0)->fibers == 0)
		return;
	if (workers_are_home())
		servers_nobody_comes();
	else
		sim_after(MST_SECOND, end_if_nobody_came, NULL, 0);
}

/* ---- workers ---- */

static uint32_t processes_of(uint32_t rank)
{
	uint32_t count = 0;

	for (const struct sim_worker *w = actors.worker[rank]; w != NULL; w = w->next)
		count++;
	return count;
}

void actors_enter(uint32_t rank, bool again)
{
	struct sim_worker *w = sim_alloc(sizeof(*w));
	char name[24];

	if (again && actors.plan->workers == 0)
		return;
	if (again && actors.plan->generations.wanted)
		obs_enters(rank);
	(void)snprintf(name, sizeof(name), "worker %" PRIu32, rank);
	w->seen = (struct obs_worker){ .rank = rank, .last_version = UINT64_MAX };
	w->seen.excused = sim_plan_hits(actors.plan, (int)rank);
	w->manners = &actors.plan->manners[rank];
	w->comes_again = again;
	w->process = sim_process_new(name);
	w->process->host = sim_plan_host_of_worker(actors.plan, rank, processes_of(rank));
	w->next = actors.worker[rank];
	actors.worker[rank] = w;
	sim_spawn(w->process, life_main, w);
}

/* ---- generations ---- */

/* How often it is looked whether all servers are lost. */
#define LOOK_NS MST_MS

static void look_after_servers(void *ctx, uint64_t losses);

static void begin_others(void *ctx, uint64_t losses)
{
	(void)ctx;
	sim_say("other servers take the place of those that are lost");
	obs_next_generation();
	servers_succeed();
	sim_after(LOOK_NS, look_after_servers, NULL, losses);
}

static void begin_beside(void *ctx, uint64_t unused)
{
	struct sim_process *leader = ctx;

	(void)unused;
	if (leader != servers_process(0) || leader->dead || leader->fibers == 0 || obs_finished())
		return;
	sim_say("another server begins beside the one that is cut off");
	obs_next_generation();
	servers_succeed();
}

void actors_begin_beside(struct sim_process *leader)
{
	sim_after(actors.plan->generations.beside_ns, begin_beside, leader, 0);
}

static void look_after_servers(void *ctx, uint64_t losses)
{
	(void)ctx;
	if (workers_are_home() || obs_is_done())
		return;
	if (servers_are_lost())
		sim_after(actors.plan->generations.next_ns[losses % SIM_LOSSES_MAX], begin_others,
			  NULL, losses + 1);
	else
		sim_after(LOOK_NS, look_after_servers, NULL, losses);
}

/* ---- what goes over the links ---- */

static void watch_up(const struct sim_worker *w, uint32_t server, const struct mst_put *put)
{
	if (mst_imm_kind(put->imm) == MST_IMM_HEADER &&
	    put->bytes == sizeof(struct mst_lane_header)) {
		struct mst_lane_header header;
		memcpy(&header, put->src, sizeof(header));
		obs_header(&w->seen, server, &header);
	} else if (mst_imm_kind(put->imm) == MST_IMM_ABANDON) {
		obs_abandon(&w->seen, server, mst_imm_slot(put->imm));
	}
}

/* Grants come one by one, or with an answer. */
static void watch_down(const struct sim_worker *w, uint32_t server, uint32_t imm)
{
	bool answers = mst_imm_kind(imm) == MST_IMM_ANSWER;
	uint32_t slots = answers ? mst_imm_grants(imm) : 1u << mst_imm_slot(imm);

	if (!answers && mst_imm_kind(imm) != MST_IMM_GRANT)
		return;
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++) {
		if (slots >> slot & 1u)
			obs_granted((struct mst_identity){ w->seen.rank, w->seen.incarnation },
				    server, slot);
	}
}

/* Between a worker and a server; what servers tell each other is seen when it is executed. */
static void watch_put(const struct mst_link *from, bool up, const struct mst_put *put)
{
	const struct mst_link *to = sim_link_peer(from);
	const struct mst_link *of_worker = up ? from : to, *of_server = up ? to : from;
	const struct sim_worker *w = of_worker != NULL ? actors_owner(sim_link_owner(of_worker))
						       : NULL;

	if (w == NULL || of_server == NULL || !put->notify)
		return;
	if (!servers_counts(sim_link_owner(of_server)))
		return;
	uint32_t server = (uint32_t)servers_number(sim_link_owner(of_server));
	if (up)
		watch_up(w, server, put);
	else
		watch_down(w, server, put->imm);
	enum mst_imm_kind kind = mst_imm_kind(put->imm);
	if (kind != MST_IMM_VERDICT && kind != MST_IMM_GRANT) /* moments of the ledger's */
		faults_moment((int)w->seen.rank, server, (uint32_t)kind);
}

static void watch_landed(const struct mst_link *at, bool up)
{
	const struct sim_worker *w = up ? NULL : actors_owner(sim_link_owner(at));

	if (w != NULL && actors.plan->marks)
		marks_look_at(w);
}

static void watch_linked(struct mst_link *connector, struct mst_link *acceptor)
{
	struct sim_worker *w = actors_owner(sim_link_owner(connector));

	if (w == NULL || servers_number(sim_link_owner(acceptor)) != 0)
		return;
	if (w->m != NULL) { /* it comes back */
		w->seen.incarnation = w->m->session.job.incarnation;
		w->seen.tickets_before = w->m->worker.tickets.sent;
	}
	obs_linked(w->seen.rank, !acceptor->ops->maps);
}

/* From here on what the worker reads may be written over. */
static void watch_detached(const struct mst_link *at, uint32_t imm)
{
	const struct mst_link *peer = sim_link_peer(at);
	const struct sim_worker *w = peer != NULL ? actors_owner(sim_link_owner(peer)) : NULL;

	if (w != NULL && imm != mst_imm(MST_IMM_SESSION, MST_SESSION_OF_WORKER, 0))
		obs_violated("server %d hangs up on rank %" PRIu32
			     ", and has not told it that its session has ended",
			     servers_number(sim_link_owner(at)), w->seen.rank);
}

static void watch_let_in_again(void)
{
	obs_violated("a token was good for a second link");
}

/* A version may be written over when its reader has gone on: what is sent again then has been
 * received before, and is thrown away. */
static void watch_spoiled(const struct mst_link *from)
{
	const struct sim_worker *w = actors_owner(sim_link_owner(from));

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
	if (p->servers > 1)
		sim_manner.piece_bytes *= LONGER_PIECES;
	if (!p->slow_network)
		return;
	sim_manner.jitter_ns = 300000;
	sim_manner.piece_bytes /= 4;
	sim_manner.slow_chance = 0.05;
	sim_manner.slow_ns = 8 * MST_MS;
	sim_manner.linger_ns = MST_MS;
	sim_stream_manner.jitter_ns = 2 * MST_MS;
}

static bool all_home(void)
{
	return servers_are_home() && workers_are_home() && operator_is_home();
}

static void name_the_lost(void)
{
	servers_name_the_lost(HORIZON_NS);
	for (uint32_t rank = 0; rank < actors.plan->workers; rank++) {
		for (struct sim_worker *w = actors.worker[rank]; w != NULL; w = w->next) {
			if (w->process->fibers > 0)
				obs_violated("after %.0f s rank %" PRIu32 " has not ended",
					     (double)HORIZON_NS / (double)MST_SECOND, rank);
		}
	}
}

/* One job. Return: did everybody go home? */
static bool play_job(struct sim_plan *plan)
{
	actors.plan = plan;
	life_begin(plan);
	operator_begin();
	servers_begin(plan);
	for (uint32_t rank = 0; rank < plan->workers; rank++)
		actors_enter(rank, false);
	faults_begin(plan);
	sim_after(NOBODY_NS, end_if_nobody_came, NULL, 0);
	if (plan->generations.wanted)
		sim_after(LOOK_NS, look_after_servers, NULL, 0);
	sim_run(sim_now() + HORIZON_NS);
	if (obs_violation() != NULL)
		return false;
	if (!all_home()) {
		name_the_lost();
		return false;
	}
	obs_end();
	servers_end();
	return true;
}

/* Whatever became of the job, what is on the disk is all that the next one knows. */
static bool play_on(const struct sim_plan *plan)
{
	static struct sim_plan then;

	if (plan->saves.then_servers == 0 || disk_newest() == 0)
		return true;
	sim_say("another job goes on from version %" PRIu64, disk_newest());
	sim_plan_go_on(plan, &then);
	obs_go_on(&then, disk_newest());
	return play_job(&then);
}

bool actors_play(struct sim_plan *plan)
{
	static const struct sim_net_watch watch = { .linked = watch_linked,
						    .put = watch_put,
						    .landed = watch_landed,
						    .spoiled = watch_spoiled,
						    .detached = watch_detached,
						    .let_in_again = watch_let_in_again };

	struct sim_heap before = sim_heap_now();
	sim_begin(plan->seed);
	memset(&actors, 0, sizeof(actors));
	sim_set_preemption(plan->preemption);
	set_network(plan);
	obs_begin(plan);
	disk_begin();
	sim_net_watch(&watch);
	if (!play_job(plan) || obs_violation() != NULL || !play_on(plan))
		return false;
	struct sim_heap after = sim_heap_now();
	if (after.blocks != before.blocks)
		obs_violated("%" PRIu64 " blocks of memory were never freed",
			     after.blocks - before.blocks);
	return obs_violation() == NULL;
}
