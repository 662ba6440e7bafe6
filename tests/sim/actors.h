/* SPDX-License-Identifier: MIT */
/* The actors of a world beside its servers: workers that come, compute, push and go; and what
 * befalls all of them (faults.c). */
#ifndef MST_TESTS_SIM_ACTORS_H
#define MST_TESTS_SIM_ACTORS_H

#include "client/api/handle.h"
#include "tests/sim/observer.h"
#include "tests/sim/plan.h"
#include "tests/sim/world.h"

struct sim_worker {
	struct obs_worker seen;
	const struct sim_manners *manners;
	struct sim_process *process;
	struct muster *m; /* NULL: not in a job */
	uint64_t contents;
	uint64_t batches;          /* under Downpour */
	struct muster_orders pace; /* that its version has told it */
	void *own; /* registered memory that it computes in; NULL: it computes in slots */
	enum { OWN_FREE, OWN_PUSHED, OWN_GIVEN_UP } own_state; /* what has become of it since */
	struct sim_state {
		uint64_t version;
		uint32_t of; /* the generation of its giver's last outcome */
	} gives;
	void *into;           /* memory of its own that results go to; NULL: none */
	uint64_t frozen_ns;   /* in all */
	uint64_t dawdle_ns;   /* that its next piece takes longer */
	uint64_t welcomed_ns; /* when its heart began to beat; 0: its open has no welcome yet */
	bool comes_again;     /* another process of this rank was there before */
	bool begins_late;     /* with a state, and has not waited since */
	bool average_comes;   /* an average that it has asked for is still on its way */
	bool leaves, finishes, scribbles, talks_rubbish;
	int rogue_at;            /* server, or SIM_ALL */
	struct sim_worker *next; /* older */
};

/* Lives the plan through. Return: did everybody go home? If not, nothing can be freed. */
bool actors_play(struct sim_plan *plan);

/* The youngest process of this rank; NULL: none yet. */
struct sim_worker *actors_worker(uint32_t rank);
/* Another process of this rank. */
void actors_enter(uint32_t rank, bool again);
/* After a while another server begins, if this one has not ended by then. */
void actors_begin_beside(struct sim_process *leader);
/* By whose link it is. */
struct sim_worker *actors_owner(const struct sim_process *p);

/* ---- faults.c ---- */

void faults_begin(struct sim_plan *plan);
#define SIM_NOBODY (-1)
/* A put of this kind between this rank and this server; of VERDICT, GRANT and COMMIT, the decision,
 * as that server executes it. COMMIT is of nobody. */
void faults_moment(int rank, uint32_t server, uint32_t moment);
/* What a worker that talks rubbish says next. */
void faults_rubbish(struct sim_worker *w);

/* ---- marks.c ---- */

/* Something has been written where this worker reads, or may have been, where any reads. */
void marks_look_at(const struct sim_worker *w);
void marks_look(const struct sim_plan *plan);

/* ---- life.c ---- */

void life_begin(const struct sim_plan *plan);
/* A worker's main. */
void life_main(void *worker);

#endif
