/* SPDX-License-Identifier: MIT */
/*
 * The digits job's mathematics without any server: workers, commits and SGD with momentum played
 * out in one thread. What a run over real servers reaches is held against these figures.
 *
 * usage: test_digits_learning drawn | mnist DIRECTORY
 */
#include "tests/ut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/rand.h"
#include "common/digits/dataset.h"
#include "common/digits/mlp.h"

#define WORKERS 5
#define BATCH 32u
#define TEST_ROWS 64u
#define LR 0.1f
#define MOMENTUM 0.9f

static struct mst_dataset data;

struct learning_worker {
	struct mst_rand chance;
	float *parameters; /* what it computes on */
	float *grad;       /* sum over its batch */
};

struct learning_job {
	struct mst_mlp net;
	uint64_t elems;
	float *parameters, *momentum;
	struct learning_worker worker[WORKERS];
};

static float *vector(const struct learning_job *j)
{
	float *v = calloc(j->elems, sizeof(float));

	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	return v;
}

static void setup(struct learning_job *j)
{
	struct mst_mlp_shape shape = { data.image_pixels, 100, MST_DATASET_CLASSES };

	j->elems = mst_mlp_elems(&shape);
	CU_ASSERT_EQUAL_FATAL(mst_mlp_init(&j->net, &shape, TEST_ROWS), 0);
	j->parameters = vector(j);
	j->momentum = vector(j);
	mst_mlp_start(&shape, 1, j->parameters);
	for (unsigned i = 0; i < WORKERS; i++) {
		struct learning_worker *w = &j->worker[i];
		mst_rand_seed(&w->chance, 1 + i);
		w->parameters = vector(j);
		w->grad = vector(j);
		memcpy(w->parameters, j->parameters, j->elems * sizeof(float));
	}
}

static void teardown(struct learning_job *j)
{
	mst_mlp_fini(&j->net);
	free(j->parameters);
	free(j->momentum);
	for (unsigned i = 0; i < WORKERS; i++) {
		free(j->worker[i].parameters);
		free(j->worker[i].grad);
	}
}

static void compute(struct learning_job *j, struct learning_worker *w)
{
	for (uint32_t row = 0; row < BATCH; row++) {
		uint32_t pick = (uint32_t)mst_rand_below(&w->chance, data.train.count);
		float *x = j->net.x + (size_t)row * data.image_pixels;
		j->net.label[row] = mst_dataset_sample(&data, &data.train, pick, x);
	}
	mst_mlp_gradient(&j->net, w->parameters, BATCH, w->grad, false);
}

/* Workers first to first + count - 1 are in the commit; the rate goes with their number, as
 * --lr-scale linear has it. Then they fetch what came of it. */
static void commit(struct learning_job *j, unsigned first, unsigned count)
{
	float rate = LR * (float)count / WORKERS;

	for (uint64_t i = 0; i < j->elems; i++) {
		float sum = 0;
		for (unsigned k = first; k < first + count; k++)
			sum += j->worker[k].grad[i];
		j->momentum[i] = MOMENTUM * j->momentum[i] + sum / (float)(count * BATCH);
		j->parameters[i] -= rate * j->momentum[i];
	}
	for (unsigned k = first; k < first + count; k++)
		memcpy(j->worker[k].parameters, j->parameters, j->elems * sizeof(float));
}

static double accuracy(struct learning_job *j)
{
	uint32_t right = 0;

	for (uint32_t next = 0; next < data.test.count;) {
		uint32_t rows = 0;
		for (; rows < TEST_ROWS && next < data.test.count; rows++, next++) {
			float *x = j->net.x + (size_t)rows * data.image_pixels;
			j->net.label[rows] = mst_dataset_sample(&data, &data.test, next, x);
		}
		right += mst_mlp_score(&j->net, j->parameters, rows).right;
	}
	return (double)right / data.test.count;
}

static void two_hundred_commits_of_five_suffice(void)
{
	struct learning_job j;

	setup(&j);
	for (int step = 0; step < 200; step++) {
		for (unsigned k = 0; k < WORKERS; k++)
			compute(&j, &j.worker[k]);
		commit(&j, 0, WORKERS);
	}
	double reached = accuracy(&j);
	printf("(%.4f) ", reached);
	CU_ASSERT(reached >= 0.93);
	teardown(&j);
}

/* Each gradient is as old as the commits of the four others between. */
static void stale_gradients_at_a_fifth_of_the_rate_suffice(void)
{
	struct learning_job j;

	setup(&j);
	for (unsigned k = 0; k < WORKERS; k++)
		compute(&j, &j.worker[k]);
	for (unsigned step = 0; step < 2000; step++) {
		commit(&j, step % WORKERS, 1);
		compute(&j, &j.worker[step % WORKERS]);
	}
	double reached = accuracy(&j);
	printf("(%.4f) ", reached);
	CU_ASSERT(reached >= 0.94);
	teardown(&j);
}

static CU_TestInfo cases[] = {
	{ "200 commits of 5 x 32 reach 0.93", two_hundred_commits_of_five_suffice },
	{ "2000 stale gradients at a fifth of the rate reach 0.94",
	  stale_gradients_at_a_fifth_of_the_rate_suffice },
	CU_TEST_INFO_NULL,
};

static int get_data(int argc, char **argv)
{
	struct mst_reason why = { "no memory" };
	int rc;

	if (argc == 3 && strcmp(argv[1], "mnist") == 0) {
		if (access(argv[2], F_OK)) {
			printf("skipped: no MNIST files in %s\n", argv[2]);
			return UT_SKIP;
		}
		rc = mst_dataset_load(argv[2], &data, &why);
	} else {
		rc = mst_dataset_draw(1, &data);
	}
	if (rc)
		fprintf(stderr, "%s\n", why.text);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int status = get_data(argc, argv);

	if (status == EXIT_SUCCESS)
		status = ut_main("digits: learning", cases);
	mst_dataset_fini(&data);
	return status;
}
