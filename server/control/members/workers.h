/* SPDX-License-Identifier: MIT */
/*
 * Messages between the leader and its welcomed workers: their start, heartbeats, what they report
 * and ask for, leaves, the end of their sessions.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_WORKERS_H
#define MST_SERVER_CONTROL_MEMBERS_WORKERS_H

#include "server/control/members/dismissal.h"
#include "server/control/members/leading.h"
#include "server/control/members/leaver.h"
#include "server/control/transfer/agreement.h"
#include "server/control/transfer/divergence.h"
#include "server/control/transfer/lending.h"
#include "server/control/transfer/start_state.h"
#include "server/control/transfer/state_transfer.h"

struct mst_workers {
	struct mst_base *base;
	struct mst_leading *leading;
	struct mst_state_transfer *state_transfer;
	struct mst_lending *lending;
	struct mst_start_state start_state; /* passed on to the followers */
	struct mst_leaver leaver;
	struct mst_divergence divergence; /* of their states, while they train */
	struct mst_agreement agreement;   /* on the state that workers begin with */
	struct mst_dismissal dismissal;
	uint64_t beat_ns; /* when workers are next told which servers are alive */
};

/* Handle a message of a worker, or a break of the protocol.
 * Return: false: not now, because the ring of requests is full or a follower has not yet read
 * enough of the start state. */
bool mst_workers_message(struct mst_workers *w, struct mst_conn *c, const struct mst_message *msg,
			 uint64_t now_ns);
/* Has workers agree on the state that they begin with. */
void mst_workers_agree(struct mst_workers *w, uint64_t now_ns);
/* @what: how the worker broke the protocol. */
bool mst_workers_broken(struct mst_workers *w, struct mst_conn *c, const char *what,
			uint64_t now_ns);

/* Tells workers which servers are alive, if that is due. */
void mst_workers_beat(struct mst_workers *w, uint64_t now_ns);

/* Handle notices of the data side. */
void mst_workers_started(struct mst_workers *w, const struct mst_generation_view *generation);
void mst_workers_refused(const struct mst_workers *w, const struct mst_notice *notice);
void mst_workers_evicted(struct mst_workers *w, const struct mst_notice *notice, uint64_t now_ns);

#endif
