/* SPDX-License-Identifier: MIT */
/*
 * Certificates for a command that starts a server and workers of its own on this host: with
 * --data-tls on it makes some for this one run, in a directory that goes with it. A command is one
 * process, and has one such directory. What a run leaves that is killed by SIGKILL the next run of
 * the same user removes.
 */
#ifndef MST_TOOLS_KEYS_H
#define MST_TOOLS_KEYS_H

#include "common/base/reason.h"
#include "server/options/options.h"

/* If the options ask for encrypted gradients over a network that can: makes the files, names those
 * of the server in @o and in mst_keys_flags(), those of workers in the environment, and takes those
 * of an operator for this process. @why: a sentence. Return: 0 or -errno. */
int mst_keys_make(struct mst_server_options *o, struct mst_reason *why);
/* Flags of musterd, for the server and for followers; ends with NULL. */
char *const *mst_keys_flags(void);
/* Removes what was made, if anything was. */
void mst_keys_remove(void);

#endif
