/* SPDX-License-Identifier: MIT */
/*
 * What a simulated worker does: it joins, computes, pushes with an ask, and computes again when the
 * ask is answered. It does what muster_train() does in a program with libmuster:
 *
 * - A batch is computed in micro-batches. A worker that is asked to hand in pushes what it has
 *   finished, at the end of the micro-batch at hand, and goes on with the rest of its batch when it
 *   is answered; it passes if it has nothing. Under a rule that waits for being asked, a
 *   contribution goes on over the ends of batches.
 * - Under a rule by micro-batches it pushes each of them when it is finished.
 * - Under a rule with a pace it makes several batches between two exchanges, some of which do not
 *   have it wait (paced.h).
 * - Under a rule that preempts it looks at the hint a few times in each batch, and gives up what
 *   cannot count any more.
 *
 * Pure: it is told what has happened, and says what it sends, and when it wants to be woken.
 */
#ifndef MST_TOOLS_SIM_WORKER_H
#define MST_TOOLS_SIM_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/ledger/ledger.h"
#include "tools/sim/cfg.h"

/*
 * A batch, which a simulated worker computes in micro-batches of equal length. Contributions may
 * take it in parts: what one contribution has taken, the next does not take again. Pure.
 */
struct mst_sim_batch {
	uint32_t micro;     /* how many micro-batches it has, 1 or more */
	bool open;          /* it has begun, and is neither taken whole nor given up */
	uint32_t taken;     /* micro-batches that contributions have taken */
	uint64_t length_ns; /* of the whole batch */
	uint64_t begin_ns;  /* when it would have begun, had it been computed without a pause */
};

/* Goes on at @now_ns with what is not taken yet. A batch that is not open begins, and is to take
 * @length_ns. */
void mst_sim_batch_begin(struct mst_sim_batch *b, uint64_t length_ns, uint64_t now_ns);
/* When all of it will be finished; MST_NEVER: later than there is time. */
uint64_t mst_sim_batch_end_ns(const struct mst_sim_batch *b);
/* When the next micro-batch that is not taken will be finished, as above; the batch is open. */
uint64_t mst_sim_batch_next_ns(const struct mst_sim_batch *b);
/* The first time from @now_ns on at which no micro-batch is half done; not after the end. */
uint64_t mst_sim_batch_bound_ns(const struct mst_sim_batch *b, uint64_t now_ns);
/* The time spent on what is not taken. */
uint64_t mst_sim_batch_spent_ns(const struct mst_sim_batch *b, uint64_t now_ns);
/* Takes what is finished at @now_ns. A batch that is taken whole is closed.
 * @spent_ns: the time spent on it is added. Return: how many micro-batches. */
uint32_t mst_sim_batch_take(struct mst_sim_batch *b, uint64_t now_ns, uint64_t *spent_ns);

struct mst_delay;

enum mst_sim_worker_state {
	MST_SIM_GONE,      /* no process, or one that has stopped for good */
	MST_SIM_JOINING,   /* waits to be admitted, or to try again */
	MST_SIM_WAITING,   /* has an ask out */
	MST_SIM_COMPUTING, /* until wake_ns, when the batch is complete or is handed in in part */
	MST_SIM_GIVING_UP, /* computes until it looks at the hint, at wake_ns */
};

/* What the record of a version says that a worker does on it. */
struct mst_sim_orders {
	struct mst_pace pace;
	bool until_asked; /* contributions grow until they are asked for */
	bool by_micro;    /* every micro-batch is a contribution */
};

/* What a worker does next after it has got an answer. */
enum mst_sim_stage {
	MST_SIM_STEP,   /* it computes a batch */
	MST_SIM_ACCRUE, /* it keeps its last gradient in a sum, since no slot was free */
	MST_SIM_MEET,   /* elastic averaging: it pushes its difference from this version */
};

struct mst_sim_worker {
	enum mst_sim_worker_state state;
	struct mst_identity who;
	uint32_t servers; /* each sends a part of an answer */
	uint32_t parts;   /* of the answer that have come */
	uint32_t checks;  /* of the hint, in each batch */
	uint64_t seq, epoch, asks;
	uint64_t answers;             /* in all sessions */
	bool spent;                   /* the slot, until it is granted again */
	bool deferred;                /* an ask has gone out after a push that is not judged yet */
	uint64_t version;             /* that it computes on; MST_VERSION_NONE: none yet */
	struct mst_sim_orders orders; /* of that version */
	struct mst_sim_orders next;   /* of the version with which the ask has been answered */
	uint64_t hint;                /* contributions on older versions cannot count */
	bool wanted;                  /* what is finished on that version is to be handed in */
	double samples;               /* of a batch */
	struct mst_sim_batch batch;
	/* These belong to the contribution at hand, beside the rest of the batch. */
	uint64_t micro, spent_ns, tag;
	enum mst_sim_stage stage;
	uint32_t steps, accrued, unfetched; /* batches since ... (paced.c) */
	uint64_t wake_ns; /* when it wants to be woken; MST_NEVER: only when it is told something */
	uint64_t awake_ns; /* until then the process stands still */
	uint64_t given_up; /* contributions, in this session */
	struct mst_delay *delay;
};

static inline bool mst_sim_worker_computes(const struct mst_sim_worker *w)
{
	return w->state == MST_SIM_COMPUTING || w->state == MST_SIM_GIVING_UP;
}

/* What a worker does in response to what it was told. */
struct mst_sim_act {
	bool sends;
	bool arrives;                  /* the event was sent before, and has arrived already */
	struct mst_ledger_event event; /* sends: the event */
	uint64_t pushed_ns;            /* time computed for the contribution that it pushes */
	bool gave_up;
	uint64_t given_up_ns; /* gave_up: time computed for the contribution that it gives up */
};

/* A new process takes the rank. */
void mst_sim_worker_join(struct mst_sim_worker *w, struct mst_sim_act *act);
/* A decision about this worker arrives. One about an earlier session changes nothing; nor does the
 * end of the session, for which there is mst_sim_worker_stop(). */
void mst_sim_worker_told(struct mst_sim_worker *w, const struct mst_decision *order,
			 uint64_t now_ns, struct mst_sim_act *act);
/* The slot is granted again, with this epoch. */
void mst_sim_worker_granted(struct mst_sim_worker *w, uint64_t epoch, struct mst_sim_act *act);
/* The process stands still for so long, and goes on after that as if nothing had been. */
void mst_sim_worker_nap(struct mst_sim_worker *w, uint64_t length_ns, uint64_t now_ns);
/* The time has come that the worker wanted to be woken at. */
void mst_sim_worker_wake(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act);
/* The process ends, or stands still for good. Return: how long it has computed on a gradient that
 * does not come any more; 0: on none. */
uint64_t mst_sim_worker_stop(struct mst_sim_worker *w, uint64_t now_ns);

#endif
