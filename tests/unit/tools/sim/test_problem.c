/* SPDX-License-Identifier: MIT */
#include "tests/ut.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/reason.h"
#include "tools/sim/learn/curve.h"
#include "tools/sim/problem/problem.h"

#define DIM_MAX 64u

static struct mst_sim_problem_spec spec;
static struct mst_reason why;

static struct mst_sim_problem *make(const char *text)
{
	struct mst_sim_problem *p = NULL;

	CU_ASSERT_EQUAL_FATAL(mst_sim_problem_parse(text, &spec, &why), 0);
	spec.seed = 5;
	CU_ASSERT_EQUAL_FATAL(mst_sim_problem_new(&spec, &p, &why), 0);
	return p;
}

static void refused(const char *text, const char *clause)
{
	CU_ASSERT_EQUAL(mst_sim_problem_parse(text, &spec, &why), -EINVAL);
	if (strstr(why.text, clause) == NULL)
		printf("(\"%s\") ", why.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, clause));
}

static void what_is_left_out_has_its_default(void)
{
	CU_ASSERT_EQUAL_FATAL(mst_sim_problem_parse("quadratic:dim=7,noise=0.5", &spec, &why), 0);
	CU_ASSERT_EQUAL(spec.parameter[MST_SIM_QUADRATIC_DIM], 7);
	CU_ASSERT_EQUAL(spec.parameter[MST_SIM_QUADRATIC_NOISE], 0.5);
	CU_ASSERT_EQUAL(spec.parameter[MST_SIM_QUADRATIC_COND], 10);
	CU_ASSERT_EQUAL(spec.parameter[MST_SIM_BATCH], 8);
	CU_ASSERT_EQUAL_FATAL(mst_sim_problem_parse("digits:/a/b,hidden=3", &spec, &why), 0);
	CU_ASSERT_STRING_EQUAL(spec.directory, "/a/b");
	CU_ASSERT_EQUAL(spec.parameter[MST_SIM_DIGITS_HIDDEN], 3);
	CU_ASSERT_EQUAL_FATAL(mst_sim_problem_parse("digits", &spec, &why), 0);
	CU_ASSERT_STRING_EQUAL(spec.directory, "");
}

static void a_wrong_spec_is_refused_by_name(void)
{
	char longest[5000];

	refused("quadratci", "did you mean quadratic?");
	refused("", "neither quadratic nor digits");
	refused("quadratic:dmi=3", "did you mean dim?");
	refused("quadratic:batch=0", "batch of quadratic is \"0\"");
	refused("quadratic:batch=1.5", "a whole number");
	refused("quadratic:dim=0", "dim of quadratic is \"0\"");
	refused("quadratic:dim=20000000", "at most 1e+07");
	refused("quadratic:dim=3,dim=4", "gives dim twice");
	refused("quadratic:cond=0.5", "at least 1");
	refused("quadratic:noise=nan", "noise of quadratic is \"nan\"");
	refused("quadratic:lr=0", "above 0");
	refused("quadratic:", "an empty item");
	refused("quadratic:dim=3,", "an empty item");
	refused("quadratic:/tmp", "reads no directory such as \"/tmp\"");
	refused("digits:/a,/b", "two directories");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	refused(longest, "is longer than 4095 characters");
}

static void a_quadratic_begins_with_the_error_1(void)
{
	float w[DIM_MAX];

	for (unsigned dim = 1; dim <= DIM_MAX; dim *= 4) {
		char text[40];
		(void)snprintf(text, sizeof(text), "quadratic:dim=%u,cond=100", dim);
		struct mst_sim_problem *p = make(text);
		CU_ASSERT_EQUAL_FATAL(p->elems, dim);
		p->ops->start(p, w);
		CU_ASSERT_DOUBLE_EQUAL(p->ops->error(p, w), 1, 1e-5);
		mst_sim_problem_free(p);
	}
}

