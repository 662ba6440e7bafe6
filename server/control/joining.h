/* SPDX-License-Identifier: MIT */
/*
 * How workers join. The first valid hello makes the job's data side. The ledger decides on each
 * hello; an admitted worker is welcomed as soon as every server expects it. Then the worker asks
 * each server for a link, with the token of its welcome. Followers take part only in this last
 * step, and the leader's followers ask for their links at the same address.
 *
 * Control thread only. mst_joining_fini() waits. No other call blocks if links, and the data side,
 * are made aside.
 */
#ifndef MST_SERVER_CONTROL_JOINING_H
#define MST_SERVER_CONTROL_JOINING_H

#include "server/control/leading.h"
#include "server/control/link_maker.h"
#include "server/control/rejoins.h"

struct mst_joining {
	struct mst_job *job;
	struct mst_frontend *front;
	struct mst_sessions *sessions;
	struct mst_leading *leading;

	struct mst_link_maker *maker;
	struct mst_rejoins rejoins;
	uint64_t first;       /* the connection of the hello that has fixed the figures */
	bool listener_broken; /* the listener's device is gone; this is logged once */
};

/* @aside: links and the data side are made by threads of their own; else by the step that is asked
 * for them.
 * Return: 0 or -errno. */
int mst_joining_init(struct mst_joining *j, bool aside);
/* Waits for the links and the data side that are being made. To be called before the data side is
 * closed. */
void mst_joining_fini(struct mst_joining *j);

/* To be called after mst_job_forget(): the next data side has another listener. */
void mst_joining_forget(struct mst_joining *j);

/* At the leader, to be called before connections are read: takes the data side when it has been
 * made. */
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

/* Answers several requests for links. The others are answered in later steps. */
void mst_joining_links(struct mst_joining *j, uint64_t now_ns);
/* Are links being made? */
bool mst_joining_is_busy(const struct mst_joining *j);

/* A tensor table comes from a worker whose table is not the job's, and which was asked for it
 * (c->compares). It is refused, in a sentence that names the first tensor that differs. */
void mst_joining_table(struct mst_joining *j, struct mst_conn *c,
		       const struct mst_tensor_piece *piece, uint64_t now_ns);

#endif
