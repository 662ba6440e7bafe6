/* SPDX-License-Identifier: MIT */
/*
 * Schedules of the learning rate, as rows of one table: a factor for each version, by the number of
 * samples that are counted in all versions up to it, its own included. Never by the number of
 * commits: under `async` a commit has one contribution, under `bsp` one of each worker, and a job
 * may change between them while it runs. Pure.
 *
 *   constant              1
 *   warmup:W              s / W, up to 1
 *   steps:F,M1[,M2...]    F to the number of milestones M that s has reached
 *   stairs:F,N            F to the number of whole N in s   (Chen et al. 2016: 0.94 every 2 epochs)
 *   exp:F,N               F to the power s / N
 *   linear:N[,FLOOR]      from 1 down to FLOOR at N, and FLOOR from then on
 *   cosine:N[,FLOOR]      the same along half a cosine      (Loshchilov, Hutter 2017)
 *
 * s is the number of samples. Schedules that are joined by '+' are multiplied, as in
 * "warmup:5000+cosine:1000000,0.01".
 */
#ifndef MST_OPTIM_SCHEDULE_H
#define MST_OPTIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/reason.h"

#define MST_SCHEDULE_TERMS_MAX 4u
#define MST_SCHEDULE_NUMBERS_MAX 17u /* a factor and 16 milestones */

/* A row. Its form and its help say what its numbers must be. */
struct mst_schedule_row {
	const char *form; /* "cosine:SAMPLES[,FLOOR]"; its name ends at the ':'. NULL: no more */
	uint32_t least, most; /* numbers */
	const char *help;
	double (*factor)(const double *number, uint32_t count, double samples);
	/* What is wrong with the numbers; NULL: nothing. */
	const char *(*check)(const double *number, uint32_t count);
	/* The row ends at number[0], with the value number[1], or 0 if that is left out. */
	bool ends;
};

/* Ends with a form that is NULL. */
extern const struct mst_schedule_row mst_schedule_rows[];

struct mst_schedule {
	uint32_t count; /* 0: the rate is constant */
	struct mst_schedule_term {
		const struct mst_schedule_row *row;
		uint32_t count;
		double number[MST_SCHEDULE_NUMBERS_MAX];
	} term[MST_SCHEDULE_TERMS_MAX];
};

/* What the rate is multiplied by in a version up to which @samples are counted. From 0 on. */
double mst_schedule_factor(const struct mst_schedule *s, double samples);
/* From how many samples on that is 0; INFINITY: never. */
double mst_schedule_end(const struct mst_schedule *s);

/* All rows: as a part of --help, and as a section of a manual page in roff. */
void mst_schedule_help(FILE *out);
void mst_schedule_man(FILE *out);

/* @why: a clause that names what is wrong. Return: 0 or -EINVAL. */
int mst_schedule_parse(const char *text, struct mst_schedule *out, struct mst_reason *why);

#endif
