/* SPDX-License-Identifier: MIT */
#include "server/core/policy/in_force.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

/* So many have to claim something before one of them can be found to be alone. */
#define CLAIMS_MIN 3u

bool mst_in_force_is_sane(const struct mst_in_force *of)
{
	if (of->number == 0)
		return of->policy[0] == '\0' && of->forced == 0;
	return of->number <= MST_IN_FORCE_NUMBER_MAX && of->policy[0] != '\0';
}

bool mst_in_force_same(const struct mst_in_force *a, const struct mst_in_force *b)
{
	return a->number == b->number && a->forced == b->forced &&
	       strcmp(a->policy, b->policy) == 0;
}

/* ---- what workers bring ---- */

int mst_in_force_claims_init(struct mst_in_force_claims *c, uint32_t workers)
{
	*c = (struct mst_in_force_claims){ .workers = workers };
	c->row = calloc(workers, sizeof(*c->row));
	c->rows = calloc(workers, sizeof(*c->rows));
	return c->row != NULL && c->rows != NULL ? 0 : -ENOMEM;
}

void mst_in_force_claims_fini(struct mst_in_force_claims *c)
{
	free(c->row);
	free(c->rows);
	*c = (struct mst_in_force_claims){ 0 };
}

/* As there is a row for each worker, one is free. */
static struct mst_in_force_row *row_for(struct mst_in_force_claims *c,
					const struct mst_in_force *what)
{
	struct mst_in_force_row *unused = NULL;

	for (uint32_t i = 0; i < c->rows_end; i++) {
		struct mst_in_force_row *r = &c->rows[i];
		if (r->witnesses > 0 && mst_in_force_same(&r->what, what))
			return r;
		if (r->witnesses == 0 && unused == NULL)
			unused = r;
	}
	if (unused == NULL) {
		MST_ASSERT(c->rows_end < c->workers);
		unused = &c->rows[c->rows_end++];
	}
	unused->what = *what;
	return unused;
}

void mst_in_force_unclaim(struct mst_in_force_claims *c, uint32_t rank)
{
	MST_ASSERT(rank < c->workers);
	if (c->row[rank] == 0)
		return;
	c->rows[c->row[rank] - 1].witnesses--;
	c->row[rank] = 0;
	c->claims--;
}

void mst_in_force_claim(struct mst_in_force_claims *c, uint32_t rank,
			const struct mst_in_force *what)
{
	mst_in_force_unclaim(c, rank);
	struct mst_in_force_row *r = row_for(c, what);
	r->witnesses++;
	c->row[rank] = (uint32_t)(r - c->rows) + 1;
	c->claims++;
}

/* ---- what holds ---- */

/* The text, and the force, decide where nothing else does, so that the order of ranks does not. */
static bool comes_before(const struct mst_in_force_row *a, const struct mst_in_force_row *b)
{
	if (a->what.number != b->what.number)
		return a->what.number > b->what.number;
	if (a->witnesses != b->witnesses)
		return a->witnesses > b->witnesses;
	int order = strcmp(a->what.policy, b->what.policy);
	return order != 0 ? order < 0 : a->what.forced < b->what.forced;
}

/* What is claimed, to judge each claim by. */
struct claims_view {
	bool is_shared;                       /* two workers claim the same */
	const struct mst_in_force_row *first; /* the newest that is claimed; NULL: nothing is */
};

static struct claims_view view_of(const struct mst_in_force_claims *c)
{
	struct claims_view v = { false, NULL };

	for (uint32_t i = 0; i < c->rows_end; i++) {
		const struct mst_in_force_row *r = &c->rows[i];
		v.is_shared |= r->witnesses > 1;
		if (r->witnesses > 0 && (v.first == NULL || comes_before(r, v.first)))
			v.first = r;
	}
	return v;
}

/* If no two of three or more claim the same, they were lost while changes were on their way. Then
 * only the newest is not believed. */
static bool is_believed(const struct mst_in_force_claims *c, const struct claims_view *v,
			const struct mst_in_force_row *r)
{
	return r->witnesses > 1 || c->claims < CLAIMS_MIN || (!v->is_shared && r != v->first);
}

struct mst_in_force mst_in_force_choose(const struct mst_in_force_claims *c,
					const struct mst_in_force *kept)
{
	struct mst_in_force_row best = { *kept, UINT32_MAX };
	struct claims_view v = view_of(c);

	for (uint32_t i = 0; i < c->rows_end; i++) {
		const struct mst_in_force_row *r = &c->rows[i];
		if (r->witnesses > 0 && is_believed(c, &v, r) && comes_before(r, &best))
			best = *r;
	}
	return best.what;
}

bool mst_in_force_not_believed(const struct mst_in_force_claims *c,
			       const struct mst_in_force *chosen, struct mst_in_force *what,
			       uint32_t *rank)
{
	const struct mst_in_force_row *first = NULL;
	struct claims_view v = view_of(c);

	for (uint32_t i = 0; i < c->rows_end; i++) {
		const struct mst_in_force_row *r = &c->rows[i];
		bool other = r->witnesses > 0 && r->what.number >= chosen->number &&
			     r->what.number > 0 && !mst_in_force_same(&r->what, chosen) &&
			     !is_believed(c, &v, r);
		if (other && (first == NULL || comes_before(r, first)))
			first = r;
	}
	if (first == NULL)
		return false;
	*what = first->what;
	for (*rank = 0; c->row[*rank] != (uint32_t)(first - c->rows) + 1; (*rank)++)
		;
	return true;
}
