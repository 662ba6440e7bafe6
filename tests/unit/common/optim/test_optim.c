/* SPDX-License-Identifier: MIT */
/* Rows of optimisers: what --optimizer and other servers may say, and what the rest of the program
 * reads from a row. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/reason.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

static bool is(const struct mst_optimizer *o, const char *name)
{
	return strcmp(o->row->name, name) == 0;
}

static void every_row_is_whole(void)
{
	const struct mst_optim *row;
	struct mst_optimizer o;
	char text[MST_OPTIM_EXAMPLE_LEN];
	struct mst_reason why;

	for (unsigned i = 0; (row = mst_optim_row(i)) != NULL; i++) {
		CU_ASSERT(strlen(row->name) < MST_OPTIM_NAME_LEN && row->help != NULL);
		CU_ASSERT_PTR_EQUAL(mst_optim_find(row->name), row);
		for (unsigned isa = 0; isa < MST_ISA_COUNT; isa++)
			CU_ASSERT_PTR_NOT_NULL(row->apply[isa]);
		/* Its example is the row with all of its fallbacks, which are in range. */
		(void)mst_optim_example(row, text);
		CU_ASSERT_EQUAL(mst_optimizer_parse(text, &o, &why), 0);
		CU_ASSERT_PTR_EQUAL(o.row, row);
		for (uint32_t k = 0; k < mst_optim_parameters(row); k++) {
			CU_ASSERT_EQUAL(o.parameter[k], row->parameter[k].fallback);
			CU_ASSERT_PTR_NOT_NULL(row->parameter[k].help);
		}
	}
	CU_ASSERT_PTR_NULL(mst_optim_find("sg"));
}

static void an_optimizer_takes_what_it_leaves_out_from_the_default(void)
{
	struct mst_optimizer o;
	struct mst_reason why;

	CU_ASSERT(mst_optimizer_parse("sgd", &o, &why) == 0);
	CU_ASSERT(is(&o, "sgd") && o.parameter[MST_SGD_LR] == 0.1 &&
		  o.parameter[MST_SGD_MOMENTUM] == 0.9);
	CU_ASSERT(mst_optimizer_parse("sgd:lr=0.5", &o, &why) == 0);
	CU_ASSERT(o.parameter[MST_SGD_LR] == 0.5 && o.parameter[MST_SGD_MOMENTUM] == 0.9);
	CU_ASSERT(mst_optimizer_parse("sgd:momentum=0,lr=1e-3", &o, &why) == 0);
	CU_ASSERT(o.parameter[MST_SGD_LR] == 1e-3 && o.parameter[MST_SGD_MOMENTUM] == 0);
	CU_ASSERT(mst_optimizer_parse("add", &o, &why) == 0);
	CU_ASSERT(is(&o, "add"));
}

static void a_bad_optimizer_is_told_what_is_wrong(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "",
		  "\"\" is neither sgd, adagrad, rmsprop, adam, adamw, lars, lamb, add nor outer, "
		  "such as sgd:lr=0.1,momentum=0.9" },
		{ "lion", "\"lion\" is neither" },
		{ "SGD", "did you mean sgd?" },
		{ "adamW", "did you mean adamw?" },
		{ "rmsprop:decay=0.9,eps=1", "rmsprop has no \"eps\", it has lr, alpha, epsilon, "
					     "inside, start, momentum, decay and clip" },
		{ "adam:momentum=0.9",
		  "adam has no \"momentum\", it has lr, beta1, beta2, epsilon, decay and clip" },
		{ "adamw:beta=0.9", "did you mean beta1?" },
		{ "lars:clip=1",
		  "lars has no \"clip\", it has lr, momentum, nesterov, decay, trust and epsilon" },
		{ "lamb:trust=1", "lamb has no \"trust\", it has lr, beta1, beta2, epsilon and" },
		{ "ad", "did you mean add?" },
		{ "add:1", "add takes no figures, leave out \"1\"" },
		{ "sgd:", "sgd has no \"\"" },
		{ "sgd:lr", "lr needs a number" },
		{ "sgd:lr=", "lr needs a number" },
		{ "sgd:lr=x", "lr needs a number" },
		{ "sgd:lr=0.1,", "sgd has no \"\"" },
		{ "sgd:lr=0.1;momentum=0", "lr needs a number" },
		{ "sgd:rate=0.1",
		  "sgd has no \"rate\", it has lr, momentum, nesterov, decay and clip" },
		{ "sgd:lr=0.1,wd=0.01",
		  "sgd has no \"wd\", it has lr, momentum, nesterov, decay and clip" },
		{ "sgd:momentun=0.9", "did you mean momentum?" },
		{ "sgd:lr=0.1,lr=0.2", "gives lr twice" },
		{ "sgd:lr=nan", "lr needs a number" },
		{ "sgd:lr=0.1 ", "lr needs a number" },
		{ "sgdlr=0.1", "\"sgdlr=0.1\" is neither" },
		{ "sgd,lr=0.1", "\"sgd,lr=0.1\" is neither" },
	};
	struct mst_optimizer o = { .parameter = { 7 } };
	struct mst_reason why;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(mst_optimizer_parse(bad[i].text, &o, &why) == -EINVAL);
		CU_ASSERT(strstr(why.text, bad[i].why) != NULL && o.parameter[MST_SGD_LR] == 7);
	}
}

