/* SPDX-License-Identifier: MIT */
/*
 * Sends a worker's contributions to its servers. Data are composed in the outbound region of each
 * link and put from there, long before their header where they are handed over in ranges, so that
 * they travel while the rest is computed.
 *
 * Over a transport that maps, the outbound region is the slot itself: a put finds its data there,
 * and nothing is ever on its way. Over others a slot's data are read until the last of their puts
 * has been sent, and as many puts can be on their way as the link has room for: one more waits.
 * There, what lies in memory that the caller has registered is put from that memory instead; it
 * occupies the slot all the same, for it goes to the same place at the server.
 *
 * Each call returns 0, or the error that ended the session. It may wait while as much is on its way
 * as the link can take, but not longer than a step would wait for this worker.
 */
#ifndef MST_CLIENT_SESSION_OUTBOUND_H
#define MST_CLIENT_SESSION_OUTBOUND_H

#include "client/local/sources.h"
#include "client/session/engine.h"

struct mst_outbound {
	struct mst_links *links;
	struct mst_worker *worker;
	struct mst_engine *engine;

	uint32_t type_size;            /* bytes of an element of a gradient */
	bool checks;                   /* headers have checksums, */
	uint32_t sum[MST_SERVERS_MAX]; /* of what has been put of the contribution, by part */
	uint64_t given_up; /* gradients abandoned because of a hint: the next lone ask says so */
};

/* A session begins: what has been put in the last one is nothing of it. */
void mst_outbound_begin(struct mst_outbound *o);
/* Puts elements of the contribution being filled, which lie in @slot. @ends: the header follows at
 * once. */
int mst_outbound_data(struct mst_outbound *o, int slot, const struct mst_range *range, bool ends);
/* The same of elements that lie in @region at @src: they are read there, and lent until they have
 * been sent. Only over a transport that does not map. */
int mst_outbound_lend(struct mst_outbound *o, int slot, const struct mst_range *range,
		      const struct mst_source *source);
int mst_outbound_header(struct mst_outbound *o, const struct mst_lane_header *header);
/* Gives the contribution being filled up. */
int mst_outbound_abandon(struct mst_outbound *o);
/* The same where the servers have asked for what is finished: they are told that nothing is. */
int mst_outbound_pass(struct mst_outbound *o);
int mst_outbound_ask(struct mst_outbound *o, const struct mst_lane_ask *ask);

#endif
