/* SPDX-License-Identifier: MIT */
/*
 * The average of the weights on its way to a worker that has asked for it. The leader serves one
 * worker after the other. For each, it has the ledger lend the average, which is then of one
 * version on every server, and sends it from where it lies, in pieces, at the pace of the worker.
 * What followers have of it the leader fetches in pieces too, never more than a little at a time,
 * and passes on. So no server copies its average, and none needs memory for that of another. When
 * the worker has all of it, or is gone, every server tells the ledger that it does not read it any
 * more.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_TRANSFER_LENDING_H
#define MST_SERVER_CONTROL_TRANSFER_LENDING_H

#include "server/control/members/followers.h"
#include "server/control/transfer/lent.h"

enum mst_lending_state {
	MST_LENDING_IDLE,
	MST_LENDING_ASKED, /* the ledger has been asked to lend it */
	MST_LENDING_SENDS,
};

struct mst_lending {
	struct mst_base *base;
	struct mst_followers *followers;

	struct mst_lent lent;

	enum mst_lending_state state;
	struct mst_identity taker;
	uint64_t number; /* of this reading */
	uint64_t sent;   /* bytes of the whole average that the taker has been sent */
	uint64_t asked;  /* as far as followers have been asked for it */
	uint64_t turns;  /* how often workers have asked */
	uint64_t step_ns;
	/* How long the connection of the taker has had no room since this byte was sent. */
	uint64_t waited_from, waited_ns;
};

/* A worker asks. *@wrong: how it has broken the protocol; else NULL.
 * Return: false: not now, because the start of the job has not been heard of yet. */
bool mst_lending_ask(struct mst_lending *l, struct mst_conn *c, uint64_t number,
		     const char **wrong);
/* A follower sends a piece. Returns how it has broken the protocol, or NULL. */
const char *mst_lending_piece(struct mst_lending *l, const struct mst_conn *c,
			      const struct mst_handed *p);

/* The data side lends this server's part. */
void mst_lending_lent(struct mst_lending *l, const struct mst_notice *notice);

/* Sends what there is room for. */
void mst_lending_step(struct mst_lending *l, uint64_t now_ns);

#endif
