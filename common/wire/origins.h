/* SPDX-License-Identifier: MIT */
/* The addresses on the data network from which a peer dials its links. It announces them on the
 * control connection, and its token is good from these alone. */
#ifndef MST_WIRE_ORIGINS_H
#define MST_WIRE_ORIGINS_H

#include <stdint.h>

#define MST_ORIGINS_MAX 32u

/* An IPv6 address, in the order of the network. One of IPv4 is mapped into IPv6, as
 * ::ffff:10.0.0.1, so that an address has one form. A link-local one is without its interface. */
struct mst_origin {
	uint8_t address[16];
};

struct mst_origins {
	uint32_t count; /* at most MST_ORIGINS_MAX */
	struct mst_origin at[MST_ORIGINS_MAX];
};

#endif
