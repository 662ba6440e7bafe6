/* SPDX-License-Identifier: MIT */
/*
 * Finds workers that have something else than the others after the same version, and tells them.
 * The log names version, ranks and tensors. A worker that wants the state of another gets it. This
 * is for jobs whose workers own the parameters. Control thread only. No function blocks.
 */
#ifndef MST_SERVER_CONTROL_TRANSFER_DIVERGENCE_H
#define MST_SERVER_CONTROL_TRANSFER_DIVERGENCE_H

#include "server/control/base.h"
#include "server/control/transfer/comparisons.h"

struct mst_divergence_row {
	struct mst_identity who; /* the session that has compared last */
	bool takes;              /* it wants the state of another worker, if it differs */
	bool told;               /* it was told that it differs, and has taken no state since */
	bool strays;             /* the ledger is to be told that it differs */
};

struct mst_divergence {
	struct mst_base *base;

	struct mst_comparisons comparisons;
	struct mst_divergence_row *row; /* by rank */
	uint32_t strays;                /* rows of which the ledger is to be told */
};

/* 0 or -ENOMEM. */
int mst_divergence_init(struct mst_divergence *d);
void mst_divergence_fini(struct mst_divergence *d); /* accepts a zeroed one */

/* A worker says what it has. Return: how it breaks the protocol; NULL: it does not. */
const char *mst_divergence_compare(struct mst_divergence *d, const struct mst_conn *c,
				   const struct mst_comparison *said);
/* A worker has taken the state of another. */
void mst_divergence_took(struct mst_divergence *d, uint32_t rank);
/* The session of a worker has ended: it is not waited for. */
void mst_divergence_lost(struct mst_divergence *d);
/* Tells the ledger what there was no room for. */
void mst_divergence_step(struct mst_divergence *d);

#endif
