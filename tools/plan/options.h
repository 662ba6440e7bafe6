/* SPDX-License-Identifier: MIT */
/* The options of `muster plan`. */
#ifndef MST_TOOLS_PLAN_OPTIONS_H
#define MST_TOOLS_PLAN_OPTIONS_H

#include "common/config/option.h"

struct mst_plan_options {
	const char *trace, *json, *csv;
	uint64_t from, to; /* to: 0: the end */
	uint64_t seed;
	uint32_t pair; /* enum mst_rows_pair: "version|order" */
	bool plot, help;
};

extern const struct mst_option mst_plan_table[];

#endif
