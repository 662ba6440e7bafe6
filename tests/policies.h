/* SPDX-License-Identifier: MIT */
/*
 * The policies, typed once more from docs/protocol.md, section 3: test_rule.c holds the parser of
 * --policy against this table, and every test that goes through all policies goes through it. A new
 * policy is a row at the end of its half: those before wait for a commit, those after go on early.
 */
#ifndef MST_TESTS_POLICIES_H
#define MST_TESTS_POLICIES_H

#include "common/wire/rule.h"

enum policy_number { POLICY_PLAIN, POLICY_QUORUM, POLICY_WINDOW, POLICY_BOUND };

struct policy_row {
	const char *name;          /* as --help has it */
	const char *text;          /* with a number, if it takes one: for three workers or more */
	enum policy_number number; /* what the number is */
	struct mst_rule rule;      /* what the text means */
};

/* A worker that is counted goes on with the version that it is in: then workers may own, too. */
static inline bool policy_waits(const struct policy_row *row)
{
	return row->rule.release == MST_RELEASE_COMMIT;
}

static const struct policy_row policy_rows[] = {
	{ "bsp", "bsp", POLICY_PLAIN, { .release = MST_RELEASE_COMMIT } },
	{ "backup:N", "backup:2", POLICY_QUORUM, { .quorum = 2 } },
	{ "backup:-B", "backup:-1", POLICY_QUORUM, { .quorum = -1 } },
	{ "ksync", "ksync:2", POLICY_QUORUM, { .quorum = 2, .preempt = true } },
	{ "kasync", "kasync:2", POLICY_QUORUM, { .quorum = 2, .window = MST_WINDOW_MAX } },
	{ "kbatchsync",
	  "kbatchsync:2",
	  POLICY_QUORUM,
	  { .quorum = 2, .release = MST_RELEASE_PUSH, .preempt = true } },
	{ "kbatchasync",
	  "kbatchasync:2",
	  POLICY_QUORUM,
	  { .quorum = 2, .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH } },
	{ "softsync",
	  "softsync:2",
	  POLICY_QUORUM,
	  { .quorum = 2,
	    .window = MST_WINDOW_MAX,
	    .release = MST_RELEASE_PUSH,
	    .compensate = true } },
	{ "async",
	  "async",
	  POLICY_PLAIN,
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH } },
	{ "bounded",
	  "bounded:2",
	  POLICY_WINDOW,
	  { .quorum = 1, .window = 2, .release = MST_RELEASE_PUSH, .late = MST_LATE_REJECT } },
	{ "ssp",
	  "ssp:2",
	  POLICY_BOUND,
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_BOUND, .bound = 2 } },
};
#define POLICY_ROWS (sizeof(policy_rows) / sizeof(policy_rows[0]))

#endif
