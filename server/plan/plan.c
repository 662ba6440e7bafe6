/* SPDX-License-Identifier: MIT */
#include "server/plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/kernels/sum.h"
#include "common/transport/spin.h"
#include "common/wire/peer.h"
#include "server/cluster/follower.h"
#include "server/cluster/leader.h"
#include "server/cluster/peer.h"
#include "server/core/policy/rule.h"
#include "server/data/shard.h"

/* The bytes of each worker that one more thread must have to sum, or it does not pay off. It also
 * needs a core of its own. */
#define SHARD_BYTES_MIN (UINT64_C(512) << 10)

int mst_terms_read(const struct mst_server_options *o, struct mst_terms *out,
		   struct mst_reason *why)
{
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (o->join == NULL)
		rc = mst_server_options_rule(o, &out->policy, why);
	if (rc == 0)
		rc = mst_server_options_partition(o, out->weights, why);
	if (rc == 0)
		rc = mst_server_options_optimizer(o, &out->optimizer, why);
	if (rc == 0 && o->join == NULL && mst_controller_by_norms(&out->policy.controller))
		mst_optimizer_measure(&out->optimizer);
	if (rc == 0 && o->join == NULL)
		rc = mst_server_options_schedule(o, &out->schedule, why);
	if (rc == 0 && o->join == NULL)
		rc = mst_server_options_checkpoints(o, &out->saves, why);
	if (rc == 0)
		rc = mst_fabric_read(&o->fabric, &out->fabric, why);
	if (rc != 0)
		return rc;
	out->fabric.encrypted = mst_server_options_encrypts(o);
	out->fabric.loopback = mst_server_options_is_near(o);
	return 0;
}

uint32_t mst_plan_slots(const struct mst_plan_cfg *cfg)
{
	if (cfg->options->slots != 0)
		return cfg->options->slots;
	return mst_networks_map(cfg->networks)
		       ? 2
		       : mst_policy_slots(&cfg->terms->policy, cfg->options->workers);
}

struct mst_lanes mst_plan_lanes(const struct mst_lane_layout *l)
{
	return (struct mst_lanes){ l->up_bytes, l->down_bytes, l->up_credits, l->down_credits };
}

/* ---- what leader and followers have in common ---- */

/* Is all of the job on this host? */
static bool is_together(const struct mst_plan_cfg *cfg)
{
	return cfg->networks->count == 1 && mst_networks_map(cfg->networks);
}

/* Servers that share memory with all their workers run on one host. They share its processors,
 * unless the user gave each its own. Otherwise each server may have a host to itself. If there
 * are more servers than processors, all use all: with one thread each, a processor would be idle
 * when some have finished. */
static uint32_t cores_of(const struct mst_plan_cfg *cfg, uint32_t index, uint32_t servers)
{
	uint32_t cores = cfg->cores;

	if (!is_together(cfg) || strcmp(cfg->options->cpus, "auto") != 0 || servers > cores)
		return cores;
	return cores / servers + (index < cores % servers);
}

static uint32_t shards_of(const struct mst_plan_cfg *cfg, uint64_t elems, uint32_t cores)
{
	uint64_t want = cfg->options->shards;
	uint64_t most = elems / MST_SHARD_ELEMS_MIN;

	if (want == 0) {
		want = elems * sizeof(float) / SHARD_BYTES_MIN;
		most = most < cores ? most : cores;
	}
	most = most < MST_SHARDS_MAX ? most : MST_SHARDS_MAX;
	if (want > most)
		want = most;
	return want > 0 ? (uint32_t)want : 1;
}

/* The first version of a generation was made by the ranks of an earlier one. */
static uint32_t record_ranks_of(const struct mst_plan_cfg *cfg)
{
	uint32_t workers = cfg->options->workers;

	return cfg->record_ranks > workers ? cfg->record_ranks : workers;
}

static void lay_out(struct mst_plan *plan, uint32_t slots, uint32_t ranks, uint32_t servers)
{
	struct mst_lane_figures figures = {
		.elems = plan->count,
		.type_bytes = (uint32_t)mst_type_bytes(plan->vector.type),
		.result_type_bytes = (uint32_t)mst_type_bytes(plan->vector.result_type),
		.slots = slots,
		.workers = ranks,
		.parted = servers > 1,
	};

	mst_lane_layout(&figures, &plan->layout);
}

