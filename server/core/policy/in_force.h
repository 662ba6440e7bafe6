/* SPDX-License-Identifier: MIT */
/*
 * Which policy is in force at the start of a generation (PROTOCOL 11). Each change of policy in a
 * running job has a number, and the newest one that is known holds: that which workers bring, or
 * that which a checkpoint has kept.
 *
 * A worker may bring what was never asked for. Each change was told to all workers at once, so of
 * three or more one that brings a change alone is not believed; if no two bring the same, the one
 * with the newest.
 *
 * Pure. The memory is allocated at the start.
 */
#ifndef MST_SERVER_CORE_POLICY_IN_FORCE_H
#define MST_SERVER_CORE_POLICY_IN_FORCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"

/* No operator asks for more changes. What is counted on from here does not wrap. */
#define MST_IN_FORCE_NUMBER_MAX UINT32_MAX

/* Can there be such a change? */
bool mst_in_force_is_sane(const struct mst_in_force *of);
/* Is it the same change that both name? */
bool mst_in_force_same(const struct mst_in_force *a, const struct mst_in_force *b);

/* What workers bring, by rank. */
struct mst_in_force_claims {
	uint32_t workers;
	uint32_t claims; /* workers that bring something, and be it that there was no change */
	uint32_t *row;   /* [workers]: its row + 1; 0: it brings nothing */
	struct mst_in_force_row {
		struct mst_in_force what;
		uint32_t witnesses; /* 0: the row is free */
	} * rows;                   /* [workers] */
	uint32_t rows_end;          /* all after these are free */
};

/* Return: 0 or -ENOMEM. */
int mst_in_force_claims_init(struct mst_in_force_claims *c, uint32_t workers);
void mst_in_force_claims_fini(struct mst_in_force_claims *c); /* accepts zeroed memory */
/* The worker of this rank brings this, in place of what the rank brought before. */
void mst_in_force_claim(struct mst_in_force_claims *c, uint32_t rank,
			const struct mst_in_force *what);
/* The worker is gone, and with it what it brought. */
void mst_in_force_unclaim(struct mst_in_force_claims *c, uint32_t rank);

/* The change that holds: the one with the highest number, of what the checkpoint has (@kept; number
 * 0: nothing) and what workers bring. Of two with the same number that of the checkpoint, then the
 * one that more workers bring; the order of ranks does not count. */
struct mst_in_force mst_in_force_choose(const struct mst_in_force_claims *c,
					const struct mst_in_force *kept);
/* Does a worker bring something that would come before @chosen, and is not believed? The newest of
 * that, and the rank. */
bool mst_in_force_not_believed(const struct mst_in_force_claims *c,
			       const struct mst_in_force *chosen, struct mst_in_force *what,
			       uint32_t *rank);

#endif
