/* SPDX-License-Identifier: MIT */
/* A worker's session and the server that speaks to it, one step a line. */
#ifndef MST_TESTS_UNIT_CLIENT_CORE_SESSION_CASE_H
#define MST_TESTS_UNIT_CLIENT_CORE_SESSION_CASE_H

#include "client/core/worker.h"

#define SESSION_WORKERS 3u
#define SESSION_BUFFERS 8u

extern struct mst_worker session_worker;
extern struct mst_lane_header session_sent; /* by the last push */
extern struct mst_lane_ask session_asked;   /* by the last pull or wait */
extern struct muster_outcome session_out;   /* of the last session_take() */

struct session_kind {
	uint32_t slots;
	bool workers_own;
	uint32_t window;
	uint32_t servers; /* 0: one */
	uint32_t history;
};
void session_begin(const struct session_kind *kind);         /* joined */
void session_begin_working(const struct session_kind *kind); /* has had version 0 */
void session_end(void);

/* The user. */
int session_push(bool keep);           /* mst_worker_push(); checks that its ticket is the next */
void session_fill_and_push(bool keep); /* fills the next slot first; a header must come of it */
bool session_wait_asks(void);
int session_take(void);

/* The server. Each returns what the session says of it. */
int session_grant(uint32_t slot);
int session_judge(uint64_t ticket, enum muster_verdict verdict, uint64_t counted_in);
int session_answer(uint64_t version, enum mst_where where);
int session_answer_behind(uint64_t version, uint64_t newest);
int session_answer_of(const struct mst_lane_answer *a, uint32_t share_count, uint32_t rank);

#endif