/* Without noise the loss is the error, and the gradient its slope. */
static void the_gradient_is_the_slope_of_the_error(void)
{
	struct mst_sim_problem *p = make("quadratic:dim=4,cond=8,noise=0");
	struct mst_rand chance;
	float w[4], gradient[4];

	mst_rand_seed(&chance, 1);
	p->ops->start(p, w);
	double loss = p->ops->gradient(p, w, &chance, 3, gradient);
	CU_ASSERT_DOUBLE_EQUAL(loss, p->ops->error(p, w), 1e-6);
	for (unsigned i = 0; i < 4; i++) {
		float at = w[i], step = 0.125f;
		w[i] = at + step;
		double above = p->ops->error(p, w);
		w[i] = at - step;
		double below = p->ops->error(p, w);
		w[i] = at;
		CU_ASSERT_DOUBLE_EQUAL((above - below) / 0.25, (double)gradient[i], 1e-5);
	}
	mst_sim_problem_free(p);
}

/* The mean square of its length is sigma^2 / m, within 5 deviations of the mean of so many. */
static void the_noise_shrinks_with_the_samples(void)
{
	struct mst_sim_problem *p = make("quadratic:dim=16,cond=1,noise=3");
	struct mst_rand chance;
	float w[16], gradient[16], slope[16];
	const unsigned count = 4000;

	mst_rand_seed(&chance, 1);
	p->ops->start(p, w);
	struct mst_sim_problem *quiet = make("quadratic:dim=16,cond=1,noise=0");
	(void)quiet->ops->gradient(quiet, w, &chance, 1, slope);
	for (uint64_t samples = 1; samples <= 16; samples *= 16) {
		double sum = 0, loss = 0;
		for (unsigned i = 0; i < count; i++) {
			loss += p->ops->gradient(p, w, &chance, samples, gradient);
			for (unsigned k = 0; k < 16; k++)
				sum += pow((double)gradient[k] - (double)slope[k], 2);
		}
		double want = 9.0 / (double)samples;
		CU_ASSERT_DOUBLE_EQUAL(sum / count, want, want * 5 * sqrt(2.0 / 16 / count));
		CU_ASSERT_DOUBLE_EQUAL(loss / count, 1 + want / 2, 0.25);
	}
	mst_sim_problem_free(quiet);
	mst_sim_problem_free(p);
}

static void the_same_chance_gives_the_same_gradient(void)
{
	struct mst_sim_problem *p = make("quadratic:dim=16");
	float w[16], one[16], other[16];
	struct mst_rand chance;

	p->ops->start(p, w);
	mst_rand_seed(&chance, 9);
	double loss = p->ops->gradient(p, w, &chance, 2, one);
	mst_rand_seed(&chance, 9);
	CU_ASSERT_EQUAL(p->ops->gradient(p, w, &chance, 2, other), loss);
	CU_ASSERT_EQUAL(memcmp(one, other, sizeof(one)), 0);
	mst_sim_problem_free(p);
}

static void a_distance_has_a_unit(void)
{
	struct mst_sim_every e;
	const char *const wrong[] = { "",    "0commits", "0s", "5",         "1.5commits",
				      "-1s", "commits",  "5 ", "9samples ", "5sample" };

	CU_ASSERT_EQUAL_FATAL(mst_sim_every_parse("500ms", &e), 0);
	CU_ASSERT_EQUAL(e.unit, MST_SIM_EVERY_TIME);
	CU_ASSERT_EQUAL(e.distance, 5e8);
	CU_ASSERT_EQUAL_FATAL(mst_sim_every_parse("12commits", &e), 0);
	CU_ASSERT_EQUAL(e.unit, MST_SIM_EVERY_COMMITS);
	CU_ASSERT_EQUAL(e.distance, 12);
	CU_ASSERT_EQUAL_FATAL(mst_sim_every_parse("7samples", &e), 0);
	CU_ASSERT_EQUAL(e.unit, MST_SIM_EVERY_SAMPLES);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_EQUAL(mst_sim_every_parse(wrong[i], &e), -EINVAL);
}

static CU_TestInfo cases[] = {
	{ "what is left out has its default", what_is_left_out_has_its_default },
	{ "a wrong spec is refused by name", a_wrong_spec_is_refused_by_name },
	{ "a quadratic begins with the error 1", a_quadratic_begins_with_the_error_1 },
	{ "the gradient is the slope of the error", the_gradient_is_the_slope_of_the_error },
	{ "the noise shrinks with the samples", the_noise_shrinks_with_the_samples },
	{ "the same chance gives the same gradient", the_same_chance_gives_the_same_gradient },
	{ "a distance has a unit", a_distance_has_a_unit },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim: problem", cases);
}
