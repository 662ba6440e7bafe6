/* SPDX-License-Identifier: MIT */
/* The table. */
#include <assert.h>
#include <float.h>
#include <string.h>

#include "common/optim/kernels.h"
#include "common/optim/optim.h"

#define KERNEL(name, isa) [MST_ISA_INDEX_##isa] = mst_apply_##name##_##isa,

#define MOMENTUM_HELP "what is kept of the momentum in each step; 0: there is none"
#define DECAY_HELP "weight decay: the parameters times this are added to their gradient"
#define CLIP_HELP                                                                                  \
	"the norm, over the whole vector, that a longer mean gradient is scaled down to; 0: none is"

/* Every optimiser with a rate has it first. */
#define LR 0
static_assert(MST_SGD_LR == LR && MST_ADAGRAD_LR == LR, "rate_alone() serves them all");

static void rate_alone(const double *parameter, const struct mst_optim_version *v, double *scalar)
{
	scalar[MST_SCALAR_RATE] = parameter[LR] * v->lr_scale;
}

/* A mean that is longer than @limit is shortened to it. */
static double clip(double limit, double norm)
{
	return norm > limit ? limit / norm : 1;
}

static const struct mst_optim rows[] = {
	{
		.name = "sgd",
		.help = "a step down the mean gradient, or down a momentum that gathers the means",
		.divides = true,
		.parameter = {
			[MST_SGD_LR] = { .name = "lr",
					 .fallback = 0.1,
					 .min = 0,
					 .max = (double)FLT_MAX,
					 .above_min = true,
					 .help = "the rate" },
			[MST_SGD_MOMENTUM] = { .name = "momentum",
					       .fallback = 0.9,
					       .min = 0,
					       .max = 1,
					       .below_max = true,
					       .help = MOMENTUM_HELP },
			[MST_SGD_NESTEROV] = { .name = "nesterov",
					       .min = 0,
					       .max = 1,
					       .whole = true,
					       .needs = "momentum",
					       .help = "1: the step looks ahead by one momentum" },
			[MST_SGD_DECAY] = { .name = "decay",
					    .min = 0,
					    .max = (double)FLT_MAX,
					    .help = DECAY_HELP },
			[MST_SGD_CLIP] = { .name = "clip",
					   .min = 0,
					   .max = (double)FLT_MAX,
					   .help = CLIP_HELP },
		},
		.state = { [MST_SGD_STATE_MOMENTUM] = { "momentum", MST_SGD_MOMENTUM } },
		.scalars = rate_alone,
		.factor = clip,
		.reduces = MST_SGD_CLIP,
		.scales = true,
		.decay = MST_SGD_DECAY,
		.apply = { MST_ISAS(KERNEL, sgd) },
	},
	{
		.name = "adagrad",
		.help = "a step down the mean gradient, each element divided by the root of the "
			"sum of its squares so far",
		.divides = true,
		.parameter = {
			[MST_ADAGRAD_LR] = { .name = "lr",
					     .fallback = 0.01,
					     .min = 0,
					     .max = (double)FLT_MAX,
					     .above_min = true,
					     .help = "the rate" },
			[MST_ADAGRAD_EPSILON] = { .name = "epsilon",
						  .fallback = 1e-10,
						  .min = (double)FLT_MIN,
						  .max = (double)FLT_MAX,
						  .help = "added to the root before it divides" },
			[MST_ADAGRAD_DECAY] = { .name = "decay",
						.min = 0,
						.max = (double)FLT_MAX,
						.help = DECAY_HELP },
			[MST_ADAGRAD_CLIP] = { .name = "clip",
					       .min = 0,
					       .max = (double)FLT_MAX,
					       .help = CLIP_HELP },
		},
		.state = { [MST_ADAGRAD_STATE_SQUARES] = { "squares", MST_ADAGRAD_LR } },
		.scalars = rate_alone,
		.factor = clip,
		.reduces = MST_ADAGRAD_CLIP,
		.scales = true,
		.decay = MST_ADAGRAD_DECAY,
		.apply = { MST_ISAS(KERNEL, adagrad) },
	},
	{
		.name = "add",
		.help = "the sum of contributions that are deltas, added to the parameters",
		.apply = { MST_ISAS(KERNEL, add) },
	},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

const struct mst_optim *mst_optim_row(unsigned index)
{
	return index < ROWS ? &rows[index] : NULL;
}

const struct mst_optim *mst_optim_find(const char *name)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}
