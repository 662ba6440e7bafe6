/* SPDX-License-Identifier: MIT */
/* The job's figures, and the data side that they make: of the lead by the first valid hello, of a
 * member by its appointment. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/kernels/sum.h"
#include "common/wire/peer.h"
#include "server/admin_state.h"
#include "server/budget.h"
#include "server/memory.h"
#include "server/peer.h"
#include "server/sentence.h"
#include "server/shard.h"

/* Untouched shared memory costs nothing, and the policy may change to one that needs two. Elsewhere
 * all of it is pinned. */
uint32_t mst_admin_slots(const struct mst_admin *a)
{
	if (a->o->slots != 0)
		return a->o->slots;
	return a->cfg.transport->maps ? 2 : mst_rule_slots(&a->rule);
}

static void notify(void *ctx)
{
	mst_admin_wake(ctx);
}

static struct mst_ledger_cfg ledger_cfg(const struct mst_admin *a)
{
	const struct mst_server_options *o = a->o;
	bool workers_own = o->owner == MUSTER_WORKERS_OWN;

	return (struct mst_ledger_cfg){
		.workers = o->workers,
		.shards = mst_admin_servers(a),
		.slots = mst_admin_slots(a),
		.buffers = o->buffers,
		.history = workers_own ? o->history : 0,
		.in_place = a->cfg.transport->maps,
		.sent = !a->cfg.transport->maps,
		.owner = workers_own ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN,
		.rule = a->rule,
		.lr = a->optimizer.lr,
		.lr_linear = o->lr_scale == 0,
		.commits_max = o->commits,
		.samples_max = o->samples,
		.lease_ns = o->lease_ns,
		.join_timeout_ns = o->join_timeout_ns,
	};
}

/* Half of the quorum is enough for a step: each fold stands for two contributions at least. Where a
 * rank contributes once, whole groups are summed early, if there are several. */
static uint32_t folds_of(const struct mst_admin *a)
{
	uint32_t half = a->rule.quorum > 1 ? (uint32_t)a->rule.quorum / 2 : 0;

	if (mst_rule_repeats(&a->rule))
		return half < a->o->workers ? half : a->o->workers;
	return a->o->workers > a->o->group ? (a->o->workers - 1) / a->o->group : 0;
}

/* A thread is worth its hand-overs where it has so much to sum of each worker, and a core. */
#define SHARD_BYTES_MIN (UINT64_C(512) << 10)

/* Servers that share memory with their workers share a host, and so its processors, unless they
 * were given some of their own. Elsewhere each may well have a host to itself. More servers than
 * processors cannot have one each: single threads would leave one idle in the end, several take
 * turns. */
static uint32_t cores_of(const struct mst_admin *a)
{
	uint32_t servers = mst_admin_servers(a), cores = a->cfg.cores;
	uint32_t index = mst_admin_is_member(a) ? a->lead.appoint.index : 0;

	if (!a->cfg.transport->maps || strcmp(a->o->cpus, "auto") != 0 || servers > cores)
		return cores;
	return cores / servers + (index < cores % servers);
}

static uint32_t shards_of(const struct mst_admin *a)
{
	uint64_t want = a->o->shards;
	uint64_t most = a->count / MST_SHARD_ELEMS_MIN;

	if (want == 0) {
		want = a->count * sizeof(float) / SHARD_BYTES_MIN;
		most = most < cores_of(a) ? most : cores_of(a);
	}
	most = most < MST_SHARDS_MAX ? most : MST_SHARDS_MAX;
	if (want > most)
		want = most;
	return want > 0 ? (uint32_t)want : 1;
}

static struct mst_aggregator_cfg aggregator_cfg(const struct mst_admin *a,
						const struct mst_ledger_cfg *ledger)
{
	return (struct mst_aggregator_cfg){
		.type = a->type,
		.result_type = a->result_type,
		.owner = (enum muster_owner)a->o->owner,
		.shards = shards_of(a),
		.elems = a->count,
		.chunk_elems = a->o->chunk / sizeof(float),
		.group = a->o->group,
		.workers = a->o->workers,
		.slots = ledger->slots,
		.buffers = mst_ledger_buffers(ledger),
		.entries_max = mst_ledger_entries(ledger),
		.sessions_max = a->guest_max,
		.folds = folds_of(a),
		.optimizer = a->optimizer,
		.layout = a->layout,
	};
}

uint64_t mst_admin_memory(const struct mst_admin *a)
{
	return a->o->memory != 0 ? a->o->memory : mst_memory_budget();
}

/* May a rank contribute again in a step? */
static bool repeats(const struct mst_admin *a)
{
	return mst_admin_is_member(a) ? a->lead.appoint.repeats != 0 : mst_rule_repeats(&a->rule);
}

/* Sums of groups can wait for the commit; those of ranks cannot. */
static void fit(const struct mst_admin *a, struct mst_server_cfg *cfg)
{
	uint64_t have = mst_admin_memory(a);
	struct mst_budget b;

	mst_budget_of(cfg, &b);
	if (have != 0 && !repeats(a) && mst_budget_bytes(&b) > have)
		cfg->aggregator.folds = 0;
}

