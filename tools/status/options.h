/* SPDX-License-Identifier: MIT */
/* The options of `muster status`. */
#ifndef MST_TOOLS_STATUS_OPTIONS_H
#define MST_TOOLS_STATUS_OPTIONS_H

#include "common/config/option.h"
#include "common/transport/tls/credentials.h"

struct mst_status_options {
	const char *json;
	uint64_t timeout_ns;
	struct mst_tls_files tls;
	bool help;
};

extern const struct mst_option mst_status_table[];

#endif
