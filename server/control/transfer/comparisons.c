/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/comparisons.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"

int mst_comparisons_init(struct mst_comparisons *c, uint32_t workers, const bool *present)
{
	c->workers = workers;
	c->present = present;
	c->apart = calloc(workers, sizeof(*c->apart));
	c->newest = calloc(workers, sizeof(*c->newest));
	c->row = calloc(MST_COMPARISONS_KEPT, sizeof(*c->row));
	c->vote = calloc((size_t)MST_COMPARISONS_KEPT * workers, sizeof(*c->vote));
	if (c->apart == NULL || c->newest == NULL || c->row == NULL || c->vote == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < MST_COMPARISONS_KEPT; i++)
		c->row[i].vote = c->vote + (size_t)i * workers;
	for (uint32_t rank = 0; rank < workers; rank++)
		c->apart[rank] = UINT64_MAX;
	return 0;
}

static void clear(struct mst_comparisons *c, struct mst_compared *row)
{
	struct mst_vote *vote = row->vote;

	for (uint32_t i = 0; i < row->groups; i++)
		free(row->group[i].said);
	memset(vote, 0, c->workers * sizeof(*vote));
	*row = (struct mst_compared){ .vote = vote };
}

void mst_comparisons_fini(struct mst_comparisons *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		clear(c, &c->row[i]);
	free(c->apart);
	free(c->newest);
	free(c->row);
	free(c->vote);
	*c = (struct mst_comparisons){ .workers = 0 };
}

/* ---- rows ---- */

/* Takes a row out. Its place stays in use by the array. */
static void drop(struct mst_comparisons *c, struct mst_compared *row)
{
	struct mst_compared *last = &c->row[--c->count], dropped;

	clear(c, row);
	dropped = *row;
	*row = *last;
	*last = dropped;
}

static bool is_alone(const struct mst_compared *row, uint32_t rank)
{
	return row->said == 1 && row->vote[rank].said;
}

/* The row of the oldest version; @rank: of those that this rank alone has said. NULL: none. */
static struct mst_compared *oldest(struct mst_comparisons *c, uint32_t rank, uint32_t *count)
{
	struct mst_compared *found = NULL;

	*count = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		struct mst_compared *row = &c->row[i];
		if (rank != UINT32_MAX && !is_alone(row, rank))
			continue;
		++*count;
		if (found == NULL || row->version < found->version)
			found = row;
	}
	return found;
}

/* A rank that is far ahead, or says versions that there are not, pushes out its own rows. */
static void make_room(struct mst_comparisons *c, uint32_t rank)
{
	uint32_t count;
	struct mst_compared *row = oldest(c, rank, &count);

	if (count >= MST_COMPARISONS_LONE)
		drop(c, row);
	if (c->count == MST_COMPARISONS_KEPT)
		drop(c, oldest(c, UINT32_MAX, &count));
}

static bool is_of_the_same(const struct mst_compared *row, const struct mst_comparison *said)
{
	return row->version == said->version && row->first == said->first &&
	       row->each == said->each && row->count == said->count &&
	       row->section == said->section;
}

static struct mst_compared *row_of(struct mst_comparisons *c, uint32_t rank,
				   const struct mst_comparison *said)
{
	for (uint32_t i = 0; i < c->count; i++) {
		if (is_of_the_same(&c->row[i], said))
			return &c->row[i];
	}
	make_room(c, rank);
	struct mst_compared *row = &c->row[c->count++];
	row->version = said->version;
	row->first = said->first;
	row->each = said->each;
	row->count = said->count;
	row->section = said->section;
	return row;
}

/* ---- groups ---- */

static uint32_t digest_of(const struct mst_comparison *said)
{
	uint32_t sum = mst_crc32c(0, said->digest, said->count * sizeof(said->digest[0]));

	for (uint32_t i = 0; i < said->part_count; i++) {
		const struct mst_claim_part *part = &said->part[i];
		sum = mst_crc32c(sum, part->name, strlen(part->name) + 1);
		sum = mst_crc32c(sum, &part->digest, sizeof(part->digest));
	}
	return sum;
}