static void tell_budget(const struct mst_admin *a, const struct mst_budget *b, uint64_t have)
{
	char text[3][32];

	mst_info("memory: %s for %" PRIu32 " workers, %s for sums and versions, of %s",
		 mst_memory_text(b->workers * b->worker_bytes, text[0], 32), b->workers,
		 mst_memory_text(b->own_bytes, text[1], 32), mst_memory_text(have, text[2], 32));
	if (b->all.queue_pairs == 0)
		return;
	mst_info("%s: %" PRIu32 " queue pairs and %s registered for each worker, %" PRIu32
		 " and %s in all; a worker registers %s for this server",
		 a->cfg.transport->scheme, b->worker.queue_pairs,
		 mst_memory_text(b->worker.bytes, text[0], 32), b->all.queue_pairs,
		 mst_memory_text(b->all.bytes, text[1], 32),
		 mst_memory_text(b->far.bytes, text[2], 32));
}

static int check_memory(const struct mst_admin *a, const struct mst_server_cfg *cfg, char *why,
			size_t len)
{
	uint64_t have = mst_admin_memory(a);
	const char *source = a->o->memory != 0 ? "--memory" : "3/4 of what is free,";
	struct mst_budget b;
	char text[3][32];

	mst_budget_of(cfg, &b);
	tell_budget(a, &b, have);
	if (have == 0 || mst_budget_bytes(&b) <= have)
		return 0;
	snprintf(why, len,
		 "no memory for job \"%s\": %" PRIu32 " workers with %" PRIu32
		 " slots need %s each and "
		 "the server %s, in all more than %s %s; raise --memory, or lower "
		 "--slots, --buffers or --history",
		 a->o->job, b.workers, a->layout.slots,
		 mst_memory_text(b.worker_bytes, text[0], 32),
		 mst_memory_text(b.own_bytes, text[1], 32), source,
		 mst_memory_text(have, text[2], 32));
	return -ENOMEM;
}

/* What the lines between servers compose must fit as well as workers' records do. */
static uint64_t outbox_max(const struct mst_admin *a, const struct mst_aggregator_cfg *g)
{
	uint64_t line = mst_peer_bytes(mst_peer_window(g->workers, g->slots));

	if (mst_admin_servers(a) == 1 || line < a->layout.down_result)
		return a->layout.down_result;
	return line;
}

static void plan_data_side(struct mst_admin *a, struct mst_server_cfg *cfg)
{
	cfg->transport = a->cfg.transport;
	cfg->net = (struct mst_net_cfg){ .outbox_max = outbox_max(a, &cfg->aggregator),
					 .lanes = mst_admin_lanes(&a->layout),
					 .fabric = &a->fabric,
					 .spin_pauses = a->o->spin_pauses,
					 .spin_yields = a->o->spin_yields };
	cfg->notify = notify;
	cfg->notify_ctx = a;
	fit(a, cfg);
}

static int open_data_side(struct mst_admin *a, const struct mst_server_cfg *cfg, char *why,
			  size_t len)
{
	int rc = check_memory(a, cfg, why, len);
	if (rc != 0)
		return rc;
	rc = mst_server_new(cfg, &a->server);
	if (rc == 0)
		rc = a->cfg.transport->door->open(mst_server_net(a->server), &a->door);
	if (rc == 0)
		rc = mst_admin_watch_door(a);
	if (rc != 0) {
		snprintf(why, len, "cannot set up job \"%s\" over %s: %s", a->o->job,
			 a->cfg.transport->scheme, mst_sentence_cause(rc));
		a->cfg.transport->door->close(a->door);
		a->door = NULL;
		mst_server_free(a->server);
		a->server = NULL;
	}
	return rc;
}

static void lay_out(struct mst_admin *a)
{
	struct mst_lane_figures figures = {
		.elems = a->count,
		.type_bytes = (uint32_t)mst_type_bytes(a->type),
		.result_type_bytes = (uint32_t)mst_type_bytes(a->result_type),
		.slots = mst_admin_slots(a),
		.workers = a->o->workers,
		.parted = mst_admin_servers(a) > 1,
	};

	mst_lane_layout(&figures, &a->layout);
}

/* ---- the lead ---- */

void mst_admin_part(const struct mst_admin *a, uint32_t server, uint64_t *first, uint64_t *count)
{
	uint32_t servers = mst_admin_servers(a);
	int64_t begin = mst_part_border(a->elems, servers, a->weights, server);
	int64_t end = mst_part_border(a->elems, servers, a->weights, server + 1);

	MST_ASSERT(begin >= 0 && end > begin); /* it has been tried with the job's first hello */
	*first = (uint64_t)begin;
	*count = (uint64_t)(end - begin);
}

