/* SPDX-License-Identifier: MIT */
/*
 * How workers join. The first valid hello makes the job's data side. The ledger decides on each
 * hello; an admitted worker is welcomed as soon as every server expects it. Then the worker asks
 * each server for a link, with the token of its welcome (linking.h).
 *
 * At the leader. Control thread only. No function blocks if links, and the data side, are made
 * aside.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_JOINING_H
#define MST_SERVER_CONTROL_MEMBERS_JOINING_H

#include "server/control/members/leading.h"
#include "server/control/members/rejoins.h"

struct mst_joining {
	struct mst_base *base;
	struct mst_leading *leading;

	struct mst_rejoins rejoins;
	uint64_t hello_ns; /* when the first hello came; 0: none has */
	uint64_t first;    /* the connection of the hello that has fixed the figures */
};

/* Return: 0 or -ENOMEM. */
int mst_joining_init(struct mst_joining *j);
/* Accepts zeroed memory. */
void mst_joining_fini(struct mst_joining *j);

/* To be called before connections are read: takes the data side when it has been made. */
void mst_joining_step(struct mst_joining *j, uint64_t now_ns);
/* Handles the hello of a new worker.
 * Return: false: not now, because the ring of requests is full, or the data side is being made, or
 * followers are not ready. */
bool mst_joining_hello(struct mst_joining *j, struct mst_conn *c, const struct mst_hello *hello,
		       uint64_t now_ns);
/* Do what the ledger has decided on a hello. */
void mst_joining_admitted(struct mst_joining *j, const struct mst_notice *notice, uint64_t now_ns);
void mst_joining_refused(struct mst_joining *j, const struct mst_notice *notice, uint64_t now_ns);
/* Welcomes the worker of a session that all servers expect. */
void mst_joining_welcome(struct mst_joining *j, const struct mst_pending_session *p);

/* A tensor table comes from a worker whose table is not the job's, and which was asked for it
 * (c->compares). It is refused, in a sentence that names the first tensor that differs. */
void mst_joining_table(struct mst_joining *j, struct mst_conn *c,
		       const struct mst_tensor_piece *piece, uint64_t now_ns);

#endif
