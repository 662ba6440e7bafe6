/* SPDX-License-Identifier: MIT */
/*
 * A shard: a range of the vector with its slots, sums, versions and optimiser. It executes the
 * ledger's decisions in order and reports what arrives; it never decides. All calls come from its
 * one thread; it allocates in mst_shard_new() only.
 *
 * Decisions that move no data (verdicts, grants, advice, ends) take effect at once. Those that do
 * (folds, commits, answers) become jobs in one queue and are worked off chunk by chunk, in order,
 * so that polling goes on meanwhile.
 */
#ifndef MST_SERVER_SHARD_H
#define MST_SERVER_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "common/wire/lane.h"
#include "server/core/ledger.h"
#include "server/options.h"
#include "server/session.h"

struct mst_shard_cfg {
	uint32_t index; /* of this shard in the job */
	enum muster_type type, result_type;
	enum muster_owner owner;
	uint64_t elems; /* of the range */
	uint64_t chunk_elems;
	uint32_t group; /* G of the tree */
	uint32_t workers, slots;
	uint32_t sessions_max; /* present ones, and ended ones that are still to be read */
	uint32_t buffers;      /* as the ledger says */
	uint32_t entries_max;  /* contributions in a set */
	uint32_t folds;        /* buffers for sums of ranks that contribute again and again */
	struct mst_optimizer optimizer;
	void *published; /* buffers x mst_shard_stride() bytes, of the net */
	struct mst_lane_layout layout;
};

/* What a shard tells the loop that runs it. */
struct mst_shard_up {
	void *ctx;
	/* An event for the ledger. */
	void (*event)(void *ctx, const struct mst_ledger_event *ev);
	/* Nothing refers to this session any more: the link is detached, the last read is done. */
	void (*over)(void *ctx, struct mst_session *s);
};

struct mst_shard;

/* Bytes from one version buffer to the next in published memory. */
uint64_t mst_shard_stride(uint64_t elems, enum muster_type result_type);
/* Bytes mst_shard_new() will allocate: for the memory budget. */
uint64_t mst_shard_bytes(const struct mst_shard_cfg *cfg);

int mst_shard_new(const struct mst_shard_cfg *cfg, const struct mst_shard_up *up,
		  struct mst_shard **out);
void mst_shard_free(struct mst_shard *s); /* accepts NULL; no session is attached */

/* Nobody will step it any more: ends and detaches every session. */
void mst_shard_hang_up(struct mst_shard *s);

/* A session's link is attached: from now on it is rank who.rank's. */
void mst_shard_admit(struct mst_shard *s, struct mst_session *session);
/* Something arrived on its link, or it was lost. */
void mst_shard_arrived(struct mst_shard *s, const struct mst_net_event *ev);
/* A decision; @record: of the version, for COMMIT and RELEASE. */
void mst_shard_execute(struct mst_shard *s, const struct mst_decision *d,
		       const struct mst_record *record, const struct mst_rule *rule);
/* One chunk of the oldest job. Return: false if there is none. */
bool mst_shard_work(struct mst_shard *s);
/* Puts verdicts and grants that no answer is about to take along: at the end of each step. */
void mst_shard_deliver(struct mst_shard *s);

#endif
