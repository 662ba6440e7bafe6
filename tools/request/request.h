/* SPDX-License-Identifier: MIT */
/* The commands that ask the leader of a job that runs for a change: muster policy, rest, evict and
 * finish. Each is a row of one table. */
#ifndef MST_TOOLS_REQUEST_H
#define MST_TOOLS_REQUEST_H

#include "common/config/option.h"

/* The options of such a command, "rest" of "muster rest"; NULL: there is no such command. */
const struct mst_option *mst_request_table(const char *command);

#endif