static void a_figure_that_cannot_train_is_refused(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "sgd:lr=0", "lr 0 " },
		{ "sgd:lr=-1", "lr -1 " },
		{ "sgd:lr=1e39", "lr 1e+39 " },
		{ "sgd:momentum=1", "momentum 1 has to be at least 0 and below 1" },
		{ "sgd:momentum=-0.5", "momentum -0.5 " },
		{ "sgd:nesterov=0.5", "nesterov 0.5 has to be a whole number, at least 0 and" },
		{ "sgd:nesterov=2", "nesterov 2 has to be" },
		{ "sgd:momentum=0,nesterov=1", "nesterov=1 means nothing with momentum=0" },
		{ "rmsprop:lr=0", "lr 0 has to be above 0" },
		{ "rmsprop:alpha=1", "alpha 1 has to be at least 0 and below 1" },
		{ "rmsprop:epsilon=0", "epsilon 0 has to be at least 1.17549e-38" },
		{ "rmsprop:inside=0.5", "inside 0.5 has to be a whole number, at least 0 and" },
		{ "rmsprop:start=-1", "start -1 has to be at least 0" },
		{ "rmsprop:momentum=1", "momentum 1 has to be at least 0 and below 1" },
		{ "rmsprop:decay=-1", "decay -1 has to be at least 0" },
		{ "adam:lr=-1", "lr -1 has to be above 0" },
		{ "adam:beta1=1", "beta1 1 has to be at least 0 and below 1" },
		{ "adam:beta2=-0.1", "beta2 -0.1 has to be at least 0 and below 1" },
		{ "adamw:beta2=1", "beta2 1 has to be at least 0 and below 1" },
		{ "adamw:epsilon=0", "epsilon 0 has to be at least 1.17549e-38" },
		{ "adamw:clip=-1", "clip -1 has to be at least 0" },
		{ "lars:lr=0", "lr 0 has to be above 0" },
		{ "lars:trust=0", "trust 0 has to be at least 1.17549e-38" },
		{ "lars:epsilon=-1", "epsilon -1 has to be at least 0" },
		{ "lars:momentum=1", "momentum 1 has to be at least 0 and below 1" },
		{ "lars:momentum=0,nesterov=1", "nesterov=1 means nothing with momentum=0" },
		{ "lamb:epsilon=0", "epsilon 0 has to be at least 1.17549e-38" },
		{ "lamb:beta1=1", "beta1 1 has to be at least 0 and below 1" },
		{ "lamb:decay=-1", "decay -1 has to be at least 0" },
		{ "sgd:decay=-1e-4", "decay -0.0001 has to be at least 0" },
	};
	struct mst_optimizer o;
	struct mst_reason why;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(mst_optimizer_parse(bad[i].text, &o, &why) == -EINVAL);
		CU_ASSERT(strstr(why.text, bad[i].why) != NULL);
	}
}

/* What another server says: a row by name, and all of its figures. */
static void an_appointed_optimizer_is_checked(void)
{
	static const double good[MST_PARAMETERS_MAX] = { 0.5, 0.25 },
			    bad[MST_PARAMETERS_MAX] = { 0.5, 1 },
			    none[MST_PARAMETERS_MAX] = { 0.5, (double)NAN };
	uint32_t all = mst_optim_parameters(mst_optim_find("sgd"));
	struct mst_optimizer o = { .row = NULL };
	struct mst_reason why;

	CU_ASSERT_EQUAL(mst_optimizer_take("sgd", bad, all, &o, &why), -EINVAL);
	CU_ASSERT(strstr(why.text, "momentum 1 has to be") != NULL);
	CU_ASSERT_EQUAL(mst_optimizer_take("sgd", none, all, &o, &why), -EINVAL);
	CU_ASSERT_EQUAL(mst_optimizer_take("sgd", good, 1, &o, &why), -EINVAL);
	CU_ASSERT(strstr(why.text, "figures, not 1") != NULL);
	CU_ASSERT_EQUAL(mst_optimizer_take("lion", good, all, &o, &why), -EINVAL);
	CU_ASSERT(strstr(why.text, "\"lion\" is neither") != NULL);
	CU_ASSERT_PTR_NULL(o.row);
	CU_ASSERT_EQUAL(mst_optimizer_take("sgd", good, all, &o, &why), 0);
	CU_ASSERT(is(&o, "sgd") && o.parameter[MST_SGD_LR] == 0.5);
	CU_ASSERT_EQUAL(mst_optimizer_take("add", good, 0, &o, &why), 0);
}

