/* SPDX-License-Identifier: MIT */
/*
 * Warnings about peers that have not proved who they are: callers that were refused, that sent
 * rubbish or nothing at all. Anybody who can connect can cause such a warning, a thousand times a
 * second. So only a few of each kind are logged in a window of time; the others are counted, and
 * the log says how many there were.
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_COMPLAINT_H
#define MST_SERVER_CONTROL_CONNECTIONS_COMPLAINT_H

#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum mst_complaint {
	MST_COMPLAINT_REFUSED, /* a hello that cannot be admitted */
	MST_COMPLAINT_BROKEN,  /* the peer sent something that breaks the protocol */
	MST_COMPLAINT_SILENT,  /* the peer connected and said nothing */
	MST_COMPLAINT_UNREAD,  /* the peer does not read what it asked for */
	MST_COMPLAINT_REQUEST, /* the peer asked for a link without a valid token */
	MST_COMPLAINT_ORIGIN,  /* the token was valid, and not from where the request came */
	MST_COMPLAINT_STATE,   /* a worker's state is larger than --state-max */
	MST_COMPLAINT_OUTRUN,  /* a state was too old when its worker had taken it */
	MST_COMPLAINT_GOAL,    /* workers want the job to end with different versions */
	MST_COMPLAINT_KINDS
};

#define MST_COMPLAINT_WINDOW_NS (10 * MST_SECOND)
#define MST_COMPLAINT_BURST 5u

struct mst_complaints {
	struct mst_ratelimit kind[MST_COMPLAINT_KINDS];
	uint64_t now_ns;
};

void mst_complaints_init(struct mst_complaints *c);

/* Sets the time, and logs how many warnings were held back in windows that are over. MST_NEVER: in
 * all windows. */
void mst_complaints_step(struct mst_complaints *c, uint64_t now_ns);

/* Logs a warning, unless there were too many of its kind. */
void mst_complain(struct mst_complaints *c, enum mst_complaint kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
