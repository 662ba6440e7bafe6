/* SPDX-License-Identifier: MIT */
/*
 * Tells of stragglers, as the servers have found them (server/core/stragglers): which rank is worth
 * naming, and the evidence. Pure.
 *
 * While a job runs it is one that is a straggler now: first one that stands still, then the
 * slowest, then the one that is late most often. When a job has ended it is the one that steps have
 * waited for longest, or that was a straggler for longest, if that was a tenth of the time or more.
 */
#ifndef MST_TOOLS_STRAGGLER_H
#define MST_TOOLS_STRAGGLER_H

#include <stddef.h>

#include "tools/watch.h"

struct mst_named_straggler {
	const struct mst_job_snapshot *job;
	enum mst_straggler_kind kind;
	const struct mst_status_rank *row; /* in the snapshot; NULL if none */
	bool whole;                        /* figures of the whole job, not the recent ones */
	uint32_t others; /* further stragglers; STALLED: further ranks that stand still */
};

struct mst_named_straggler mst_straggler_find(const struct mst_job_snapshot *s);

/* Gradients of a rank: all that it finished or gave up; and those that missed their step. */
struct mst_gradients {
	uint64_t came, missed, given_up;
	uint64_t ready_ns, behind_ns; /* means */
};
/* @whole: since the start of the job; else the recent ones. */
struct mst_gradients mst_straggler_gradients(const struct mst_status_rank *row, bool whole);

/* "slow", "late", "stalled"; "none", or "unknown" of a later release's. */
const char *mst_straggler_kind_word(uint32_t kind);
/* A few words for a live line ("rank 3 late 45 %"); empty for NONE. */
void mst_straggler_words(const struct mst_named_straggler *g, char *out, size_t len);
/* The rank, by how much, for how long: a whole sentence, for NONE too. */
void mst_straggler_reason(const struct mst_named_straggler *g, char *out, size_t len);

#endif
