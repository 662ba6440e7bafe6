/* SPDX-License-Identifier: MIT */
#include "tools/student.h"

#include <math.h>

#define TERMS_MAX 300
#define NEAR_ZERO 1e-300

/* From so many degrees on the normal distribution is the same to nine digits. */
#define FREEDOM_MAX 1e9

static double not_zero(double v)
{
	return fabs(v) < NEAR_ZERO ? NEAR_ZERO : v;
}

/* Term @n of the continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8),
 * n from 1. */
static double fraction_term(double a, double b, double x, int n)
{
	double m = n / 2;

	if (n % 2 == 0)
		return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
	return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
}

/* The fraction 1 / (1 + d1 / (1 + d2 / ...)), by the method of Lentz: as a product of ratios. */
static double fraction(double a, double b, double x)
{
	double value = 1, numerator = 1, denominator = 0;

	for (int n = 1; n < TERMS_MAX; n++) {
		double d = fraction_term(a, b, x, n);
		denominator = 1 / not_zero(1 + d * denominator);
		numerator = not_zero(1 + d / numerator);
		value *= numerator * denominator;
		if (fabs(numerator * denominator - 1) < 1e-15)
			break;
	}
	return 1 / value;
}

/* The regularised incomplete beta function. The fraction is quick below the mean. */
static double beta(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x >= 1;
	if (x > (a + 1) / (a + b + 2))
		return 1 - beta(b, a, 1 - x);
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return front * fraction(a, b, x) / a;
}

double mst_student_below(double t, double freedom)
{
	if (freedom > FREEDOM_MAX)
		return erfc(-t / sqrt(2)) / 2;
	double beyond = beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
	return t > 0 ? 1 - beyond : beyond;
}

/* Half of what is left is cut off each time. */
double mst_student_quantile(double share, double freedom)
{
	double low = -1, high = 1;

	while (mst_student_below(low, freedom) > share)
		low *= 2;
	while (mst_student_below(high, freedom) < share)
		high *= 2;
	for (int i = 0; i < 100 && high - low > 1e-12 * fmax(1, fabs(high)); i++) {
		double middle = low + (high - low) / 2;
		if (mst_student_below(middle, freedom) < share)
			low = middle;
		else
			high = middle;
	}
	return low + (high - low) / 2;
}