void mst_admin_fill_appoint(const struct mst_admin *a, uint32_t server, struct mst_appoint *out)
{
	struct mst_ledger_cfg ledger = ledger_cfg(a);
	struct mst_aggregator_cfg g = aggregator_cfg(a, &ledger);

	snprintf(out->job, sizeof(out->job), "%s", a->o->job);
	out->index = server;
	out->servers = mst_admin_servers(a);
	out->elems = a->elems;
	mst_admin_part(a, server, &out->first, &out->count);
	out->type = (uint32_t)g.type;
	out->result_type = (uint32_t)g.result_type;
	out->owner = (uint32_t)g.owner;
	out->workers = g.workers;
	out->slots = g.slots;
	out->buffers = g.buffers;
	out->entries = g.entries_max;
	out->group = g.group;
	out->folds = g.folds;
	out->repeats = repeats(a);
	out->optimizer = (uint32_t)g.optimizer.kind;
	out->lr = g.optimizer.lr;
	out->momentum = g.optimizer.momentum;
	out->lease_ns = a->o->lease_ns;
	out->patience_ns = a->o->patience_ns;
	out->ack_timeout = a->fabric.ack_timeout;
	out->retries = a->fabric.retries;
	out->traffic_class = a->fabric.traffic_class;
	out->service_level = a->fabric.service_level;
	out->pkey = a->fabric.pkey;
}

/* Weights first: where a part would be empty, the figures say so. */
static int divide(struct mst_admin *a, char *why, size_t len)
{
	uint32_t servers = mst_admin_servers(a);

	if (mst_part_border(a->elems, servers, a->weights, servers) < 0) {
		snprintf(why, len,
			 "%" PRIu64 " elements cannot be shared by %" PRIu32
			 " servers (--spread %.60s): each needs %u or more; start fewer",
			 a->elems, servers, a->o->spread, MST_PART_ELEMS_MIN);
		return -EINVAL;
	}
	mst_admin_part(a, 0, &a->first, &a->count);
	return 0;
}

int mst_admin_plan_job(struct mst_admin *a, const struct mst_hello *h, struct mst_server_cfg *out,
		       char *why, size_t len)
{
	a->elems = h->elems;
	a->type = (enum muster_type)h->type;
	a->result_type = (enum muster_type)h->result_type;
	int rc = divide(a, why, len);
	if (rc != 0)
		return rc;
	lay_out(a);
	struct mst_ledger_cfg ledger = ledger_cfg(a);
	*out = (struct mst_server_cfg){ .ledger = ledger,
					.aggregator = aggregator_cfg(a, &ledger),
					.peers = mst_admin_servers(a) - 1 };
	plan_data_side(a, out);
	return 0;
}

int mst_admin_fix_job(struct mst_admin *a, const struct mst_hello *h, char *why, size_t len)
{
	struct mst_server_cfg cfg;
	int rc = mst_admin_plan_job(a, h, &cfg, why, len);

	if (rc == 0)
		rc = open_data_side(a, &cfg, why, len);
	if (rc != 0) {
		a->elems = 0;
		return rc;
	}
	mst_info("job \"%s\": %" PRIu64 " elements of %s, results of %s, %s own", a->o->job,
		 a->elems, mst_type_name(a->type), mst_type_name(a->result_type),
		 mst_owner_name((enum muster_owner)a->o->owner));
	return 0;
}

/* ---- a member ---- */

static struct mst_aggregator_cfg member_cfg(const struct mst_admin *a)
{
	const struct mst_appoint *p = &a->lead.appoint;

	return (struct mst_aggregator_cfg){
		.index = p->index,
		.member = true,
		.type = a->type,
		.result_type = a->result_type,
		.owner = (enum muster_owner)p->owner,
		.shards = shards_of(a),
		.elems = a->count,
		.chunk_elems = a->o->chunk / sizeof(float),
		.group = p->group,
		.workers = p->workers,
		.slots = p->slots,
		.buffers = p->buffers,
		.entries_max = p->entries,
		.sessions_max = a->guest_max,
		.folds = p->folds,
		.optimizer = { (enum mst_optimizer_kind)p->optimizer, p->lr, p->momentum },
		.layout = a->layout,
	};
}

void mst_admin_plan_part(struct mst_admin *a, struct mst_server_cfg *out)
{
	const struct mst_appoint *p = &a->lead.appoint;

	a->elems = p->elems;
	a->first = p->first;
	a->count = p->count;
	a->type = (enum muster_type)p->type;
	a->result_type = (enum muster_type)p->result_type;
	lay_out(a);
	*out = (struct mst_server_cfg){ .ledger.lease_ns = p->lease_ns,
					.aggregator = member_cfg(a),
					.peers = 2, /* the link in use, and the one after it */
					.lead = p->address };
	plan_data_side(a, out);
}

int mst_admin_fix_part(struct mst_admin *a, char *why, size_t len)
{
	struct mst_server_cfg cfg;

	mst_admin_plan_part(a, &cfg);
	return open_data_side(a, &cfg, why, len);
}
