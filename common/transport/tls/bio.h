/* SPDX-License-Identifier: MIT */
/* OpenSSL reads and writes through this what a stream of mst_plain moves: never blocking, without
 * SIGPIPE, and never more than a handshake may take. Private to this directory. */
#ifndef MST_TRANSPORT_TLS_BIO_H
#define MST_TRANSPORT_TLS_BIO_H

#include <openssl/bio.h>

#include "common/transport/stream.h"

/* What the peer may send before it is believed. */
#define MST_TLS_HANDSHAKE_BYTES (64u << 10)

struct mst_tls_wire {
	struct mst_stream *below;
	uint64_t allowed; /* bytes that may still be read */
	bool began;       /* a byte has come, and this is the first: */
	unsigned char first;
	bool starved; /* the last read found nothing */
	bool ended;   /* the peer has closed */
	int error;    /* negative errno of the last read or write that failed; 0: none */
	/* A channel has MST_TLS_OUT_BYTES for what is encrypted, so that several records go with
	 * one call; from out_at to out_end the kernel does not have it yet. NULL: it is none. */
	unsigned char *out;
	size_t out_at, out_end;
};

/* Sixteen full records, and room for what the library sends by itself. With four a step of 100 MiB
 * took a sixth longer. */
#define MST_TLS_OUT_BYTES ((size_t)272 << 10)

/* @wire must outlive it. NULL: no memory. */
BIO *mst_tls_bio_new(struct mst_tls_wire *wire);
/* Gives the kernel what waits. 0: all of it; -EAGAIN or another -errno. */
int mst_tls_wire_flush(struct mst_tls_wire *w);

#endif
