/* SPDX-License-Identifier: MIT */
/* What a directory of checkpoints has, for people and as JSON. */
#ifndef MST_TOOLS_CHECKPOINT_PRINT_H
#define MST_TOOLS_CHECKPOINT_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "tools/checkpoint/stock.h"

void mst_stock_print(const struct mst_stock *s, FILE *out);
/* Return: a new object, or NULL if memory is short. */
json_t *mst_stock_json(const struct mst_stock *s);

#endif
