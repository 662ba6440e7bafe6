/* SPDX-License-Identifier: MIT */
/*
 * Watches a job over the control connection: asks for its status and puts the answers together.
 *
 * A snapshot is whole or not there: while the rows of a new one are coming in, the one before stays
 * what mst_watch_snapshot() gives. Asking with `watch` makes musterd push one more snapshot when
 * the job ends, unasked.
 *
 * Threads: one at a time. Nothing but mst_watch_open() and mst_watch_await() blocks.
 */
#ifndef MST_TOOLS_WATCH_H
#define MST_TOOLS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/wire/message.h"

struct mst_job_snapshot {
	struct mst_status job;
	uint32_t row_count;
	struct mst_status_rank row[MST_WORKERS_MAX]; /* in the order musterd sent them */
};

struct mst_watch;

/* Has this snapshot's job ended, well or not? It has not if it only ended at this server. */
static inline bool mst_snapshot_ended(const struct mst_job_snapshot *s)
{
	return s->job.state == MST_JOB_FINISHED ||
	       (s->job.state == MST_JOB_FAILED && s->job.goes_on == 0);
}

/* The row of @rank, or NULL. */
const struct mst_status_rank *mst_snapshot_rank(const struct mst_job_snapshot *s, uint32_t rank);

/* Connects; blocks at most timeout_ns. @why: a sentence on failure. Return: 0 or what connecting
 * gives, -ENOMEM. */
int mst_watch_open(const char *address, uint64_t timeout_ns, struct mst_watch **out,
		   struct mst_reason *why);
/* Why connecting to @address gave @error: a sentence. */
void mst_watch_explain(int error, const char *address, struct mst_reason *why);
/* The error of a connection, after which a proof says why. That what listens does not speak TLS, or
 * another, is one: -EACCES as if it refused. Return: the error to report. */
int mst_watch_unproven(int error);
void mst_watch_close(struct mst_watch *w); /* accepts NULL */

/* Readable when mst_watch_read() has something to do. */
int mst_watch_fd(const struct mst_watch *w);

/* Asks for a snapshot; @watch: and for one more when the job ends. musterd may answer several asks
 * at once: one at a time, or there is no telling which an answer is for. Return: 0 or -errno. */
int mst_watch_ask(struct mst_watch *w, bool watch);
/* Is an ask not answered yet? */
bool mst_watch_asking(const struct mst_watch *w);

/* Reads what is there. Return: 1 a new snapshot is complete; 0 not yet; -EPIPE musterd has closed;
 * -EPROTO and other errors: the connection is of no use any more, mst_watch_error() says why. */
int mst_watch_read(struct mst_watch *w);
/* Reads until a snapshot is complete, at most until deadline_ns (-ETIMEDOUT). */
int mst_watch_await(struct mst_watch *w, uint64_t deadline_ns);
const char *mst_watch_error(const struct mst_watch *w);

/* The newest whole snapshot; NULL: none yet. Valid until the next mst_watch_read(). */
const struct mst_job_snapshot *mst_watch_snapshot(const struct mst_watch *w);

#endif
