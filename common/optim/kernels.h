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

MST_ISAS(MST_OPTIM_KERNEL, add)

#endif
