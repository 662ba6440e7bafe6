/* SPDX-License-Identifier: MIT */
/* How a search is shown: as a table, and as JSON. */
#ifndef MST_TOOLS_TUNE_PRINT_H
#define MST_TOOLS_TUNE_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "tools/tune/search.h"

/* What has been tried, and the answer as the options to use. */
void mst_tune_print(const struct mst_search *s, FILE *out);
/* Return: a new object, or NULL if memory is short. */
json_t *mst_tune_json(const struct mst_search *s);

#endif
