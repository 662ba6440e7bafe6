/* SPDX-License-Identifier: MIT */
/* The options of `muster evict`. */
#ifndef MST_TOOLS_EVICT_OPTIONS_H
#define MST_TOOLS_EVICT_OPTIONS_H

#include "common/config/option.h"

struct mst_evict_options {
	uint64_t timeout_ns;
	bool help;
};

extern const struct mst_option mst_evict_table[];

#endif
