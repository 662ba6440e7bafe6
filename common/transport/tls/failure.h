/* SPDX-License-Identifier: MIT */
/* Why the two ends of a handshake did not come together, as a sentence. Private to this directory.
 */
#ifndef MST_TRANSPORT_TLS_FAILURE_H
#define MST_TRANSPORT_TLS_FAILURE_H

#include "common/transport/tls/bio.h"
#include "common/transport/tls/context.h"

struct mst_tls_failure {
	const char *peer; /* its address */
	bool serves;      /* the peer has called */
	bool channel;     /* at a data port, or from there */
	bool shaking;     /* the handshake is not over */
	const struct mst_tls_files *files;
	const struct mst_tls_peer *who;
	const struct mst_tls_wire *wire;
	unsigned long reason; /* what ERR_peek_error() says; 0: nothing */
	bool memory;          /* the library has found none, and may have said something else */
};

/* Return: -EACCES, -EPROTO, -ECONNRESET, or -ENOMEM: it is this process that has failed. */
int mst_tls_explain(const struct mst_tls_failure *f, struct mst_reason *why);

#endif
