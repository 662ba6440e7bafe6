/* SPDX-License-Identifier: MIT */
/*
 * The files and directories that options name: a path that cannot be right, because its directory
 * is not there or it is of another kind, is wrong usage. Rights and free space are looked at when
 * the path is used.
 */
#ifndef MST_SERVER_OPTIONS_PATHS_H
#define MST_SERVER_OPTIONS_PATHS_H

#include "server/options/options.h"

/* Return: 0 or -EINVAL. */
int mst_server_paths_check(const struct mst_server_options *o, struct mst_reason *why);
/* Do both name the same directory? */
bool mst_server_paths_same(const char *a, const char *b);

#endif
