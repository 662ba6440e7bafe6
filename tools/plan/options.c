/* SPDX-License-Identifier: MIT */
#include "tools/plan/options.h"

#include <math.h>

#include "common/config/shared_rows.h"

#define FIELD(name) .offset = offsetof(struct mst_plan_options, name)

const struct mst_option mst_plan_table[] = {
	MST_FILE_ROW("trace", FIELD(trace),
		     "the times of gradients: a recording of musterd --record, or CSV of "
		     "step,worker,ready_us"),
	{ .name = "from",
	  .kind = MST_OPTION_U64,
	  FIELD(from),
	  .fallback = "0",
	  .max = INFINITY,
	  .value = "STEP",
	  .help = "leave out the steps before this one, such as those of a warm-up; in a recording "
		  "a step is a version" },
	{ .name = "to",
	  .kind = MST_OPTION_U64,
	  FIELD(to),
	  .fallback = "end",
	  .min = 1,
	  .max = INFINITY,
	  .automatic = "end",
	  .value = "STEP",
	  .help = "leave out the steps after this one" },
	{ .name = "pair",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(pair),
	  .fallback = "version",
	  .choices = "version|order",
	  .help = "which gradients of a recording are compared: those on the same version, or the "
		  "n-th of each worker, for policies whose workers go on before the commit" },
	{ .name = "plot",
	  .kind = MST_OPTION_FLAG,
	  FIELD(plot),
	  .help = "also draw when the first, second, ... last gradient of a step arrives" },
	MST_FILE_ROW("csv", FIELD(csv),
		     "write the figures of every quorum there, to be plotted; - is standard "
		     "output, instead of the text"),
	MST_FILE_ROW("json", FIELD(json),
		     "write all figures there as JSON; - is standard output, instead of the text"),
	{ .name = "seed",
	  .kind = MST_OPTION_U64,
	  FIELD(seed),
	  .fallback = "1",
	  .max = INFINITY,
	  .help = "of the samples that the intervals are taken from; the same seed gives the same "
		  "intervals" },
	MST_HELP_ROW(FIELD(help)),
	{ .name = NULL },
};
