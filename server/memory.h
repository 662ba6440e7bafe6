/* SPDX-License-Identifier: MIT */
/* What memory a server may use. */
#ifndef MST_SERVER_MEMORY_H
#define MST_SERVER_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Three quarters of what the host, or the control group if it is tighter, has free; 0: not
 * known. */
uint64_t mst_memory_budget(void);

/* "1.5 GiB". */
const char *mst_memory_text(uint64_t bytes, char *out, size_t len);

#endif
