/* SPDX-License-Identifier: MIT */
/*
 * The policies, typed once more from docs/policies.md: test_rule.c holds the parser of --policy
 * against this table, and every test that goes through all policies goes through it. A new policy
 * is a row at the end of its half: under the first half, up to easgdsync, workers wait for the
 * commit, and under the second half they go on before it.
 */
#ifndef MST_TESTS_POLICIES_H
#define MST_TESTS_POLICIES_H

#include "common/wire/rule.h"

enum policy_number {
	POLICY_PLAIN, /* there is none */
	POLICY_QUORUM,
	POLICY_WINDOW,
	POLICY_BOUND,
	POLICY_GRACE,    /* milliseconds */
	POLICY_AGE,      /* versions, 1 or more */
	POLICY_DEADLINE, /* milliseconds */
	POLICY_STEPS,
	POLICY_ALPHA,
	POLICY_PUSH,
	POLICY_FETCH,
};

struct policy_row {
	const char *name;             /* as --help has it */
	const char *text;             /* with its numbers: for three workers or more */
	enum policy_number number[2]; /* what the numbers are */
	struct mst_rule rule;         /* what the text means */
};

/* A worker that is counted goes on with the version that it is in. */
static inline bool policy_waits(const struct policy_row *row)
{
	return row->rule.release == MST_RELEASE_COMMIT;
}
/* Workers step on parameters of their own between two exchanges. */
static inline bool policy_is_paced(const struct policy_row *row)
{
	return row->rule.pace.local_steps > 0 || row->rule.pace.push_every > 0;
}
/* Workers may own the parameters. */
static inline bool policy_fits_workers(const struct policy_row *row)
{
	return (policy_waits(row) || row->rule.by_micro) && !policy_is_paced(row);
}

#define POLICY_MS UINT64_C(1000000)

static const struct policy_row policy_rows[] = {
	{ "bsp", "bsp", { POLICY_PLAIN }, { .release = MST_RELEASE_COMMIT } },
	{ "backup:N", "backup:2", { POLICY_QUORUM }, { .quorum = 2 } },
	{ "backup:-B", "backup:-1", { POLICY_QUORUM }, { .quorum = -1 } },
	{ "ksync", "ksync:2", { POLICY_QUORUM }, { .quorum = 2, .preempt = true } },
	{ "kasync", "kasync:2", { POLICY_QUORUM }, { .quorum = 2, .window = MST_WINDOW_MAX } },
	{ "nonblocking",
	  "nonblocking",
	  { POLICY_PLAIN },
	  { .trigger = MST_TRIGGER_FULL, .collect = true } },
	{ "nonblocking:MS",
	  "nonblocking:5",
	  { POLICY_GRACE },
	  { .trigger = MST_TRIGGER_FULL, .collect = true, .grace_ns = 5 * POLICY_MS } },
	{ "anytime",
	  "anytime:20",
	  { POLICY_DEADLINE },
	  { .trigger = MST_TRIGGER_DEADLINE, .deadline_ns = 20 * POLICY_MS, .collect = true } },
	{ "deadline",
	  "deadline:20,2",
	  { POLICY_DEADLINE, POLICY_QUORUM },
	  { .quorum = 2, .trigger = MST_TRIGGER_DEADLINE, .deadline_ns = 20 * POLICY_MS } },
	{ "local",
	  "local:4",
	  { POLICY_STEPS },
	  { .deltas = true, .divide = true, .pace.local_steps = 4 } },
	{ "local:T,N",
	  "local:4,2",
	  { POLICY_STEPS, POLICY_QUORUM },
	  { .quorum = 2, .deltas = true, .divide = true, .pace.local_steps = 4 } },
	{ "easgdsync",
	  "easgdsync:3,0.25",
	  { POLICY_STEPS, POLICY_ALPHA },
	  { .deltas = true, .pace = { .local_steps = 3, .alpha = 0.25 } } },
	{ "kbatchsync",
	  "kbatchsync:2",
	  { POLICY_QUORUM },
	  { .quorum = 2, .release = MST_RELEASE_PUSH, .preempt = true } },
	{ "kbatchasync",
	  "kbatchasync:2",
	  { POLICY_QUORUM },
	  { .quorum = 2, .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH } },
	{ "softsync",
	  "softsync:2",
	  { POLICY_QUORUM },
	  { .quorum = 2,
	    .window = MST_WINDOW_MAX,
	    .release = MST_RELEASE_PUSH,
	    .compensate = true } },
	{ "async",
	  "async",
	  { POLICY_PLAIN },
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH } },
	{ "bounded",
	  "bounded:2",
	  { POLICY_WINDOW },
	  { .quorum = 1, .window = 2, .release = MST_RELEASE_PUSH, .late = MST_LATE_REJECT } },
	{ "ssp",
	  "ssp:2",
	  { POLICY_BOUND },
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_BOUND, .bound = 2 } },
	{ "nonblocking:MS,AGE",
	  "nonblocking:5,3",
	  { POLICY_GRACE, POLICY_AGE },
	  { .window = 3,
	    .late = MST_LATE_REJECT,
	    .release = MST_RELEASE_PUSH,
	    .trigger = MST_TRIGGER_FULL,
	    .grace_ns = 5 * POLICY_MS,
	    .by_micro = true } },
	{ "easgd",
	  "easgd:3,0.25",
	  { POLICY_STEPS, POLICY_ALPHA },
	  { .quorum = 1,
	    .window = MST_WINDOW_MAX,
	    .release = MST_RELEASE_PUSH,
	    .deltas = true,
	    .pace = { .local_steps = 3, .alpha = 0.25 } } },
	{ "downpour",
	  "downpour:3,5",
	  { POLICY_PUSH, POLICY_FETCH },
	  { .quorum = 1,
	    .window = MST_WINDOW_MAX,
	    .release = MST_RELEASE_PUSH,
	    .pace = { .push_every = 3, .fetch_every = 5 } } },
};
#define POLICY_ROWS (sizeof(policy_rows) / sizeof(policy_rows[0]))

#endif
