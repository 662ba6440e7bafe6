/* SPDX-License-Identifier: MIT */
/*
 * A node with a single child has the child's sum, and a node that begins its parent has what the
 * parent's sum begins with. Both are summed straight into the parent: the same additions of the
 * same numbers, without a pass to join them. So a group of eight is one step.
 */
#include "common/kernels/plan.h"

#include "common/base/assert.h"

/* Goes through the tree and lists steps. */
struct walk {
	struct mst_sum_plan *plan;
	const struct mst_tile *tile; /* a full list is worked off here; NULL: it does not fit */
};

static void steps_run(struct mst_sum_plan *plan, const struct mst_tile *tile)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct mst_plan_step *step = &plan->step[i];
		float *into = tile->sum[step->into];

		if (step->joins != MST_SUMS)
			step->sum.source[0] = tile->sum[step->joins];
		plan->isa->accumulate(&step->sum, plan->how, into,
				      step->joins != MST_SUMS ? 0 : tile->first, tile->count);
	}
}

static struct mst_plan_step *step_add(const struct walk *walk, enum mst_sum into, bool begun)
{
	struct mst_sum_plan *plan = walk->plan;
	struct mst_plan_step *step;

	if (plan->count == MST_PLAN_STEPS) {
		if (walk->tile != NULL)
			steps_run(plan, walk->tile);
		plan->fits = false;
		plan->count = 0;
	}
	step = &plan->step[plan->count++];
	step->into = into;
	step->joins = MST_SUMS;
	step->sum.begun = begun;
	step->sum.scaled = false;
	step->sum.count = 0;
	return step;
}

static void source_add(struct mst_sum_step *step, const void *data, float c)
{
	step->source[step->count] = data;
	step->coefficient[step->count++] = c;
	if (c != 1.0f)
		step->scaled = true;
}

static void join(const struct walk *walk, enum mst_sum into, enum mst_sum from)
{
	struct mst_plan_step *step = step_add(walk, into, true);

	step->joins = from;
	step->sum.type = MUSTER_F32;
	source_add(&step->sum, NULL, 1.0f);
}

/* The last step, if one more leaf can be added after its others. */
static struct mst_plan_step *step_open(struct mst_sum_plan *plan, enum mst_sum into,
				       enum muster_type type)
{
	struct mst_plan_step *step = plan->count == 0 ? NULL : &plan->step[plan->count - 1];

	if (step == NULL || step->into != into || step->joins != MST_SUMS ||
	    step->sum.type != type || step->sum.count == MST_SUM_SOURCES)
		return NULL;
	return step;
}

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

static void add_leaf(const struct walk *walk, size_t at, enum mst_sum into, bool begun)
{
	const struct mst_tree *tree = walk->plan->tree;
	const struct mst_leaf *leaf = &tree->leaf[at];
	enum muster_type type = leaf->partial ? MUSTER_F32 : tree->type;
	struct mst_plan_step *step = begun ? step_open(walk->plan, into, type) : NULL;

	if (step == NULL) {
		step = step_add(walk, into, begun);
		step->sum.type = type;
	}
	source_add(&step->sum, leaf->data, leaf->partial ? 1.0f : leaf->coefficient);
}

static void add_rank(const struct walk *walk, size_t at, size_t end, enum mst_sum into, bool begun)
{
	bool apart = begun && end - at > 1;
	enum mst_sum own = apart ? MST_SUM_RANK : into;

	add_leaf(walk, at, own, begun && !apart);
	for (size_t i = at + 1; i < end; i++) {
		MST_ASSERT(!walk->plan->tree->leaf[i].partial);
		add_leaf(walk, i, own, true);
	}
	if (apart)
		join(walk, into, own);
}

static void add_group(const struct walk *walk, size_t at, size_t end, bool begun)
{
	const struct mst_tree *tree = walk->plan->tree;
	bool apart = begun && rank_end(tree, at) < end;
	enum mst_sum own = apart ? MST_SUM_GROUP : MST_SUM_TOTAL;
	bool own_begun = begun && !apart;

	for (size_t next; at < end; at = next) {
		next = rank_end(tree, at);
		MST_ASSERT(next == end || tree->leaf[next].rank > tree->leaf[at].rank);
		add_rank(walk, at, next, own, own_begun);
		own_begun = true;
	}
	if (apart)
		join(walk, MST_SUM_TOTAL, own);
}

static void add_all(const struct walk *walk)
{
	const struct mst_tree *tree = walk->plan->tree;

	walk->plan->count = 0;
	for (size_t at = 0, next; at < tree->leaf_count; at = next) {
		next = group_end(tree, at);
		MST_ASSERT(next == tree->leaf_count || tree->leaf[next].rank > tree->leaf[at].rank);
		add_group(walk, at, next, at > 0);
	}
}

void mst_plan_make(struct mst_sum_plan *plan, const struct mst_tree *tree)
{
	MST_ASSERT(tree->leaf_count > 0 && tree->group > 0);
	plan->tree = tree;
	plan->isa = mst_isa();
	plan->how = mst_variant();
	plan->fits = true;
	add_all(&(struct walk){ .plan = plan });
}

void mst_plan_sum(struct mst_sum_plan *plan, const struct mst_tile *tile)
{
	MST_ASSERT(tile->count <= plan->how->tile);
	if (!plan->fits)
		add_all(&(struct walk){ .plan = plan, .tile = tile });
	steps_run(plan, tile);
}
