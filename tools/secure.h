/* SPDX-License-Identifier: MIT */
/* The identity that a command proves to a server. A command is one process with one identity, which
 * all of its connections have. */
#ifndef MST_TOOLS_SECURE_H
#define MST_TOOLS_SECURE_H

#include "common/transport/stream.h"
#include "common/transport/tls/credentials.h"

/* Takes these files, and from the environment what they leave open. To be called once, before a
 * connection is made. What is wrong is logged.
 * Return: 0 or -EINVAL. */
int mst_secure_open(const struct mst_tls_files *files);

/* For a command that starts a server and workers of its own on this host: neither they nor it use
 * certificates that the environment names. */
void mst_secure_forget(void);

/* NULL: connections are plain streams. */
struct mst_credentials *mst_secure(void);
const struct mst_stream_ops *mst_secure_stream(void);

/* The exit status after @rc of a question to a server. After -EACCES it is that of a mistake in the
 * command line, and the log says with which certificate the question was asked. */
int mst_secure_exit(int rc);

#endif
