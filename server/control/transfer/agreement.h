/* SPDX-License-Identifier: MIT */
/*
 * How workers that own the parameters agree on the state that they begin with. Each that was there
 * at the start of the job says what its state is made of, once. When the last of them has, the
 * states are compared part by part. If they differ, one worker gives its state, which the leader
 * keeps and passes on to those that have another: the worker with the newest version, and of
 * several the one with the lowest rank. A worker that joins later has taken the state of another.
 *
 * A step waits for a worker for a patience, and these workers are in a step. So those that have
 * said what they have wait for the others for half of it, and then begin without them. One that
 * comes after that goes on if it has the same, and else its session ends.
 *
 * Control thread only. No function blocks.
 */
#ifndef MST_SERVER_CONTROL_TRANSFER_AGREEMENT_H
#define MST_SERVER_CONTROL_TRANSFER_AGREEMENT_H

#include "server/control/base.h"

struct mst_agreement_row {
	bool expected;                /* it was there at the start, and has not agreed or left */
	struct mst_state_claim *said; /* NULL: it has said nothing yet */
};

struct mst_agreement {
	struct mst_base *base;

	struct mst_agreement_row *row; /* by rank */
	bool begun, over;              /* the job has started; nobody is expected any more */
	uint64_t now_ns;               /* of the last step */
	uint64_t since_ns; /* when somebody was first found to wait for others; 0: nobody does */
	struct mst_state_claim agreed; /* over: what all have begun with, */
	uint32_t from;                 /* and the rank that had it */
	bool kernels;                  /* some compute with other kernels than others */
	uint32_t giver;                /* the rank that gives its state; MST_RANK_NONE: none */
	uint64_t gave_ns;              /* when it was asked, or last sent something of it */
	uint8_t *state;                /* of that rank; NULL: nothing of it has come */
	uint64_t bytes, have;
	bool sends; /* somebody is being sent it */
};

/* 0 or -ENOMEM. */
int mst_agreement_init(struct mst_agreement *a);
void mst_agreement_fini(struct mst_agreement *a); /* accepts a zeroed one */

/* The job has started: those are expected that are there now. */
void mst_agreement_begin(struct mst_agreement *a);
/* A worker says what its state is made of.
 * Return: 0; or the error with which its session ends, and then @what it does: -EPROTO: it breaks
 * the protocol; -ENOTCONN: it comes too late, and may come again; -ENOMEM: at this server. */
int mst_agreement_claim(struct mst_agreement *a, struct mst_conn *c,
			const struct mst_state_claim *claim, const char **what);
/* Takes a piece of the state that is wanted. Return: likewise. */
int mst_agreement_piece(struct mst_agreement *a, struct mst_conn *c, const struct mst_handed *p,
			const char **what);
/* The session of a worker has ended. */
void mst_agreement_lost(struct mst_agreement *a, uint32_t rank);
/* The worker that is to give its state, and has sent nothing of it for a quarter of a patience: its
 * session is to end, so that another gives. NULL: there is none. */
struct mst_conn *mst_agreement_stalled(const struct mst_agreement *a, uint64_t now_ns);
/* Sends what there is room for, and ends a wait that is too long. */
void mst_agreement_step(struct mst_agreement *a, uint64_t now_ns);

#endif