/* The outbound region must have room for what is composed for server links, too. */
static uint64_t outbound_max(const struct mst_plan *plan, uint32_t servers)
{
	const struct mst_aggregator_cfg *a = &plan->server.aggregator;
	uint64_t server_link = mst_peer_bytes(mst_peer_window(a->workers, a->slots));
	uint64_t record = plan->layout.down_result;

	return servers == 1 || server_link < record ? record : server_link;
}

static uint32_t pauses_of(const struct mst_plan_cfg *cfg, const struct mst_plan *plan,
			  uint32_t servers)
{
	uint32_t processes = plan->server.aggregator.workers + servers;

	if (cfg->options->spin_pauses != 0)
		return cfg->options->spin_pauses;
	return mst_spin_pauses_of(is_together(cfg) ? processes : 1, cfg->processors);
}

static void plan_net(const struct mst_plan_cfg *cfg, struct mst_plan *plan, uint32_t servers)
{
	plan->server.transport = mst_networks_transport(cfg->networks);
	plan->server.net = (struct mst_net_cfg){ .outbound_max = outbound_max(plan, servers),
						 .lanes = mst_plan_lanes(&plan->layout),
						 .fabric = &cfg->terms->fabric,
						 .networks = cfg->networks,
						 .channels = cfg->channels,
						 .ports = cfg->ports,
						 .spin_pauses = pauses_of(cfg, plan, servers),
						 .spin_yields = cfg->options->spin_yields };
}

uint32_t mst_plan_quorum_max(const struct mst_plan *leader)
{
	const struct mst_ledger_cfg *l = &leader->server.ledger;
	uint32_t slots = l->workers * l->slots;
	uint32_t planned = mst_rule_planned(&l->rule, l->workers);

	return planned > slots ? planned : slots;
}

bool mst_plan_shrink(struct mst_plan *plan)
{
	bool has = plan->server.aggregator.partials > 0 && !plan->repeats;

	if (has)
		plan->server.aggregator.partials = 0;
	return has;
}

/* ---- the leader ---- */

static struct mst_optimizer optimizer_of(const struct mst_terms *terms, uint32_t owner)
{
	return owner == MUSTER_WORKERS_OWN ? (struct mst_optimizer){ .row = NULL }
					   : terms->optimizer;
}

/* Workers give a server up after its lease, from its last heartbeat on. */
static uint64_t stands_ns(const struct mst_server_options *o)
{
	return mst_server_options_goes_on(o) ? mst_server_options_server_lease(o) - o->lease_ns / 2
					     : 0;
}

static struct mst_ledger_cfg ledger_cfg(const struct mst_plan_cfg *cfg)
{
	const struct mst_server_options *o = cfg->options;
	bool workers_own = o->owner == MUSTER_WORKERS_OWN;

	return (struct mst_ledger_cfg){
		.workers = o->workers,
		.record_ranks = record_ranks_of(cfg),
		.shards = o->servers,
		.slots = mst_plan_slots(cfg),
		.buffers = o->buffers,
		.history = workers_own ? o->history : 0,
		.catch_up = workers_own ? o->catch_up : 0,
		.in_place = mst_networks_map(cfg->networks),
		.sent = !mst_networks_map(cfg->networks),
		.owner = workers_own ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN,
		.rule = cfg->terms->policy.rule,
		.controller = cfg->terms->policy.controller,
		.optimizer = optimizer_of(cfg->terms, o->owner),
		.schedule = cfg->terms->schedule,
		.distance = workers_own ? 0 : o->lr_distance,
		.average = o->average,
		.commits_max = o->commits,
		.samples_max = o->samples,
		.lease_ns = o->lease_ns,
		.stands_ns = stands_ns(o),
		.return_ns = o->return_timeout_ns,
		.norm_limit = o->norm_limit,
		.saves = cfg->terms->saves,
	};
}

/* How many partial sums a step may need. Each stands for at least two contributions, so half of the
 * quorum is enough. Where a rank contributes only once, whole groups are summed early, if there are
 * several groups. */
static uint32_t partials_of(const struct mst_plan_cfg *cfg)
{
	const struct mst_server_options *o = cfg->options;
	const struct mst_rule *rule = &cfg->terms->policy.rule;
	uint32_t half = mst_rule_planned(rule, o->workers) / 2;

	if (mst_rule_repeats(rule))
		return half < o->workers ? half : o->workers;
	return o->workers > o->group ? (o->workers - 1) / o->group : 0;
}

