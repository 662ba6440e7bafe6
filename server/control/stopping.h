/* SPDX-License-Identifier: MIT */
/*
 * How a leader ends when it is told to, as by a signal. It has its ledger end the job with the
 * newest version, and tells the workers when the ledger has. Otherwise those that are told last
 * would make versions without those that are told first.
 *
 * Control thread only. No function blocks.
 */
#ifndef MST_SERVER_CONTROL_STOPPING_H
#define MST_SERVER_CONTROL_STOPPING_H

#include "common/base/reason.h"
#include "server/control/members/leading.h"

struct mst_stopping {
	struct mst_base *base;
	struct mst_leading *leading;
	struct mst_reason why;

	bool due;          /* the ledger has not been told yet */
	uint64_t until_ns; /* for so long the ledger is waited for; 0: it is not */
	uint64_t tell_ns;  /* when the log says so; MST_NEVER: it has */
	uint64_t ended_at; /* the last version of a job that is over */
};

/* Zeroed memory is initialised: the pointers are set. */

/* This server is told to end. What the data side has said has been heard. */
void mst_stopping_begin(struct mst_stopping *s, const char *why, uint64_t now_ns);
/* FINISHED: the ledger has ended the job, after all that it has to say of saves. */
void mst_stopping_finished(struct mst_stopping *s, const struct mst_notice *notice,
			   uint64_t now_ns);

void mst_stopping_step(struct mst_stopping *s, uint64_t now_ns);
/* Is there something that the end of the server waits for? */
bool mst_stopping_waits(const struct mst_stopping *s);

#endif
