/* SPDX-License-Identifier: MIT */
/*
 * How much memory this process may still use: what the host has free, or less if its control group
 * or an ancestor of that allows less.
 *
 * Page cache counts as free, since the kernel gives it up before an allocation fails or a process
 * is killed. Shared memory (tmpfs, memfd) does not, although the kernel counts it as cache. Swap is
 * not counted: a step must not wait for a disk.
 */
#ifndef MST_HOST_MEMORY_H
#define MST_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/host/cgroup.h"

#define MST_MEMORY_UNKNOWN UINT64_MAX

struct mst_host_memory {
	uint64_t free_bytes; /* MST_MEMORY_UNKNOWN: the host does not say */
	/* What has been tightest: the limit of a control group, by the file that holds it; NULL:
	 * the host. */
	const char *file;
	uint64_t limit_bytes;
	char group[MST_CGROUP_PATH]; /* below its mount: "/" or "/a/b" */
};

/* @root: of the file tree to look into, "" or a directory made up by a test. */
void mst_host_memory(const char *root, struct mst_host_memory *out);

/* How much of it a server may use: three quarters, since other processes grow too.
 * MST_MEMORY_UNKNOWN stays. */
uint64_t mst_host_memory_share(const struct mst_host_memory *m);

/* "of what the host has free", "of what is free in control group /a/b, memory.max 300.0 MiB". */
const char *mst_host_memory_source(const struct mst_host_memory *m, char *out, size_t len);

/* "1.5 GiB". */
const char *mst_memory_text(uint64_t bytes, char *out, size_t len);

#endif
