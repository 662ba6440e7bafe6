/* SPDX-License-Identifier: MIT */
/* How many processors this process may use: by its affinity, and by the quotas of its control
 * groups, which container runtimes set (docker --cpus, Kubernetes' limits). */
#ifndef MST_HOST_PROCESSORS_H
#define MST_HOST_PROCESSORS_H

#include <stdint.h>

/* At least 1; a quota of a part of a processor counts as a whole one.
 * @root: of the file tree with /proc and the control groups, "" or a directory made by a test. */
uint32_t mst_host_processors(const char *root);

#endif
