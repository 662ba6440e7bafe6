/* SPDX-License-Identifier: MIT */
/*
 * The rule: a synchronisation mode as data. It is declared here because the record of each version
 * carries it to workers. server/core judges by it, and has the table of policies.
 */
#ifndef MST_WIRE_RULE_H
#define MST_WIRE_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum mst_late { MST_LATE_DROP, MST_LATE_REJECT };
enum mst_release { MST_RELEASE_COMMIT, MST_RELEASE_PUSH, MST_RELEASE_BOUND };
enum mst_weigh { MST_WEIGH_ONE, MST_WEIGH_SAMPLES };
enum mst_loss { MST_LOSS_SHRINK, MST_LOSS_FAIL };

#define MST_WINDOW_MAX UINT32_MAX

struct mst_rule {
	/* What commits a step: N > 0: N contributions; 0: all of the roster; -B: all but B of
	 * the roster. */
	int32_t quorum;
	uint32_t window;    /* a tag may be this many versions old: 0, s, MST_WINDOW_MAX */
	enum mst_late late; /* outside the window: DROP (verdict late) or REJECT (verdict stale) */
	enum mst_release release; /* when a counted worker goes on */
	uint32_t bound; /* RELEASE_BOUND: a clock may lead the roster's minimum by this much */
	bool preempt;   /* after a commit busy workers are advised to give up */
	enum mst_weigh weigh; /* base weight of a contribution: ONE or SAMPLES; see factor.h */
	bool compensate;      /* its factor is 1 / max(1, staleness), else 1 */
	bool divide; /* by the sum of base weights; else contributions are added as they are */
	bool linear; /* the rate is multiplied by contributions / workers */
	uint64_t patience_ns;  /* how long an open step waits for live workers */
	enum mst_loss on_loss; /* a death: SHRINK the roster, or FAIL the job */
	uint32_t min_workers;  /* fewer live ones than this fail the job */
};

#endif
