/* SPDX-License-Identifier: MIT */
/*
 * The events that the ledger handles. A contribution is identified by (rank, incarnation, seq). An
 * event whose incarnation is not the rank's present one is ignored (PROTOCOL 1).
 */
#ifndef MST_SERVER_CORE_LEDGER_EVENT_H
#define MST_SERVER_CORE_LEDGER_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/exact_sum.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "common/wire/part.h"
#include "common/wire/rule.h"
#include "server/core/policy/controller.h"

/* The shard of the leader that reads all asks. Asks arrive in the same lane as headers, so an
 * ask is read after all that its worker pushed before it, and before all that the worker pushes
 * next. */
#define MST_SHARD_LEAD 0u

struct mst_identity {
	uint32_t rank;
	uint32_t incarnation; /* from 1 */
};

/* What a worker that comes back has of an earlier generation, or of the one that runs. */
struct mst_claimed {
	uint64_t number;      /* of the generation of its last outcome; 0: it had none */
	uint32_t workers;     /* that this generation had; 0: not known */
	uint64_t version;     /* of its last outcome, */
	uint64_t made;        /* which was made by the generation of this id; 0: by none; */
	uint64_t made_before; /* the same of the version before that; 0 also: not known */
	double samples;       /* in all versions up to that */
	/* The highest number of a start that it has said START to, and of which generation: it need
	 * not have had an outcome of that. */
	uint64_t seen, seen_id;
	bool taken; /* the version, with the state of another worker: it was late */
};

/* Has it been in a generation of the run, with an outcome or without? New processes have not. */
static inline bool mst_claimed_takes_part(const struct mst_claimed *claimed)
{
	return claimed->number > 0 || claimed->seen > 0;
}

/* Is it the same version that both claim? */
static inline bool mst_claimed_same(const struct mst_claimed *a, const struct mst_claimed *b)
{
	return a->number > 0 && b->number > 0 && a->version == b->version && a->made == b->made;
}
/* Is what is claimed the version before @newest? No generation has made the first version of a run,
 * and a run has one. A worker that claims any other version knows its maker, and so is not taken
 * for one behind where @newest does not say who has made the version before. */
static inline bool mst_claimed_before(const struct mst_claimed *claimed,
				      const struct mst_claimed *newest)
{
	return claimed->number > 0 && claimed->version + 1 == newest->version &&
	       claimed->made == newest->made_before;
}

/* What has come with the first version of a later generation: its record, as far as workers know
 * it. */
struct mst_brought {
	bool bare;      /* without the bytes of the version */
	double samples; /* of its contributions */
	double lr_scale;
	uint32_t workers; /* of the job when it was made; 0: not known */
	uint32_t share_count;
	const struct mst_lane_share *share; /* by rank; lent until the event has been handled */
};

enum mst_ledger_event_kind {
	MST_EV_JOIN, /* a process wants to join: join */
	/* The worker's links with one shard are up: shard; and far, by MST_SHARD_LEAD. A worker's
	 * links with all shards are over the same network. */
	MST_EV_LINKED,
	/* the worker is ready, and asks for its first version: offers, stateless, offered */
	MST_EV_START,
	/* the start state that the worker was told to send has arrived at every shard: brought */
	MST_EV_STATE,
	MST_EV_FULL,      /* a shard has read a header: shard, header */
	MST_EV_ABANDONED, /* all rails of a shard have brought ABANDON: shard, slot, epoch */
	MST_EV_ASK,       /* ask; MST_SHARD_LEAD has read it */
	MST_EV_ANSWERED,  /* a shard has sent all of a copied answer: shard, number */
	MST_EV_HEARTBEAT,
	MST_EV_HEARD, /* every worker's connection was read to its end after heard_ns */
	MST_EV_LEAVE, /* seq: of its last header */
	MST_EV_LOST,  /* the worker's control connection or a link is gone: error */
	/* The worker's link with one shard is gone, and all that has come over it has been
	 * reported: shard. MST_EV_LOST, which does not wait for its turn, has come before. */
	MST_EV_UNLINKED,
	MST_EV_FINISH, /* the worker wants the job to end */
	MST_EV_GOAL,   /* goal: the worker wants the job to end with this version */
	/* policy: another one; each of its rules has passed mst_rule_check() */
	MST_EV_POLICY,
	MST_EV_REST,    /* rests: the worker is to rest, or to return */
	MST_EV_SERVER,  /* shard: of a server that is gone for good */
	MST_EV_SPOILT,  /* a version has an infinite or NaN element, and is not published: spoilt */
	MST_EV_SETTLED, /* a shard has executed all decisions before SETTLE: shard */
	/* A shard has the mean of a version, whose optimiser has a reduce phase: reduced. With
	 * norms of tensors it reports MST_EDGE_SUMS sums, in order, else one. Where the rate
	 * depends on a distance, its square follows, or is all. */
	MST_EV_REDUCED,
	MST_EV_STOP,  /* the server is being stopped: the job ends with the newest version */
	MST_EV_SAVED, /* a shard has written its part of a version, or has failed to: saved */
	MST_EV_LEND,  /* the average is to be lent, as it is after the newest version */
	/* lent: a shard does not read any more what LEND has lent. Of each shard once for each
	 * LEND. */
	MST_EV_RETURNED,
	/* An operator wants the worker's session to end. It goes on where the loss of a worker that
	 * takes part makes the job fail. */
	MST_EV_EVICT,
	MST_EV_END, /* an operator wants the job to end, with the step that is open */
	/* given: the worker's state has come, or it has none to give */
	MST_EV_GIVEN,
	MST_EV_TAKEN, /* given: the worker has all of the state with this number */
	/* metric: the worker has reported a value, which is finite; for the controller */
	MST_EV_METRIC,
	/* The worker has another state than the others after the same versions. Where it comes
	 * back, its next ask is answered as if the version after it were gone. */
	MST_EV_STRAYS,
};

