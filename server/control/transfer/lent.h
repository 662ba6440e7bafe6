/* SPDX-License-Identifier: MIT */
/*
 * This server's part of the moving average: the data side lends it to a reader, who gives it back.
 *
 * Control thread only. No function blocks.
 */
#ifndef MST_SERVER_CONTROL_TRANSFER_LENT_H
#define MST_SERVER_CONTROL_TRANSFER_LENT_H

#include "server/control/base.h"

/* How many bytes may be queued on a connection before the next piece. */
#define MST_LENT_QUEUED_MAX ((size_t)256 << 10)

struct mst_lent {
	struct mst_base *base;

	bool is_here;
	uint64_t version;
	const float *average; /* NULL: that version is not finite */
	bool return_due;      /* nobody reads it any more, and the ledger is to be told */
};

/* The data side lends it. */
void mst_lent_take(struct mst_lent *l, const struct mst_notice *notice);
/* Nobody reads it any more. */
void mst_lent_done(struct mst_lent *l);
/* Tells the ledger so, if that is due and there is room for it. */
void mst_lent_give_back(struct mst_lent *l);
/* A piece from byte @offset of this server's part on, of at most @most bytes. It has no total. */
struct mst_handed mst_lent_piece(const struct mst_lent *l, uint64_t offset, uint64_t most);

#endif
