/* SPDX-License-Identifier: MIT */
/* What versions must be: PROTOCOL 5 once more, one element after the other, from nothing but the
 * contributions that were counted. */
#ifndef MST_TESTS_SIM_EXPECT_H
#define MST_TESTS_SIM_EXPECT_H

#include "muster/muster.h"
#include "tests/sim/plan.h"

/* A contribution, as the observer knows it. */
struct expect_item {
	uint32_t rank, incarnation, slot;
	uint64_t seq, tag, content;
	double samples;
	bool is_sum, empty, spoiled; /* spoiled: its owner writes over it */
	bool full, asks;             /* it ends a batch; it is an ask, too */
	bool part, measured;         /* its batch goes on; and has been measured with it */
	bool pass, passed;           /* it is no contribution; and has been judged */
	enum muster_verdict verdict;
	bool counted, told;
	uint32_t of;      /* the generation that it was handed in to */
	bool alone;       /* its worker had waited since the header before */
	uint64_t version; /* counted in */
	double base;
	float coefficient;
	struct expect_item *next; /* of its session */
};

/* What the leader has computed for a version. */
struct expect_figures {
	float divisor, rate;
};

void expect_begin(const struct sim_plan *plan);
/* Another job goes on with @version. What was made of it is not told again; and where workers own,
 * they bring it. */
void expect_go_on(const struct sim_plan *plan, uint64_t version);
/* Versions are kept as they are at the end of a generation. Workers that own have brought @version,
 * as it was then; those after it are void. */
#define EXPECT_GENERATIONS_MAX 64u
void expect_keep(uint32_t generation);
void expect_return(uint32_t generation, uint64_t version);
/* Version 0 is what this rank offered. */
void expect_start(uint32_t rank);
/* Base weight and coefficient, by the version it is counted in, and the rule then in force. */
void expect_weigh(struct expect_item *item, const struct mst_rule *rule);
/* Version @version is made of these, in order of counting, under this rule. Return: NULL, or
 * what is wrong with divisor and rate. */
const char *expect_commit(uint64_t version, struct expect_item *const *items, uint32_t count,
			  const struct mst_rule *rule, const struct expect_figures *told);
/* Its mean is multiplied by @factor, and moves the parameters at @rate. Return: NULL, or what is
 * wrong with that. */
const char *expect_apply(uint64_t version, float factor, float rate);
/* A contribution in @version may have been written over, so nobody knows its result; where the
 * servers own, nobody knows the versions after it up to @newest, either. */
void expect_spoil(uint64_t version, uint64_t newest);
/* The first element of @bits that is not as it must be; -1: none, or nobody can tell. */
int64_t expect_differs(uint64_t version, const void *bits);
/* The vectors that servers keep of a version, in their order in a checkpoint. */
enum expect_vector {
	EXPECT_PARAMETERS,
	EXPECT_MOMENTUM,
	EXPECT_SQUARES,
	EXPECT_AVERAGE,
	EXPECT_VECTORS
};
/* Is there one in this job? */
bool expect_keeps(enum expect_vector vector);
/* The elements of one of them from @first on. Return: as expect_differs(), from @first on. */
int64_t expect_kept_differs(uint64_t version, enum expect_vector vector, uint64_t first,
			    const float *bits, uint64_t count);
/* Its shares by rank; @out has room for SIM_WORKERS_MAX. Return: how many. */
bool expect_knows(uint64_t version);
uint32_t expect_set(uint64_t version, struct muster_share *out);

#endif
