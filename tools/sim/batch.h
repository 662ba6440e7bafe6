/* SPDX-License-Identifier: MIT */
/*
 * A batch, which a simulated worker computes in micro-batches of equal length. Contributions may
 * take it in parts: what one contribution has taken, the next does not take again. Pure.
 */
#ifndef MST_TOOLS_SIM_BATCH_H
#define MST_TOOLS_SIM_BATCH_H

#include <stdbool.h>
#include <stdint.h>

struct mst_sim_batch {
	uint32_t micro;     /* how many micro-batches it has, 1 or more */
	bool open;          /* it has begun, and is neither taken whole nor given up */
	uint32_t taken;     /* micro-batches that contributions have taken */
	uint64_t length_ns; /* of the whole batch */
	uint64_t begin_ns;  /* when it would have begun, had it been computed without a pause */
};

/* Goes on at @now_ns with what is not taken yet. A batch that is not open begins, and is to take
 * @length_ns. */
void mst_sim_batch_begin(struct mst_sim_batch *b, uint64_t length_ns, uint64_t now_ns);
/* When all of it will be finished; MST_NEVER: later than there is time. */
uint64_t mst_sim_batch_end_ns(const struct mst_sim_batch *b);
/* The first time from @now_ns on at which no micro-batch is half done; not after the end. */
uint64_t mst_sim_batch_bound_ns(const struct mst_sim_batch *b, uint64_t now_ns);
/* The time spent on what is not taken. */
uint64_t mst_sim_batch_spent_ns(const struct mst_sim_batch *b, uint64_t now_ns);
/* Takes what is finished at @now_ns. A batch that is taken whole is closed.
 * @spent_ns: the time spent on it is added. Return: how many micro-batches. */
uint32_t mst_sim_batch_take(struct mst_sim_batch *b, uint64_t now_ns, uint64_t *spent_ns);

#endif
