/* SPDX-License-Identifier: MIT */
/*
 * Ends what an operator asks to end: the session of a worker (muster evict), or the job (muster
 * finish). The ledger does it; the requester is told when it is done.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_OPERATOR_ENDING_H
#define MST_SERVER_CONTROL_OPERATOR_ENDING_H

#include "server/control/base.h"

struct mst_endings {
	struct mst_base *base;

	/* The ledger has been asked and has not answered yet; other requesters wait. */
	bool evicts, ends;
	struct mst_identity who; /* whose session is to end */
	uint64_t evict_requester, end_requester;
};

/* The peer of @c asks for the end of a worker's session, or of the job.
 * Return: false: not now, because another one's is being decided, or the ring of requests is
 * full. */
bool mst_ending_ask_evict(struct mst_endings *e, struct mst_conn *c, uint32_t rank,
			  uint64_t now_ns);
bool mst_ending_ask_end(struct mst_endings *e, struct mst_conn *c, const char *why,
			uint64_t now_ns);

/* Handle notices of the data side, after the rest of the control plane has: a session has ended, of
 * this worker or another, for any reason; the job has. */
void mst_ending_evicted(struct mst_endings *e, const struct mst_notice *notice, uint64_t now_ns);
void mst_ending_evict_refused(struct mst_endings *e, const struct mst_notice *notice,
			      uint64_t now_ns);
void mst_ending_finished(struct mst_endings *e, const struct mst_notice *notice, uint64_t now_ns);

#endif
