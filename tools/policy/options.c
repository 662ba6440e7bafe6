/* SPDX-License-Identifier: MIT */
#include "tools/policy/options.h"

#include "common/transport/tls/options.h"

const struct mst_option mst_policy_table[] = {
	{ .name = "force",
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct mst_policy_options, force),
	  .help = "accept a quorum under half of the workers" },
	{ .name = "timeout",
	  .kind = MST_OPTION_DURATION,
	  .offset = offsetof(struct mst_policy_options, timeout_ns),
	  .fallback = "5s",
	  .min = 1e6,
	  .max = 3600e9,
	  .help = "how long to wait for the answer" },
	MST_TLS_COMMAND_OPTIONS(struct mst_policy_options, tls),
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct mst_policy_options, help),
	  .typed_only = true,
	  .help = "print this and exit" },
	{ .name = NULL },
};
