/* SPDX-License-Identifier: MIT */
/* Student's t distribution: how far the mean of a few values may lie from the truth. Pure. */
#ifndef MST_TOOLS_STUDENT_H
#define MST_TOOLS_STUDENT_H

/* @freedom: degrees of freedom, above 0, no whole number needed; INFINITY: the normal
 * distribution. Both are exact to 1e-9. */

/* The probability of a value of at most @t. */
double mst_student_below(double t, double freedom);
/* The value that lies above others with the probability @share, which is above 0 and below 1. */
double mst_student_quantile(double share, double freedom);

#endif
