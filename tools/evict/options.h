/* SPDX-License-Identifier: MIT */
/* The options of `muster evict`. */
#ifndef MST_TOOLS_EVICT_OPTIONS_H
#define MST_TOOLS_EVICT_OPTIONS_H

#include "common/config/option.h"
#include "common/transport/tls/credentials.h"

struct mst_evict_options {
	uint64_t timeout_ns;
	struct mst_tls_files tls;
	bool help;
};

extern const struct mst_option mst_evict_table[];

#endif
