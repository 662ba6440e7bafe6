/* SPDX-License-Identifier: MIT */
/* Norms of tensors: an aggregator multiplies the rate of each tensor by what its norms give, with
 * the same bits whatever the shards and the chunks, and reports of the tensors that its borders
 * cut. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rand.h"
#include "common/optim/kernels.h"
#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

/* The part of the server among others, which the first and the last tensor go on beyond. */
#define FIRST UINT64_C(8192)
#define VECTOR (FIRST + AGG_ELEMS + 3000)
#define TRUST 0.5
#define TENSORS 6

/* The parameters of the third are zeroes, and so is the gradient of the fourth. */
static const struct muster_tensor tensors[TENSORS] = {
	{ "left", 0, FIRST + 1, 1, 1 },
	{ "one", FIRST + 1, 1, 1, 1 },
	{ "zeroes", FIRST + 2, 1500, 1, 1 },
	{ "still", FIRST + 1502, 2600, 1, 1 },
	{ "long", FIRST + 4102, 8000, 1, 1 },
	{ "right", FIRST + 12102, VECTOR - FIRST - 12102, 2, 1 },
};
/* What the leader says of the first and the last. */
#define TRUST_LEFT 3
#define TRUST_RIGHT 0.25f

static struct mst_tensor_table *table;
static float theta[AGG_ELEMS], gradient[AGG_ELEMS], next[AGG_ELEMS];

static void draw(void)
{
	struct mst_rand rand;

	mst_rand_seed(&rand, 1);
	for (uint32_t i = 0; i < AGG_ELEMS; i++) {
		theta[i] = (float)mst_rand_normal(&rand);
		gradient[i] = (float)mst_rand_normal(&rand);
	}
	memset(theta + 2, 0, tensors[2].count * sizeof(*theta));
	memset(gradient + 1502, 0, tensors[3].count * sizeof(*gradient));
}

static void make_table(void)
{
	static struct mst_tensor_piece piece;
	struct mst_table told;

	mst_table_of(tensors, TENSORS, &told);
	CU_ASSERT_EQUAL_FATAL(mst_tensor_table_new(&told, VECTOR, &table), 0);
	(void)mst_tensor_piece_of(tensors, TENSORS, 0, MST_TENSORS_PIECE, &piece);
	CU_ASSERT_PTR_NULL_FATAL(mst_tensor_table_take(table, &piece));
}

static void lars(struct mst_aggregator_cfg *cfg)
{
	cfg->index = 1;
	cfg->first = FIRST;
	cfg->vector = VECTOR;
	cfg->owner = MUSTER_SERVERS_OWN;
	cfg->optimizer = (struct mst_optimizer){
		.row = mst_optim_find("lars"),
		.parameter = { [MST_LARS_LR] = 1, [MST_LARS_TRUST] = TRUST },
	};
	if (table != NULL)
		mst_table_of(tensors, TENSORS, &cfg->table);
}

static void work_off(void)
{
	while (agg_work_all())
		;
}

/* Up to the report. */
static void begin(uint32_t shards, uint64_t chunk)
{
	struct mst_decision start = { .kind = MST_DO_START, .commit.version = 2 };

	agg_shards = shards;
	agg_adjust = lars;
	agg_begin_with(true, chunk);
	if (table != NULL)
		mst_aggregator_tensors(agg_aggregator, table);
	memcpy(agg_cfg.published, theta, sizeof(theta));
	memcpy((char *)agg_link[0].inbound + mst_lane_gradient(&agg_cfg.layout, 0, 0), gradient,
	       sizeof(gradient));
	agg_decide(&start);
	agg_count(0);
	agg_commit();
	work_off();
}

/* The sum of that number. */
static const struct mst_ledger_event *reported(uint32_t sum)
{
	for (int i = 0; i < agg_event_count; i++)
		if (agg_event[i].kind == MST_EV_REDUCED && agg_event[i].reduced.sum == sum)
			return &agg_event[i];
	CU_FAIL_FATAL("a sum is not reported");
	return NULL;
}

static void apply_and_end(void)
{
	struct mst_decision d = { .kind = MST_DO_APPLY };

	d.apply.version = 3;
	d.apply.factor = 1;
	d.apply.trust[0] = TRUST_LEFT;
	d.apply.trust[1] = TRUST_RIGHT;
	agg_decide(&d);
	work_off();
	memcpy(next,
	       (const char *)agg_cfg.published + 2 * mst_version_stride(AGG_ELEMS, MUSTER_F32),
	       sizeof(next));
	agg_end();
}

