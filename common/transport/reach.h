/* SPDX-License-Identifier: MIT */
/* Tells from where an address can be reached: from its own host, or from others. */
#ifndef MST_TRANSPORT_REACH_H
#define MST_TRANSPORT_REACH_H

enum mst_reach {
	MST_REACH_LOOPBACK, /* from its own host: 127.0.0.0/8, ::1 */
	MST_REACH_BEYOND,   /* from other hosts, too; of 0.0.0.0 and :: as well */
	MST_REACH_UNKNOWN,  /* it is no HOST:PORT, or there is no such host now */
};

/* @address as of struct mst_stream_ops. A host's name is resolved, which takes as long
 * as the resolver does; it is of this host if all of its addresses are. */
enum mst_reach mst_reach_of(const char *address);

#endif
