/* SPDX-License-Identifier: MIT */
/*
 * A generation that has another number of workers than the one before (PROTOCOL 11). Ranks that the
 * new number leaves out take no part. But who they are counts: a start needs more than half of the
 * workers of the generation before, or all of them, so that a leader of that generation has too few
 * left to go on.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_RESIZED_H
#define MST_SERVER_CORE_LEDGER_STATE_RESIZED_H

#include "server/core/ledger/state/state.h"

/* A worker has said hello whose rank is none of this job.
 * Return: MST_AGAIN: it comes back from an earlier generation, and is noted; it is told more once
 * this one has begun; -EIDRM: this one has begun; -ERANGE: it has never been one. */
int mst_resized_outside(struct mst_ledger *l, uint32_t rank, const struct mst_claimed *claimed);
/* How many workers the generation before had, if this one begins with @newest. */
uint32_t mst_resized_before(const struct mst_ledger *l, const struct mst_claimed *newest);
/* How many ranks below @before bring a claim: of this job, and outside. */
uint32_t mst_resized_claims(const struct mst_ledger *l, uint32_t before);
/* Are enough workers of the generation before there, or outside, if this one begins with @newest?
 * All ranks of this one are there. */
bool mst_resized_suffice(const struct mst_ledger *l, const struct mst_claimed *newest);

#endif
