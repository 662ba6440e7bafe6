/* SPDX-License-Identifier: MIT */
#include "tools/checkpoint/options.h"

#define FIELD(name) .offset = offsetof(struct mst_checkpoint_options, name)

const struct mst_option mst_checkpoint_table[] = {
	{ .name = "verify",
	  .kind = MST_OPTION_FLAG,
	  FIELD(verify),
	  .help = "also read all data and compare their checksums; without it, manifests and the "
		  "headers of parts are checked" },
	{ .name = "tensors",
	  .kind = MST_OPTION_FLAG,
	  FIELD(tensors),
	  .help = "also list the tensors of the newest checkpoint that is in order" },
	{ .name = "json",
	  .kind = MST_OPTION_STRING,
	  FIELD(json),
	  .value = "FILE",
	  .help = "write all of it there as JSON; - is standard output, instead of the text" },
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  FIELD(help),
	  .typed_only = true,
	  .help = "print this and exit" },
	{ .name = NULL },
};
