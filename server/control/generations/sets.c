/* SPDX-License-Identifier: MIT */
#include "server/control/generations/sets.h"

#include <math.h>
#include <stdlib.h>

void mst_job_sets_fini(struct mst_job_sets *s)
{
	free(s->counted);
	free(s->share);
	*s = (struct mst_job_sets){ 0 };
}

void mst_job_sets_forget(struct mst_job_sets *s)
{
	mst_job_sets_fini(s);
}

static bool make_room(struct mst_job_sets *s, uint32_t workers, uint32_t history)
{
	if (s->counted != NULL && s->share != NULL)
		return true;
	mst_job_sets_fini(s);
	s->workers = workers;
	s->max = history < MST_COUNTED_MAX ? history + 1 : MST_COUNTED_MAX;
	s->counted = calloc((size_t)s->max * workers, sizeof(*s->counted));
	s->share = calloc(workers, sizeof(*s->share));
	return s->counted != NULL && s->share != NULL;
}

static bool is_whole(const struct mst_job_sets *s)
{
	return s->count == 0 || s->came == s->newest.share_count;
}

/* A version begins where all of the one before it has come, which is the version before. */
static const char *begin(struct mst_job_sets *s, const struct mst_set_piece *piece)
{
	bool follows = s->count == 0 || piece->version == s->row[s->count - 1].version + 1;

	if (!is_whole(s) || !follows || s->count == s->max || piece->total > s->workers ||
	    !isfinite(piece->weight) || piece->weight < 0 || !isfinite(piece->lr_scale))
		return "broke the protocol: sets of versions that do not follow each other";
	s->row[s->count++] = (struct mst_counted_row){ .version = piece->version,
						       .made = piece->made,
						       .window = piece->window };
	s->came = 0;
	s->newest = (struct mst_brought){ .samples = piece->weight,
					  .lr_scale = piece->lr_scale,
					  .workers = piece->workers,
					  .share_count = piece->total,
					  .share = s->share };
	return NULL;
}

static bool fits(const struct mst_job_sets *s, const struct mst_set_piece *piece)
{
	return piece->version == s->row[s->count - 1].version && piece->first == s->came &&
	       piece->total == s->newest.share_count && piece->count <= piece->total - s->came &&
	       (piece->count > 0 || piece->total == 0);
}

/* Ranks rise. */
static bool take_share(struct mst_job_sets *s, const struct mst_lane_share *share)
{
	bool rises = s->came == 0 || share->rank > s->share[s->came - 1].rank;

	if (share->rank >= s->workers || !rises || share->count == 0 || !isfinite(share->weight) ||
	    share->weight < 0)
		return false;
	s->counted[(size_t)(s->count - 1) * s->workers + share->rank] = share->count;
	s->share[s->came++] = *share;
	return true;
}

const char *mst_job_sets_take(struct mst_job_sets *s, const struct mst_set_piece *piece,
			      uint32_t workers, uint32_t history)
{
	const char *wrong = NULL;

	if (!make_room(s, workers, history))
		return "cannot be heard: no memory for the sets of its versions";
	if (piece->first == 0)
		wrong = begin(s, piece);
	if (wrong != NULL)
		return wrong;
	if (s->count == 0 || !fits(s, piece))
		return "broke the protocol: a set of a version with a gap";
	for (uint32_t i = 0; i < piece->count; i++) {
		if (!take_share(s, &piece->share[i]))
			return "broke the protocol: a set of a version that cannot be";
	}
	return NULL;
}

bool mst_job_sets_newest(const struct mst_job_sets *s, uint64_t version, struct mst_brought *out)
{
	if (s->count == 0 || !is_whole(s) || s->row[s->count - 1].version != version)
		return false;
	*out = s->newest;
	return true;
}

void mst_job_sets_counted(const struct mst_job_sets *s, uint32_t rank, const struct mst_claimed *of,
			  struct mst_counted_list *out)
{
	bool has = false; /* is its own version among these? */

	out->count = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t counted = s->counted[(size_t)i * s->workers + rank];
		if (has && counted > 0) {
			out->row[out->count] = s->row[i];
			out->row[out->count++].count = counted;
		}
		has |= s->row[i].version == of->version && s->row[i].made == of->made;
	}
}