static void states_are_kept_where_a_figure_asks_for_them(void)
{
	struct mst_optimizer with = optim_case_sgd(0.1, 0.9), without = optim_case_sgd(0.1, 0);
	struct mst_optimizer add = { .row = mst_optim_find("add") }, none = { .row = NULL };
	struct mst_optimizer rms;
	struct mst_reason why;

	CU_ASSERT_EQUAL(mst_optimizer_states(&with), 1);
	CU_ASSERT_EQUAL(mst_optimizer_states(&without), 0);
	CU_ASSERT_EQUAL(mst_optimizer_parse("rmsprop", &rms, &why), 0);
	CU_ASSERT_EQUAL(mst_optimizer_states(&rms), 2);
	CU_ASSERT_EQUAL(mst_optimizer_parse("rmsprop:momentum=0", &rms, &why), 0);
	CU_ASSERT_EQUAL(mst_optimizer_states(&rms), 1);
	CU_ASSERT_EQUAL(mst_optimizer_states(&add), 0);
	CU_ASSERT_EQUAL(mst_optimizer_states(&none), 0);
}

/* Once, from the product in double. */
static void the_rate_is_rounded_once(void)
{
	struct mst_optimizer sgd = optim_case_sgd(0.1, 0.9), none = { .row = NULL };
	struct mst_optim_version v = { .version = 3, .lr_scale = 1.0 / 3 };
	float scalar[MST_SCALARS_MAX];

	mst_optimizer_scalars(&sgd, &v, scalar);
	CU_ASSERT_EQUAL(scalar[MST_SCALAR_RATE], (float)(0.1 * (1.0 / 3)));
	mst_optimizer_scalars(&none, &v, scalar);
	CU_ASSERT_EQUAL(scalar[MST_SCALAR_RATE], 0);
}

static void scalars_of(const char *optimizer, uint64_t version, float scalar[MST_SCALARS_MAX])
{
	struct mst_optim_version v = { .version = version, .lr_scale = 0.5 };
	struct mst_optimizer o;
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_optimizer_parse(optimizer, &o, &why), 0);
	mst_optimizer_scalars(&o, &v, scalar);
}

/* Each sum has as many members as there are versions; without bias it weighs as one. */
static void adam_corrects_its_bias_by_the_version(void)
{
	float scalar[MST_SCALARS_MAX];

	scalars_of("adam:lr=0.5", 1, scalar);
	CU_ASSERT_EQUAL(scalar[MST_SCALAR_RATE], 0.25f);
	CU_ASSERT_EQUAL(scalar[MST_ADAM_SCALAR_FIRST], 1);
	CU_ASSERT_EQUAL(scalar[MST_ADAM_SCALAR_SECOND], 1);
	scalars_of("adamw:beta1=0.5,beta2=0.75", 2, scalar);
	CU_ASSERT_EQUAL(scalar[MST_ADAM_SCALAR_FIRST], (float)(0.5 / 0.75));
	CU_ASSERT_EQUAL(scalar[MST_ADAM_SCALAR_SECOND], (float)sqrt(0.25 / (1 - 0.5625)));
	scalars_of("adam:beta1=0.5,beta2=0.75", UINT64_C(1) << 62, scalar);
	CU_ASSERT_EQUAL(scalar[MST_ADAM_SCALAR_FIRST], 0.5);
	CU_ASSERT_EQUAL(scalar[MST_ADAM_SCALAR_SECOND], 0.5);
	scalars_of("adam:beta1=0,beta2=0", 7, scalar);
	CU_ASSERT_EQUAL(scalar[MST_ADAM_SCALAR_FIRST], 1);
	CU_ASSERT_EQUAL(scalar[MST_ADAM_SCALAR_SECOND], 1);
}

static void rmsprop_adds_epsilon_where_it_is_told(void)
{
	float scalar[MST_SCALARS_MAX];

	scalars_of("rmsprop:alpha=0.75,epsilon=0.25,start=2", 2, scalar);
	CU_ASSERT_EQUAL(scalar[MST_RMSPROP_SCALAR_SHARE], 0.25);
	CU_ASSERT_EQUAL(scalar[MST_RMSPROP_SCALAR_INSIDE], 2 * 0.5625f + 0.25f);
	CU_ASSERT_EQUAL(scalar[MST_RMSPROP_SCALAR_OUTSIDE], 0);
	scalars_of("rmsprop:alpha=0.75,epsilon=0.25,inside=0", 2, scalar);
	CU_ASSERT_EQUAL(scalar[MST_RMSPROP_SCALAR_INSIDE], 0.5625f);
	CU_ASSERT_EQUAL(scalar[MST_RMSPROP_SCALAR_OUTSIDE], 0.25f);
}

