/* SPDX-License-Identifier: MIT */
/*
 * Outliers: contributions whose norm is far beyond that of others (musterd --norm-limit K). Pure.
 *
 * What is kept is one norm of each rank: of its last contribution that was judged here. A norm
 * exceeds the limit if it is above K times the median of these, before it takes its place among
 * them; of an even number the lower of the two in the middle counts. So each rank has one voice,
 * however fast it is and however often it comes again: while fewer than half of the ranks that
 * have a norm lie, the median stays between the least and the greatest norm of the others.
 *
 * A norm that exceeds the limit takes its place too. Where the norms of all ranks grow at once, as
 * after a step of the learning rate, the median follows as soon as half of the ranks have come with
 * one each; nobody is refused for good.
 *
 * Nothing exceeds the limit before MST_OUTLIERS_MIN ranks have a norm, or while the median is 0. A
 * norm that is not finite always does, and is not kept.
 */
#ifndef MST_SERVER_CORE_LEDGER_OUTLIERS_H
#define MST_SERVER_CORE_LEDGER_OUTLIERS_H

#include <stdbool.h>
#include <stdint.h>

#define MST_OUTLIERS_MIN 3u

struct mst_outliers {
	double limit; /* K; 0: there is none, and nothing is kept */
	uint32_t ranks, count;
	double *last;   /* by rank; NaN: it has none */
	double *sorted; /* the norms of the ranks that have one, in order */
};

/* Return: 0 or -ENOMEM. */
int mst_outliers_init(struct mst_outliers *o, double limit, uint32_t ranks);
uint64_t mst_outliers_bytes(double limit, uint32_t ranks); /* that mst_outliers_init() allocates */
void mst_outliers_fini(struct mst_outliers *o);            /* accepts one that is all zero */

/* A contribution of @rank: does its norm exceed the limit? Then takes its place. Without a limit:
 * no. Its cost is in proportion to the ranks, 8 bytes moved for each. */
bool mst_outliers_judge(struct mst_outliers *o, uint32_t rank, double norm);
/* The rank's session has ended. */
void mst_outliers_forget(struct mst_outliers *o, uint32_t rank);
/* Contributions are something else from now on. */
void mst_outliers_forget_all(struct mst_outliers *o);
/* NaN: no rank has a norm. */
double mst_outliers_median(const struct mst_outliers *o);

#endif
