/* SPDX-License-Identifier: MIT */
/*
 * The control plane of a server: a program that runs a server makes one and calls its steps. It has
 * a thread of its own, because parsing, accepting and answering must not delay the data side.
 * Links, and the leader's data side, are made by further threads, because that maps or registers
 * memory and must not delay heartbeats. The control plane is a step function over stream, transport
 * and clock, so that the simulation can run it too.
 *
 * A leader and a follower are two things (leader_plane.h, follower_plane.h) over one base (base.h);
 * role.h is what the plane asks of either.
 */
#ifndef MST_SERVER_CONTROL_PLANE_H
#define MST_SERVER_CONTROL_PLANE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/transport/stream.h"
#include "common/transport/transport.h"
#include "server/control/generations/workforce.h"
#include "server/control/job/archive.h"
#include "server/data/server.h"
#include "server/options/options.h"

struct mst_plane;

struct mst_plane_cfg {
	const struct mst_server_options *options; /* checked; must outlive the plane */
	const struct mst_stream_ops *stream;
	struct mst_credentials *credentials; /* NULL: plain streams; outlives the plane */
	const struct mst_networks *networks; /* that workers may come over */
	struct mst_channels channels;        /* of links, by these credentials */
	uint32_t cores;                      /* for the data side's threads; 0: one */
	uint32_t processors;    /* that this process may use: for how it waits; 0: not known */
	enum mst_access access; /* as mst_server_options_access() says; for the status */
	/* Where the leader records how gradients end, if the options say so; outlives the plane. */
	struct mst_recording *recording;
	/* The writer of checkpoints, if the options ask for any, else NULL. It outlives the
	 * plane. */
	struct mst_archive *archive;
	/* What is kept of the plane in whose place this one comes, for the number of workers
	 * changes. Else zeroed. */
	struct mst_renewal renewal;
	/* true: links and the data side are made by threads of their own; false: by the step that
	 * is asked for them. */
	bool makes_links_aside;
};

/* Makes a control plane, which listens at once.
 * @why: on failure a sentence.
 * Return: 0 or -errno; -EADDRINUSE only if another process listens at that address. */
int mst_plane_new(const struct mst_plane_cfg *cfg, struct mst_plane **out, struct mst_reason *why);
/* Frees the data side too. No thread may step it any more. */
void mst_plane_free(struct mst_plane *p); /* accepts NULL */

/* The networks that workers may come over, without those that this host lacks. */
const struct mst_networks *mst_plane_networks(const struct mst_plane *p);
/* "127.0.0.1:17077" */
const char *mst_plane_address(const struct mst_plane *p);

/* Is the plane to be stopped, and another one to be made in its place? @workers: that the options
 * of that one are to have; 0: as they are. @why: a sentence for the log and for workers. */
bool mst_plane_renews(const struct mst_plane *p, uint32_t *workers, struct mst_renewal *out,
		      struct mst_reason *why);

/* Does all that there is to do now. */
void mst_plane_step(struct mst_plane *p, uint64_t now_ns);
/* Sleeps until there may be something to do, at most @timeout_ns. */
void mst_plane_wait(struct mst_plane *p, uint64_t timeout_ns);
/* How long it may sleep at most, so that what depends on time is not late. */
uint64_t mst_plane_nap(const struct mst_plane *p);
/* Ends the present or next wait. May be called by any thread and by a signal handler. */
void mst_plane_wake(struct mst_plane *p);

/* The data side; NULL: there is none yet. The caller calls its steps, from one thread. */
struct mst_server *mst_plane_server(struct mst_plane *p);

/* Have all workers left that came before the job's start? Then its length and types may be
 * forgotten, so that one worker that was started wrongly does not fix them for all. A job of
 * several servers keeps them, because its followers have already made their parts. */
bool mst_plane_is_vacant(const struct mst_plane *p);
/* Forgets the length and types, and frees the data side, which no thread may step any more. The
 * next hello makes another. Only if the plane is vacant, without a step between the two calls. */
void mst_plane_vacate(struct mst_plane *p);

/* Ends everything. A leader tells its workers and followers @why; a follower tells its leader,
 * which tells all others. @for_good: also where lost servers are replaced, none takes the place of
 * this one, and workers are not to wait for it. */
void mst_plane_stop(struct mst_plane *p, const char *why, bool for_good, uint64_t now_ns);

/* Is a checkpoint being written, or will the newest version be saved? */
bool mst_plane_is_saving(const struct mst_plane *p);

/* The server ends now. Says which checkpoint is not complete.
 * Return: false: one is not. */
bool mst_plane_give_up_saving(const struct mst_plane *p);

/* Versions are saved, and the one that the job has ended with is not: says which, and why. Of a
 * follower: its part is not. Holds when the job is over and nothing is being saved any more.
 * @out: a clause. */
bool mst_plane_is_missing(const struct mst_plane *p, struct mst_reason *out);

/* Is the job over, and has everybody been told? 0: not yet; 1: it has finished; -1: it has
 * failed. */
int mst_plane_over(const struct mst_plane *p);
/* Is the job over here because another server is lost, or this one stood still, and does it go on
 * when servers are started again? */
bool mst_plane_goes_on_elsewhere(const struct mst_plane *p);
/* At a follower: has its job failed because its leader did not let it in, or it did not believe its
 * leader? Then it was started with wrong certificates, or without any. */
bool mst_plane_was_refused(const struct mst_plane *p);

#endif
