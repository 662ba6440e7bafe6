/* SPDX-License-Identifier: MIT */
/*
 * The parts of a control plane that leaders and followers have in common. The parts of a leader and
 * those of a follower stand on it.
 *
 *   frontend       connections, and how many there may be
 *   job            the figures, the state, the data side
 *   sessions       of workers, from admission until the data side lets go
 *   hearing        when connections were read, and which peers are silent
 *   linking        requests for links, and links that are being made
 *   checkpointing  versions that are saved
 *
 * Control thread only. mst_base_fini() waits for the threads that make links. No other function
 * blocks.
 */
#ifndef MST_SERVER_CONTROL_BASE_H
#define MST_SERVER_CONTROL_BASE_H

#include "common/base/reason.h"
#include "server/control/connections/frontend.h"
#include "server/control/connections/hearing.h"
#include "server/control/job/checkpointing.h"
#include "server/control/job/job.h"
#include "server/control/members/linking.h"
#include "server/control/members/sessions.h"

struct mst_base {
	struct mst_frontend front;
	struct mst_job job;
	struct mst_sessions sessions;
	struct mst_hearing hearing;
	struct mst_linking linking;
	struct mst_checkpointing checkpointing;
	/* The job is over, and workers, followers and the disk are not waited for any more. */
	bool lingered;
};

/* Gives the parts pointers to each other. @archive: NULL: nothing is saved. */
void mst_base_init(struct mst_base *b, struct mst_archive *archive);
/* Accepts zeroed memory. */
void mst_base_fini(struct mst_base *b);

/* Makes the tables by worker, when the number of workers is known.
 * @why: on failure a sentence.
 * Return: 0 or -ENOMEM. */
int mst_base_tables(struct mst_base *b, struct mst_reason *why);

/* Begins a step. */
void mst_base_look(struct mst_base *b, uint64_t now_ns);
/* Answers requests for links. Then passes each notice of the data side to @hear, except those that
 * the base handles by itself. Does nothing if there is no data side. */
typedef void mst_base_hear(void *ctx, const struct mst_notice *notice, uint64_t now_ns);
void mst_base_data_side(struct mst_base *b, mst_base_hear *hear, void *ctx, uint64_t now_ns);
/* Only passes the notices. There must be a data side. */
void mst_base_notices(struct mst_base *b, mst_base_hear *hear, void *ctx, uint64_t now_ns);

/* The user has stopped this server: the job ends here, and workers that have no link yet are not
 * given one any more. */
void mst_base_stop(struct mst_base *b, const char *why, uint64_t now_ns);

/* Frees the data side, which no thread may step any more. */
void mst_base_close_data_side(struct mst_base *b);

#endif
