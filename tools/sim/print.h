/* SPDX-License-Identifier: MIT */
/* What simulated jobs have come to: as a table, as CSV, as JSON. */
#ifndef MST_TOOLS_SIM_PRINT_H
#define MST_TOOLS_SIM_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "tools/sim/figures.h"
#include "tools/sim/options.h"

/* What the job ended by: "commits", "too few workers", ...; "nothing": nothing was left to happen,
 * and nobody had ended it. */
const char *mst_sim_end(const struct mst_sim_figures *f);

/* The table that the options choose. @f: of each job of the line, in the same order. */
void mst_sim_print(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out);
/* The same as CSV, without what a person alone reads. */
void mst_sim_print_csv(const struct mst_sim_line *line, const struct mst_sim_figures *f, FILE *out);

/* Everything. Return: a new object, or NULL if memory is short. */
json_t *mst_sim_json(const struct mst_sim_line *line, const struct mst_sim_figures *f);

#endif
