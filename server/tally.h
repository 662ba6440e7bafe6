/* SPDX-License-Identifier: MIT */
/*
 * The tally: who was late, by how much, how often; how long steps took. It watches the ledger's
 * decisions go by and has no say in any. Fixed memory; a few instructions per decision.
 */
#ifndef MST_SERVER_TALLY_H
#define MST_SERVER_TALLY_H

#include <stdint.h>

#include "common/wire/message.h"
#include "server/core/ledger.h"

struct mst_tally;

int mst_tally_new(uint32_t workers, struct mst_tally **out);
void mst_tally_free(struct mst_tally *t); /* accepts NULL */

/* Every decision, in order; @record of the version for COMMIT, else NULL. */
void mst_tally_decided(struct mst_tally *t, const struct mst_decision *d,
		       const struct mst_record *record, uint64_t now_ns);

/* What the tally knows of the job and of one rank; other fields are left alone. */
void mst_tally_job(const struct mst_tally *t, uint64_t now_ns, struct mst_status *out);
void mst_tally_rank(const struct mst_tally *t, uint32_t rank, uint64_t now_ns,
		    struct mst_status_rank *out);

#endif
