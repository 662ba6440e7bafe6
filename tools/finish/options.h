/* SPDX-License-Identifier: MIT */
/* The options of `muster finish`. */
#ifndef MST_TOOLS_FINISH_OPTIONS_H
#define MST_TOOLS_FINISH_OPTIONS_H

#include "common/config/option.h"
#include "common/transport/tls/credentials.h"

struct mst_finish_options {
	const char *why; /* NULL: no reason was typed */
	uint64_t timeout_ns;
	struct mst_tls_files tls;
	bool help;
};

extern const struct mst_option mst_finish_table[];

#endif