static struct mst_aggregator_cfg aggregator_cfg(const struct mst_plan_cfg *cfg,
						const struct mst_plan *plan)
{
	const struct mst_server_options *o = cfg->options;
	const struct mst_ledger_cfg *ledger = &plan->server.ledger;

	return (struct mst_aggregator_cfg){
		.type = plan->vector.type,
		.result_type = plan->vector.result_type,
		.owner = (enum muster_owner)o->owner,
		.shards = shards_of(cfg, plan->count, cores_of(cfg, 0, o->servers)),
		.first = plan->first,
		.elems = plan->count,
		.vector = plan->vector.elems,
		.guards = o->guard != MST_GUARD_OFF,
		.measures = o->norm_limit > 0,
		.checks = o->checksum,
		.averages = o->average > 0,
		.distances = ledger->distance > 0,
		.goes_on = mst_server_options_goes_on(o),
		.saves = ledger->saves.wanted,
		.marks = mst_lane_marks(o->owner, o->server_patience_ns),
		.chunk_elems = o->chunk / sizeof(float),
		.group = o->group,
		.workers = o->workers,
		.slots = ledger->slots,
		.buffers = mst_ledger_buffers(ledger),
		.entries_max = mst_ledger_entries(ledger),
		.sessions_max = MST_PLAN_SESSIONS_PER_RANK * o->workers,
		.partials = partials_of(cfg),
		.optimizer = ledger->optimizer,
		.table = plan->vector.table,
		.layout = plan->layout,
	};
}

void mst_plan_part(const struct mst_plan_cfg *cfg, const struct mst_plan *leader, uint32_t server,
		   uint64_t *first, uint64_t *count)
{
	uint64_t elems = leader->vector.elems;
	uint32_t servers = cfg->options->servers;
	int64_t begin = mst_part_border(elems, servers, cfg->terms->weights, server);
	int64_t end = mst_part_border(elems, servers, cfg->terms->weights, server + 1);

	MST_ASSERT(begin >= 0 && end > begin); /* mst_plan_leader() has checked that */
	*first = (uint64_t)begin;
	*count = (uint64_t)(end - begin);
}

/* Computes this server's part. If some part would be empty, @why says so with its numbers. */
static int divide(const struct mst_plan_cfg *cfg, struct mst_plan *plan, struct mst_reason *why)
{
	const struct mst_server_options *o = cfg->options;

	if (mst_part_border(plan->vector.elems, o->servers, cfg->terms->weights, o->servers) < 0) {
		mst_reason_set(why,
			       "%" PRIu64 " elements cannot be shared by %" PRIu32
			       " servers (--partition %.60s): each needs %u or more; start fewer",
			       plan->vector.elems, o->servers, o->partition, MST_PART_ELEMS_MIN);
		return -EINVAL;
	}
	mst_plan_part(cfg, plan, 0, &plan->first, &plan->count);
	return 0;
}

int mst_plan_leader(const struct mst_plan_cfg *cfg, const struct mst_vector *vector,
		    struct mst_plan *out, struct mst_reason *why)
{
	const struct mst_server_options *o = cfg->options;

	*out = (struct mst_plan){ .vector = *vector };
	int rc = divide(cfg, out, why);
	if (rc != 0)
		return rc;
	lay_out(out, mst_plan_slots(cfg), record_ranks_of(cfg), o->servers);
	out->server.ledger = ledger_cfg(cfg);
	out->server.ledger.tensors = vector->table.tensors > 0;
	out->server.aggregator = aggregator_cfg(cfg, out);
	out->repeats = mst_rule_repeats(&cfg->terms->policy.rule);
	out->server.peers = o->servers - 1;
	out->server.server_lease_ns = mst_server_options_server_lease(o);
	out->server.records = mst_server_options_record(o);
	out->server.decider = o->servers > 1 ? mst_leader_make : NULL;
	plan_net(cfg, out, o->servers);
	return 0;
}

static void appoint_optimizer(const struct mst_optimizer *o, struct mst_appoint *out)
{
	static_assert(sizeof(out->parameter) == sizeof(o->parameter), "any row's");
	static_assert(MST_OPTIMIZER_LEN == MST_OPTIM_NAME_LEN, "any row's");
	if (o->row == NULL)
		return;
	snprintf(out->optimizer, sizeof(out->optimizer), "%s", o->row->name);
	out->parameter_count = mst_optim_parameters(o->row);
	memcpy(out->parameter, o->parameter, sizeof(out->parameter));
}

