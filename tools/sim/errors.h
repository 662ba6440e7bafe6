/* SPDX-License-Identifier: MIT */
/* How a training went, for people and for programs. */
#ifndef MST_TOOLS_SIM_ERRORS_H
#define MST_TOOLS_SIM_ERRORS_H

#include <jansson.h>
#include <stdio.h>

#include "tools/sim/figures.h"
#include "tools/sim/options.h"

#define MST_SIM_ERROR_LEN 24u

/* An error or a loss: four digits, or "-" where there is none. Return: @text. */
const char *mst_sim_error_text(double value, char text[MST_SIM_ERROR_LEN]);
/* The error at the end of a job; NaN: it did not start, or does not train. */
double mst_sim_final_error(const struct mst_sim_figures *f);

/* The points of all jobs. */
void mst_sim_print_errors(const struct mst_sim_line *line, const struct mst_sim_figures *f,
			  FILE *out);
void mst_sim_csv_errors(const struct mst_sim_line *line, const struct mst_sim_figures *f,
			FILE *out);
/* The errors of one job; NULL: no memory. */
json_t *mst_sim_json_errors(const struct mst_sim_figures *f);

#endif
