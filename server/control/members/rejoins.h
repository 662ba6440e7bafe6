/* SPDX-License-Identifier: MIT */
/*
 * How often a rank may be admitted. Each rank may be admitted so many times at once, and in the
 * long run once in a period; a worker that comes back more often waits for its turn. Hellos that
 * leave the choice of their rank to the server share a limit of their own, which is that of all
 * ranks together: so they take nothing from a rank that is asked for by its number. Pure.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_REJOINS_H
#define MST_SERVER_CONTROL_MEMBERS_REJOINS_H

#include <stdint.h>

#include "common/base/clock.h"

#define MST_REJOINS_AT_ONCE 32u
#define MST_REJOINS_PERIOD_NS MST_SECOND

struct mst_rejoins {
	uint32_t workers;
	/* By rank, and after the ranks for hellos without a rank: the time at which all of its
	 * admissions have come back. */
	uint64_t *rested_ns;
};

/* Return: 0 or -ENOMEM. */
int mst_rejoins_init(struct mst_rejoins *r, uint32_t workers);
uint64_t mst_rejoins_bytes(uint32_t workers); /* that mst_rejoins_init() allocates */
/* Accepts zeroed memory. */
void mst_rejoins_fini(struct mst_rejoins *r);

/* @rank: that the hello asks for; negative: any.
 * Return: 0: it may be admitted now; else after how long. */
uint64_t mst_rejoins_wait(const struct mst_rejoins *r, int32_t rank, uint64_t now_ns);
/* A worker whose hello asked for @rank has been admitted. */
void mst_rejoins_count(struct mst_rejoins *r, int32_t rank, uint64_t now_ns);

#endif
