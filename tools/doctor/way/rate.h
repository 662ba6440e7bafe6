/* SPDX-License-Identifier: MIT */
/* Measures bytes a second over links of a transport, to a peer of the write test (write.h). */
#ifndef MST_TOOLS_DOCTOR_WAY_RATE_H
#define MST_TOOLS_DOCTOR_WAY_RATE_H

#include "tools/doctor/write.h"

#define MST_RATE_LINKS_MAX 4u

struct mst_rate_test {
	const struct mst_write_side *side;
	const char *address;
	uint32_t links;      /* at a time, 1 .. MST_RATE_LINKS_MAX */
	bool pull;           /* from the peer; else to it */
	uint64_t piece;      /* bytes of a put; a multiple of 4096, at most MST_WRITE_BYTES */
	uint64_t for_ns;     /* how long pieces are sent */
	uint64_t timeout_ns; /* how long the peer may be silent */
};

/* Pieces of so many bytes that one takes about 20 ms. */
uint64_t mst_rate_piece(double bytes_per_s);

/* Return: 0, and bytes a second of all links together; -errno, with a sentence. */
int mst_rate_measure(const struct mst_rate_test *test, double *bytes_per_s, struct mst_reason *why);

#endif
