/* SPDX-License-Identifier: MIT */
/*
 * The best way to a port. A connection is made to an IP address, also over InfiniBand: the
 * connection manager looks up the GID of that address, so the port's table must have one, and the
 * interface must still have the address.
 */
#ifndef MST_TOOLS_DOCTOR_WAY_H
#define MST_TOOLS_DOCTOR_WAY_H

#include "tools/doctor_judge.h"

/* Worst first. */
enum mst_doctor_rank {
	MST_DOCTOR_WAY_NONE,       /* no GID of an address */
	MST_DOCTOR_WAY_STALE,      /* a GID whose address is not there any more */
	MST_DOCTOR_WAY_LOOPBACK,   /* one of lo, which stands for no device */
	MST_DOCTOR_WAY_LINK_LOCAL, /* an address that leads nowhere without its interface's name */
	MST_DOCTOR_WAY_ROCE_V1,    /* by the older protocol, which the transport does not take */
	MST_DOCTOR_WAY_GOOD,
};

struct mst_doctor_way {
	enum mst_doctor_rank rank;
	uint32_t gid;                      /* index; over Ethernet */
	char netdev[MST_PROBE_NETDEV_LEN]; /* of the port; "": not known */
	uint8_t address[16];
};

struct mst_doctor_way mst_doctor_way_to(const struct mst_doctor_facts *f,
					const struct mst_doctor_device *d,
					const struct mst_probe_port *port);

const struct mst_doctor_netdev *mst_doctor_netdev_of(const struct mst_doctor_facts *f,
						     const char *name); /* NULL: none */

bool mst_doctor_link_local(const uint8_t raw[16]);

#endif
