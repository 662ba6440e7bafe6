/* SPDX-License-Identifier: MIT */
/* Schedules of the rate, against figures computed by hand. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/optim/schedule.h"
#include "tests/ut.h"

static struct mst_schedule read(const char *text)
{
	struct mst_schedule s;
	struct mst_reason why = { "" };

	int rc = mst_schedule_parse(text, &s, &why);
	if (rc != 0)
		printf("\n%s: %s\n", text, why.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return s;
}

/* clang-format off */
static const struct schedule_line {
	const char *schedule;
	double samples, factor;
} lines[] = {
	{ "constant", 1, 1 }, { "constant", 1e12, 1 },
	/* The first version has a rate, for its own samples count. */
	{ "warmup:1000", 1, 0.001 }, { "warmup:1000", 250, 0.25 }, { "warmup:1000", 999.5, 0.9995 },
	{ "warmup:1000", 1000, 1 }, { "warmup:1000", 1e9, 1 },
	{ "steps:0.1,100,200", 99, 1 }, { "steps:0.1,100,200", 100, 0.1 },
	{ "steps:0.1,100,200", 199, 0.1 }, { "steps:0.5,100,200", 200, 0.25 },
	{ "steps:0.5,100,200,300,400", 1e6, 0.0625 },
	/* Chen et al. 2016: 0.94 every two epochs, here of 1000 samples each */
	{ "stairs:0.94,2000", 1999, 1 }, { "stairs:0.94,2000", 2000, 0.94 },
	{ "stairs:0.94,2000", 5999, 0.8836 }, { "stairs:0.94,2000", 6000, 0.830584 },
	{ "exp:0.25,1000", 500, 0.5 }, { "exp:0.25,1000", 1000, 0.25 },
	{ "exp:0.25,1000", 1500, 0.125 }, { "exp:1,5", 1e15, 1 },
	{ "linear:1000", 250, 0.75 }, { "linear:1000", 1000, 0 }, { "linear:1000", 2000, 0 },
	{ "linear:1000,0.2", 500, 0.6 }, { "linear:1000,0.2", 5000, 0.2 },
	{ "cosine:1000", 0, 1 }, { "cosine:1000", 500, 0.5 },
	{ "cosine:1000", 1000.0 / 3, 0.75 }, { "cosine:1000", 2000.0 / 3, 0.25 },
	{ "cosine:1000", 1000, 0 }, { "cosine:1000", 1e6, 0 },
	{ "cosine:1000,0.5", 500, 0.75 }, { "cosine:1000,0.01", 1000, 0.01 },
	{ "warmup:100+cosine:1000", 50, 0.5 * 0.99384417029756889 },
	{ "warmup:100+steps:0.5,1000+steps:0.5,2000", 2000, 0.25 },
	{ "constant+warmup:100+constant", 50, 0.5 },
	{ "steps:0.5,5e4,1e6", 1e6, 0.25 }, { "steps:0.5,5e+4+warmup:1e+5", 5e4, 0.25 },
};
/* clang-format on */

static void factor_is_that_of_the_hand(void)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct mst_schedule s = read(lines[i].schedule);
		double is = mst_schedule_factor(&s, lines[i].samples);
		bool right = fabs(is - lines[i].factor) <= 1e-15 * lines[i].factor * 8;
		if (!right)
			printf("\n%s at %g: %.17g, by hand %.17g\n", lines[i].schedule,
			       lines[i].samples, is, lines[i].factor);
		CU_ASSERT(right);
	}
}

/* Not a step up, nor below the floor, by what is rounded. */
static void rate_that_falls_never_rises_nor_passes_its_floor(void)
{
	static const char *const falls[] = { "linear:777,0.1", "cosine:777,0.1", "exp:0.9,10",
					     "stairs:0.9,10" };

	for (size_t i = 0; i < sizeof(falls) / sizeof(falls[0]); i++) {
		struct mst_schedule s = read(falls[i]);
		double before = 1;
		for (double samples = 0; samples < 800; samples += 0.5) {
			double now = mst_schedule_factor(&s, samples);
			CU_ASSERT_FATAL(now <= before && now > 0);
			CU_ASSERT_FATAL(i > 1 || now >= 0.1);
			before = now;
		}
	}
}

static void end_is_where_the_rate_is_0(void)
{
	static const char *const endless[] = { "constant",  "warmup:5",     "steps:0.1,5",
					       "exp:0.1,5", "linear:5,0.1", "cosine:5,0.1" };

	for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]); i++) {
		struct mst_schedule s = read(endless[i]);
		CU_ASSERT(isinf(mst_schedule_end(&s)));
	}
	struct mst_schedule one = read("warmup:5+cosine:1000+linear:500,0");
	CU_ASSERT_EQUAL(mst_schedule_end(&one), 500);
	CU_ASSERT_EQUAL(mst_schedule_factor(&one, 500), 0);
	CU_ASSERT(mst_schedule_factor(&one, 499.9) > 0);
}

/* clang-format off */
static const struct { const char *text, *says; } wrong[] = {
	{ "", "no schedule \"\"" },
	{ "cosin:5", "did you mean cosine?" },
	{ "cosine", "cosine:SAMPLES[,FLOOR]" },
	{ "cosine:", "\"\" is no number" },
	{ "cosine:x", "\"x\" is no number" },
	{ "cosine:-5", "\"-5\" is no number" },
	{ "cosine:nan", "\"nan\" is no number" },
	{ "cosine:inf", "\"inf\" is no number" },
	{ "cosine:1e300", "is no number from 0 to 1e15" },
	{ "cosine:0", "1 or more" },
	{ "cosine:100,1.5", "from 1e-6 to 1" },
	{ "cosine:100,0.1,3", "no more than 2" },
	{ "warmup:0.5", "1 or more" },
	{ "constant:3", "constant takes no numbers" },
	{ "steps:0.1", "steps:FACTOR,SAMPLES" },
	{ "steps:0,5", "from 1e-6 to 1" },
	{ "steps:2,5", "from 1e-6 to 1" },
	{ "exp:1e-300,5", "from 1e-6 to 1" },
	{ "linear:100,1e-300", "0, or from 1e-6 to 1" },
	{ "cosine:1e+", "\"1e+\" is no number" },
	{ "steps:0.1,500,400", "above the one before" },
	{ "steps:0.1,400,400", "above the one before" },
	{ "stairs:0.9,0", "1 or more" },
	{ "exp:0.5,100+", "no schedule \"\"" },
	{ "warmup:5+warmup:6+warmup:7+warmup:8+warmup:9", "more than 4" },
};
/* clang-format on */

static void what_is_wrong_is_said(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct mst_schedule s;
		struct mst_reason why = { "" };
		CU_ASSERT_EQUAL(mst_schedule_parse(wrong[i].text, &s, &why), -EINVAL);
		bool says = strstr(why.text, wrong[i].says) != NULL;
		if (!says)
			printf("\n%s: %s\n", wrong[i].text, why.text);
		CU_ASSERT(says);
	}
}

static CU_TestInfo cases[] = {
	{ "a factor is that of the hand", factor_is_that_of_the_hand },
	{ "a rate that falls never rises, nor passes its floor",
	  rate_that_falls_never_rises_nor_passes_its_floor },
	{ "the end is where the rate is 0", end_is_where_the_rate_is_0 },
	{ "what is wrong is said", what_is_wrong_is_said },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("schedule", cases);
}
