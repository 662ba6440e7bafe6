/* SPDX-License-Identifier: MIT */
#include "server/core/statistics/saved_time.h"

#include <errno.h>
#include <stdlib.h>

uint64_t mst_saved_time_bytes(uint32_t workers)
{
	return workers * (uint64_t)sizeof(struct mst_rank_times) + 2 * mst_ranks_bytes(workers) +
	       mst_heap_bytes(workers);
}

int mst_saved_time_init(struct mst_saved_time *s, uint32_t workers)
{
	*s = (struct mst_saved_time){ .defined = true };
	s->rank = calloc(workers, sizeof(*s->rank));
	if (s->rank == NULL)
		return -ENOMEM;
	int rc = mst_ranks_init(&s->newest, workers);
	if (rc == 0)
		rc = mst_ranks_init(&s->before, workers);
	if (rc == 0)
		rc = mst_heap_init(&s->older, workers);
	for (uint32_t rank = 0; rc == 0 && rank < workers; rank++)
		mst_saved_time_begin(s, rank);
	return rc;
}

void mst_saved_time_fini(struct mst_saved_time *s)
{
	mst_ranks_fini(&s->newest);
	mst_ranks_fini(&s->before);
	mst_heap_fini(&s->older);
	free(s->rank);
}

/* Is saved time defined under this rule? Not if workers hand in parts of batches, or give up. */
static bool saves(const struct mst_rule *rule)
{
	return rule->release == MST_RELEASE_COMMIT && !rule->preempt && !rule->collect;
}

/* A version is committed: a rank that has had the same version since before the last commit has an
 * older one now. */
static void grow_older(struct mst_saved_time *s)
{
	struct mst_ranks empty;

	for (uint32_t first; (first = mst_ranks_first(&s->before)) != MST_RANK_NONE;) {
		mst_ranks_remove(&s->before, first);
		mst_heap_set(&s->older, first, mst_saved_time_key(&s->rank[first]));
	}
	empty = s->before;
	s->before = s->newest;
	s->newest = empty;
}

/* Among the ranks that were still busy with an older version, only the longest time matters. */
void mst_saved_time_commit(struct mst_saved_time *s, const struct mst_rule *rule, uint64_t step_ns,
			   struct mst_saved_step *step)
{
	*step = (struct mst_saved_step){ .step_ns = step_ns, .saves = saves(rule) };
	s->defined &= step->saves;
	if (!s->defined)
		return; /* nothing will be told any more */
	grow_older(s);
	mst_saved_time_note(s, step, UINT64_MAX - mst_heap_least(&s->older));
}
