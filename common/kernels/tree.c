/* SPDX-License-Identifier: MIT */
/*
 * The fixed tree, taken strip by strip: a strip is short enough that the leaves' streams advance
 * side by side, which memory serves a third faster than one stream after another, and that the
 * sums in progress stay in the first cache.
 *
 * A node with a single child has the child's sum, and a node that begins its parent has what the
 * parent's sum begins with. Both are summed straight into the parent: the same additions of the
 * same numbers, without a pass to join them.
 */
#include "common/kernels/tree.h"

#include "common/base/assert.h"
#include "common/kernels/sum.h"

#define STRIP_ELEMS 256

/* One strip. A sum in progress is a pointer and whether it has begun. */
struct walk {
	const struct mst_tree *tree;
	size_t first, count; /* elements */
	float *group, *rank; /* sums apart from their parent's */
};

static size_t rank_end(const struct mst_tree *tree, size_t at)
{
	size_t end = at + 1;

	while (end < tree->leaf_count && tree->leaf[end].rank == tree->leaf[at].rank)
		end++;
	return end;
}

static size_t group_end(const struct mst_tree *tree, size_t at)
{
	uint32_t group = tree->leaf[at].rank / tree->group;
	size_t end = at + 1;

	while (end < tree->leaf_count && tree->leaf[end].rank / tree->group == group)
		end++;
	return end;
}

static void add_leaf(const struct walk *walk, size_t at, float *sum, bool begun)
{
	const struct mst_leaf *leaf = &walk->tree->leaf[at];
	enum muster_type type = leaf->partial ? MUSTER_F32 : walk->tree->type;
	float c = leaf->partial ? 1.0f : leaf->coefficient;
	const char *g = (const char *)leaf->data + walk->first * mst_type_bytes(type);

	if (begun)
		mst_sum_add(sum, g, type, c, walk->count);
	else
		mst_sum_first(sum, g, type, c, walk->count);
}

static void add_rank(const struct walk *walk, size_t at, size_t end, float *sum, bool begun)
{
	bool apart = begun && end - at > 1;
	float *own = apart ? walk->rank : sum;

	add_leaf(walk, at, own, begun && !apart);
	for (size_t i = at + 1; i < end; i++) {
		MST_ASSERT(!walk->tree->leaf[i].partial);
		add_leaf(walk, i, own, true);
	}
	if (apart)
		mst_sum_join(sum, own, walk->count);
}

static void add_group(const struct walk *walk, size_t at, size_t end, float *sum, bool begun)
{
	bool apart = begun && rank_end(walk->tree, at) < end;
	float *own = apart ? walk->group : sum;
	bool own_begun = begun && !apart;

	for (size_t next; at < end; at = next) {
		next = rank_end(walk->tree, at);
		MST_ASSERT(next == end || walk->tree->leaf[next].rank > walk->tree->leaf[at].rank);
		add_rank(walk, at, next, own, own_begun);
		own_begun = true;
	}
	if (apart)
		mst_sum_join(sum, own, walk->count);
}

static void sum_strip(const struct walk *walk, float *total)
{
	const struct mst_tree *tree = walk->tree;
	bool begun = false;

	for (size_t at = 0, next; at < tree->leaf_count; at = next) {
		next = group_end(tree, at);
		MST_ASSERT(next == tree->leaf_count || tree->leaf[next].rank > tree->leaf[at].rank);
		add_group(walk, at, next, total, begun);
		begun = true;
	}
}

void mst_tree_sum(const struct mst_tree *tree, size_t first, size_t count, float *total,
		  float *scratch)
{
	struct walk walk = { .tree = tree, .group = scratch, .rank = scratch + count };

	MST_ASSERT(tree->leaf_count > 0 && tree->group > 0);
	for (size_t done = 0; done < count; done += walk.count) {
		walk.first = first + done;
		walk.count = count - done < STRIP_ELEMS ? count - done : STRIP_ELEMS;
		sum_strip(&walk, total + done);
	}
}
