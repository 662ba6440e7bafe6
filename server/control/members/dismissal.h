/* SPDX-License-Identifier: MIT */
/*
 * Ends the session of a worker for a reason that this server has found, and keeps the reason until
 * the ledger has ended the session too.
 */
#ifndef MST_CONTROL_MEMBERS_DISMISSAL_H
#define MST_CONTROL_MEMBERS_DISMISSAL_H

#include "server/control/base.h"

struct mst_dismissal {
	struct mst_base *base;
	/* The last worker that has not broken the protocol, and the reason. */
	struct mst_identity who;
	struct mst_reason why;
};

/* @error: what the worker is told: -EPROTO if it broke the protocol. @what: what it does, without a
 * subject.
 * Return: false: not now, because the ring of requests is full. */
bool mst_dismissal_make(struct mst_dismissal *d, struct mst_conn *c, int error, const char *what,
			uint64_t now_ns);
/* Why that worker was dismissed without having broken the protocol, "it ..."; NULL: it was not. */
const char *mst_dismissal_why(const struct mst_dismissal *d, struct mst_identity who);

#endif
