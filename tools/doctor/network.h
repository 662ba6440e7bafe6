/* SPDX-License-Identifier: MIT */
/* All that `muster doctor` knows of networks by name: a row for each. */
#ifndef MST_TOOLS_DOCTOR_NETWORK_H
#define MST_TOOLS_DOCTOR_NETWORK_H

#include "tools/doctor/try.h"

struct mst_doctor_network {
	const struct mst_transport *transport;
	const char *check; /* the word for a write over it within this host */
	bool by_port;      /* one write over each port that nothing is in the way of; else one */
	bool within_host;  /* its peers are all on this host */
	/* Says what fixes a write that failed; @found: all that was found so far. */
	void (*fix)(const struct mst_doctor_try *t, const struct mst_findings *found,
		    struct mst_finding *new);
};

extern const struct mst_doctor_network mst_doctor_networks[]; /* the last has no check */

/* The network whose check has this name; NULL: there is none. */
const struct mst_doctor_network *mst_doctor_network_of(const char *check);

/* What --listen and --peer test: every network that there is, or one of them. */
#define MST_DOCTOR_TRANSPORTS "auto|" MST_TRANSPORT_SCHEMES
#define MST_DOCTOR_ALL 0u /* the first of them; the others are those of mst_transport_at() */
/* Between hosts it is RDMA, whose packets go to a UDP port over Ethernet (RoCE v2). */
#define MST_DOCTOR_PEER_PORT 4791
#define MST_DOCTOR_PEER_FIX                                                                        \
	"is muster doctor --listen still there, does ping reach it, and does a firewall drop UDP " \
	"port 4791?"

#endif
