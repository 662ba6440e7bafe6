/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/comparisons.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"

#define OTHER ((uint8_t)(MST_STATE_GROUPS + 1))

int mst_comparisons_init(struct mst_comparisons *c, uint32_t workers, const bool *present)
{
	c->workers = workers;
	c->present = present;
	c->newest = calloc(workers, sizeof(*c->newest));
	c->row = calloc(MST_COMPARISONS_KEPT, sizeof(*c->row));
	c->vote = calloc((size_t)MST_COMPARISONS_KEPT * workers, sizeof(*c->vote));
	if (c->newest == NULL || c->row == NULL || c->vote == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < MST_COMPARISONS_KEPT; i++)
		c->row[i].vote = c->vote + (size_t)i * workers;
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
	return row->said == 1 && row->vote[rank].group != 0;
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

static struct mst_compared *row_of(struct mst_comparisons *c, uint32_t rank,
				   const struct mst_comparison *said)
{
	for (uint32_t i = 0; i < c->count; i++) {
		struct mst_compared *row = &c->row[i];
		if (row->version == said->version && row->first == said->first &&
		    row->each == said->each && row->count == said->count)
			return row;
	}
	make_room(c, rank);
	struct mst_compared *row = &c->row[c->count++];
	row->version = said->version;
	row->first = said->first;
	row->each = said->each;
	row->count = said->count;
	return row;
}

/* ---- groups ---- */

static uint64_t digest_of(const struct mst_comparison *said)
{
	uint32_t sum = mst_crc32c(0, said->digest, said->count * sizeof(said->digest[0]));

	for (uint32_t i = 0; i < said->part_count; i++) {
		const struct mst_claim_part *part = &said->part[i];
		sum = mst_crc32c(sum, part->name, strlen(part->name) + 1);
		sum = mst_crc32c(sum, &part->digest, sizeof(part->digest));
	}
	return sum;
}

/* Return: its number from 1, or OTHER; 0: no memory. */
static uint8_t group_of(struct mst_compared *row, uint32_t rank, const struct mst_comparison *said)
{
	uint64_t digest = digest_of(said);

	for (uint32_t i = 0; i < row->groups; i++) {
		struct mst_state_group *group = &row->group[i];
		if (group->digest != digest)
			continue;
		group->ranks++;
		if (rank < group->rank)
			group->rank = rank;
		return (uint8_t)(i + 1);
	}
	if (row->groups == MST_STATE_GROUPS) {
		row->others++;
		return OTHER;
	}
	struct mst_comparison *kept = malloc(sizeof(*kept));
	if (kept == NULL)
		return 0;
	*kept = *said;
	row->group[row->groups++] = (struct mst_state_group){
		.digest = digest, .ranks = 1, .rank = rank, .said = kept
	};
	return (uint8_t)row->groups;
}

int mst_comparisons_take(struct mst_comparisons *c, uint32_t rank,
			 const struct mst_comparison *said)
{
	struct mst_compared *row = row_of(c, rank, said);

	if (row->vote[rank].group != 0)
		return 0;
	uint8_t group = group_of(row, rank, said);
	if (group == 0) {
		if (row->said == 0)
			drop(c, row);
		return -ENOMEM;
	}
	row->vote[rank] = (struct mst_vote){ .group = group };
	row->said++;
	if (said->version > c->newest[rank])
		c->newest[rank] = said->version;
	return 0;
}

void mst_comparisons_forget(struct mst_comparisons *c, uint32_t rank)
{
	for (uint32_t i = 0; i < c->count; i++)
		c->row[i].vote[rank].judged = true;
}

/* ---- which is right ---- */

static bool is_ready(const struct mst_comparisons *c, const struct mst_compared *row)
{
	uint32_t present = 0, later = 0, missing = 0;

	for (uint32_t rank = 0; rank < c->workers; rank++) {
		if (!c->present[rank])
			continue;
		present++;
		later += c->newest[rank] > row->version;
		missing += row->vote[rank].group == 0;
	}
	return missing == 0 || 2 * later > present;
}

struct best {
	uint32_t group; /* of most ranks; of several, the one of the lowest rank */
	bool tie;       /* there are several */
};

static struct best find_best(const struct mst_compared *row)
{
	struct best best = { .group = 0 };

	for (uint32_t i = 1; i < row->groups; i++) {
		const struct mst_state_group *group = &row->group[i],
					     *most = &row->group[best.group];
		if (group->ranks < most->ranks)
			continue;
		best.tie = group->ranks == most->ranks;
		if (!best.tie || group->rank < most->rank)
			best.group = i;
	}
	best.tie |= row->group[best.group].ranks == 1 && row->others > 0;
	return best;
}

/* The group that a rank of the best one is compared with. */
static uint32_t another(const struct mst_compared *row, uint32_t best)
{
	uint32_t found = best == 0 ? 1 : 0;

	for (uint32_t i = 0; i < row->groups; i++) {
		if (i != best && row->group[i].ranks > row->group[found].ranks)
			found = i;
	}
	return found;
}

static void fill(const struct mst_compared *row, uint32_t rank, struct best best,
		 struct mst_odd_rank *out)
{
	uint8_t group = row->vote[rank].group;
	bool is_right = group == best.group + 1;
	const struct mst_state_group *with =
		&row->group[is_right ? another(row, best.group) : best.group];

	const struct mst_comparison *own = group == OTHER ? NULL : row->group[group - 1].said;
	*out = (struct mst_odd_rank){
		.rank = rank,
		.from = with->rank,
		.is_right = is_right,
		.version = row->version,
		.last = (own != NULL ? own : with->said)->last != 0,
		.own = own,
		.theirs = with->said,
	};
}

static bool find_in(struct mst_comparisons *c, struct mst_compared *row, struct mst_odd_rank *out)
{
	if (row->groups < 2 || !is_ready(c, row))
		return false;
	struct best best = find_best(row);
	for (uint32_t rank = 0; rank < c->workers; rank++) {
		struct mst_vote *vote = &row->vote[rank];
		if (vote->group == 0 || vote->judged ||
		    (!best.tie && vote->group == best.group + 1))
			continue;
		vote->judged = true;
		fill(row, rank, best, out);
		return true;
	}
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
