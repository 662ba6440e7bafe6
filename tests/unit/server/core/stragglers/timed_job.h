/* SPDX-License-Identifier: MIT */
/* Workers whose gradients take times of a distribution, some of them a factor longer, and the judge
 * of stragglers that is told of them. */
#ifndef MST_TESTS_UNIT_TIMED_JOB_H
#define MST_TESTS_UNIT_TIMED_JOB_H

#include "common/base/rand.h"
#include "server/core/stragglers/stragglers.h"

#define MS 1e6
#define SEEDS 100u
#define MOST_RANKS 64u

enum times { CONST, UNIFORM, EXP, SEXP, PARETO, BIMODAL, SHAPES };
extern const char *const shape_name[];

struct timed_job {
	struct mst_stragglers judge;
	struct mst_rand rand;
	enum times shape;
	uint32_t ranks;
	uint64_t now_ns;
	double factor[MOST_RANKS]; /* 0: the rank does nothing */

	/* job_race(): the first so many gradients make a step. */
	uint32_t quorum;
	bool preempts;                /* who is late gives up; else it finishes its gradient */
	uint64_t ends_ns[MOST_RANKS]; /* of the present gradient; 0: there is none */
	uint64_t version, on[MOST_RANKS];
};

void job_open(struct timed_job *j, enum times shape, uint32_t ranks, uint64_t seed);
void job_close(struct timed_job *j);

/* A step that waits for all: they begin together, each is told when it comes, and the last one ends
 * the step. */
void job_step(struct timed_job *j);
void job_steps(struct timed_job *j, uint32_t count);

/* A step that is over with the first gradients. Of the others the workers learn that they are late
 * at once, or when they come; then they begin again with the next step (late starts). */
void job_race(struct timed_job *j);
void job_races(struct timed_job *j, uint32_t count);

bool job_is_slow(const struct timed_job *j, uint32_t rank);

int by_size_u32(const void *a, const void *b);

#endif