void mst_plan_appoint(const struct mst_plan_cfg *cfg, const struct mst_plan *leader,
		      uint32_t server, struct mst_appoint *out)
{
	const struct mst_aggregator_cfg *g = &leader->server.aggregator;
	const struct mst_server_options *o = cfg->options;

	snprintf(out->job, sizeof(out->job), "%s", o->job);
	out->index = server;
	out->servers = o->servers;
	out->elems = leader->vector.elems;
	mst_plan_part(cfg, leader, server, &out->first, &out->count);
	out->type = (uint32_t)g->type;
	out->result_type = (uint32_t)g->result_type;
	out->owner = (uint32_t)g->owner;
	out->workers = g->workers;
	out->slots = g->slots;
	out->record_ranks = record_ranks_of(cfg);
	out->buffers = g->buffers;
	out->entries = g->entries_max;
	out->group = g->group;
	/* a follower may have memory for partial sums although the leader has not */
	out->partials = partials_of(cfg);
	out->repeats = leader->repeats;
	appoint_optimizer(&g->optimizer, out);
	out->averages = g->averages;
	out->distances = g->distances;
	out->table = g->table;
	out->guard = o->guard;
	out->measures = g->measures;
	out->checks = g->checks;
	out->lease_ns = o->lease_ns;
	out->server_lease_ns = mst_server_options_server_lease(o);
	out->patience_ns = o->patience_ns;
	out->server_patience_ns = o->server_patience_ns;
	mst_fabric_tell(&cfg->terms->fabric, &out->path);
}

/* ---- a follower ---- */

/* Workers own: there is none. */
static struct mst_optimizer optimizer_appointed(const struct mst_appoint *p)
{
	struct mst_optimizer o = { .row = NULL };
	struct mst_reason why;

	if (p->owner == MUSTER_WORKERS_OWN)
		return o;
	int rc = mst_optimizer_take(p->optimizer, p->parameter, p->parameter_count, &o, &why);
	MST_ASSERT(rc == 0); /* who takes an appointment has looked */
	return o;
}

static struct mst_aggregator_cfg follower_cfg(const struct mst_plan_cfg *cfg,
					      const struct mst_appoint *p,
					      const struct mst_plan *plan)
{
	return (struct mst_aggregator_cfg){
		.index = p->index,
		.follower = true,
		.type = plan->vector.type,
		.result_type = plan->vector.result_type,
		.owner = (enum muster_owner)p->owner,
		.shards = shards_of(cfg, plan->count, cores_of(cfg, p->index, p->servers)),
		.first = plan->first,
		.elems = plan->count,
		.vector = plan->vector.elems,
		.guards = p->guard != MST_GUARD_OFF,
		.measures = p->measures != 0,
		.checks = p->checks != 0,
		.averages = p->averages != 0,
		.distances = p->distances != 0,
		.goes_on = p->server_patience_ns != 0,
		.saves = p->saves[0] != '\0',
		.marks = mst_lane_marks(p->owner, p->server_patience_ns),
		.chunk_elems = cfg->options->chunk / sizeof(float),
		.group = p->group,
		.workers = p->workers,
		.slots = p->slots,
		.buffers = p->buffers,
		.entries_max = p->entries,
		.sessions_max = MST_PLAN_SESSIONS_PER_RANK * p->workers,
		.partials = p->partials,
		.optimizer = optimizer_appointed(p),
		.table = plan->vector.table,
		.layout = plan->layout,
	};
}

void mst_plan_follower(const struct mst_plan_cfg *cfg, const struct mst_appoint *p,
		       struct mst_plan *out)
{
	*out = (struct mst_plan){ .vector = { p->elems, (enum muster_type)p->type,
					      (enum muster_type)p->result_type, p->table },
				  .first = p->first,
				  .count = p->count,
				  .repeats = p->repeats != 0 };
	lay_out(out, p->slots, p->record_ranks > p->workers ? p->record_ranks : p->workers,
		p->servers);
	out->server = (struct mst_server_cfg){ .decider = mst_follower_make,
					       .ledger.lease_ns = p->lease_ns,
					       .server_lease_ns = p->server_lease_ns,
					       .aggregator = follower_cfg(cfg, p, out),
					       /* the server link in use, and the next */
					       .peers = 2,
					       .leader = p->address };
	plan_net(cfg, out, p->servers);
}
