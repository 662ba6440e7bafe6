/* SPDX-License-Identifier: MIT */
/* Takes in what arrives on the data links: copies it out of the inbound region once, and hands it
 * to client/core, which checks it. Nothing here blocks, allocates or locks. */
#ifndef MST_CLIENT_SESSION_INBOUND_H
#define MST_CLIENT_SESSION_INBOUND_H

#include "client/core/worker.h"
#include "client/session/links.h"

/* What the end of a put of data tells: whose it was. */
#define MST_SENT_SLOT 0xffu
#define MST_SENT_LENT 0x100u /* it read memory of the caller's */

struct mst_inbound {
	struct mst_links *links;
	struct mst_worker *worker;
	bool returns; /* the worker waits for another server if one is lost */

	const struct mst_part *ended_by; /* its server has ended the session; NULL: none has */
	const struct mst_part *odd;      /* the first that broke the protocol; NULL: none has */
};

/* Takes in what a poll of the links has found. */
void mst_inbound_take(struct mst_inbound *in, const struct mst_net_event *ev, int count);

#endif
