/* SPDX-License-Identifier: MIT */
/* Division for kernels: the quotient shows it if a state has become infinite. */
#ifndef MST_OPTIM_QUOTIENT_H
#define MST_OPTIM_QUOTIENT_H

#include <float.h>
#include <math.h>

/* Where the square of a finite gradient overflows, the divisor is infinite and the quotient would
 * be 0: the element would stand still from then on, and nobody would hear of it. It is NaN instead,
 * which a commit finds (apply.h). */
static inline float mst_quotient(float dividend, float divisor)
{
	return divisor <= FLT_MAX ? dividend / divisor : NAN;
}

#endif