/* A simple norm, which is as exact as double is. */
static double norm_of(const float *vector, const struct muster_tensor *t)
{
	double sum = 0;

	for (uint64_t i = t->first - FIRST; i < t->first - FIRST + t->count; i++)
		sum += (double)vector[i] * (double)vector[i];
	return sqrt(sum);
}

static void check_step(uint32_t tensor, double rate)
{
	const struct muster_tensor *t = &tensors[tensor];
	uint64_t begin = t->first < FIRST ? 0 : t->first - FIRST;
	uint64_t end = t->first + t->count - FIRST;

	for (uint64_t i = begin; i < end && i < AGG_ELEMS; i++) {
		double want = (double)theta[i] - rate * (double)gradient[i];
		CU_ASSERT_FATAL(fabs((double)next[i] - want) <= 1e-6 * (1 + fabs(want)));
	}
}

static double trust_of(uint32_t tensor)
{
	return TRUST * norm_of(theta, &tensors[tensor]) / norm_of(gradient, &tensors[tensor]);
}

static void each_tensor_has_its_own_rate(void)
{
	draw();
	make_table();
	begin(1, AGG_CHUNK);
	apply_and_end();
	check_step(0, TRUST_LEFT);
	check_step(1, trust_of(1));
	check_step(2, 1); /* where a norm is 0 */
	check_step(3, 1);
	check_step(4, trust_of(4));
	check_step(5, 2 * TRUST_RIGHT); /* with its scale */
	mst_tensor_table_free(table);
	table = NULL;
}

static void the_bits_are_the_same_whatever_the_shards_and_chunks(void)
{
	static const uint64_t chunks[] = { 700, 1024, 4096, 100000 };
	static float first[AGG_ELEMS];
	struct mst_exact_sum sums[MST_EDGE_SUMS];

	draw();
	make_table();
	for (uint32_t round = 0; round < 12; round++) {
		begin(1 + round % 3, chunks[round / 3]);
		for (uint32_t i = 0; i < MST_EDGE_SUMS; i++) {
			const struct mst_ledger_event *ev = reported(i);
			CU_ASSERT(ev->reduced.shard == 1 && ev->reduced.version == 3);
			CU_ASSERT(!ev->reduced.spans);
			if (round == 0)
				sums[i] = ev->reduced.squares;
			CU_ASSERT_EQUAL(memcmp(&sums[i], &ev->reduced.squares, sizeof(*sums)), 0);
		}
		apply_and_end();
		if (round == 0)
			memcpy(first, next, sizeof(first));
		CU_ASSERT_EQUAL(memcmp(first, next, sizeof(first)), 0);
	}
	CU_ASSERT_EQUAL(mst_exact_value(&sums[MST_EDGE_LEFT_THETA]),
			(double)theta[0] * (double)theta[0]);
	CU_ASSERT(mst_exact_value(&sums[MST_EDGE_RIGHT_DIRECTION]) > 0);
	mst_tensor_table_free(table);
	table = NULL;
}

/* The part is within one tensor, for there is no table. */
static void a_tensor_beyond_both_borders_is_reported_once(void)
{
	struct muster_tensor all = { NULL, FIRST, AGG_ELEMS, 1, 1 };
	struct mst_exact_sum first;

	draw();
	for (uint32_t shards = 1; shards <= 3; shards++) {
		begin(shards, AGG_CHUNK);
		CU_ASSERT_EQUAL(mst_exact_value(&reported(MST_EDGE_LEFT_THETA)->reduced.squares),
				0);
		const struct mst_ledger_event *right = reported(MST_EDGE_RIGHT_THETA);
		if (shards == 1)
			first = right->reduced.squares;
		CU_ASSERT_EQUAL(memcmp(&first, &right->reduced.squares, sizeof(first)), 0);
		CU_ASSERT(right->reduced.spans);
		double found = sqrt(
			mst_exact_value(&reported(MST_EDGE_RIGHT_THETA)->reduced.squares));
		CU_ASSERT(fabs(found - norm_of(theta, &all)) < 1e-9 * found);
		apply_and_end();
		CU_ASSERT_EQUAL(next[5000], theta[5000] - TRUST_RIGHT * gradient[5000]);
	}
}

static CU_TestInfo cases[] = {
	{ "each tensor has its own rate", each_tensor_has_its_own_rate },
	{ "the bits are the same whatever the shards and chunks",
	  the_bits_are_the_same_whatever_the_shards_and_chunks },
	{ "a tensor beyond both borders is reported once",
	  a_tensor_beyond_both_borders_is_reported_once },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator_norms", cases);
}
