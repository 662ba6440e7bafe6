/* SPDX-License-Identifier: MIT */
/* A worker's session and the server that speaks to it, one step a line. */
#ifndef MST_TESTS_UNIT_SESSION_CASE_H
#define MST_TESTS_UNIT_SESSION_CASE_H

#include "client/core/worker.h"

#define WORKERS 3u
#define BUFFERS 8u

extern struct mst_worker w;
extern struct mst_lane_header sent; /* by the last push */
extern struct mst_lane_ask asked;   /* by the last pull or wait */
extern struct muster_outcome out;   /* of the last take() */

struct session_kind {
	uint32_t slots;
	bool workers_own;
	uint32_t window;
	uint32_t servers; /* 0: one */
};
void begin(const struct session_kind *kind);         /* joined */
void begin_working(const struct session_kind *kind); /* has had version 0 */
void end(void);

/* The user. */
int push(bool keep);           /* mst_worker_push(); checks that its ticket is the next */
void fill_and_push(bool keep); /* fills the next slot first; a header must come of it */
bool wait_asks(void);
int take(void);

/* The server. Each returns what the session says of it. */
int grant(uint32_t slot);
int judge(uint64_t ticket, enum muster_verdict verdict, uint64_t counted_in);
int answer(uint64_t version, enum mst_where where);
int answer_behind(uint64_t version, uint64_t newest);
int answer_of(const struct mst_lane_answer *a, uint32_t share_count, uint32_t rank);

#endif
