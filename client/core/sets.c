/* SPDX-License-Identifier: MIT */
#include "client/core/sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/worker.h"

/* One cell more than versions are kept, for the one that has not been given yet. */
static uint32_t cells_of(const struct mst_sets_figures *f)
{
	return (f->history > 0 ? f->history : 1) + 1;
}

static int allocate(struct mst_sets *s, uint32_t count, uint32_t room)
{
	*s = (struct mst_sets){ .count = count, .room = room };
	s->cell = calloc(count, sizeof(*s->cell));
	s->share = calloc((size_t)count * room, sizeof(*s->share));
	if (s->cell == NULL || s->share == NULL) {
		mst_sets_fini(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		s->cell[i].version = MST_VERSION_NONE;
		s->cell[i].share = s->share + (size_t)i * room;
	}
	return 0;
}

int mst_sets_init(struct mst_sets *s, const struct mst_sets_figures *f)
{
	return allocate(s, cells_of(f), f->workers);
}

void mst_sets_fini(struct mst_sets *s)
{
	free(s->cell);
	free(s->share);
	*s = (struct mst_sets){ .cell = NULL };
}

static void copy_cell(struct mst_held *to, const struct mst_held *from)
{
	struct muster_share *share = to->share;

	*to = *from;
	to->share = share;
	memcpy(share, from->share, from->share_count * sizeof(*share));
}

int mst_sets_fit(struct mst_sets *s, const struct mst_sets_figures *f)
{
	uint32_t count = cells_of(f) > s->count ? cells_of(f) : s->count;
	uint32_t room = f->workers > s->room ? f->workers : s->room;
	struct mst_sets more;

	if (count == s->count && room == s->room)
		return 0;
	int rc = allocate(&more, count, room);
	if (rc != 0)
		return rc;
	/* From the oldest on, so that the newest is the last. */
	for (uint32_t i = 0; i < s->count; i++)
		copy_cell(&more.cell[i], &s->cell[(s->at + 1 + i) % s->count]);
	more.at = s->count - 1;
	mst_sets_fini(s);
	*s = more;
	return 0;
}

struct muster_share *mst_sets_place(struct mst_sets *s, uint64_t version, uint64_t given)
{
	uint64_t newest = s->cell[s->at].version;

	if (newest != MST_VERSION_NONE && newest != version && newest <= given)
		s->at = (s->at + 1) % s->count;
	s->cell[s->at].version = MST_VERSION_NONE; /* until all of it has been read */
	return s->cell[s->at].share;
}

void mst_sets_keep(struct mst_sets *s, const struct mst_held *held)
{
	s->cell[s->at] = *held;
}

const struct mst_held *mst_sets_find(const struct mst_sets *s, uint64_t version)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->cell[i].version == version && version != MST_VERSION_NONE)
			return &s->cell[i];
	}
	return NULL;
}

const struct mst_held *mst_sets_go_back(struct mst_sets *s, uint64_t version)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->cell[i].version > version || version == MST_VERSION_NONE)
			s->cell[i].version = MST_VERSION_NONE;
		if (s->cell[i].version == version)
			s->at = i;
	}
	return mst_sets_find(s, version);
}
