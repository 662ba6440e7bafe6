/* SPDX-License-Identifier: MIT */
#include "tools/figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/base/clock.h"

/* Three significant digits, whatever stands before the point. */
static struct mst_figure three_digits(double value, const char *unit)
{
	struct mst_figure f;
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	(void)snprintf(f.text, sizeof(f.text), "%.*f %s", decimals, value, unit);
	return f;
}

struct mst_figure mst_figure_duration(uint64_t ns)
{
	double us = (double)ns / 1e3;

	if (ns == 0)
		return (struct mst_figure){ .text = "0" };
	if (ns < MST_MS)
		return three_digits(us, "us");
	if (ns < MST_SECOND)
		return three_digits(us / 1e3, "ms");
	if (ns < 120 * MST_SECOND)
		return three_digits(us / 1e6, "s");
	return three_digits(us / 60e6, "min");
}

struct mst_figure mst_figure_ago(uint64_t ns)
{
	return ns == MST_NEVER ? (struct mst_figure){ .text = "never" } : mst_figure_duration(ns);
}

struct mst_figure mst_figure_staleness(const struct mst_status_rank *row)
{
	struct mst_figure f = { .text = "-" };

	if (row->counted > 0)
		(void)snprintf(f.text, sizeof(f.text), "%.3g / %" PRIu64, row->staleness_mean,
			       row->staleness_p99);
	return f;
}

struct mst_figure mst_figure_share(uint64_t part, uint64_t whole)
{
	struct mst_figure f;
	double percent = whole == 0 ? 0 : 100.0 * (double)part / (double)whole;

	(void)snprintf(f.text, sizeof(f.text), "%.*f %%", percent > 0 && percent < 1 ? 1 : 0,
		       percent);
	return f;
}

static struct mst_figure real(double value, int digits)
{
	struct mst_figure f = { .text = "-" };

	if (!isnan(value))
		(void)snprintf(f.text, sizeof(f.text), "%.*g", digits, value);
	return f;
}

struct mst_figure mst_figure_loss(double loss)
{
	return real(loss, 4);
}

struct mst_figure mst_figure_norm(double norm)
{
	return real(norm, 6);
}
