/* SPDX-License-Identifier: MIT */
/*
 * Requests of the control thread to the data thread.
 *
 * The data thread takes requests from rings of a fixed size. The control thread must receive
 * heartbeats, so it never waits for room in a ring. If there is no room, a request that its sender
 * can repeat is refused; a request that would not be repeated waits here, in order, and goes on in
 * a later step.
 *
 * What can wait is bounded. For each rank one loss, since a rank has a new session only after the
 * ledger has ended the one before. For each session one link. For each other server one link and
 * one loss, since only the newest link with a server is of use.
 *
 * Control thread only. No call blocks, and only mst_requests_init() allocates.
 */
#ifndef MST_SERVER_CONTROL_JOB_REQUESTS_H
#define MST_SERVER_CONTROL_JOB_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/data/server.h"

struct mst_requests {
	struct mst_server *server;   /* NULL: there is no data side */
	struct mst_request *waiting; /* the oldest first */
	uint32_t max, count;
};

struct mst_requests_cfg {
	uint32_t workers, sessions, servers; /* of the job: the most there can be at a time */
};

/* The bytes that mst_requests_init() allocates. */
uint64_t mst_requests_bytes(const struct mst_requests_cfg *cfg);
/* Return: 0 or -ENOMEM. */
int mst_requests_init(struct mst_requests *r, const struct mst_requests_cfg *cfg);
/* To be called after mst_requests_close(). Accepts zeroed memory. */
void mst_requests_fini(struct mst_requests *r);

/* Requests go to the data side @server from now on. */
void mst_requests_open(struct mst_requests *r, struct mst_server *server);
/* To be called before the data side is freed. Requests that wait are dropped; links with servers
 * among them are freed. A session that waits to be linked still belongs to its owner. */
void mst_requests_close(struct mst_requests *r);

/* ---- only while there is a data side ---- */

/* Passes a request on.
 * Return: false: there is no room, or others wait already; offer it again in a later step. */
bool mst_requests_offer(struct mst_requests *r, const struct mst_request *request);
/* Passes a request on, or keeps it until there is room: an MST_EV_LOST, a LINKED, a PEER_LINKED
 * with its link, or a PEER_GONE. */
void mst_requests_put(struct mst_requests *r, const struct mst_request *request);

/* Passes an event on to the ledger, as mst_requests_offer() does. */
bool mst_requests_event(struct mst_requests *r, const struct mst_ledger_event *ev);
/* Tells the ledger that a session is lost, as mst_requests_put() does. The ledger ignores it if the
 * session has ended. */
void mst_requests_lose(struct mst_requests *r, struct mst_identity who);

/* Does anything wait for room? Then mst_requests_step() is due soon. */
bool mst_requests_wait(const struct mst_requests *r);
/* Passes on what waits, as far as there is room. */
void mst_requests_step(struct mst_requests *r);

#endif
