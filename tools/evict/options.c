/* SPDX-License-Identifier: MIT */
#include "tools/evict/options.h"

const struct mst_option mst_evict_table[] = {
	{ .name = "timeout",
	  .kind = MST_OPTION_DURATION,
	  .offset = offsetof(struct mst_evict_options, timeout_ns),
	  .fallback = "5s",
	  .min = 1e6,
	  .max = 3600e9,
	  .help = "how long to wait for the answer" },
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct mst_evict_options, help),
	  .typed_only = true,
	  .help = "print this and exit" },
	{ .name = NULL },
};
