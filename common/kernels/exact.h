/* SPDX-License-Identifier: MIT */
/*
 * Refuses compilers and flags that would change the bits of a result (PROTOCOL 5).
 * Every file of arithmetic in this directory includes this. Compilers tell too little about
 * themselves to check all of it here; the unit tests watch what they do.
 */
#ifndef MST_KERNELS_EXACT_H
#define MST_KERNELS_EXACT_H

#include <assert.h>
#include <float.h>

#ifdef __FAST_MATH__
#error "the kernels must be built without -ffast-math: it reorders sums and flushes denormals"
#endif

static_assert(FLT_EVAL_METHOD == 0, "partial sums are rounded to f32, not kept in wider registers");
static_assert(FLT_RADIX == 2 && FLT_MANT_DIG == 24 && FLT_MAX_EXP == 128, "float is binary32");

/* A product is rounded before it is added. GCC does not know the pragma: -ffp-contract=off, which
 * the build sets for all, says the same to it. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#endif
