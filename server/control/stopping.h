/* SPDX-License-Identifier: MIT */
/*
 * A server that is told to end, as by a signal.
 *
 * A leader has its ledger end the job with the newest version, and tells the workers when the
 * ledger has. Otherwise those that are told last would make versions without those that are told
 * first. A follower that saves versions waits for its leader, which may be stopped too, as by a
 * scheduler, and then needs this server for the last checkpoint.
 *
 * Control thread only. No function blocks.
 */
#ifndef MST_SERVER_CONTROL_STOPPING_H
#define MST_SERVER_CONTROL_STOPPING_H

#include "server/control/checkpointing.h"
#include "server/control/following.h"
#include "server/control/workers.h"

struct mst_stopping {
	struct mst_job *job;
	struct mst_workers *workers;
	struct mst_following *following; /* of a follower */
	const struct mst_checkpointing *checkpointing;
	char why[MST_REASON_LEN];

	/* At a leader. */
	bool due;          /* the ledger has not been told yet */
	uint64_t until_ns; /* for so long the ledger is waited for; 0: it is not */
	uint64_t tell_ns;  /* when the log says so; MST_NEVER: it has */
	uint64_t ended_at; /* the last version of a job that is over */

	/* At a follower. */
	uint64_t part_ns;       /* when it leaves a leader that goes on; 0: it does not */
	uint64_t last_words_ns; /* and then its last messages are waited for until then; 0: not */
};

/* Zeroed memory is initialised: the pointers are set. */

/* This server is a leader: it is told to end. What the data side has said has been heard. */
void mst_stopping_begin(struct mst_stopping *s, const char *why, uint64_t now_ns);
/* The same of a follower. */
void mst_stopping_begin_follower(struct mst_stopping *s, const char *why, uint64_t now_ns);
/* FINISHED: the leader's ledger has ended the job, after all that it has to say of saves. */
void mst_stopping_finished(struct mst_stopping *s, const struct mst_notice *notice,
			   uint64_t now_ns);

void mst_stopping_step(struct mst_stopping *s, uint64_t now_ns);
void mst_stopping_step_follower(struct mst_stopping *s, uint64_t now_ns);
/* Is there something that the end of the server waits for? */
bool mst_stopping_waits(const struct mst_stopping *s);

#endif
