/* SPDX-License-Identifier: MIT */
#include "tools/tune/noise.h"

#include <math.h>

#include "tools/student.h"

struct mst_spread mst_spread_of(const double *value, uint32_t count)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += value[i];
	double mean = sum / count;
	for (uint32_t i = 0; i < count; i++)
		squares += (value[i] - mean) * (value[i] - mean);
	return (struct mst_spread){ mean, count > 1 ? sqrt(squares / (count - 1)) : 0, count };
}

static bool tells(uint32_t runs, const struct mst_spread *distance)
{
	double t = mst_student_quantile(1 - MST_NOISE_LEVEL / 2, runs - 1) +
		   mst_student_quantile(MST_NOISE_POWER, runs - 1);

	return fabs(distance->mean) * sqrt(runs) >= t * distance->deviation;
}

/* The number is doubled until it is enough, and then the interval halved. */
static uint32_t runs_that_tell(const struct mst_spread *distance)
{
	uint32_t few = distance->count, enough = distance->count + 1;

	while (enough < MST_NOISE_RUNS_MAX && !tells(enough, distance)) {
		few = enough;
		enough *= 2;
	}
	if (enough >= MST_NOISE_RUNS_MAX)
		return MST_NOISE_RUNS_MAX;
	while (few + 1 < enough) {
		uint32_t middle = few + (enough - few) / 2;
		if (tells(middle, distance))
			enough = middle;
		else
			few = middle;
	}
	return enough;
}

struct mst_noise mst_noise_of(const struct mst_spread *distance)
{
	struct mst_noise noise = { 0 };

	if (distance->count < 2)
		return noise;
	double t = mst_student_quantile(1 - MST_NOISE_LEVEL / 2, distance->count - 1);
	noise.error = distance->deviation / sqrt(distance->count);
	noise.sure = fabs(distance->mean) > t * noise.error || noise.error <= 0;
	if (!noise.sure)
		noise.runs = runs_that_tell(distance);
	return noise;
}
