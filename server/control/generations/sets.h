/* SPDX-License-Identifier: MIT */
/*
 * The sets of versions that a worker brings to the start of a generation: who is in its last
 * versions. The set of the newest one becomes the record of the first version; the others tell
 * workers that lack them what has become of their gradients.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_GENERATIONS_SETS_H
#define MST_SERVER_CONTROL_GENERATIONS_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"
#include "server/core/ledger/ledger.h"

/* Zeroed: none has come. */
struct mst_job_sets {
	uint32_t workers;
	uint32_t count, max; /* versions, one after the other, the newest last; at most so many */
	struct mst_counted_row row[MST_COUNTED_MAX]; /* of these: count is not used */
	uint32_t *counted;                           /* [version][rank]: contributions */
	struct mst_lane_share *share;                /* of the newest, by rank */
	struct mst_brought newest;
	uint32_t came; /* shares of the newest that have come */
};

void mst_job_sets_fini(struct mst_job_sets *s); /* accepts zeroed memory */
/* Nothing of what has come counts: another worker brings them. */
void mst_job_sets_forget(struct mst_job_sets *s);
/* Takes a piece. @history: so many versions a worker keeps sets of, besides the last one.
 * Return: NULL, or what is wrong with it: how the worker broke the protocol. */
const char *mst_job_sets_take(struct mst_job_sets *s, const struct mst_set_piece *piece,
			      uint32_t workers, uint32_t history);
/* The set of @version, which has to be the newest.
 * Return: false: it has not come. */
bool mst_job_sets_newest(const struct mst_job_sets *s, uint64_t version, struct mst_brought *out);
/* In which versions after the one that it claims @rank is, and how often: writes them to @out. None
 * if its own version is not among those that have come. */
void mst_job_sets_counted(const struct mst_job_sets *s, uint32_t rank, const struct mst_claimed *of,
			  struct mst_counted_list *out);

#endif
