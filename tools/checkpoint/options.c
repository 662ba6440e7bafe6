/* SPDX-License-Identifier: MIT */
#include "tools/checkpoint/options.h"

#include "common/config/shared_rows.h"

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
	MST_FILE_ROW("json", FIELD(json),
		     "write all of it there as JSON; - is standard output, instead of the text"),
	MST_HELP_ROW(FIELD(help)),
	{ .name = NULL },
};
