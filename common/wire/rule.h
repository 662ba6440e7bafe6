/* SPDX-License-Identifier: MIT */
/*
 * The rule: a synchronisation mode as data. It is declared here because the record of each version
 * carries parts of it to workers. server/core judges by it, and has the table of policies.
 */
#ifndef MST_WIRE_RULE_H
#define MST_WIRE_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum mst_late { MST_LATE_DROP, MST_LATE_REJECT };
enum mst_release { MST_RELEASE_COMMIT, MST_RELEASE_PUSH, MST_RELEASE_BOUND };
enum mst_trigger { MST_TRIGGER_NONE, MST_TRIGGER_FULL, MST_TRIGGER_DEADLINE };
enum mst_late_start { MST_LATE_START_AUTO, MST_LATE_START_NOW, MST_LATE_START_COMMIT };
enum mst_weigh { MST_WEIGH_ONE, MST_WEIGH_SAMPLES };
enum mst_loss { MST_LOSS_SHRINK, MST_LOSS_FAIL };

#define MST_WINDOW_MAX UINT32_MAX

/* What a worker does between two exchanges with the servers. 0 everywhere: it exchanges after every
 * batch, and has no parameters of its own. */
struct mst_pace {
	/* A worker makes so many steps on parameters of its own, and then contributes the
	 * difference that they have made. 0: it contributes gradients. */
	uint32_t local_steps;
	/* A worker adds up its gradients, contributes them after so many batches, and asks for the
	 * newest parameters after so many. It steps on parameters of its own with every batch.
	 * 0: it has none. */
	uint32_t push_every, fetch_every;
	/* With local_steps: the difference is multiplied by alpha, and the worker's own parameters
	 * move by as much towards the servers' (elastic averaging). 0: the worker contributes all
	 * of the difference, and goes on from the servers' parameters. */
	double alpha;
};

struct mst_rule {
	/* What commits a step: N > 0: N contributions; 0: all of the roster; -B: all but B of
	 * the roster. */
	int32_t quorum;
	uint32_t window;    /* a tag may be this many versions old: 0, s, MST_WINDOW_MAX */
	enum mst_late late; /* outside the window: DROP (verdict late) or REJECT (verdict stale) */
	enum mst_release release; /* when a counted worker goes on */
	uint32_t bound; /* RELEASE_BOUND: a clock may lead the roster's minimum by this much */
	bool preempt;   /* after a commit busy workers are advised to give up */
	/* What ends a step before its quorum is there. FULL: a contribution that ends its worker's
	 * batch is counted. DEADLINE: deadline_ns have passed since the step opened. */
	enum mst_trigger trigger;
	uint64_t deadline_ns;
	/* After the trigger all others are advised to hand in what they have, and the step commits
	 * when they have, or have passed. Else it commits with what is there. */
	bool collect;
	/* collect, by_micro: how long a commit may wait after the trigger; 0: as it takes */
	uint64_t grace_ns;
	/* Each micro-batch is a contribution, which its worker hands over when it is finished.
	 * After the trigger the commit is held while a micro-batch at hand would be older than the
	 * window after it; nobody else waits meanwhile. */
	bool by_micro;
	/* When a worker whose contribution was late starts again, where others wait for commits. */
	enum mst_late_start late_start;
	enum mst_weigh weigh; /* base weight of a contribution: ONE or SAMPLES; see factor.h */
	bool compensate;      /* its factor is 1 / max(1, staleness), else 1 */
	bool deltas; /* contributions are differences of parameters, for the optimiser `add` */
	bool divide; /* by the sum of base weights; else contributions are added as they are */
	bool linear; /* the rate is multiplied by contributions / workers */
	/* Above 0: the rate is multiplied by samples / (workers x batch), and not `linear`. */
	double batch;
	struct mst_pace pace;
	uint64_t patience_ns;  /* how long an open step waits for live workers */
	enum mst_loss on_loss; /* a death: SHRINK the roster, or FAIL the job */
	uint32_t min_workers;  /* fewer live ones than this fail the job */
};

#endif
