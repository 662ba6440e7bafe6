/* SPDX-License-Identifier: MIT */
/* The figures of a benchmark: a table for people, and JSON. */
#ifndef MST_TOOLS_BENCH_PRINT_H
#define MST_TOOLS_BENCH_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "tools/bench/cell.h"

/* What was measured and where, and the columns' names; a row; what the columns mean. */
void mst_bench_print_head(const struct mst_bench_line *line, FILE *out);
void mst_bench_print_row(const struct mst_bench_line *line, const struct mst_bench_cell *cell,
			 FILE *out);
void mst_bench_print_foot(const struct mst_bench_line *line, FILE *out);

/* Return: a new object, or NULL if memory is short. */
json_t *mst_bench_json(const struct mst_bench_line *line, const struct mst_bench_cell *cell);

#endif
