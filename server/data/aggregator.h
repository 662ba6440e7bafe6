/* SPDX-License-Identifier: MIT */
/*
 * An aggregator: a server's part of the vector with its slots, sums, versions and optimiser. It
 * executes the ledger's decisions in order and reports what arrives; it never decides. Its calls
 * come from one thread; it allocates in mst_aggregator_new() only.
 *
 * Decisions that move no data (verdicts, grants, hints, ends) take effect at once. Decisions that
 * move data (sums, commits, answers) become tasks in one queue and are worked off chunk by chunk,
 * in order, so that polling goes on meanwhile. The arithmetic is divided among shards, each with a
 * range of its own: the first is worked on in this thread, the others may have theirs.
 */
#ifndef MST_SERVER_DATA_AGGREGATOR_H
#define MST_SERVER_DATA_AGGREGATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/optim/optim.h"
#include "common/transport/transport.h"
#include "common/wire/lane.h"
#include "common/wire/tensor_table.h"
#include "server/core/ledger/ledger.h"
#include "server/data/saving.h"
#include "server/data/session.h"

struct mst_aggregator_cfg {
	uint32_t index; /* of this server among the servers of the job, as the ledger counts them */
	/* This server is not the leader: verdicts, hints, records and the end of the job are
	 * for the leader to tell, and asks come to it alone. */
	bool follower;
	uint32_t shards; /* 1 .. MST_SHARDS_MAX */
	enum muster_type type, result_type;
	enum muster_owner owner;
	uint64_t first, elems; /* the range, of the whole vector */
	uint64_t vector;       /* elements of the whole vector */
	bool guards;           /* a version that is not finite is not published */
	bool measures;         /* a contribution is reported with the sum of its squares */
	bool checks;           /* a contribution's checksum is compared with that in its header */
	bool averages;         /* a moving average of the parameters is kept */
	bool distances;        /* each commit is compared with the version that COMMIT names */
	/* Workers may come back from an end that is no fault of theirs: --server-patience. */
	bool goes_on;
	bool saves; /* versions are saved: vectors that are kept have a second place */
	bool marks; /* versions are marked before they are written: lane.h */
	uint64_t chunk_elems;
	uint32_t group; /* G of the tree */
	uint32_t workers, slots;
	uint32_t sessions_max; /* present ones, and ended ones that are still to be read */
	uint32_t buffers;      /* as the ledger says */
	uint32_t entries_max;  /* contributions in a set */
	uint32_t partials;     /* buffers for sums of ranks that contribute again, or of groups */
	struct mst_optimizer optimizer;
	struct mst_table table; /* of the tensors of the whole vector */
	void *published;        /* mst_aggregator_published() bytes, of the net */
	struct mst_lane_layout layout;
	struct mst_net_cfg spin; /* how long a shard's thread looks before it sleeps */
};

/* What an aggregator tells the loop that runs it. */
struct mst_aggregator_up {
	void *ctx;
	/* An event for the ledger. */
	void (*event)(void *ctx, const struct mst_ledger_event *ev);
	/* SAVE: the version is made, and @what does not change until mst_aggregator_saved(). */
	void (*save)(void *ctx, const struct mst_saving *what);
	/* LEND: the version is made, and its average, of this part of the vector, does not change
	 * until mst_aggregator_returned(). @average: NULL: the version was never made, or is not
	 * finite. */
	void (*lend)(void *ctx, uint64_t version, const float *average);
	/* Nothing refers to this session any more: the link is detached, the last read is done. */
	void (*over)(void *ctx, struct mst_session *s);
	/* The last shard has done its part of a task: the aggregator is to be stepped. From the
	 * thread of any shard but the first. */
	void (*worked)(void *ctx);
};

struct mst_aggregator;

/* Bytes from one version buffer to the next in published memory. */
uint64_t mst_version_stride(uint64_t elems, enum muster_type result_type);
/* Bytes of that memory: the buffers and their marks. */
uint64_t mst_aggregator_published(const struct mst_aggregator_cfg *cfg);
/* Bytes mst_aggregator_new() will allocate: for the memory budget. */
uint64_t mst_aggregator_bytes(const struct mst_aggregator_cfg *cfg);

int mst_aggregator_new(const struct mst_aggregator_cfg *cfg, const struct mst_aggregator_up *up,
		       struct mst_aggregator **out);
void mst_aggregator_free(struct mst_aggregator *a); /* accepts NULL; no session is attached */

/* Nobody will step it any more: ends and detaches every session. @error: what workers read of it,
 * where no decision has told them why the job ends. */
void mst_aggregator_hang_up(struct mst_aggregator *a, int error);

/* The tensor table of the job, which is whole, and stays as it is while the job runs. To be called
 * by the control thread, before the job starts, perhaps several times. */
void mst_aggregator_tensors(struct mst_aggregator *a, const struct mst_tensor_table *tensors);

/* A session's link is attached: from now on it is rank who.rank's, which must have none. */
void mst_aggregator_admit(struct mst_aggregator *a, struct mst_session *session);
/* That rank's, or NULL. */
struct mst_session *mst_aggregator_session(const struct mst_aggregator *a, uint32_t rank);
/* Something arrived on its link, or it was lost. */
void mst_aggregator_arrived(struct mst_aggregator *a, const struct mst_net_event *ev);
/* At a follower: can this be executed now? Of a leader that keeps to the protocol everything
 * can. */
bool mst_aggregator_validates(const struct mst_aggregator *a, const struct mst_decision *d);
/* A decision; @record: of the version, for COMMIT and RELEASE. */
void mst_aggregator_execute(struct mst_aggregator *a, const struct mst_decision *d,
			    const struct mst_record *record);
/* Counts of what workers say: how much has arrived, and how much of it has been reported as an
 * event. They differ while something has been read and not yet reported. */
struct mst_reports {
	uint64_t arrived, reported;
};
struct mst_reports mst_aggregator_reports(const struct mst_aggregator *a);
/* @version has been saved: its vectors may change again. */
void mst_aggregator_saved(struct mst_aggregator *a, uint64_t version);
/* The average that was lent has been returned: it may change again. */
void mst_aggregator_returned(struct mst_aggregator *a);
/* Before the job starts: it goes on from a checkpoint. The vectors to be filled. */
void mst_aggregator_resume(struct mst_aggregator *a, struct mst_resumed *out);
/* One chunk of the first shard's work, and what follows from work that is done. Return: false if
 * there was nothing to do. */
bool mst_aggregator_work(struct mst_aggregator *a);
/* Puts verdicts and grants that no answer is about to take along: at the end of each step. */
void mst_aggregator_deliver(struct mst_aggregator *a);

/* A shard of the aggregator, for the thread that steps this shard. */
struct mst_shard *mst_aggregator_shard(struct mst_aggregator *a, uint32_t index);

#endif
