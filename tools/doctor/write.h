/* SPDX-License-Identifier: MIT */
/*
 * The write test: does the network move bytes? A mebibyte is written into a peer's memory, the peer
 * looks at every byte and answers by a write the other way. Then round trips and throughput are
 * timed, roughly.
 *
 * The peer is a thread of this process, or a `muster doctor --listen` elsewhere.
 */
#ifndef MST_TOOLS_DOCTOR_WRITE_H
#define MST_TOOLS_DOCTOR_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/transport/transport.h"

#define MST_WRITE_BYTES ((uint64_t)1 << 20)
#define MST_WRITE_NAME_LEN 64u

/* What the ends tell each other of themselves. */
struct mst_write_card {
	char host[MST_WRITE_NAME_LEN];
	char port[MST_WRITE_NAME_LEN]; /* "rxe0/1"; "": not known */
	uint32_t mtu;                  /* of it; 0: not known */
};

struct mst_write_side {
	const struct mst_transport *transport;
	struct mst_fabric fabric;
	struct mst_channels channels; /* needed where the fabric says `encrypted` */
	struct mst_write_card card;
};

/* The result of one test, at the end that dialled. */
struct mst_write_report {
	struct mst_reason why;      /* after a failure: a sentence */
	bool linked;                /* there was a link; so the network lets calls through */
	uint64_t wrong_bytes;       /* as the peer counted them */
	uint64_t latency_ns;        /* half a round trip of 8 bytes, the median */
	double bytes_per_s;         /* one write of MST_WRITE_BYTES after the other */
	struct mst_write_card peer; /* as it says */
};

/* Dials @address and tests. Blocks at most @timeout_ns, and a second for the timing. Return: 0 all
 * bytes came as they were sent; -EBADMSG they did not; -errno, with why in the report. */
int mst_write_test(const struct mst_write_side *side, const char *address, uint64_t timeout_ns,
		   struct mst_write_report *out);

/* Runs the test with a thread of this process as the peer. */
int mst_write_loopback(const struct mst_write_side *side, uint64_t timeout_ns,
		       struct mst_write_report *out);

struct mst_write_peer;

/* A test has been answered. */
typedef void mst_write_seen(void *ctx, const struct mst_write_card *who, uint64_t wrong_bytes);

/* Return: 0; or -errno, with @why as the transport's operations have it: emptied first. */
int mst_write_peer_open(const struct mst_write_side *side, struct mst_write_peer **out,
			struct mst_reason *why);
void mst_write_peer_close(struct mst_write_peer *p); /* accepts NULL */
const char *mst_write_peer_address(const struct mst_write_peer *p);
/* What it says of itself, where that is known only once it has an address. */
void mst_write_peer_set_card(struct mst_write_peer *p, const struct mst_write_card *card);

/* Answers every caller that dials. Blocks until @until_ns, or until mst_write_peer_stop(). @seen:
 * NULL: nobody wants to know. */
void mst_write_peer_serve(struct mst_write_peer *p, uint64_t until_ns, mst_write_seen *seen,
			  void *ctx);
/* From any thread, or a signal's handler. */
void mst_write_peer_stop(struct mst_write_peer *p);

#endif
