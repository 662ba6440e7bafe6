/* SPDX-License-Identifier: MIT */
#include "tools/key/options.h"

const struct mst_option mst_key_table[] = {
	{ .name = "days",
	  .kind = MST_OPTION_U32,
	  .offset = offsetof(struct mst_key_options, days),
	  .fallback = "365",
	  .min = 1,
	  .max = 36500,
	  .help = "new: how long the certificates are valid" },
	{ .name = "name",
	  .kind = MST_OPTION_STRING,
	  .offset = offsetof(struct mst_key_options, name),
	  .fallback = "muster",
	  .value = "NAME",
	  .help = "new: whose they are; stands in each certificate before its role" },
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct mst_key_options, help),
	  .typed_only = true,
	  .help = "print this and exit" },
	{ .name = NULL },
};
