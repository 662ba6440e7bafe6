/* SPDX-License-Identifier: MIT */
/*
 * Whether a peer is alive is judged by when something was received from it. The ledger judges
 * workers, and is told by this module up to when all workers' connections were read. The leader and
 * its followers judge each other by the clock of this module.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_HEARING_H
#define MST_SERVER_CONTROL_CONNECTIONS_HEARING_H

#include "common/base/listening.h"
#include "server/control/connections/frontend.h"
#include "server/control/job/requests.h"

/* How often in a lease a server sends heartbeats to its workers and to other servers. */
#define MST_BEATS_PER_LEASE 4u

struct mst_hearing {
	struct mst_listening listening; /* the clock: runs while connections are read */
	uint64_t told_due_ns; /* when the ledger is next told that workers are listened to */
	/* The last time that nobody was listened to for long, since the process stood still: for
	 * how long, and when that was over; 0: never. */
	uint64_t stood_ns, woke_ns;
};

/* Brings the clock to @now_ns, less the time in which connections were not read. Begins a step. */
void mst_hearing_look(struct mst_hearing *h, uint64_t lease_ns, uint64_t now_ns);
/* All connections have been read in a step that began at @now_ns. */
void mst_hearing_heard(struct mst_hearing *h, uint64_t now_ns);
/* At the leader: tells the ledger that workers are listened to, if that is due. */
void mst_hearing_tell(struct mst_hearing *h, const struct mst_frontend *f, struct mst_requests *r,
		      uint64_t lease_ns, uint64_t now_ns);

/* If this process stood still shortly before @now_ns, so that its peers may have given it up: for
 * how long; else 0. */
uint64_t mst_hearing_stood(const struct mst_hearing *h, uint64_t lease_ns, uint64_t now_ns);

/* What the clock shows. What is received now is heard at this time. */
static inline uint64_t mst_hearing_now(const struct mst_hearing *h)
{
	return h->listening.clock_ns;
}

/* For how long after @heard_ns connections have been read. */
static inline uint64_t mst_hearing_since(const struct mst_hearing *h, uint64_t heard_ns)
{
	return h->listening.read_ns > heard_ns ? h->listening.read_ns - heard_ns : 0;
}

/* Is the peer of @c silent: has the connection been read to its end, and has nothing come in the
 * @lease_ns since @heard_ns? */
bool mst_hearing_is_silent(const struct mst_hearing *h, const struct mst_conn *c, uint64_t heard_ns,
			   uint64_t lease_ns);

#endif
