/* SPDX-License-Identifier: MIT */
/* The table of models: their forms, the numbers that they take, and their distributions. */
#include "common/delay/model.h"

#include <math.h>
#include <string.h>

/* A number in (0, 1], so that its logarithm and negative powers are finite. */
static double positive_unit(struct mst_rand *r)
{
	return 1.0 - mst_rand_unit(r);
}

static double const_draw(struct mst_rand *r, const double *p)
{
	(void)r;
	return p[0];
}

static double uniform_draw(struct mst_rand *r, const double *p)
{
	return p[0] + (p[1] - p[0]) * mst_rand_unit(r);
}

static double exp_draw(struct mst_rand *r, const double *p)
{
	return -p[0] * log(positive_unit(r));
}

static double sexp_draw(struct mst_rand *r, const double *p)
{
	return p[0] + exp_draw(r, p + 1);
}

static double pareto_draw(struct mst_rand *r, const double *p)
{
	return p[0] * pow(positive_unit(r), -1.0 / p[1]);
}

static double lognormal_draw(struct mst_rand *r, const double *p)
{
	return p[0] * exp(p[1] * mst_rand_normal(r));
}

static const char *uniform_check(const double *p)
{
	return p[0] <= p[1] ? NULL : "LO is above HI";
}

static const char *pareto_check(const double *p)
{
	return p[1] > 0 ? NULL : "ALPHA has to be above 0";
}

static const char *mix_check(const double *p)
{
	return p[0] <= 1 ? NULL : "P is a probability, from 0 to 1";
}

const struct mst_model mst_models[] = {
	{ "const:MS", MST_MODEL_DRAWN, 1, const_draw, NULL },
	{ "uniform:LO,HI", MST_MODEL_DRAWN, 2, uniform_draw, uniform_check },
	{ "exp:MEAN", MST_MODEL_DRAWN, 1, exp_draw, NULL },
	{ "sexp:SHIFT,MEAN", MST_MODEL_DRAWN, 2, sexp_draw, NULL },
	{ "pareto:SCALE,ALPHA", MST_MODEL_DRAWN, 2, pareto_draw, pareto_check },
	{ "lognormal:MEDIAN,SIGMA", MST_MODEL_DRAWN, 2, lognormal_draw, NULL },
	{ "mix:P,FACTOR", MST_MODEL_MIX, 2, NULL, mix_check },
	{ "trace:FILE", MST_MODEL_TRACE, 0, NULL, NULL },
	{ NULL, MST_MODEL_DRAWN, 0, NULL, NULL },
};

const struct mst_model *mst_model_find(const char *name, size_t len)
{
	for (const struct mst_model *m = mst_models; m->form != NULL; m++) {
		if (strcspn(m->form, ":") == len && memcmp(m->form, name, len) == 0)
			return m;
	}
	return NULL;
}
