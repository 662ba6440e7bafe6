/* SPDX-License-Identifier: MIT */
/* The table of optimisers: a row for each. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/optim/kernels.h"
#include "common/optim/optim.h"

#define KERNEL(name, isa) [MST_ISA_INDEX_##isa] = mst_apply_##name##_##isa,

#define MOMENTUM_HELP "what is kept of the momentum in each step; 0: there is none"
#define DECAY_HELP "weight decay: the parameters times this are added to their gradient"
#define EPSILON_HELP "keeps the divisor from being 0"
#define BETA1_HELP "what is kept of the momentum in each step"
#define BETA2_HELP "what is kept of the average of the squares in each step"
#define START_HELP "what the average starts from: 1 as in TensorFlow 1, 0 as in PyTorch"
#define DECOUPLED_HELP "weight decay: the parameters times this, times the rate, are taken off them"
#define DIRECTION_HELP "weight decay: the parameters times this are added to the direction"
#define CLIP_HELP                                                                                  \
	"the norm, over the whole vector, that a longer mean gradient is scaled down to; 0: none is"

/* Parameters that several rows have. */
#define RATE(value)                                                                                \
	{                                                                                          \
		.name = "lr", .fallback = (value), .min = 0, .max = (double)FLT_MAX,               \
		.above_min = true, .help = "the rate"                                              \
	}
#define BELOW_1(word, value, text)                                                                 \
	{                                                                                          \
		.name = (word), .fallback = (value), .min = 0, .max = 1, .below_max = true,        \
		.help = (text)                                                                     \
	}
/* A divisor must not be 0. */
#define ABOVE_0(word, value, text)                                                                 \
	{                                                                                          \
		.name = (word), .fallback = (value), .min = (double)FLT_MIN,                       \
		.max = (double)FLT_MAX, .help = (text)                                             \
	}
#define FROM_0(word, value, text)                                                                  \
	{                                                                                          \
		.name = (word), .fallback = (value), .min = 0, .max = (double)FLT_MAX,             \
		.help = (text)                                                                     \
	}
#define NESTEROV                                                                                   \
	{                                                                                          \
		.name = "nesterov", .min = 0, .max = 1, .whole = true, .needs = "momentum",        \
		.help = "1: the step looks ahead by one momentum"                                  \
	}

/* Every optimiser with a rate has it first. */
#define LR 0
static_assert(MST_SGD_LR == LR && MST_ADAGRAD_LR == LR && MST_RMSPROP_LR == LR &&
		      MST_ADAM_LR == LR && MST_LARS_LR == LR && MST_OUTER_LR == LR,
	      "rate_alone() serves them all");
static_assert((unsigned)MST_RMSPROP_SCALAR_OUTSIDE < MST_SCALARS_MAX &&
		      (unsigned)MST_ADAM_SCALAR_SECOND < MST_SCALARS_MAX,
	      "a record has a place for each scalar");

static void rate_alone(const double *parameter, const struct mst_optim_version *v, double *scalar)
{
	scalar[MST_SCALAR_RATE] = parameter[LR] * v->lr_scale;
}

/* Decays are taken as the kernels have them, in f32: a sum that decays by one number and is made an
 * average by another would be off by their difference.
 *
 * The state is the sum s of the squares, in which each decays: zero at first, as all states are.
 * The average of the squares is (1 - alpha) s, and what is left of the value it started from. */
static void rmsprop(const double *parameter, const struct mst_optim_version *v, double *scalar)
{
	double alpha = (double)(float)parameter[MST_RMSPROP_ALPHA],
	       epsilon = parameter[MST_RMSPROP_EPSILON];
	bool inside = parameter[MST_RMSPROP_INSIDE] != 0;
	double left = parameter[MST_RMSPROP_START] * pow(alpha, (double)v->version);

	rate_alone(parameter, v, scalar);
	scalar[MST_RMSPROP_SCALAR_SHARE] = 1 - alpha;
	scalar[MST_RMSPROP_SCALAR_INSIDE] = inside ? left + epsilon : left;
	scalar[MST_RMSPROP_SCALAR_OUTSIDE] = inside ? 0 : epsilon;
}

/* The states are sums in which each member decays. Times 1 - beta they are the averages of Kingma
 * and Ba, and divided by 1 - beta^version those without bias. */
static void adam(const double *parameter, const struct mst_optim_version *v, double *scalar)
{
	double beta1 = (double)(float)parameter[MST_ADAM_BETA1];
	double beta2 = (double)(float)parameter[MST_ADAM_BETA2];
	double steps = (double)v->version;

	rate_alone(parameter, v, scalar);
	scalar[MST_ADAM_SCALAR_FIRST] = (1 - beta1) / (1 - pow(beta1, steps));
	scalar[MST_ADAM_SCALAR_SECOND] = sqrt((1 - beta2) / (1 - pow(beta2, steps)));
}

