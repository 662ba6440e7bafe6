/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints of a running job. When the ledger has decided that a version is saved, each server
 * gives its part to the archive, and reports when that has been written. When all have, the leader
 * has the manifest written, which makes the checkpoint exist. If anything fails, the job goes on,
 * and the checkpoints before stay.
 *
 * Control thread only. No function blocks.
 */
#ifndef MST_SERVER_CONTROL_JOB_CHECKPOINTING_H
#define MST_SERVER_CONTROL_JOB_CHECKPOINTING_H

#include "server/control/job/archive.h"
#include "server/control/job/job.h"

enum mst_checkpointing_work { MST_ARCHIVE_RESTS, MST_ARCHIVE_WRITES, MST_ARCHIVE_COMPLETES };

struct mst_checkpointing {
	struct mst_job *job;
	struct mst_archive *archive; /* NULL: nothing is saved */
	enum mst_checkpointing_work work;

	/* This server's part. */
	bool part_due; /* it is to be written when the archive rests */
	struct mst_saving saving;
	struct mst_checkpoint_id id;
	/* The parameters, the states of the optimiser, the average. */
	struct mst_checkpoint_piece piece[2 + MST_STATES_MAX];
	struct mst_checkpoint_vector vector[2 + MST_STATES_MAX];
	struct mst_checkpoint_writing writing;
	bool report_due; /* it has ended, and the ledger is to be told */
	bool failed;
	struct mst_reason why_not; /* why the last save has failed; "" */

	/* At the leader. */
	struct mst_checkpoint_manifest next;    /* of the version that is being saved */
	struct mst_reason refused;              /* why it has no manifest */
	struct mst_checkpoint_manifest written; /* of the one before, while it is written */
	uint64_t next_ns, written_ns;           /* when each of these saves began */
	bool manifest_due;
	bool next_comes;       /* the ledger has decided another, and has not said so yet */
	uint64_t begun, ended; /* how many checkpoints */
	uint64_t last_version; /* the newest checkpoint of this run; 0: none */
	uint64_t due;          /* with it the job has ended; 0: nothing is to be saved */
};

/* Zeroed memory is initialised: @job and @archive are set. */
void mst_checkpointing_fini(struct mst_checkpointing *c);
/* SAVES, SAVE or SAVED. */
void mst_checkpointing_notice(struct mst_checkpointing *c, const struct mst_notice *notice,
			      uint64_t now_ns);
void mst_checkpointing_step(struct mst_checkpointing *c, uint64_t now_ns);
/* At the leader: the job has ended with the version @newest, which is to be saved if there is
 * something to save. */
void mst_checkpointing_ended(struct mst_checkpointing *c, uint64_t newest);
/* The server is being stopped, and the job has ended with version @newest: says which checkpoints
 * the server waits for, if any. */
void mst_checkpointing_stops(const struct mst_checkpointing *c, uint64_t newest, uint64_t now_ns);
/* The server ends: says which checkpoint is not complete, if one is being written. */
void mst_checkpointing_give_up(const struct mst_checkpointing *c);
/* Is the version that the job has ended with not saved? At a follower: its part of the last one.
 * @out: which, and why, a clause. */
bool mst_checkpointing_is_missing(const struct mst_checkpointing *c, struct mst_reason *out);
/* Tells which checkpoint is the newest, and how many versions of @out->version ones a lost server
 * would cost now. */
void mst_checkpointing_tell(const struct mst_checkpointing *c, struct mst_status *out);
/* Is a checkpoint being written, as far as this server knows? */
bool mst_checkpointing_is_busy(const struct mst_checkpointing *c);

#endif
