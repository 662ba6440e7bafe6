/* SPDX-License-Identifier: MIT */
#include "tools/key/options.h"

#include "common/config/shared_rows.h"

#define FIELD(name) .offset = offsetof(struct mst_key_options, name)

const struct mst_option mst_key_table[] = {
	{ .name = "days",
	  .kind = MST_OPTION_U32,
	  FIELD(days),
	  .fallback = "365",
	  .min = 1,
	  .max = 36500,
	  .help = "new: how long the certificates are valid" },
	{ .name = "name",
	  .kind = MST_OPTION_STRING,
	  FIELD(name),
	  .fallback = "muster",
	  .value = "NAME",
	  .help = "new: whose they are; stands in each certificate before its role" },
	MST_HELP_ROW(FIELD(help)),
	{ .name = NULL },
};
