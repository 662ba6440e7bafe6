/* SPDX-License-Identifier: MIT */
/* Memory that this process may lock, and so pin for a device. */
#ifndef MST_HOST_MEMLOCK_H
#define MST_HOST_MEMLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define MST_MEMLOCK_UNLIMITED UINT64_MAX

struct mst_memlock {
	uint64_t soft_bytes, hard_bytes; /* the limits; MST_MEMLOCK_UNLIMITED: there is none */
	uint64_t pinned_bytes;           /* for devices, already; 0 where /proc does not tell */
	bool exempt;                     /* this thread has CAP_IPC_LOCK, and it counts */
};

/* @root: of the file tree, as for mst_host_memory(). */
void mst_host_memlock(const char *root, struct mst_memlock *out);

/* Does the limit forbid this thread to pin @bytes more, which are whole pages? The kernel judges in
 * ib_umem_get(), drivers/infiniband/core/umem.c: it counts what is pinned, not what is locked. */
bool mst_memlock_forbids(const struct mst_memlock *m, uint64_t bytes);

/* Raises the limit as far as this process may: root to no limit. */
void mst_host_memlock_raise(void);

#endif
