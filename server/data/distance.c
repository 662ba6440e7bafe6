/* SPDX-License-Identifier: MIT */
#include "server/data/distance.h"

#include <errno.h>
#include <stdlib.h>

#include "common/kernels/select.h"
#include "common/kernels/sum.h"
#include "server/data/aggregator.h"

struct mst_distance_pass {
	enum muster_type type;
	uint64_t first; /* of the server's part, in the whole vector */
	struct mst_span range;
	const char *now, *read;
	uint64_t done; /* elements up to this one have been compared */
	struct mst_exact_sum square;
	/* of one block */
	float moved[MST_SHARD_ELEMS_MIN], from[MST_SHARD_ELEMS_MIN];
};

uint64_t mst_distance_bytes(const struct mst_aggregator_cfg *cfg)
{
	return cfg->distances ? sizeof(struct mst_distance_pass) : 0;
}

int mst_distance_new(const struct mst_aggregator_cfg *cfg, struct mst_span range,
		     struct mst_distance_pass **out)
{
	*out = NULL;
	if (!cfg->distances)
		return 0;
	struct mst_distance_pass *p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	p->type = cfg->result_type;
	p->first = cfg->first;
	p->range = range;
	*out = p;
	return 0;
}

void mst_distance_free(struct mst_distance_pass *p)
{
	free(p);
}

/* A version that is compared with itself has the distance 0. */
void mst_distance_begin(struct mst_distance_pass *p, const void *now, const void *read)
{
	p->now = now;
	p->read = read;
	p->done = now != read ? p->range.begin : p->range.end;
	p->square = (struct mst_exact_sum){ { 0 } };
}

static void add_block(struct mst_distance_pass *p, uint64_t count)
{
	uint64_t at = p->done * mst_type_bytes(p->type);

	mst_sum_load(p->moved, p->now + at, p->type, count);
	mst_sum_load(p->from, p->read + at, p->type, count);
	for (uint64_t i = 0; i < count; i++)
		p->moved[i] -= p->from[i];
	mst_exact_add(&p->square, mst_isa()->squares(p->moved, (size_t)count));
}

void mst_distance_go_on(struct mst_distance_pass *p, uint64_t reached)
{
	while (p->done < reached) {
		uint64_t at = p->first + p->done;
		uint64_t end = p->done + MST_SHARD_ELEMS_MIN - at % MST_SHARD_ELEMS_MIN;

		if (end > p->range.end)
			end = p->range.end;
		if (end > reached)
			return;
		add_block(p, end - p->done);
		p->done = end;
	}
}

const struct mst_exact_sum *mst_distance_square(const struct mst_distance_pass *p)
{
	return &p->square;
}