static const struct mst_state_group *group_of(const struct mst_compared *row, uint32_t digest)
{
	for (uint32_t i = 0; i < row->groups; i++) {
		if (row->group[i].digest == digest)
			return &row->group[i];
	}
	return NULL;
}

static uint32_t ranks_of(const struct mst_comparisons *c, const struct mst_compared *row,
			 uint32_t digest)
{
	uint32_t ranks = 0;

	for (uint32_t rank = 0; rank < c->workers; rank++)
		ranks += row->vote[rank].said && row->vote[rank].digest == digest;
	return ranks;
}

/* The place of a new group. If there is none, it takes that of the group of fewest ranks, unless
 * that one has more than the new one. So the group of most ranks is always kept. */
static struct mst_state_group *place_for(struct mst_comparisons *c, struct mst_compared *row,
					 uint32_t digest)
{
	uint32_t fewest = UINT32_MAX;
	struct mst_state_group *found = NULL;

	if (row->groups < MST_STATE_GROUPS)
		return &row->group[row->groups++];
	row->others = true;
	for (uint32_t i = 0; i < row->groups; i++) {
		uint32_t ranks = ranks_of(c, row, row->group[i].digest);
		if (ranks < fewest) {
			fewest = ranks;
			found = &row->group[i];
		}
	}
	if (fewest > ranks_of(c, row, digest) + 1)
		return NULL;
	free(found->said);
	return found;
}

static int keep(struct mst_comparisons *c, struct mst_compared *row, uint32_t digest,
		const struct mst_comparison *said)
{
	if (group_of(row, digest) != NULL)
		return 0;
	struct mst_comparison *kept = malloc(sizeof(*kept));
	if (kept == NULL)
		return -ENOMEM;
	struct mst_state_group *group = place_for(c, row, digest);
	if (group == NULL) {
		free(kept);
		return 0;
	}
	*kept = *said;
	*group = (struct mst_state_group){ .digest = digest, .said = kept };
	return 0;
}

int mst_comparisons_take(struct mst_comparisons *c, uint32_t rank,
			 const struct mst_comparison *said)
{
	struct mst_compared *row = row_of(c, rank, said);
	struct mst_vote *vote = &row->vote[rank];
	bool ends = said->last != 0 && !vote->last;

	if (vote->said && !vote->forgotten && !ends)
		return 0;
	uint32_t digest = digest_of(said);
	if (keep(c, row, digest, said) != 0) {
		if (row->said == 0)
			drop(c, row);
		return -ENOMEM;
	}
	row->said += !vote->said;
	row->done = false;
	*vote = (struct mst_vote){ .digest = digest,
				   .said = true,
				   .last = said->last != 0,
				   .again = vote->judged && !vote->forgotten };
	if (said->version > c->newest[rank])
		c->newest[rank] = said->version;
	return 0;
}

void mst_comparisons_discount(struct mst_comparisons *c, uint32_t rank, uint64_t version)
{
	if (version < c->apart[rank])
		c->apart[rank] = version;
}

void mst_comparisons_forget(struct mst_comparisons *c, uint32_t rank)
{
	c->apart[rank] = UINT64_MAX;
	for (uint32_t i = 0; i < c->count; i++) {
		struct mst_vote *vote = &c->row[i].vote[rank];
		vote->judged = vote->forgotten = true;
	}
}

/* ---- which is right ---- */

/* The ranks of each group. */
struct counts {
	uint32_t ranks[MST_STATE_GROUPS];
	uint32_t lowest[MST_STATE_GROUPS]; /* rank */
	uint32_t all;
};

/* @all: those that are known to differ count, too. */
static void count(const struct mst_comparisons *c, const struct mst_compared *row, bool all,
		  struct counts *out)
{
	*out = (struct counts){ .all = 0 };
	for (uint32_t rank = 0; rank < c->workers; rank++) {
		const struct mst_vote *vote = &row->vote[rank];
		bool counts = all || row->version <= c->apart[rank];
		if (!vote->said || vote->forgotten || !counts)
			continue;
		const struct mst_state_group *group = group_of(row, vote->digest);
		if (group == NULL)
			continue;
		size_t at = (size_t)(group - row->group);
		if (out->ranks[at]++ == 0)
			out->lowest[at] = rank;
		out->all++;
	}
}