/* The norm of 3 and 4 is 5. */
static void a_mean_is_clipped_to_its_norm(void)
{
	struct mst_optimizer o = optim_case_sgd(0.1, 0.9);
	struct mst_exact_sum squares = { { 0 } };

	CU_ASSERT_FALSE(mst_optimizer_reduces(&o));
	o.parameter[MST_SGD_CLIP] = 2;
	CU_ASSERT(mst_optimizer_reduces(&o));
	CU_ASSERT_EQUAL(mst_optimizer_factor(&o, &squares), 1);
	mst_exact_add(&squares, 9);
	mst_exact_add(&squares, 16);
	CU_ASSERT_EQUAL(mst_optimizer_factor(&o, &squares), 0.4f);
	o.parameter[MST_SGD_CLIP] = 5;
	CU_ASSERT_EQUAL(mst_optimizer_factor(&o, &squares), 1);
	o.parameter[MST_SGD_CLIP] = 2;
	mst_exact_add(&squares, (double)INFINITY);
	CU_ASSERT_EQUAL(mst_optimizer_factor(&o, &squares), 1);
}

static float trust_of(const char *text, double theta, double direction, float decay)
{
	struct mst_squares squares = { 0 };
	struct mst_optimizer o;
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_optimizer_parse(text, &o, &why), 0);
	CU_ASSERT(mst_optimizer_reduces(&o) && mst_optimizer_trusts(&o));
	mst_exact_add(&squares.theta, theta);
	mst_exact_add(&squares.direction, direction);
	CU_ASSERT_EQUAL(mst_optimizer_factor(&o, &squares.theta), 1);
	return mst_optimizer_trust(&o, &squares, decay);
}

/* Parameters and directions have the norms 8 and 2; their squares are 64 and 4. */
static void a_tensor_has_a_trust_ratio(void)
{
	CU_ASSERT_EQUAL(trust_of("lamb", 64, 4, 0.5f), 4);
	CU_ASSERT_EQUAL(trust_of("lars:trust=0.5,epsilon=0", 64, 4, 0), 2);
	CU_ASSERT_EQUAL(trust_of("lars:trust=0.75,epsilon=0", 64, 4, 0.125f), 2);
	CU_ASSERT_EQUAL(trust_of("lars:trust=1,epsilon=2", 64, 4, 0.5f), 1);
	CU_ASSERT_EQUAL(trust_of("lars", 64, 4, 0), (float)(0.001 * 8 / (2 + 1e-8)));
}

static void a_trust_ratio_that_cannot_be_is_1(void)
{
	CU_ASSERT_EQUAL(trust_of("lamb", 0, 4, 0), 1);
	CU_ASSERT_EQUAL(trust_of("lamb", 64, 0, 0), 1);
	CU_ASSERT_EQUAL(trust_of("lars", 0, 4, 0.5f), 1);
	CU_ASSERT_EQUAL(trust_of("lars", 64, 0, 0.5f), 1);
	CU_ASSERT_EQUAL(trust_of("lamb", (double)INFINITY, 4, 0), 1);
	CU_ASSERT_EQUAL(trust_of("lamb", 64, (double)NAN, 0), 1);
	CU_ASSERT_EQUAL(trust_of("lamb", 1e70, 1e-80, 0), 1); /* what f32 cannot hold */
}

static CU_TestInfo cases[] = {
	{ "every row is whole", every_row_is_whole },
	{ "an optimizer takes what it leaves out from the default",
	  an_optimizer_takes_what_it_leaves_out_from_the_default },
	{ "a bad optimizer is told what is wrong", a_bad_optimizer_is_told_what_is_wrong },
	{ "a figure that cannot train is refused", a_figure_that_cannot_train_is_refused },
	{ "an appointed optimizer is checked", an_appointed_optimizer_is_checked },
	{ "states are kept where a figure asks for them",
	  states_are_kept_where_a_figure_asks_for_them },
	{ "the rate is rounded once", the_rate_is_rounded_once },
	{ "adam corrects its bias by the version", adam_corrects_its_bias_by_the_version },
	{ "rmsprop adds epsilon where it is told", rmsprop_adds_epsilon_where_it_is_told },
	{ "a mean is clipped to its norm", a_mean_is_clipped_to_its_norm },
	{ "a tensor has a trust ratio", a_tensor_has_a_trust_ratio },
	{ "a trust ratio that cannot be is 1", a_trust_ratio_that_cannot_be_is_1 },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("optim", cases);
}
