/* SPDX-License-Identifier: MIT */
/*
 * What a row of optimisers and its kernel agree on: the name of the kernel, and the places of the
 * row's parameters and states. A kernel's file is compiled once for each instruction set, with
 * MST_ISA its name.
 */
#ifndef MST_OPTIM_KERNELS_H
#define MST_OPTIM_KERNELS_H

#include "common/kernels/apply.h"
#include "common/kernels/isa.h"

#define MST_OPTIM_KERNEL(name, isa) void mst_apply_##name##_##isa(const struct mst_apply *apply);

MST_ISAS(MST_OPTIM_KERNEL, sgd)
enum { MST_SGD_LR, MST_SGD_MOMENTUM, MST_SGD_NESTEROV, MST_SGD_DECAY, MST_SGD_CLIP };
enum { MST_SGD_STATE_MOMENTUM };

MST_ISAS(MST_OPTIM_KERNEL, adagrad)
enum { MST_ADAGRAD_LR, MST_ADAGRAD_EPSILON, MST_ADAGRAD_DECAY, MST_ADAGRAD_CLIP };
enum { MST_ADAGRAD_STATE_SQUARES };

MST_ISAS(MST_OPTIM_KERNEL, rmsprop)
enum {
	MST_RMSPROP_LR,
	MST_RMSPROP_ALPHA,
	MST_RMSPROP_EPSILON,
	MST_RMSPROP_INSIDE,
	MST_RMSPROP_START,
	MST_RMSPROP_MOMENTUM,
	MST_RMSPROP_DECAY,
	MST_RMSPROP_CLIP
};
enum { MST_RMSPROP_STATE_SQUARES, MST_RMSPROP_STATE_MOMENTUM };
enum {
	MST_RMSPROP_SCALAR_SHARE = MST_SCALAR_RATE + 1, /* of a square in the average: 1 - alpha */
	MST_RMSPROP_SCALAR_INSIDE,                      /* added before the root */
	MST_RMSPROP_SCALAR_OUTSIDE,                     /* added to the root */
};

MST_ISAS(MST_OPTIM_KERNEL, adam)
MST_ISAS(MST_OPTIM_KERNEL, adamw)
enum {
	MST_ADAM_LR,
	MST_ADAM_BETA1,
	MST_ADAM_BETA2,
	MST_ADAM_EPSILON,
	MST_ADAM_DECAY,
	MST_ADAM_CLIP
};
enum { MST_ADAM_STATE_MOMENTUM, MST_ADAM_STATE_SQUARES };
enum {
	MST_ADAM_SCALAR_FIRST = MST_SCALAR_RATE + 1, /* from the momentum to its corrected mean */
	MST_ADAM_SCALAR_SECOND,                      /* the same for the root of the squares */
};

MST_ISAS(MST_OPTIM_KERNEL, lars)
enum {
	MST_LARS_LR,
	MST_LARS_MOMENTUM,
	MST_LARS_NESTEROV,
	MST_LARS_DECAY,
	MST_LARS_TRUST,
	MST_LARS_EPSILON
};
enum { MST_LARS_STATE_MOMENTUM };

/* Its first parameters, its states and its scalars are those of Adam. */
MST_ISAS(MST_OPTIM_KERNEL, lamb)
MST_ISAS(MST_OPTIM_KERNEL, lamb_direction)

MST_ISAS(MST_OPTIM_KERNEL, add)

MST_ISAS(MST_OPTIM_KERNEL, outer)
enum { MST_OUTER_LR, MST_OUTER_MOMENTUM, MST_OUTER_NESTEROV };
enum { MST_OUTER_STATE_MOMENTUM };

#endif
