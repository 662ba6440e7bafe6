/* SPDX-License-Identifier: MIT */
/*
 * Several networks as one, for a server whose workers come over different ones. A joint net has a
 * part for each network, and a listener of each; the thread that polls it polls the parts. Links
 * are those of the parts: put(), detach() and the like go to them without a detour.
 *
 * A part without links costs nothing: it is neither polled nor waited for. If one part has links,
 * a wait is that part's own wait.
 *
 * What is published is the memory of the first part. All others send from it.
 */
#ifndef MST_TRANSPORT_JOINT_JOINT_H
#define MST_TRANSPORT_JOINT_JOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/transport/spin.h"
#include "common/transport/transport.h"

struct mst_joint_net {
	struct mst_net net;
	struct mst_net_cfg cfg;
	struct mst_spin spin;
	bool optional; /* a part that has no listener is left out */
	uint32_t count;
	struct mst_net *part[MST_NETWORKS_MAX];
	uint32_t first;        /* part that the next poll begins with */
	_Atomic uint32_t busy; /* parts that have links, bit by bit: who wakes, wakes these */
	_Atomic bool woken;
};

extern const struct mst_link_listener_ops mst_joint_listener;

#endif
