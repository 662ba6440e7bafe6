/* SPDX-License-Identifier: MIT */
/*
 * What a ledger is made with: the figures of its job, and what a checkpoint has kept of an earlier
 * one.
 */
#ifndef MST_SERVER_CORE_LEDGER_CONFIG_H
#define MST_SERVER_CORE_LEDGER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/optim/optim.h"
#include "common/optim/schedule.h"
#include "common/wire/rule.h"
#include "muster/muster.h"
#include "server/core/policy/controller.h"

/* The most workers that the ledger can count; the wire carries fewer. */
#define MST_LEDGER_WORKERS_MAX 65536u
#define MST_LEDGER_SHARDS_MAX 64u /* a set of shards is one 64-bit word */

/* Which versions are saved, as checkpoints. Besides, the newest version is saved at the end of the
 * job. */
struct mst_saves {
	bool wanted;       /* false: none is, and what follows is not read */
	uint64_t commits;  /* one when so many versions have been made since the last; 0: never */
	uint64_t every_ns; /* one when so much time has passed since the last; 0: never */
	/* But not before so much time has passed since the last save has begun. A save costs each
	 * server some calls that wait for the disk, however short the vector is. */
	uint64_t pause_ns;
};

/* What a checkpoint keeps of a ledger. */
#define MST_KEPT_VERDICTS 8u /* of a rank */
struct mst_kept_verdict {
	uint64_t ticket, counted_in;
	enum muster_verdict verdict;
};
struct mst_kept_rank {
	uint32_t incarnation; /* of its last session */
	uint64_t clock;
	uint32_t contributions; /* that the version is made of; not needed to go on */
	/* The oldest verdicts that its last session may not have heard, up to the first that
	 * counts in a later version. */
	uint32_t verdicts;
	struct mst_kept_verdict verdict[MST_KEPT_VERDICTS];
};
struct mst_kept {
	uint64_t version;
	double samples; /* in all versions up to this one */
	/* Servers own: the number of the generation that has made it, and its id; 0: none was
	 * counted. mst_ledger_keep() does not write them. */
	uint64_t generation, made;
	uint32_t ranks;
	struct mst_kept_rank *rank; /* of each rank */
	/* The figures of the controller in force. mst_controller_resume() takes them before the
	 * ledger is made. */
	uint32_t figures;
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];
};

struct mst_ledger_cfg {
	/* The job's ranks are 0 .. workers - 1, at most MST_LEDGER_WORKERS_MAX. The job starts when
	 * all of them have started. */
	uint32_t workers;
	uint32_t record_ranks; /* that the record of the first version may name; 0: the workers */
	uint32_t shards;       /* how many must report a contribution full, 1 .. 64 */
	uint32_t slots;        /* per session, 1 .. MST_SLOTS_MAX */
	uint32_t buffers;      /* version buffers besides the history and catch_up, >= 3 */
	/* workers own: how many of the newest versions are kept; servers own: 0 */
	uint32_t history;
	/* workers own: how many more are kept for a worker that comes back with a state */
	uint32_t catch_up;
	/* The server offers a network over which workers can read a version where the shards keep
	 * it. */
	bool in_place;
	/* The server offers no network that maps memory: each member is far, whatever LINKED says.
	 * What a far member gets is sent, and lasts as long as its link takes; a shard copies what
	 * others get. */
	bool sent;
	enum muster_owner owner;
	struct mst_rule rule;             /* of the first step */
	struct mst_controller controller; /* of the policy that the job starts with */
	struct mst_optimizer optimizer;   /* its row is NULL where workers own */
	struct mst_schedule schedule;     /* of the learning rate */
	/* The rate of a version is at most this over the square of the distance between the
	 * parameters that its gradient was computed on and those that it moves; 0: no bound. Then
	 * the version that each worker was given last is kept, versions are made one at a time,
	 * and each rule has a window of 0 or a quorum of 1. */
	double distance;
	uint64_t commits_max; /* the job ends there, unless a worker gives less; 0: never */
	double samples_max;   /* the job ends there; 0: never */
	double average;       /* decay of the moving average of the parameters; 0: there is none */
	uint64_t lease_ns;
	/* If workers have not been listened to for so long, they may have given this server up; 0:
	 * that is not looked at. */
	uint64_t stands_ns;
	/* Once a rank has come back at the start of a later generation, others that have not are
	 * waited for so long. */
	uint64_t return_ns;
	uint64_t join_until_ns; /* a job that has not started by then fails; MST_NEVER: no limit */
	struct mst_saves saves;
	/* A contribution is refused if its norm is above so many times the median (outliers.h); 0:
	 * there is no limit. Above 0 every shard measures what it reports full. */
	double norm_limit;
	/* The checkpoint that the job goes on from; NULL: the job begins with version 0. Where
	 * servers own, the shards have its parameters already, and a worker is told to send its
	 * state only where there is a tensor table, which comes with it. It is read by
	 * mst_ledger_new() only. */
	const struct mst_kept *kept;
	/* Drawn for the generation that this ledger is of; 0: generations are not counted, and no
	 * worker claims anything. */
	uint64_t generation_id;
	bool tensors; /* workers have given a tensor table, which one of them is to send */
};

#endif
