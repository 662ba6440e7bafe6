/* SPDX-License-Identifier: MIT */
#include "common/optim/schedule.h"

#include <math.h>

/* ---- what a row computes ---- */

static double warmup(const double *number, uint32_t count, double samples)
{
	(void)count;
	return samples < number[0] ? samples / number[0] : 1;
}

static double steps(const double *number, uint32_t count, double samples)
{
	double factor = 1;

	for (uint32_t i = 1; i < count && samples >= number[i]; i++)
		factor *= number[0];
	return factor;
}

static double stairs(const double *number, uint32_t count, double samples)
{
	(void)count;
	return pow(number[0], floor(samples / number[1]));
}

static double exponential(const double *number, uint32_t count, double samples)
{
	(void)count;
	return pow(number[0], samples / number[1]);
}

/* How far it is from the beginning to the end: 0 to 1. */
static double part(const double *number, double samples)
{
	return samples < number[0] ? samples / number[0] : 1;
}

static double down_to(const double *number, uint32_t count, double share)
{
	double least = count > 1 ? number[1] : 0;

	return least + (1 - least) * share;
}

static double linear(const double *number, uint32_t count, double samples)
{
	return down_to(number, count, 1 - part(number, samples));
}

/* At the end exactly the floor: cos() of a rounded pi need not be -1. */
static double cosine(const double *number, uint32_t count, double samples)
{
	double along = part(number, samples);

	return down_to(number, count, along < 1 ? (1 + cos(M_PI * along)) / 2 : 0);
}

/* ---- what is wrong with numbers ---- */

#define LEAST 1e-6 /* a smaller factor is hardly meant */

static const char *check_length(const double *number, uint32_t count)
{
	(void)count;
	return number[0] >= 1 ? NULL : "the number of samples must be 1 or more";
}

static const char *check_down(const double *number, uint32_t count)
{
	if (count > 1 && number[1] != 0 && !(number[1] >= LEAST && number[1] <= 1))
		return "the floor must be 0, or from 1e-6 to 1";
	return check_length(number, count);
}

static const char *check_factor(const double *number, uint32_t count)
{
	(void)count;
	return number[0] >= LEAST && number[0] <= 1 ? NULL : "the factor must be from 1e-6 to 1";
}

static const char *check_every(const double *number, uint32_t count)
{
	const char *wrong = check_factor(number, count);

	return wrong != NULL ? wrong : check_length(number + 1, 1);
}

static const char *check_milestones(const double *number, uint32_t count)
{
	for (uint32_t i = 2; i < count; i++) {
		if (number[i] <= number[i - 1])
			return "each milestone must be above the one before it";
	}
	return check_every(number, count);
}

const struct mst_schedule_row mst_schedule_rows[] = {
	{ "constant", 0, 0, "the factor is 1", NULL, NULL, false },
	{ "warmup:SAMPLES", 1, 1, "from 0 up to 1 at so many samples, in a line", warmup,
	  check_length, false },
	{ "steps:FACTOR,SAMPLES[,SAMPLES...]", 2, MST_SCHEDULE_NUMBERS_MAX,
	  "1, and times FACTOR at each of these numbers of samples, which rise; FACTOR is from "
	  "1e-6 to 1",
	  steps, check_milestones, false },
	{ "stairs:FACTOR,SAMPLES", 2, 2,
	  "1, and times FACTOR whenever so many more samples are "
	  "counted",
	  stairs, check_every, false },
	{ "exp:FACTOR,SAMPLES", 2, 2, "FACTOR to the power of the samples counted / SAMPLES",
	  exponential, check_every, false },
	{ "linear:SAMPLES[,FLOOR]", 1, 2,
	  "from 1 down to FLOOR at so many samples, in a line, and "
	  "FLOOR from then on; FLOOR is 0, or from 1e-6 to 1 (default 0)",
	  linear, check_down, true },
	{ "cosine:SAMPLES[,FLOOR]", 1, 2,
	  "the same, along half a cosine: FLOOR + (1 - FLOOR) "
	  "(1 + cos(pi x samples counted / SAMPLES)) / 2",
	  cosine, check_down, true },
	{ .form = NULL },
};

double mst_schedule_factor(const struct mst_schedule *s, double samples)
{
	double factor = 1;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct mst_schedule_term *t = &s->term[i];
		factor *= t->row->factor(t->number, t->count, samples);
	}
	return factor;
}

double mst_schedule_end(const struct mst_schedule *s)
{
	double end = INFINITY;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct mst_schedule_term *t = &s->term[i];
		bool to_zero = t->row->ends && (t->count < 2 || t->number[1] == 0);
		if (to_zero && t->number[0] < end)
			end = t->number[0];
	}
	return end;
}

void mst_schedule_help(FILE *out)
{
	for (const struct mst_schedule_row *row = mst_schedule_rows; row->form != NULL; row++)
		fprintf(out, "  %s\n      %s\n", row->form, row->help);
}

void mst_schedule_man(FILE *out)
{
	fputs(".SH SCHEDULES\n", out);
	for (const struct mst_schedule_row *row = mst_schedule_rows; row->form != NULL; row++)
		fprintf(out, ".TP\n.B %s\n%s\n", row->form, row->help);
}
