/* SPDX-License-Identifier: MIT */
/*
 * What a simulated worker does: it joins, computes a gradient, pushes it with an ask, and computes
 * the next when the ask is answered. Under a rule that preempts it looks at the hint a few times in
 * each gradient, and gives the gradient up if it cannot count any more. This is what the loop of
 * a program with libmuster does; a policy that wants another loop is one more case here.
 *
 * Pure: it is told what has happened, and says what it sends, and when it wants to be woken.
 */
#ifndef MST_TOOLS_SIM_WORKER_H
#define MST_TOOLS_SIM_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/ledger.h"
#include "tools/sim/cfg.h"

struct mst_delay;

enum mst_sim_worker_state {
	MST_SIM_GONE,      /* no process, or one that has stopped for good */
	MST_SIM_JOINING,   /* waits to be admitted, or to try again */
	MST_SIM_WAITING,   /* has an ask out */
	MST_SIM_COMPUTING, /* until wake_ns the gradient is complete */
	MST_SIM_GIVING_UP, /* computes until it looks at the hint, at wake_ns */
};

struct mst_sim_worker {
	enum mst_sim_worker_state state;
	struct mst_identity who;
	uint32_t servers; /* each sends a part of an answer */
	uint32_t parts;   /* of the answer that have come */
	uint32_t checks;  /* of the hint, in each gradient */
	uint64_t seq, epoch, asks;
	uint64_t version;             /* that it computes on; MST_VERSION_NONE: none yet */
	uint64_t hint;                /* gradients on older versions cannot count */
	uint64_t begin_ns, length_ns; /* of the gradient */
	uint64_t wake_ns; /* when it wants to be woken; MST_NEVER: only when it is told something */
	uint64_t given_up; /* gradients, in this session */
	struct mst_delay *delay;
};

static inline bool mst_sim_worker_computes(const struct mst_sim_worker *w)
{
	return w->state == MST_SIM_COMPUTING || w->state == MST_SIM_GIVING_UP;
}

/* What a worker does on what it was told. */
struct mst_sim_act {
	bool sends;
	struct mst_ledger_event event; /* that it sends */
	bool gave_up;
	uint64_t given_up_ns; /* that it has computed on the gradient given up */
};

/* A new process takes the rank. */
void mst_sim_worker_join(struct mst_sim_worker *w, struct mst_sim_act *act);
/* A decision about this worker arrives. One about an earlier session changes nothing; nor does the
 * end of the session, for which there is mst_sim_worker_stop(). */
void mst_sim_worker_told(struct mst_sim_worker *w, const struct mst_decision *order,
			 uint64_t now_ns, struct mst_sim_act *act);
/* The time has come that the worker wanted to be woken at. */
void mst_sim_worker_wake(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act);
/* The process ends, or stands still for good. Return: how long it has computed on a gradient that
 * does not come any more; 0: on none. */
uint64_t mst_sim_worker_stop(struct mst_sim_worker *w, uint64_t now_ns);

#endif
