/* SPDX-License-Identifier: MIT */
/* The options of `muster rest`. */
#ifndef MST_TOOLS_REST_OPTIONS_H
#define MST_TOOLS_REST_OPTIONS_H

#include "common/config/option.h"
#include "common/transport/tls/credentials.h"

struct mst_rest_options {
	bool returns;
	uint64_t timeout_ns;
	struct mst_tls_files tls;
	bool help;
};

extern const struct mst_option mst_rest_table[];

#endif
