/* SPDX-License-Identifier: MIT */
#include "server/control/job/budget.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/reason.h"
#include "common/host/descriptors.h"
#include "common/host/memory.h"
#include "common/wire/tensor_table.h"
#include "server/cluster/peer.h"
#include "server/control/connections/places.h"
#include "server/control/job/requests.h"
#include "server/control/members/rejoins.h"
#include "server/control/members/sessions.h"
#include "server/data/recording.h"

/* The inbound region is allocated whole. Of the outbound region only what is composed in it needs
 * memory, since results are put from where they are published. Where peers map each other's memory,
 * the outbound region is the peer's inbound region. */
static bool may_map(const struct mst_server_cfg *cfg)
{
	return cfg->net.networks != NULL ? mst_networks_map(cfg->net.networks)
					 : cfg->transport->maps;
}

static uint64_t worker_bytes(const struct mst_server_cfg *cfg)
{
	const struct mst_lanes *l = &cfg->net.lanes;
	size_t max = cfg->net.outbound_max;
	bool less = !may_map(cfg) && max != 0 && max < l->down_bytes;

	return l->up_bytes + (less ? max : l->down_bytes);
}

static void claim(const struct mst_server_cfg *cfg, const struct mst_lanes *lanes, bool accepts,
		  struct mst_claim *out)
{
	*out = (struct mst_claim){ 0 };
	if (cfg->transport->claim != NULL)
		cfg->transport->claim(&cfg->net, lanes, accepts, out);
}

static void add(struct mst_claim *sum, const struct mst_claim *each, uint32_t count)
{
	sum->queue_pairs += count * each->queue_pairs;
	sum->bytes += count * each->bytes;
}

static void claim_all(const struct mst_server_cfg *cfg, struct mst_budget *out)
{
	const struct mst_aggregator_cfg *a = &cfg->aggregator;
	struct mst_lanes lanes = mst_peer_lanes(mst_peer_window(a->workers, a->slots));
	struct mst_server_cfg with = *cfg;
	struct mst_claim server_link;

	with.net.published_bytes = mst_server_published(cfg);
	claim(&with, NULL, true, &out->all);
	add(&out->all, &out->worker, out->workers);
	claim(cfg, &lanes, !a->follower, &server_link);
	add(&out->all, &server_link, a->follower ? 1 : cfg->peers);
}

/* What the control side allocates for each worker: its sessions, its connection and one that may
 * follow, the row of a snapshot and the same row encoded for those who watch the status; and the
 * requests that wait for room. Only the leader has connections with workers. Each server has the
 * tensor table of the job. */
static uint64_t control_bytes(const struct mst_server_cfg *cfg)
{
	const struct mst_aggregator_cfg *a = &cfg->aggregator;
	struct mst_requests_cfg requests = { .workers = a->workers,
					     .sessions = a->sessions_max,
					     .servers = cfg->peers + 1 };
	uint64_t sessions = mst_sessions_bytes(a->workers, a->sessions_max);
	uint64_t worker = MST_CONN_BYTES + 2 * sizeof(struct mst_status_rank);
	uint64_t connections = mst_places_bytes(2 * a->workers, a->workers) + a->workers * worker;

	return sessions + mst_rejoins_bytes(a->workers) + mst_requests_bytes(&requests) +
	       mst_tensor_table_bytes(&a->table) + (a->follower ? 0 : connections);
}

/* What this server allocates besides the memory of each worker. */
static uint64_t own_bytes(const struct mst_server_cfg *cfg)
{
	const struct mst_aggregator_cfg *a = &cfg->aggregator;

	return mst_server_bytes(cfg) + control_bytes(cfg) +
	       (cfg->records ? mst_recording_bytes() : 0) +
	       mst_peers_bytes(a->follower ? 1 : cfg->peers, mst_peer_window(a->workers, a->slots));
}

void mst_budget_of(const struct mst_server_cfg *cfg, struct mst_budget *out)
{
	*out = (struct mst_budget){
		.workers = cfg->aggregator.workers,
		.elems = cfg->aggregator.elems,
		.shards = cfg->aggregator.shards,
		.worker_bytes = worker_bytes(cfg),
		.own_bytes = own_bytes(cfg),
	};
	claim(cfg, &cfg->net.lanes, true, &out->worker);
	claim(cfg, &cfg->net.lanes, false, &out->far);
	claim_all(cfg, out);
	struct mst_descriptors_cfg files = { .transport = cfg->transport,
					     .net = &cfg->net,
					     .workers = cfg->aggregator.workers,
					     .peers = cfg->peers,
					     .follower = cfg->aggregator.follower };
	mst_descriptors_of(&files, &out->files);
}

