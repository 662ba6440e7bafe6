/* SPDX-License-Identifier: MIT */
/*
 * muster_train() with a server that commits each push by itself: a plan says how, and what was
 * pushed is noted. All elements of a gradient and of a result are the same.
 *
 * The k-th batch has one sample, a gradient of k everywhere, and a loss of 10 k. A local step is
 * x - g / 2.
 */
#ifndef MST_TESTS_UNIT_CLIENT_TRAIN_CASE_H
#define MST_TESTS_UNIT_CLIENT_TRAIN_CASE_H

#include "tests/unit/client/client_case.h"

#define TRAIN_START 10.0f /* version 0 */
#define TRAIN_VERSIONS 4u
#define TRAIN_PUSHES 16u
#define TRAIN_CALLS 32u

struct train_plan {
	/* The pace in the record of each version; the last one holds for all after it, too. */
	struct mst_pace pace[TRAIN_VERSIONS];
	bool until_asked[TRAIN_VERSIONS], by_micro[TRAIN_VERSIONS];
	enum muster_verdict verdict[TRAIN_PUSHES]; /* of each push; NONE: counted */
	float factor; /* a counted push moves the parameters by so much of its gradient */
	float drift;  /* and before each answer but the first others move them, if it is not 0 */
	unsigned ends_at; /* the job ends before this answer, counted from 1; 0: never */
	bool lazy;        /* a slot is granted again with an answer only */
	bool slow;        /* each answer but the first waits until a call has timed out */
};

struct train_push {
	struct mst_lane_header header;
	float value; /* of all its elements; NAN: they differ */
};

struct train_seen {
	unsigned computed;             /* batches begun */
	float parameters[TRAIN_CALLS]; /* that each was computed on */
	unsigned judged;
	enum muster_verdict verdict[TRAIN_CALLS];
	uint64_t ticket[TRAIN_CALLS];
	unsigned applied;
	float result[TRAIN_CALLS];
	unsigned timeouts; /* of muster_train() */
};

extern struct train_plan train_plan;
extern struct train_push train_push[TRAIN_PUSHES];
extern struct train_seen train_seen;
extern struct muster_hooks train_hooks; /* as above; a test may replace any */

/* Opens and starts a worker of a server that follows the plan, all of which is 0 but the factor,
 * which is 1, when train_prepare() has been called. */
void train_prepare(void);
void train_begin(void);
void train_open(void); /* opens it only */
/* muster_train(), again while nothing but the time is over. */
int train_run(void);
/* The same, until @batches have been computed: the next one ends it. */
void train_batches(unsigned batches);
/* Waits until the server has had so many headers. */
void train_await(unsigned headers);
/* What muster_check() says from now on to who computes on this version. */
void train_hint(uint64_t version, bool hand_in);

#endif
