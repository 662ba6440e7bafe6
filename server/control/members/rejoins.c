/* SPDX-License-Identifier: MIT */
#include "server/control/members/rejoins.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"

int mst_rejoins_init(struct mst_rejoins *r, uint32_t workers)
{
	*r = (struct mst_rejoins){ .workers = workers };
	r->rested_ns = calloc((size_t)workers + 1, sizeof(*r->rested_ns));
	return r->rested_ns != NULL ? 0 : -ENOMEM;
}

uint64_t mst_rejoins_bytes(uint32_t workers)
{
	return (workers + UINT64_C(1)) * sizeof(uint64_t);
}

void mst_rejoins_fini(struct mst_rejoins *r)
{
	free(r->rested_ns);
	r->rested_ns = NULL;
}

static uint64_t *limit_of(const struct mst_rejoins *r, int32_t rank)
{
	MST_ASSERT(rank < 0 || (uint32_t)rank < r->workers);
	return &r->rested_ns[rank < 0 ? r->workers : (uint32_t)rank];
}

/* What an admission takes from its limit. */
static uint64_t cost_of(const struct mst_rejoins *r, int32_t rank)
{
	return rank < 0 ? MST_REJOINS_PERIOD_NS / r->workers : MST_REJOINS_PERIOD_NS;
}

uint64_t mst_rejoins_wait(const struct mst_rejoins *r, int32_t rank, uint64_t now_ns)
{
	uint64_t rested_ns = *limit_of(r, rank);
	uint64_t most_ns = MST_REJOINS_AT_ONCE * MST_REJOINS_PERIOD_NS - cost_of(r, rank);

	return rested_ns > now_ns + most_ns ? rested_ns - now_ns - most_ns : 0;
}

void mst_rejoins_count(struct mst_rejoins *r, int32_t rank, uint64_t now_ns)
{
	uint64_t *rested_ns = limit_of(r, rank);

	*rested_ns = (*rested_ns > now_ns ? *rested_ns : now_ns) + cost_of(r, rank);
}
