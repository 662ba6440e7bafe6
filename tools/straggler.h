/* SPDX-License-Identifier: MIT */
/* Who holds a job up: the one rank worth naming, and the evidence. Pure. */
#ifndef MST_TOOLS_STRAGGLER_H
#define MST_TOOLS_STRAGGLER_H

#include <stddef.h>

#include "tools/watch.h"

enum mst_straggler_kind {
	MST_STRAGGLER_NONE,    /* nobody stands out */
	MST_STRAGGLER_AWAITED, /* the open step waits for it, longer than steps usually take */
	MST_STRAGGLER_LATE,    /* it misses its steps far more often than the others do */
	MST_STRAGGLER_SLOW,    /* none is late, but all wait for it */
};

struct mst_straggler {
	enum mst_straggler_kind kind;
	const struct mst_status_rank *row; /* in the snapshot; NULL if none */
	uint64_t usual_ready_ns;           /* median over the ranks of their mean time to ready */
	uint64_t missed, came;             /* gradients of all ranks */
};

struct mst_straggler mst_straggler_find(const struct mst_snapshot *s);

/* Gradients of a rank that came in time or too late, and those too late. */
static inline uint64_t mst_straggler_missed(const struct mst_status_rank *row)
{
	return row->late + row->stale;
}
static inline uint64_t mst_straggler_came(const struct mst_status_rank *row)
{
	return row->counted + row->late + row->stale;
}

/* A few words for a live line ("rank 3 is late, 45 %"); empty for NONE. */
void mst_straggler_words(const struct mst_straggler *g, char *out, size_t len);
/* Who, by how much, how often: a whole sentence, for NONE too. */
void mst_straggler_sentence(const struct mst_straggler *g, char *out, size_t len);

#endif
