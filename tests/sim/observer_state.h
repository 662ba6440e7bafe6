/* SPDX-License-Identifier: MIT */
/* What the observer's files share: observer.c, decisions.c, told.c. Nobody else includes this. */
#ifndef MST_TESTS_SIM_OBSERVER_STATE_H
#define MST_TESTS_SIM_OBSERVER_STATE_H

#include "tests/sim/expect.h"
#include "tests/sim/observer.h"

enum obs_slot_state { SLOT_GRANTED, SLOT_SPENT, SLOT_JUDGED };

struct obs_session {
	uint32_t rank, incarnation;
	bool live, started, rogue, dawdled;
	uint64_t headers; /* put so far */
	enum obs_slot_state slot[MST_SLOTS_MAX];
	uint64_t spent_by[MST_SLOTS_MAX]; /* seq; 0: given up */
	struct expect_item *items;        /* newest first */
	struct obs_session *next;
};

struct obs_state {
	const struct sim_plan *plan;
	char violation[512];
	struct obs_session *sessions;
	uint64_t commits, judged;
	bool finished, end_asked;
	bool ever_lost;   /* a session has ended, or come again */
	bool ever_behind; /* one has ended because it was too slow */
	enum mst_finish_why why;
	/* Counted, and not yet committed; in order. */
	struct expect_item *open[SIM_WORKERS_MAX * MST_SLOTS_MAX * 4];
	uint32_t open_count;
	uint64_t first_count_ns;       /* of the open step */
	uint64_t allocations;          /* when the second version was committed */
	uint64_t buffer_version[1024]; /* and one more; 0: none */
};
extern struct obs_state obs;

struct obs_session *obs_find(uint32_t rank, uint32_t incarnation);
struct expect_item *obs_item(const struct obs_session *s, uint64_t seq);
const char *obs_verdict_name(enum muster_verdict verdict);

#endif
