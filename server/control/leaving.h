/* SPDX-License-Identifier: MIT */
/*
 * How a follower ends when it is told to, as by a signal. Where versions are saved it waits for its
 * leader, which may be stopped too, as by a scheduler, and then needs this server for the last
 * checkpoint.
 *
 * Control thread only. No function blocks.
 */
#ifndef MST_SERVER_CONTROL_LEAVING_H
#define MST_SERVER_CONTROL_LEAVING_H

#include "server/control/members/following.h"

struct mst_leaving {
	struct mst_base *base;
	struct mst_following *following;
	char why[MST_REASON_LEN];

	uint64_t leave_ns;      /* when it leaves a leader that goes on; 0: it does not */
	uint64_t last_words_ns; /* and then its last messages are waited for until then; 0: not */
};

/* Zeroed memory is initialised: the pointers are set. */

/* This server is told to end. */
void mst_leaving_begin(struct mst_leaving *l, const char *why, uint64_t now_ns);
void mst_leaving_step(struct mst_leaving *l, uint64_t now_ns);
/* Is there something that the end of the server waits for? */
bool mst_leaving_waits(const struct mst_leaving *l);

#endif