/* ---- for people ---- */

struct size_text {
	char text[32];
};

static struct size_text size_of(uint64_t bytes)
{
	struct size_text t;

	mst_memory_text(bytes, t.text, sizeof(t.text));
	return t;
}

static void print_server(const struct mst_budget *b, uint32_t index, FILE *out)
{
	(void)fprintf(out, "%6" PRIu32 " %13" PRIu64 " %6" PRIu32 " %10s %10s %10s %10s", index,
		      b->elems, b->shards, size_of(b->worker_bytes).text,
		      size_of(b->workers * b->worker_bytes).text, size_of(b->own_bytes).text,
		      size_of(mst_budget_bytes(b)).text);
	if (b->all.queue_pairs == 0)
		(void)fprintf(out, " %11s %10s", "-", "-");
	else
		(void)fprintf(out, " %11" PRIu32 " %10s", b->all.queue_pairs,
			      size_of(b->all.bytes).text);
	(void)fprintf(out, " %6" PRIu64 "\n", mst_descriptors_all(&b->files));
}

void mst_budget_room(uint64_t given, struct mst_budget_room *out)
{
	struct mst_host_memory host;
	char source[256];

	if (given != 0) {
		out->bytes = given;
		(void)snprintf(out->text, sizeof(out->text), "--memory %s", size_of(given).text);
		return;
	}
	mst_host_memory("", &host);
	out->bytes = mst_host_memory_share(&host);
	if (out->bytes == MST_MEMORY_UNKNOWN)
		(void)snprintf(out->text, sizeof(out->text), "an unknown amount");
	else
		(void)snprintf(out->text, sizeof(out->text), "%s, 3/4 %s", size_of(out->bytes).text,
			       mst_host_memory_source(&host, source, sizeof(source)));
}

void mst_budget_print(const struct mst_budget *b, const struct mst_budget_room *room, FILE *out)
{
	struct mst_claim far = { 0 };

	(void)fprintf(out, "%6s %13s %6s %10s %10s %10s %10s %11s %10s %6s\n", "server", "elements",
		      "shards", "a worker", "workers", "own", "memory", "queue pairs", "registered",
		      "files");
	for (uint32_t i = 0; i < b[0].servers; i++) {
		print_server(&b[i], i, out);
		add(&far, &b[i].far, 1);
	}
	if (far.queue_pairs > 0)
		(void)fprintf(
			out, "each worker: %" PRIu32 " queue pairs, %s registered at its own end\n",
			far.queue_pairs, size_of(far.bytes).text);
	(void)fprintf(out, "memory that a server may use here: %s\n", room->text);
	(void)fprintf(out,
		      "files that a server may open here: %" PRIu64 ", of which %" PRIu64
		      " are open\n",
		      mst_host_descriptors_max(), mst_host_descriptors_open(""));
}

/* ---- a job that is planned and not made ---- */

static void plan_takes(const struct mst_plan *plan, uint32_t servers, struct mst_budget *out)
{
	mst_budget_of(&plan->server, out);
	out->servers = servers;
	out->first = plan->first;
}

int mst_budget_job(const struct mst_plan_cfg *cfg, uint64_t elems,
		   struct mst_budget out[MST_SERVERS_MAX], struct mst_reason *why)
{
	const struct mst_vector vector = { .elems = elems };
	uint32_t servers = cfg->options->servers;
	struct mst_plan_cfg with = *cfg;
	struct mst_plan leader, follower;
	struct mst_appoint appoint;
	struct mst_terms terms;

	int rc = mst_terms_read(cfg->options, &terms, why);
	with.terms = &terms;
	if (rc == 0)
		rc = mst_plan_leader(&with, &vector, &leader, why);
	if (rc != 0)
		return rc;
	plan_takes(&leader, servers, &out[0]);
	for (uint32_t i = 1; i < servers; i++) {
		memset(&appoint, 0, sizeof(appoint));
		mst_plan_appoint(&with, &leader, i, &appoint);
		mst_plan_follower(&with, &appoint, &follower);
		plan_takes(&follower, servers, &out[i]);
	}
	return 0;
}
