/* SPDX-License-Identifier: MIT */
/* The table of figures (common/wire/figures.h) as JSON, and as entries of the manual. */
#ifndef MST_TOOLS_FIGURES_H
#define MST_TOOLS_FIGURES_H

#include <jansson.h>
#include <stdio.h>

#include "common/wire/message.h"

/* The tables, and the structs that their figures are members of. */
enum mst_figures_of {
	MST_FIGURES_OF_JOB,    /* struct mst_status */
	MST_FIGURES_OF_POLICY, /* struct mst_status_policy */
	MST_FIGURES_OF_RANK,   /* struct mst_status_rank */
	MST_FIGURES_OF_SERVER, /* struct mst_status_server */
};

/* Sets a member of the object @into for each figure of @of, which is a struct of the table's.
 * Return: 0; -1: no memory. */
int mst_figures_json(enum mst_figures_of table, const void *of, json_t *into);

/* Prints an entry for each figure, as man(7) has it. */
void mst_figures_man(enum mst_figures_of table, FILE *out);

/* JSON has no NaN and no infinity: they are null. */
json_t *mst_figures_real(double value);

#endif
