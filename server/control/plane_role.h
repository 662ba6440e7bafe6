/* SPDX-License-Identifier: MIT */
/*
 * The functions that a control plane calls of its role, leader or follower. There are two: a leader
 * (leader_plane.h) and a follower (follower_plane.h). @of is that role's struct.
 */
#ifndef MST_SERVER_CONTROL_PLANE_ROLE_H
#define MST_SERVER_CONTROL_PLANE_ROLE_H

#include "server/control/base.h"

/* The nap of a role that has no reason for a step before the plane's own. */
#define MST_PLANE_ROLE_NAP_NS MST_NEVER

struct mst_plane_role {
	struct mst_frontend_ops front; /* what peers say */
	void (*step)(void *of, uint64_t now_ns);
	/* How long the plane may sleep at most. */
	uint64_t (*nap)(const void *of);
	/* Ends everything, and tells everybody @why. */
	void (*stop)(void *of, const char *why, uint64_t now_ns);
	/* Does the end of the server wait for a checkpoint? */
	bool (*is_saving)(const void *of);
	/* The job is over: has everybody been told? */
	bool (*is_over)(const void *of);
	/* As mst_plane_is_vacant(), mst_plane_vacate() and mst_plane_was_refused(). */
	bool (*is_vacant)(const void *of);
	void (*vacate)(void *of);
	bool (*was_refused)(const void *of);
	void (*fini)(void *of); /* accepts zeroed memory */
};

#endif
