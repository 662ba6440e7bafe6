/* SPDX-License-Identifier: MIT */
/* File descriptors: how many a server needs for its job, and how many it may open. They are
 * compared when the server starts, so that it need not refuse a worker later for lack of them. */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_DESCRIPTORS_H
#define MST_SERVER_CONTROL_CONNECTIONS_DESCRIPTORS_H

#include "common/base/reason.h"
#include "common/transport/transport.h"

struct mst_descriptors_cfg {
	const struct mst_transport *transport;
	const struct mst_net_cfg *net; /* with its lanes */
	uint32_t workers;
	uint32_t peers; /* links with other servers */
	bool follower;  /* a follower, which has no control port */
	bool tls;       /* control connections are by TLS */
};

struct mst_descriptors {
	uint32_t workers, worker; /* descriptors for each worker */
	/* the server's own, with those for new peers and for watchers of the status */
	uint64_t own;
	bool callers; /* an eighth of what is allowed is for callers that shake hands (TLS) */
};

void mst_descriptors_of(const struct mst_descriptors_cfg *cfg, struct mst_descriptors *out);

static inline uint64_t mst_descriptors_all(const struct mst_descriptors *d)
{
	return (uint64_t)d->workers * d->worker + d->own;
}

/* To be called before any of them is open.
 * Return: 0; -EMFILE: too few are allowed, @why says the numbers. */
int mst_descriptors_check(const struct mst_descriptors *d, struct mst_reason *why);

#endif
