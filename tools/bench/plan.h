/* SPDX-License-Identifier: MIT */
/*
 * What a benchmark and its workers share: a plan to follow, barriers for each step, and a record
 * for each step of each worker. It is one memfd, all zero at first; only what is used becomes
 * memory.
 *
 * A step is numbered by the version its gradients are computed on. Owners: the plan is written
 * before the first worker starts; a barrier by those who wait at it; a record by its worker, and
 * read when all workers have exited.
 */
#ifndef MST_TOOLS_BENCH_PLAN_H
#define MST_TOOLS_BENCH_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster/muster.h"

#define MST_BENCH_DELAYS 32u
#define MST_BENCH_DELAY_LEN 256u

struct mst_bench_plan {
	uint64_t bytes; /* of all that is shared */
	uint64_t elems;
	enum muster_type type;
	enum muster_owner owner;
	bool own_buffers;
	bool last_alone; /* all but one push long before the last: what a commit takes after it */
	uint32_t workers;
	uint32_t quorum;    /* contributions in a version */
	uint32_t warmup;    /* steps not timed */
	uint32_t steps;     /* at most, the warm-up included */
	uint64_t begun_ns;  /* before musterd was started */
	uint64_t budget_ns; /* for the timed steps; MST_NEVER: all of them are made */
	uint64_t settle_ns; /* last_alone: between the others' pushes and the last */
	uint64_t seed;
	uint32_t delay_count;
	char delay[MST_BENCH_DELAYS][MST_BENCH_DELAY_LEN];
	_Atomic uint64_t timed_ns; /* when the first timed step began */
};

/*
 * Workers begin a step together, at a barrier. It opens when the number of workers that the policy
 * needs for a version have arrived; a worker that comes later does not wait. The one that opens the
 * barrier decides for all whether there is another step. All waiting here lies between the timed
 * spans.
 *
 * Workers wait as muster does: they yield while the others are about to come, then they sleep.
 */
enum mst_bench_state {
	MST_BENCH_SHUT,
	MST_BENCH_GO,   /* open: the step begins */
	MST_BENCH_OVER, /* open: there is no further step */
};

struct mst_bench_barrier {
	_Atomic uint32_t arrived;
	_Atomic uint32_t state; /* enum mst_bench_state */
};

struct mst_bench_step {
	struct mst_bench_barrier begin, end;
	_Atomic uint32_t pushed; /* workers whose gradient is handed in */
	uint64_t open_ns;        /* when begin opened; written before begin.state says so */
	_Atomic int64_t drift;   /* of this step's version; known before a worker pushes on it */
};

struct mst_bench_record {
	uint64_t start_ns;  /* the call that hands in was made */
	uint64_t pushed_ns; /* it returned */
	uint64_t end_ns;    /* the new result was readable; 0: the step was not ended */
	uint64_t counted_in;
	uint32_t verdict; /* enum muster_verdict */
	uint32_t wrong;   /* elements of the result, at most UINT32_MAX */
};

/* Makes the shared memory for @want, whose `bytes` is set. @fd: the caller's to close.
 * Return: 0 or -errno. */
int mst_bench_plan_new(const struct mst_bench_plan *want, struct mst_bench_plan **out, int *fd);
/* Maps what mst_bench_plan_new() has made, by the path of its descriptor. Return: 0 or -errno. */
int mst_bench_plan_map(const char *path, struct mst_bench_plan **out);
void mst_bench_plan_free(struct mst_bench_plan *p); /* accepts NULL */

/* What workers share of a step. @step: 0 .. steps, one more than there are records: at the last
 * barrier all learn that there is no further step. */
struct mst_bench_step *mst_bench_step_of(struct mst_bench_plan *p, uint64_t step);
/* @step: below steps. */
struct mst_bench_record *mst_bench_record_of(struct mst_bench_plan *p, uint32_t rank,
					     uint64_t step);

/* Waits at the barrier where @step begins. @gone tells now and then whether the wait is in vain.
 * Return: MST_BENCH_GO or MST_BENCH_OVER; MST_BENCH_SHUT: in vain. */
enum mst_bench_state mst_bench_step_enter(struct mst_bench_plan *p, uint64_t step,
					  bool (*gone)(void *arg), void *arg);

/* This worker has the result of @step, in which its gradient was counted. It waits until every
 * worker of that step has the result. Return: false: in vain. */
bool mst_bench_step_leave(struct mst_bench_plan *p, uint64_t step, bool (*gone)(void *arg),
			  void *arg);

/* A worker's gradient is handed in. */
void mst_bench_step_pushed(struct mst_bench_plan *p, uint64_t step);
/* Waits until all but one are, and then as long as the plan says. Return: false: in vain. */
bool mst_bench_step_settle(struct mst_bench_plan *p, uint64_t step, bool (*gone)(void *arg),
			   void *arg);

#endif
