/* SPDX-License-Identifier: MIT */
#include "tools/finish/options.h"

#include "common/transport/tls/options.h"

const struct mst_option mst_finish_table[] = {
	{ .name = "why",
	  .kind = MST_OPTION_STRING,
	  .offset = offsetof(struct mst_finish_options, why),
	  .value = "TEXT",
	  .help = "a reason, which the server's log, the workers and the status tell" },
	{ .name = "timeout",
	  .kind = MST_OPTION_DURATION,
	  .offset = offsetof(struct mst_finish_options, timeout_ns),
	  .fallback = "5min",
	  .min = 1e6,
	  .max = 3600e9,
	  .help = "how long to wait for the end of the job, which may be that of a whole step" },
	MST_TLS_COMMAND_OPTIONS(struct mst_finish_options, tls),
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct mst_finish_options, help),
	  .typed_only = true,
	  .help = "print this and exit" },
	{ .name = NULL },
};
