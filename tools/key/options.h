/* SPDX-License-Identifier: MIT */
/* The options of `muster key`. */
#ifndef MST_TOOLS_KEY_OPTIONS_H
#define MST_TOOLS_KEY_OPTIONS_H

#include "common/config/option.h"

struct mst_key_options {
	uint32_t days;
	const char *name;
	bool help;
};

extern const struct mst_option mst_key_table[];

#endif