struct best {
	uint32_t group; /* of most ranks; of several, the one of the lowest rank */
	uint32_t next;  /* of most ranks but that */
	uint32_t lead;  /* so many ranks more than the next one */
	struct counts counts;
};

static bool is_better(const struct counts *t, uint32_t a, uint32_t b)
{
	return t->ranks[a] > t->ranks[b] ||
	       (t->ranks[a] == t->ranks[b] && t->ranks[a] > 0 && t->lowest[a] < t->lowest[b]);
}

static struct best find_best(const struct mst_comparisons *c, const struct mst_compared *row)
{
	struct best best = { .group = 0 };
	const struct counts *t = &best.counts;

	count(c, row, false, &best.counts);
	if (t->all == 0)
		count(c, row, true, &best.counts);
	for (uint32_t i = 1; i < row->groups; i++) {
		if (is_better(t, i, best.group))
			best.group = i;
	}
	best.next = best.group == 0 ? 1 : 0;
	for (uint32_t i = 0; i < row->groups; i++) {
		if (i != best.group && is_better(t, i, best.next))
			best.next = i;
	}
	best.lead = t->ranks[best.group] - t->ranks[best.next];
	if (row->others && t->ranks[best.group] == 1)
		best.lead = 0; /* there is another one of as many */
	return best;
}

static bool is_old(const struct mst_comparisons *c, const struct mst_compared *row)
{
	uint32_t later = 0;

	for (uint32_t i = 0; i < c->count; i++)
		later += c->row[i].version > row->version;
	return later >= MST_COMPARISONS_KEPT / 2;
}

static bool is_ready(const struct mst_comparisons *c, const struct mst_compared *row,
		     const struct best *best)
{
	uint32_t present = 0, later = 0, missing = 0;

	for (uint32_t rank = 0; rank < c->workers; rank++) {
		if (!c->present[rank])
			continue;
		present++;
		later += c->newest[rank] > row->version;
		/* One that has said something of a later version says nothing of this one. */
		missing += !row->vote[rank].said && c->newest[rank] <= row->version;
	}
	if (missing == 0)
		return true;
	return 2 * later > present && (best->lead > missing || is_old(c, row));
}

static void fill(const struct mst_compared *row, uint32_t rank, const struct best *best,
		 struct mst_odd_rank *out)
{
	const struct mst_vote *vote = &row->vote[rank];
	const struct mst_state_group *own = group_of(row, vote->digest);
	bool is_right = own == &row->group[best->group];
	uint32_t with = is_right ? best->next : best->group;

	*out = (struct mst_odd_rank){
		.rank = rank,
		.from = best->counts.lowest[with],
		.is_right = is_right,
		.version = row->version,
		.last = vote->last,
		.again = vote->again,
		.own = own != NULL ? own->said : NULL,
		.theirs = row->group[with].said,
	};
}

static bool find_in(struct mst_comparisons *c, struct mst_compared *row, struct mst_odd_rank *out)
{
	if (row->groups < 2 || row->done)
		return false;
	struct best best = find_best(c, row);
	if (!is_ready(c, row, &best))
		return false;
	const struct mst_state_group *right = &row->group[best.group];
	for (uint32_t rank = 0; rank < c->workers; rank++) {
		struct mst_vote *vote = &row->vote[rank];
		if (!vote->said || vote->judged || (best.lead > 0 && vote->digest == right->digest))
			continue;
		vote->judged = true;
		fill(row, rank, &best, out);
		return true;
	}
	row->done = true;
	return false;
}

bool mst_comparisons_find(struct mst_comparisons *c, struct mst_odd_rank *out)
{
	for (uint32_t i = 0; i < c->count; i++) {
		if (find_in(c, &c->row[i], out))
			return true;
	}
	return false;
}
