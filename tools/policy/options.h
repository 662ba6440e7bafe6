/* SPDX-License-Identifier: MIT */
/* The options of `muster policy`. */
#ifndef MST_TOOLS_POLICY_OPTIONS_H
#define MST_TOOLS_POLICY_OPTIONS_H

#include "common/config/option.h"
#include "common/transport/tls/credentials.h"

struct mst_policy_options {
	bool force;
	uint64_t timeout_ns;
	struct mst_tls_files tls;
	bool help;
};

extern const struct mst_option mst_policy_table[];

#endif
