/* SPDX-License-Identifier: MIT */
#include "tools/sim/learn/pushes.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"

int mst_sim_pushes_init(struct mst_sim_pushes *p, struct mst_sim_versions *versions,
			uint32_t workers)
{
	*p = (struct mst_sim_pushes){ .elems = versions->elems,
				      .versions = versions,
				      .workers = workers };
	p->pending = calloc(workers, sizeof(struct mst_sim_push *));
	return p->pending != NULL ? 0 : -ENOMEM;
}

static void let_go(struct mst_sim_pushes *p, struct mst_sim_push *push)
{
	mst_sim_version_drop(p->versions, push->read);
	push->read = NULL;
}

static void free_list(struct mst_sim_pushes *p, struct mst_sim_push *push)
{
	while (push != NULL) {
		struct mst_sim_push *next = push->next;
		let_go(p, push);
		free(push->data);
		free(push);
		push = next;
	}
}

static void forget(struct mst_sim_pushes *p, struct mst_sim_push *push)
{
	let_go(p, push);
	push->next = p->unused;
	p->unused = push;
}

void mst_sim_pushes_fini(struct mst_sim_pushes *p)
{
	mst_sim_pushes_clear(p);
	for (uint32_t rank = 0; p->pending != NULL && rank < p->workers; rank++)
		free_list(p, p->pending[rank]);
	free_list(p, p->unused);
	free(p->pending);
	free(p->set);
	*p = (struct mst_sim_pushes){ .workers = 0 };
}

static struct mst_sim_push *take_unused(struct mst_sim_pushes *p)
{
	struct mst_sim_push *push = p->unused;

	if (push != NULL) {
		p->unused = push->next;
		return push;
	}
	push = calloc(1, sizeof(*push));
	if (push == NULL)
		return NULL;
	push->data = mst_sim_vector_new(p->elems);
	if (push->data == NULL) {
		free(push);
		return NULL;
	}
	return push;
}

/* Takes a contribution out of those without a verdict; NULL: it is not there. */
static struct mst_sim_push *take(struct mst_sim_pushes *p, struct mst_identity who, uint64_t seq)
{
	struct mst_sim_push **at = &p->pending[who.rank];

	while (*at != NULL && ((*at)->who.incarnation != who.incarnation || (*at)->seq != seq))
		at = &(*at)->next;
	struct mst_sim_push *push = *at;
	if (push != NULL)
		*at = push->next;
	return push;
}

struct mst_sim_push *mst_sim_pushes_add(struct mst_sim_pushes *p, struct mst_identity who,
					uint64_t seq)
{
	struct mst_sim_push **of_rank = &p->pending[who.rank];

	while (*of_rank != NULL && (*of_rank)->who.incarnation != who.incarnation)
		forget(p, take(p, (*of_rank)->who, (*of_rank)->seq));
	struct mst_sim_push *push = take_unused(p);
	if (push == NULL)
		return NULL;
	push->who = who;
	push->seq = seq;
	push->next = *of_rank;
	*of_rank = push;
	return push;
}

int mst_sim_pushes_count(struct mst_sim_pushes *p, struct mst_identity who, uint64_t seq,
			 float coefficient)
{
	if (p->set_count == p->set_room) {
		uint32_t room = p->set_room > 0 ? 2 * p->set_room : 16;
		struct mst_sim_push **set = realloc(p->set, room * sizeof(*set));
		if (set == NULL)
			return -ENOMEM;
		p->set = set;
		p->set_room = room;
	}
	struct mst_sim_push *push = take(p, who, seq);
	MST_ASSERT(push != NULL);
	push->coefficient = coefficient;
	p->set[p->set_count++] = push;
	return 0;
}

void mst_sim_pushes_drop(struct mst_sim_pushes *p, struct mst_identity who, uint64_t seq)
{
	struct mst_sim_push *push = take(p, who, seq);

	if (push != NULL)
		forget(p, push);
}

static int by_rank(const void *a, const void *b)
{
	const struct mst_sim_push *x = *(struct mst_sim_push *const *)a;
	const struct mst_sim_push *y = *(struct mst_sim_push *const *)b;

	if (x->who.rank != y->who.rank)
		return x->who.rank < y->who.rank ? -1 : 1;
	if (x->who.incarnation != y->who.incarnation)
		return x->who.incarnation < y->who.incarnation ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

void mst_sim_pushes_sort(struct mst_sim_pushes *p)
{
	qsort(p->set, p->set_count, sizeof(struct mst_sim_push *), by_rank);
}

void mst_sim_pushes_clear(struct mst_sim_pushes *p)
{
	for (uint32_t i = 0; i < p->set_count; i++)
		forget(p, p->set[i]);
	p->set_count = 0;
}
