/* SPDX-License-Identifier: MIT */
/*
 * Saved time: by how much longer steps would have been if they had waited for every worker.
 *
 * It is defined where the rule lets workers go on at the commit (release COMMIT) and makes none
 * give up (no preempt). For each step it is the time by which the slowest gradient on the step's
 * version took longer than the step, never less than 0. A gradient's time runs from when the rank
 * was given the version until the gradient was there. For a rank that was still busy with an older
 * gradient when the step was committed, the shorter of its last two times is used. A gradient that
 * never came is not counted, so each step would have been longer by at least that much if it had
 * waited for every worker.
 *
 * Pure. An event costs a few instructions, however many workers there are: of those that are busy
 * with an older version, a commit looks at the slowest only.
 */
#ifndef MST_SERVER_CORE_STATISTICS_SAVED_TIME_H
#define MST_SERVER_CORE_STATISTICS_SAVED_TIME_H

#include "common/wire/rule.h"
#include "server/core/heap.h"
#include "server/core/ranks.h"

#define MST_TOOK_UNKNOWN UINT64_MAX

/* How long a rank has taken. */
struct mst_rank_times {
	uint64_t took_ns[2]; /* its last two times, the newest first; or MST_TOOK_UNKNOWN */
};

/* What is known of a step that has been committed. Zeroed: it saves nothing. */
struct mst_saved_step {
	uint64_t step_ns; /* how long it lasted */
	uint64_t saved_ns;
	bool saves; /* saved time is defined for it */
};

/* The live ranks, by the version that they were given last. Ranks with the newest version at a
 * commit are not late for it, and ranks in the heap are. So a commit looks at no other rank. */
struct mst_saved_time {
	struct mst_rank_times *rank;
	struct mst_ranks newest; /* have the newest version; */
	struct mst_ranks before; /* had the newest version until the last commit; */
	struct mst_heap older;   /* have an older one. The rank that takes longest comes first */
	bool defined;            /* for every step so far */
	uint64_t saved_ns;       /* in all; valid while @defined */
};

uint64_t mst_saved_time_bytes(uint32_t workers); /* that mst_saved_time_init() allocates */
/* Return: 0 or -ENOMEM; then mst_saved_time_fini() frees what has been made. */
int mst_saved_time_init(struct mst_saved_time *s, uint32_t workers);
void mst_saved_time_fini(struct mst_saved_time *s); /* accepts zeroed memory */

/* The rank's session has ended. */
static inline void mst_saved_time_end(struct mst_saved_time *s, uint32_t rank)
{
	mst_ranks_remove(&s->newest, rank);
	mst_ranks_remove(&s->before, rank);
	mst_heap_remove(&s->older, rank);
}
/* A session of the rank begins: how long the last one took is forgotten. */
static inline void mst_saved_time_begin(struct mst_saved_time *s, uint32_t rank)
{
	mst_saved_time_end(s, rank);
	s->rank[rank] = (struct mst_rank_times){ { MST_TOOK_UNKNOWN, MST_TOOK_UNKNOWN } };
}

/* The key in the heap, which begins with the least. It stands for how long the rank would have
 * taken for this step too: the shorter of its last two times, 0 if it has not two. */
static inline uint64_t mst_saved_time_key(const struct mst_rank_times *r)
{
	if (r->took_ns[1] == MST_TOOK_UNKNOWN)
		return UINT64_MAX;
	return UINT64_MAX - (r->took_ns[0] < r->took_ns[1] ? r->took_ns[0] : r->took_ns[1]);
}

/* The rank is given the newest version, or an older one; then it is not done with that before the
 * next commit either. */
static inline void mst_saved_time_give(struct mst_saved_time *s, uint32_t rank, bool newest)
{
	mst_saved_time_end(s, rank);
	if (newest)
		mst_ranks_add(&s->newest, rank);
	else
		mst_heap_set(&s->older, rank, mst_saved_time_key(&s->rank[rank]));
}

/* A gradient of the rank has come, for which it took @took_ns. */
static inline void mst_saved_time_take(struct mst_saved_time *s, uint32_t rank, uint64_t took_ns)
{
	struct mst_rank_times *r = &s->rank[rank];

	r->took_ns[1] = r->took_ns[0];
	r->took_ns[0] = took_ns;
	if (mst_heap_has(&s->older, rank))
		mst_heap_set(&s->older, rank, mst_saved_time_key(r));
}

/* Notes by how much @step, which is committed, would have been longer if it had waited for a
 * gradient that took @took_ns. */
static inline void mst_saved_time_note(struct mst_saved_time *s, struct mst_saved_step *step,
				       uint64_t took_ns)
{
	uint64_t saved_ns = took_ns > step->step_ns ? took_ns - step->step_ns : 0;

	if (!step->saves || saved_ns <= step->saved_ns)
		return;
	s->saved_ns += saved_ns - step->saved_ns;
	step->saved_ns = saved_ns;
}

/* A step that lasted @step_ns is committed under @rule: fills in @step, with the saved time of the
 * ranks that are still busy with an older version. */
void mst_saved_time_commit(struct mst_saved_time *s, const struct mst_rule *rule, uint64_t step_ns,
			   struct mst_saved_step *step);

#endif
