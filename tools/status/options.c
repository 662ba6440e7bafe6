/* SPDX-License-Identifier: MIT */
#include "tools/status/options.h"

#include "common/transport/tls/options.h"

const struct mst_option mst_status_table[] = {
	{ .name = "json",
	  .kind = MST_OPTION_STRING,
	  .offset = offsetof(struct mst_status_options, json),
	  .value = "FILE",
	  .help = "write the figures there as JSON; - is standard output, instead of the table" },
	{ .name = "timeout",
	  .kind = MST_OPTION_DURATION,
	  .offset = offsetof(struct mst_status_options, timeout_ns),
	  .fallback = "5s",
	  .min = 1e6,
	  .max = 3600e9,
	  .help = "how long to wait for the answer" },
	MST_TLS_COMMAND_OPTIONS(struct mst_status_options, tls),
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct mst_status_options, help),
	  .typed_only = true,
	  .help = "print this and exit" },
	{ .name = NULL },
};
