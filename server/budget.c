/* SPDX-License-Identifier: MIT */
#include "server/budget.h"

#include <inttypes.h>

#include "server/memory.h"
#include "server/peer.h"

/* Of the landing there is all, of the outbox what is composed: results are put from where they are
 * published. Where peers map, it is the landing of either end. */
static uint64_t worker_bytes(const struct mst_server_cfg *cfg)
{
	const struct mst_lanes *l = &cfg->net.lanes;
	size_t max = cfg->net.outbox_max;
	bool less = !cfg->transport->maps && max != 0 && max < l->down_bytes;

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
	struct mst_claim line;

	with.net.published_bytes = mst_server_published(cfg);
	claim(&with, NULL, true, &out->all);
	add(&out->all, &out->worker, out->workers);
	claim(cfg, &lanes, !a->member, &line);
	add(&out->all, &line, a->member ? 1 : cfg->peers);
}

void mst_budget_of(const struct mst_server_cfg *cfg, struct mst_budget *out)
{
	*out = (struct mst_budget){
		.workers = cfg->aggregator.workers,
		.elems = cfg->aggregator.elems,
		.shards = cfg->aggregator.shards,
		.worker_bytes = worker_bytes(cfg),
		.own_bytes = mst_server_bytes(cfg),
	};
	claim(cfg, &cfg->net.lanes, true, &out->worker);
	claim(cfg, &cfg->net.lanes, false, &out->far);
	claim_all(cfg, out);
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
		(void)fprintf(out, " %11s %10s\n", "-", "-");
	else
		(void)fprintf(out, " %11" PRIu32 " %10s\n", b->all.queue_pairs,
			      size_of(b->all.bytes).text);
}

void mst_budget_print(const struct mst_budget *b, uint64_t have, FILE *out)
{
	struct mst_claim far = { 0 };

	(void)fprintf(out, "%6s %13s %6s %10s %10s %10s %10s %11s %10s\n", "server", "elements",
		      "shards", "a worker", "workers", "own", "memory", "queue pairs",
		      "registered");
	for (uint32_t i = 0; i < b[0].servers; i++) {
		print_server(&b[i], i, out);
		add(&far, &b[i].far, 1);
	}
	if (far.queue_pairs > 0)
		(void)fprintf(
			out, "each worker: %" PRIu32 " queue pairs, %s registered at its own end\n",
			far.queue_pairs, size_of(far.bytes).text);
	if (have != 0)
		(void)fprintf(out, "a server may use %s of memory here\n", size_of(have).text);
}