/* Where an element that is infinite or NaN comes from. */
enum mst_spoil {
	MST_SPOIL_GRADIENT, /* one contribution has it */
	/* a sum of several contributions has it, and their data are no longer there */
	MST_SPOIL_SUM,
	MST_SPOIL_STEP, /* no contribution has it: the sum or the optimiser's step has overflowed */
};

struct mst_spoilt {
	uint64_t version;
	uint64_t element;  /* index of the first such element in the whole vector */
	uint32_t kind;     /* enum mst_spoil */
	uint32_t rank;     /* GRADIENT: the rank; SUM: the first of the ranks */
	uint32_t rank_end; /* SUM: one after the last of the ranks */
};

struct mst_ledger_event {
	enum mst_ledger_event_kind kind;
	/* not for JOIN, HEARD, POLICY, SERVER, END and what is about work */
	struct mst_identity who;
	union {
		struct {
			uint64_t cookie; /* returned with ADMIT or REFUSE */
			int32_t rank;    /* the rank wanted; -1: any free rank */
			bool comes_back; /* the worker gives and takes states */
			/* It comes back: what it has, and the incarnation of its last session. */
			struct mst_claimed claimed;
			uint32_t incarnation;
		} join;
		struct {
			uint32_t shard; /* LINKED, UNLINKED, SETTLED, SERVER */
			bool far;       /* LINKED: that network does not map memory */
		};
		struct {
			bool stateless;   /* START: no state came with the version that it claims */
			bool offers;      /* START: a start state, */
			uint64_t offered; /* of this version, in the job that it comes from */
		};
		struct mst_brought brought; /* STATE */
		struct {
			uint32_t shard;
			struct mst_lane_header header;
			/* The sum of the squares of the data that the shard has, if the shard
			 * measures it. The sum is infinite if the data are not finite. */
			double squares;
			bool damaged; /* the data are not what the worker pushed */
		} full;
		struct {
			uint32_t shard, slot;
			uint64_t epoch;
		} abandoned;
		struct {
			struct mst_lane_ask ask;
			/* gradients given up so far in this session; for statistics alone */
			uint64_t given_up;
		};
		struct {
			uint32_t shard;
			uint64_t number;
		} answered;
		uint64_t heard_ns; /* HEARD: read from the same clock as now_ns */
		bool for_good;     /* STOP: no other server takes the place of this one */
		uint64_t seq;      /* LEAVE */
		uint64_t goal;     /* GOAL: from 1 */
		int error;         /* LOST: negative errno */
		struct {
			struct mst_rule rule;
			/* Lent until the event has been handled. NULL: the rule stays. */
			const struct mst_controller *controller;
		};
		bool rests; /* REST */
		struct mst_spoilt spoilt;
		struct {
			uint32_t shard;
			uint64_t version;
			/* Which of the sums it is. Of the edges: enum mst_edge_sum. */
			uint32_t sum;
			bool spans;  /* as in struct mst_edges */
			float decay; /* the weight decay of the tensor at that edge */
			struct mst_exact_sum squares; /* that sum, over the shard's part */
		} reduced;
		struct {
			uint32_t shard;
			uint64_t version;
			bool failed;
		} saved;
		struct {
			uint32_t shard;
			uint64_t version;
		} lent; /* RETURNED */
		struct {
			uint64_t number;
			uint64_t version; /* GIVEN; MST_VERSION_NONE: it gives none */
		} given;
		struct mst_metric metric;
	};
};

#endif
