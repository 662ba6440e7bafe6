/* SPDX-License-Identifier: MIT */
/*
 * The simulated world: one clock, one source of chance, processes whose fibers take turns, and
 * things that happen at their time. All follows from the seed: same seed, same world, to the byte.
 *
 * The real server and client run in it unchanged. Transport (net.h), control stream (stream.h) and
 * clock are the world's; what else they would take from the operating system, seams.c gives them.
 *
 * There is one world at a time. Its own memory (sim_alloc) lasts until its end, so that nobody
 * holds a pointer to what is gone.
 */
#ifndef MST_TESTS_SIM_WORLD_H
#define MST_TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/rand.h"

void sim_begin(uint64_t seed);
/* All fibers have ended. */
void sim_end(void);
/* The number of this world: what was kept of another is not to be used. */
uint64_t sim_world(void);

/* Lets time pass until nothing happens any more, @until_ns has come, or sim_stop(). */
void sim_run(uint64_t until_ns);
void sim_stop(void);

/* The world's time. What mst_now_ns() tells a process differs from it by an offset of its own. */
uint64_t sim_now(void);
/* The number of things that have happened, and a hash of them all. Worlds of one seed have the
 * same. */
uint64_t sim_steps(void);
uint64_t sim_hash(void);
void sim_mix(uint64_t fact); /* adds to it */

/* Zeroed, and freed with the world. Shared: it can be mapped a second time (pages.h). */
void *sim_alloc(size_t bytes);

/* ---- chance ---- */

uint64_t sim_below(uint64_t bound);                /* [0, bound) */
uint64_t sim_between(uint64_t low, uint64_t high); /* both can be */
bool sim_chance(double probability);

/* ---- what happens later ---- */

typedef void (*sim_act)(void *ctx, uint64_t arg);
void sim_after(uint64_t delay_ns, sim_act act, void *ctx, uint64_t arg);

/* ---- processes ---- */

enum sim_death {
	SIM_KILLED,    /* its kernel tells its peers */
	SIM_POWER_OFF, /* nobody tells anybody */
};

/* What a sleeper waits for. One sleeper at a time. */
struct sim_wakeup {
	struct sim_fiber *sleeper;
	bool rung;
};

struct sim_process {
	char name[24];
	uint32_t id;
	/* The owner's to set before the process runs. Processes of one host share memory. */
	uint32_t host;
	/* A dead process runs on as a ghost until its mains return, because their memory is to be
	 * freed: nothing it does reaches anybody, whatever it waits for does not come, its clock
	 * runs ahead as it waits. */
	bool dead;
	enum sim_death death;
	uint64_t clock_offset;
	uint64_t frozen_until; /* its fibers do not run before */
	/* A control stream has something to read, a link is asked for, or somebody notifies. */
	struct sim_wakeup control;
	uint32_t fibers; /* that have not ended */
	struct sim_process *next;
};

struct sim_process *sim_process_new(const char *name);
/* Is another process on its host, or was one? */
bool sim_shares_host(const struct sim_process *p);
/* The process whose fiber runs; NULL: none does. */
struct sim_process *sim_self(void);

void sim_kill(struct sim_process *p, enum sim_death how);
void sim_freeze(struct sim_process *p, uint64_t span_ns);
/* What nets and streams do when a process dies. Kept over worlds. */
void sim_at_death(void (*act)(struct sim_process *p));

/* ---- fibers ---- */

/* Runs @main in @p, soon. */
void sim_spawn(struct sim_process *p, void (*main)(void *arg), void *arg);
/* Until @wakeup rings or the time is over, by this process's clock. Return: has it rung? It may
 * also return early. */
bool sim_wait(struct sim_wakeup *wakeup, uint64_t timeout_ns);
void sim_ring(struct sim_wakeup *wakeup);
/* All of the time. */
void sim_sleep(uint64_t ns);
/* A place where a thread could lose its processor: now and then others get a turn, sometimes for
 * long. Outside any fiber: nothing. */
void sim_preempt(void);
/* The fiber that runs has a pause at its next such place: others get between what it does before
 * and after. */
void sim_interrupt(void);
/* How often that is so. */
void sim_set_preemption(double chance);

/* ---- the trace ---- */

/* Off: sim_say() does nothing. */
void sim_trace(bool on);
void sim_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