/* A mean that is longer than @limit is shortened to it. */
static double clip(double limit, double norm)
{
	return norm > limit ? limit / norm : 1;
}

/* You, Gitman and Ginsburg, equation 6. The gradient is that of the loss alone. */
static double lars(const double *parameter, const struct mst_norms *n)
{
	double divisor = n->direction + n->decay * n->theta + parameter[MST_LARS_EPSILON];

	return parameter[MST_LARS_TRUST] * n->theta / divisor;
}

/* You et al., algorithm 2, whose phi is the identity, as in their experiments. */
static double lamb(const double *parameter, const struct mst_norms *n)
{
	(void)parameter;
	return n->theta / n->direction;
}

static const struct mst_optim rows[] = {
	{
		.name = "sgd",
		.help = "a step down the mean gradient, or down a momentum that gathers the means",
		.divides = true,
		.parameter = {
			[MST_SGD_LR] = RATE(0.1),
			[MST_SGD_MOMENTUM] = BELOW_1("momentum", 0.9, MOMENTUM_HELP),
			[MST_SGD_NESTEROV] = NESTEROV,
			[MST_SGD_DECAY] = FROM_0("decay", 0, DECAY_HELP),
			[MST_SGD_CLIP] = FROM_0("clip", 0, CLIP_HELP),
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
			[MST_ADAGRAD_LR] = RATE(0.01),
			[MST_ADAGRAD_EPSILON] = ABOVE_0("epsilon", 1e-10,
							"added to the root before it divides"),
			[MST_ADAGRAD_DECAY] = FROM_0("decay", 0, DECAY_HELP),
			[MST_ADAGRAD_CLIP] = FROM_0("clip", 0, CLIP_HELP),
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
		.name = "rmsprop",
		.help = "a step down the mean gradient, each element divided by the root of a "
			"moving average of its squares, or down a momentum of such steps",
		.divides = true,
		.parameter = {
			[MST_RMSPROP_LR] = RATE(0.045),
			[MST_RMSPROP_ALPHA] = BELOW_1("alpha", 0.9, BETA2_HELP),
			[MST_RMSPROP_EPSILON] = ABOVE_0("epsilon", 1, EPSILON_HELP),
			[MST_RMSPROP_INSIDE] = { .name = "inside",
						 .fallback = 1,
						 .min = 0,
						 .max = 1,
						 .whole = true,
						 .help = "1: epsilon is added to the average, "
							 "before the root, as in TensorFlow; "
							 "0: to the root, as in PyTorch" },
			[MST_RMSPROP_START] = FROM_0("start", 1, START_HELP),
			[MST_RMSPROP_MOMENTUM] = BELOW_1("momentum", 0.9, MOMENTUM_HELP),
			[MST_RMSPROP_DECAY] = FROM_0("decay", 0, DECAY_HELP),
			[MST_RMSPROP_CLIP] = FROM_0("clip", 0, CLIP_HELP),
		},
		.state = { [MST_RMSPROP_STATE_SQUARES] = { "squares", MST_RMSPROP_LR },
			   [MST_RMSPROP_STATE_MOMENTUM] = { "momentum", MST_RMSPROP_MOMENTUM } },
		.scalars = rmsprop,
		.factor = clip,
		.reduces = MST_RMSPROP_CLIP,
		.scales = true,
		.decay = MST_RMSPROP_DECAY,
		.apply = { MST_ISAS(KERNEL, rmsprop) },
	},
	{
		.name = "adam",
		.help = "a step down a momentum of the mean gradients, each element divided by "
			"the root of a moving average of its squares, both without bias",
		.divides = true,
		.parameter = {
			[MST_ADAM_LR] = RATE(0.001),
			[MST_ADAM_BETA1] = BELOW_1("beta1", 0.9, BETA1_HELP),
			[MST_ADAM_BETA2] = BELOW_1("beta2", 0.999, BETA2_HELP),
			[MST_ADAM_EPSILON] = ABOVE_0("epsilon", 1e-8, EPSILON_HELP),
			[MST_ADAM_DECAY] = FROM_0("decay", 0, DECAY_HELP),
			[MST_ADAM_CLIP] = FROM_0("clip", 0, CLIP_HELP),
		},
		.state = { [MST_ADAM_STATE_MOMENTUM] = { "momentum", MST_ADAM_LR },
			   [MST_ADAM_STATE_SQUARES] = { "squares", MST_ADAM_LR } },
		.scalars = adam,
		.factor = clip,
		.reduces = MST_ADAM_CLIP,
		.scales = true,
		.decay = MST_ADAM_DECAY,
		.apply = { MST_ISAS(KERNEL, adam) },
	},
	{
		.name = "adamw",
		.help = "adam whose weight decay shrinks the parameters, and is no part of the "
			"gradient",
		.divides = true,
		.parameter = {
			[MST_ADAM_LR] = RATE(0.001),
			[MST_ADAM_BETA1] = BELOW_1("beta1", 0.9, BETA1_HELP),
			[MST_ADAM_BETA2] = BELOW_1("beta2", 0.999, BETA2_HELP),
			[MST_ADAM_EPSILON] = ABOVE_0("epsilon", 1e-8, EPSILON_HELP),
			[MST_ADAM_DECAY] = FROM_0("decay", 0.01, DECOUPLED_HELP),
			[MST_ADAM_CLIP] = FROM_0("clip", 0, CLIP_HELP),
		},
		.state = { [MST_ADAM_STATE_MOMENTUM] = { "momentum", MST_ADAM_LR },
			   [MST_ADAM_STATE_SQUARES] = { "squares", MST_ADAM_LR } },
		.scalars = adam,
		.factor = clip,
		.reduces = MST_ADAM_CLIP,
		.scales = true,
		.decay = MST_ADAM_DECAY,
		.apply = { MST_ISAS(KERNEL, adamw) },
	},
	{
		.name = "lars",
		.help = "a momentum of steps down the mean gradient, whose rate in each tensor is "
			"multiplied by the norm of the tensor over the norm of its gradient",
		.divides = true,
		.parameter = {
			[MST_LARS_LR] = RATE(1),
			[MST_LARS_MOMENTUM] = BELOW_1("momentum", 0.9, MOMENTUM_HELP),
			[MST_LARS_NESTEROV] = NESTEROV,
			[MST_LARS_DECAY] = FROM_0("decay", 5e-4, DECAY_HELP),
			[MST_LARS_TRUST] = ABOVE_0("trust", 0.001,
						   "what that ratio of norms is multiplied by"),
			[MST_LARS_EPSILON] = FROM_0("epsilon", 1e-8,
						    "added to the norm of the gradient"),
		},
		.state = { [MST_LARS_STATE_MOMENTUM] = { "momentum", MST_LARS_MOMENTUM } },
		.scalars = rate_alone,
		.trust = lars,
		.scales = true,
		.decay = MST_LARS_DECAY,
		.apply = { MST_ISAS(KERNEL, lars) },
	},
	{
		.name = "lamb",
		.help = "the step of adam and the weight decay are a direction; the rate in each "
			"tensor is multiplied by the norm of the tensor over that of its direction",
		.divides = true,
		.parameter = {
			[MST_ADAM_LR] = RATE(0.001),
			[MST_ADAM_BETA1] = BELOW_1("beta1", 0.9, BETA1_HELP),
			[MST_ADAM_BETA2] = BELOW_1("beta2", 0.999, BETA2_HELP),
			[MST_ADAM_EPSILON] = ABOVE_0("epsilon", 1e-6, EPSILON_HELP),
			[MST_ADAM_DECAY] = FROM_0("decay", 0.01, DIRECTION_HELP),
		},
		.state = { [MST_ADAM_STATE_MOMENTUM] = { "momentum", MST_ADAM_LR },
			   [MST_ADAM_STATE_SQUARES] = { "squares", MST_ADAM_LR } },
		.scalars = adam,
		.trust = lamb,
		.direction = { MST_ISAS(KERNEL, lamb_direction) },
		.scales = true,
		.decay = MST_ADAM_DECAY,
		.apply = { MST_ISAS(KERNEL, lamb) },
	},
	{
		.name = "add",
		.help = "the sum of contributions that are deltas, added to the parameters",
		.deltas = true,
		.apply = { MST_ISAS(KERNEL, add) },
	},
	{
		.name = "outer",
		.help = "under local:T, a step along the mean of the workers' differences of "
			"parameters, or along a momentum that gathers the means, as in DiLoCo",
		.divides = true,
		.deltas = true,
		.parameter = {
			[MST_OUTER_LR] = RATE(0.7),
			[MST_OUTER_MOMENTUM] = BELOW_1("momentum", 0.9, MOMENTUM_HELP),
			[MST_OUTER_NESTEROV] = { .name = "nesterov",
						 .fallback = 1,
						 .min = 0,
						 .max = 1,
						 .whole = true,
						 .help = "1: the step looks ahead by one momentum, "
							 "if there is one" },
		},
		.state = { [MST_OUTER_STATE_MOMENTUM] = { "momentum", MST_OUTER_MOMENTUM } },
		.scalars = rate_alone,
		.apply = { MST_ISAS(KERNEL, outer) },
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
