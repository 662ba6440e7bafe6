/* SPDX-License-Identifier: MIT */
/* File descriptors: how many this process has, and may have. */
#ifndef MST_HOST_DESCRIPTORS_H
#define MST_HOST_DESCRIPTORS_H

#include <stdint.h>

/* Raises the soft limit to the hard one. The soft limit is often low only for the sake of old
 * programs. */
void mst_host_descriptors_raise(void);
/* How many may be open at a time, by the soft limit. */
uint64_t mst_host_descriptors_max(void);
/* How many are open. @root: of the file tree, as for mst_host_memory(). If /proc does not say, the
 * three standard ones. */
uint64_t mst_host_descriptors_open(const char *root);

#endif
