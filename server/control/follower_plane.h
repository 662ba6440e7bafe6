/* SPDX-License-Identifier: MIT */
/*
 * The control plane of a follower:
 *
 *   following  a follower with its leader
 *   fetching   its part of the average, for the leader
 *   leaving    it is told to end
 */
#ifndef MST_SERVER_CONTROL_FOLLOWER_PLANE_H
#define MST_SERVER_CONTROL_FOLLOWER_PLANE_H

#include "server/control/members/following.h"
#include "server/control/plane_role.h"
#include "server/control/transfer/fetching.h"

/*
 * A follower that is told to end, as by a signal. Where versions are saved it waits for its leader,
 * which may be stopped too, as by a scheduler, and then needs this server for the last checkpoint.
 *
 * Zeroed memory is initialised: the pointers are set.
 */
struct mst_leaving {
	struct mst_base *base;
	struct mst_following *following;
	char why[MST_REASON_LEN];

	uint64_t leave_ns;      /* when it leaves a leader that goes on; 0: it does not */
	uint64_t last_words_ns; /* and then its last messages are waited for until then; 0: not */
};

struct mst_follower_plane {
	struct mst_base *base;
	struct mst_following following;
	struct mst_fetching fetching;
	struct mst_leaving leaving;
};

extern const struct mst_plane_role mst_follower_role;

/* @credentials: NULL: plain streams. */
void mst_follower_plane_init(struct mst_follower_plane *p, struct mst_base *base,
			     const struct mst_stream_ops *stream,
			     struct mst_credentials *credentials);

#endif
