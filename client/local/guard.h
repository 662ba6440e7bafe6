/* SPDX-License-Identifier: MIT */
/*
 * The worker's part of --guard: what is handed over must be finite. A verdict is final before any
 * server has read the data, so this is the last moment at which one bad gradient can be kept out of
 * a version without ending the job.
 *
 * Each call returns 0, or -EDOM with its sentence, which names the element and its tensor. Then the
 * caller gives the contribution up, or does not offer the start state.
 */
#ifndef MST_CLIENT_LOCAL_GUARD_H
#define MST_CLIENT_LOCAL_GUARD_H

#include "client/core/worker.h"
#include "client/session/session.h"
#include "common/base/reason.h"

struct mst_client_guard {
	const struct mst_client_session *session;
	const struct mst_worker *worker;
	struct mst_reason *failure;
};

/* Copies a range of the contribution from the caller's @src to the @gradient, and looks at it on
 * the way. @src may lie in the gradient already, or across it. */
int mst_client_guard_copy(const struct mst_client_guard *g, char *gradient,
			  const struct mst_range *range, const void *src);
/* Looks at a range that is sent from @src, where it lies: memory of the program, or the place of
 * the range in the gradient, which the program has named. */
int mst_client_guard_source(const struct mst_client_guard *g, const struct mst_range *range,
			    const void *src);
/* Looks at a range that lies in the gradient already, and that the program has not named. */
int mst_client_guard_look(const struct mst_client_guard *g, const char *gradient,
			  const struct mst_range *range);
int mst_client_guard_loss(const struct mst_client_guard *g, const struct muster_contribution *c);
int mst_client_guard_state(const struct mst_client_guard *g, const void *own);

#endif
