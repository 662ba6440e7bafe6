/* SPDX-License-Identifier: MIT */
/* Reads files below /proc and /sys, whose length is not known beforehand. */
#ifndef MST_HOST_FILE_H
#define MST_HOST_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/host/cgroup.h"

/* Room for a path in a hierarchy of control groups, and a file in it. */
#define MST_HOST_PATH 4096u

/* Reads the whole file, and adds a NUL; the caller frees it. NULL: the file does not exist, cannot
 * be read, or is larger than any that the kernel writes. */
char *mst_host_file(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The figure in a control group's own file, such as "pids.max". @root: of the file tree, "" or a
 * directory made up by a test. Return: false: there is no such file, or it holds no number. */
bool mst_host_figure(const char *root, const struct mst_cgroup *c, const char *file, uint64_t *out);

#endif
