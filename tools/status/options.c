/* SPDX-License-Identifier: MIT */
#include "tools/status/options.h"

#include "common/config/shared_rows.h"
#include "common/transport/tls/options.h"

#define FIELD(name) .offset = offsetof(struct mst_status_options, name)

const struct mst_option mst_status_table[] = {
	MST_FILE_ROW("json", FIELD(json),
		     "write the figures there as JSON; - is standard output, instead of the table"),
	MST_TIMEOUT_ROW(FIELD(timeout_ns), "5s", "how long to wait for the answer"),
	MST_TLS_COMMAND_OPTIONS(struct mst_status_options, tls),
	MST_HELP_ROW(FIELD(help)),
	{ .name = NULL },
};
