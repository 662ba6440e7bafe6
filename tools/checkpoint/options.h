/* SPDX-License-Identifier: MIT */
/* The options of `muster checkpoint`. */
#ifndef MST_TOOLS_CHECKPOINT_OPTIONS_H
#define MST_TOOLS_CHECKPOINT_OPTIONS_H

#include "common/config/option.h"

struct mst_checkpoint_options {
	bool verify, tensors;
	const char *json;
	bool help;
};

extern const struct mst_option mst_checkpoint_table[];

#endif
