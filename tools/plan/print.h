/* SPDX-License-Identifier: MIT */
/* How a plan is shown: as text, as a plot in the terminal, as CSV and as JSON. */
#ifndef MST_TOOLS_PLAN_PRINT_H
#define MST_TOOLS_PLAN_PRINT_H

#include <jansson.h>

#include "tools/plan/advice.h"

/* A trace, and what was made of it. */
struct mst_plan_report {
	const char *trace; /* the file's name */
	const struct mst_arrival_rows *rows;
	const struct mst_arrivals *arrivals;
	const struct mst_advice *advice;
	const struct mst_arrival_figures *arrival; /* [k - 1]: of the k-th arrival */
};

void mst_plan_print(const struct mst_plan_report *r, FILE *out);
/* When the k-th gradient arrives, a line for each k, or for some of them. */
void mst_plan_plot(const struct mst_plan_report *r, FILE *out);
void mst_plan_print_csv(const struct mst_plan_report *r, FILE *out);
/* Return: a new object, or NULL if memory is short. */
json_t *mst_plan_json(const struct mst_plan_report *r);

#endif
