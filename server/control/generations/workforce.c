/* SPDX-License-Identifier: MIT */
#include "server/control/generations/workforce.h"

/* More changes than any job has: what is counted on from one that is told does not wrap. */
#define CHANGES_MAX (UINT64_MAX / 4)
/* In a job of so many workers there may be no second rank that says the same. */
#define FEW 2u

void mst_workforce_init(struct mst_job_workforce *w, const struct mst_renewal *kept,
			uint32_t workers)
{
	*w = (struct mst_job_workforce){ .given = kept->given != 0 ? kept->given : workers,
					 .newest = kept->workforce,
					 .record_ranks = kept->record_ranks };
}

struct mst_renewal mst_workforce_keep(const struct mst_job_workforce *w)
{
	return (struct mst_renewal){ .given = w->given,
				     .workforce = w->newest,
				     .record_ranks = w->record_ranks };
}

struct mst_workforce mst_workforce_now(const struct mst_job_workforce *w)
{
	if (w->newest.workers == 0)
		return (struct mst_workforce){ .workers = w->given, .given = w->given };
	if (w->newest.given == w->given)
		return w->newest;
	return (struct mst_workforce){ .workers = w->given,
				       .given = w->given,
				       .change = w->newest.change + 1 };
}

static bool is_same(const struct mst_workforce *a, const struct mst_workforce *b)
{
	return a->workers == b->workers && a->given == b->given && a->change == b->change;
}

/* Two leaders that did not know of each other may have counted the same change. */
static bool is_newer(const struct mst_job_workforce *w, const struct mst_workforce *a,
		     const struct mst_workforce *b)
{
	if (b->workers == 0 || a->change != b->change)
		return b->workers == 0 || a->change > b->change;
	if ((a->given == w->given) != (b->given == w->given))
		return a->given == w->given;
	return a->workers > b->workers;
}

/* Return: does this make it believed? */
static bool note(struct mst_job_workforce *w, uint32_t rank, const struct mst_workforce *told)
{
	uint32_t others = 0, place = MST_WORKFORCE_TOLD - 1;

	for (uint32_t i = MST_WORKFORCE_TOLD; i-- > 0;) {
		if (w->told[i].number.workers == 0)
			place = i;
		else if (is_same(&w->told[i].number, told))
			return w->told[i].rank != rank;
		else
			others++;
	}
	w->told[place].number = *told;
	w->told[place].rank = rank;
	return told->workers <= FEW && others == 0;
}

void mst_workforce_hear(struct mst_job_workforce *w, uint32_t rank,
			const struct mst_workforce *told)
{
	if (told->workers == 0 || told->given == 0 || told->change > CHANGES_MAX)
		return;
	if (note(w, rank, told) && is_newer(w, told, &w->newest))
		w->newest = *told;
}

struct mst_workforce mst_workforce_change(struct mst_job_workforce *w, uint32_t workers)
{
	struct mst_workforce now = mst_workforce_now(w);

	w->newest = (struct mst_workforce){ .workers = workers,
					    .given = w->given,
					    .change = now.change + 1 };
	return w->newest;
}
